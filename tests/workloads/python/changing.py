# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Classes that come and go, so that one lies where another was, with other attributes or the same ones in another order: look(o) is
called with an object of each a few times. In every one of them o.twice is 2 * o.once + 1. Other threads do the same.

usage: changing.py
"""
import random
import sys
import threading
import time


def look(o):
    return o


def make(n, random):
    names = ["once", "twice"] + [f"other_{i}" for i in range(random.randrange(6))]
    random.shuffle(names)
    cls = type(random.choice(["Same", "Same", f"T{n % 7}"]), (), {"__slots__": names} if n % 3 == 0 else {})
    o = cls()
    for name in names:
        setattr(o, name, {"once": n, "twice": 2 * n + 1}.get(name, random.randrange(1000)))
    if n % 5 == 0 and n % 3:
        o.__dict__["late"] = 1
    return o


def work(seed):
    mine, n = random.Random(seed), 0
    while True:
        n += 1
        o = make(n, mine)
        for _ in range(4):
            look(o)
            if n % 2:
                time.sleep(0.002)


sys.setswitchinterval(0.0005)
for i in range(2):
    threading.Thread(target=work, args=(i,), daemon=True).start()
print("ready", flush=True)
work(7)
