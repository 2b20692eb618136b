# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Functions made at run time that lie at the same address one after the other, each called once by its number, each with a
sleep: a name that belongs to another function would show."""
import gc
import time

print("ready", flush=True)
n = 0
while True:
    scope = {"time": time}
    exec(compile(f"def made_{n:06d}():\n    time.sleep(0.012)\n", f"<made {n}>", "exec"), scope)
    scope[f"made_{n:06d}"]()
    n += 1
    scope.clear()
    gc.collect()
