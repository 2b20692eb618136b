# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What else runs on the machine is not part of a scenario: its processes come first."""
import contextlib
import os


def first(tid=0):
    """A thread, 0: the calling one."""
    try:
        os.sched_setscheduler(tid, os.SCHED_RR, os.sched_param(1))
    except ProcessLookupError:
        pass
    except OSError:  # not in this control group
        if not tid:
            nice()


def nice():
    """The same where the scenario needs the fair scheduler."""
    os.setpriority(os.PRIO_PROCESS, 0, -19)
    try:
        with open("/proc/self/autogroup", "w", encoding="ascii") as f:
            f.write("-19")  # where sessions compete as groups, a nice value counts within its session only
    except OSError:
        pass  # they do not here


def threads(pids):
    """[tid]"""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            found += map(int, os.listdir(f"/proc/{pid}/task"))
    return found


@contextlib.contextmanager
def processes(pids, tracer=False):
    """All threads that these have now, for a while; with `tracer` also what this thread starts meanwhile."""
    mine = threads(pids) + [0] * tracer
    for tid in mine:
        first(tid)
    try:
        yield
    finally:
        for tid in mine:
            with contextlib.suppress(OSError):
                os.sched_setscheduler(tid, os.SCHED_OTHER, os.sched_param(0))
