# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An engine-shaped graph of objects, for CPython 3.8 and later: Core.step() again and again, each time with other values. A file gets
a line of JSON for each call: when it began and ended, and what was in the fields then, {path: value}.

usage: fields.py TRUTH [LIBRARY]     the library is opened on SIGUSR1
"""
import collections
import ctypes
import json
import signal
import sys
import time


class Request:
    __slots__ = ("request_id", "priority")

    def __init__(self, n):
        self.request_id = f"req-{n:04d}-\u00e4" if n % 2 else f"req-{n:04d}"
        self.priority = -n


class Queue(collections.deque):
    """As vLLM's first-come-first-served queue."""


class Scheduler:
    limit = 256

    def __init__(self):
        self.running = []
        self.waiting = Queue()
        self.by_id = {}
        self.share = 0.0
        self.paused = False
        self.policy = None

    @property
    def load(self):
        return len(self.running)


class Core:
    def __init__(self):
        self.scheduler = Scheduler()
        self.name = "core"
        self.steps = 0
        self.current = None

    def step(self, batch, scale=1.0):
        s = self.scheduler
        self.steps = batch
        s.running = list(range(batch % 7))
        s.waiting.append(batch)
        if len(s.waiting) > 90:
            s.waiting.clear()
        s.by_id[batch % 50] = 1
        s.share = batch / 3
        s.paused = batch % 2 == 0
        s.policy = None if batch % 3 else "fcfs"
        self.current = Request(batch)
        return sum(batch + i for i in range(2))  # batch is used by an inner function


def work(core, batch):
    hidden = batch * 2**40

    def inner():
        return hidden

    return inner()


def truth(core, batch):
    s, now = core.scheduler, core.current
    return {"self.scheduler.running:len": len(s.running), "self.scheduler.waiting:len": len(s.waiting), "self.scheduler.by_id": len(s.by_id),
            "self.scheduler.share:float": s.share, "self.scheduler.paused:bool": s.paused, "self.scheduler.policy": s.policy,
            "self.steps:int": core.steps, "batch": batch, "scale": 1.0, "self.current.request_id:str": now and now.request_id,
            "self.current.priority:int": now and now.priority, "self.scheduler.limit": s.limit, "self.name": core.name}


def main():
    out = open(sys.argv[1], "w", encoding="utf-8")
    going = [True]
    signal.signal(signal.SIGTERM, lambda *_: going.clear())
    signal.signal(signal.SIGUSR1, lambda *_: ctypes.CDLL(sys.argv[2]))
    core, batch = Core(), 0
    print("ready", flush=True)
    while going:
        batch += 1
        at_begin, begin = truth(core, batch), time.monotonic_ns()
        core.step(batch)
        out.write(json.dumps([begin, time.monotonic_ns(), at_begin, truth(core, batch)]) + "\n")
        work(core, batch)
        time.sleep(0.01)
    out.close()


main()
