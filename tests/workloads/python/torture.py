# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sleeps in places that are hard to read: below deep recursion, in functions with names of a megabyte, and in children that are
forked, become another program or end all the time. The argument names another Python that children become."""
import os
import sys
import threading
import time

NAP = 0.012
HUGE = "x" * 1000000
made = {}
exec(compile(f"def {HUGE}(nap):\n    nap()\n", "/" + "y" * 1000000, "exec"), globals(), made)
sys.setrecursionlimit(5000)


def nap():
    time.sleep(NAP)


def down(n):
    return down(n - 1) if n else nap()


def spin_and_end(n):
    if n:
        return spin_and_end(n - 1)
    end = time.monotonic() + 0.003
    while time.monotonic() < end:
        pass


def child(n):
    spin_and_end(20)
    time.sleep(0.0005)
    if n % 2:
        os.execv(sys.argv[1], [sys.argv[1], "-S", "-E", "-c", "def other():\n    import time; time.sleep(0.011)\nother()"])
    os._exit(0)


def family():
    for n in range(10 ** 9):
        pid = os.fork()
        if not pid:
            child(n)
        os.waitpid(pid, 0)


def depths():
    while True:
        for n in (10, 64, 500):
            threading.Thread(target=down, args=(n,)).run()
        made[HUGE](nap)


def main():
    threading.stack_size(64 << 20)
    threading.Thread(target=depths, daemon=True).start()
    print("ready", flush=True)
    family()


main()
