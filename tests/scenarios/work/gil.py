# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A thread that renders metrics keeps the GIL for 8 ms at a time, while another launches the steps of an engine.

    --release   it does the same in a function that gives the GIL away"""
import ctypes
import sys
import threading
import time

import planted
from planted import Device, now

HOLD_US, PAUSE_S = 8000, 0.015
KERNELS = 30  # of 100 us a step


def render_metrics(usleep):
    """usleep stands for a C function that formats for long."""
    planted.thread("metrics")
    while planted.running():
        with planted.span("hold"):
            usleep(HOLD_US)
        time.sleep(PAUSE_S)


def main():
    planted.begin()
    planted.thread("dispatch")
    library = ctypes.CDLL(None) if "--release" in sys.argv else ctypes.PyDLL(None)
    device = Device()
    threading.Thread(target=render_metrics, args=(library.usleep,), daemon=True).start()
    planted.ready()
    while planted.running():
        for _ in range(KERNELS):
            t = now()
            device.launch("layer_100us")
            planted.note("call", t, now())
        device.mark()
        t = now()
        device.wait_for_marks(left=1)
        planted.note("call", t, now())
    device.wait()
    planted.leave()


if __name__ == "__main__":
    main()
