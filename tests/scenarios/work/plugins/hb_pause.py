# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A general plug-in of vLLM, found by its entry point, in all of its processes. With several workers these look for messages all
the time; where HB_PAUSE_US is set they sleep for so long in between: two CPUs are not enough for three that spin."""
import os
import time


def install():
    pause = int(os.environ.get("HB_PAUSE_US", 0)) / 1e6
    if pause:
        from vllm.distributed.device_communicators import shm_broadcast

        shm_broadcast.sched_yield = lambda: time.sleep(pause)
