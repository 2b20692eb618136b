# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Objects whose constructors sleep, so often that the interpreter specialises the call; a function of code without a file."""
import time

nap = [0.0]


class Thing:
    def __init__(self):
        if nap[0]:
            time.sleep(nap[0])


def build():
    Thing()


other = {"time": time}
exec(compile("def nameless():\n    time.sleep(0.01)\n", "", "exec"), other)

for _ in range(10000):
    build()
nap[0] = 0.01
print("ready", flush=True)
while True:
    build()
    other["nameless"]()
