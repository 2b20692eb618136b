# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Functions made at run time that lie at the same address one after the other, each far out on the stack when its one sleep
comes: below them all is the same. Sleeps that one made are told by their length, microseconds: 12,000 + its number % 1,000."""
import gc
import time


def nap(us):
    time.sleep(us / 1e6)


def inner(us):
    nap(us)


def middle(us):
    inner(us)


print("ready", flush=True)
n = 0
while True:
    scope = {"middle": middle}
    exec(compile(f"def made_{n:06d}():\n    middle({12000 + n % 1000})\n", f"<made {n}>", "exec"), scope)
    scope[f"made_{n:06d}"]()
    n += 1
    scope.clear()
    gc.collect()
