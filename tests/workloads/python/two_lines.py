# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Sleeps in one function that differ by a caller's line only: that of the one next to it, or one several frames out. Each reads
a pipe of its own, so which it was is told by the file. Prints {file: [function, line]}."""
import json
import os
import sys
import time


def nap(fd):
    os.read(fd, 1)


def near():
    nap(FDS[0])
    nap(FDS[1])


def deep(fd, n):
    if n:
        deep(fd, n - 1)
    else:
        nap(fd)


def far():
    deep(FDS[2], 6)
    deep(FDS[3], 6)


PIPES = [os.pipe() for _ in range(4)]
FDS = [r for r, _ in PIPES]
READER = os.getpid()
if os.fork() == 0:
    while os.getppid() == READER:
        for _, w in PIPES:
            time.sleep(0.02)
            os.write(w, b"x")
    os._exit(0)
lines = [[f.__name__, f.__code__.co_firstlineno + i] for f in (near, far) for i in (1, 2)]
print(json.dumps(dict(zip(FDS, lines))))
print("ready")
sys.stdout.flush()
while True:
    near()
    far()
