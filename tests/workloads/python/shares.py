# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Three functions that share a CPU, in no rhythm that a sampler could be in step with. For each line that it reads it prints the CPU time that each has taken so far as JSON."""
import json
import random
import sys
import threading
import time

spent = {"most": 0, "some": 0, "rest": 0}


def spin(n):
    x = 0
    for i in range(n):
        x += i * i
    return x


def square(x):
    return x * x


def most():
    return spin(random.randrange(6000))


def some():
    return spin(random.randrange(3000))


def rest():
    return sum(map(square, range(random.randrange(2000))))


def tell():
    for _ in sys.stdin:
        print(json.dumps(spent), flush=True)


def main():
    threading.Thread(target=tell, daemon=True).start()
    print("ready", flush=True)
    while True:
        for f in random.choices((most, some, rest), k=3):
            begin = time.thread_time_ns()
            f()
            spent[f.__name__] += time.thread_time_ns() - begin


main()
