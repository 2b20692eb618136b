# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Continuous batching: 24 callers, each of which has one request of 10 blocks that grows to some 30.

    --blocks N    KV blocks there are (default 1,000: enough for all). When they run out, the youngest request gives its own
                  back and begins anew
    --limit N     requests that may run at once (default 64: all)"""
import collections
import sys

import planted
from planted import Device

CALLERS, PROMPT, LONGEST, EVERY = 24, 10, 30, 4


class Request:
    made = 0

    def __init__(self):
        Request.made += 1
        self.blocks, self.steps, self.longest = 0, 0, LONGEST + Request.made % 7


class Scheduler:
    def __init__(self, blocks, limit):
        self.num_blocks = self.free_blocks = blocks
        self.max_num_seqs = limit
        self.waiting, self.running = collections.deque(), []
        self.num_preemptions = 0

    def admit(self):
        while self.waiting and len(self.running) < self.max_num_seqs and self.free_blocks > PROMPT:
            request = self.waiting.popleft()
            request.blocks, request.steps = PROMPT, 0
            self.free_blocks -= PROMPT
            self.running.append(request)

    def release(self, request):
        self.free_blocks += request.blocks
        request.blocks = 0

    def grow(self, request):
        """One block more; None is left: the youngest goes."""
        if not self.free_blocks:
            victim = self.running.pop()
            self.release(victim)
            self.waiting.appendleft(victim)
            self.num_preemptions += 1
            planted.note("preempt", planted.now(), planted.now() + 1)
        if request.blocks:
            request.blocks += 1
            self.free_blocks -= 1

    def schedule(self):
        self.admit()
        for request in list(self.running):
            request.steps += 1
            if request.blocks and request.steps % EVERY == 0:
                self.grow(request)
        done = [r for r in self.running if r.blocks >= r.longest]
        for request in done:
            self.running.remove(request)
            self.release(request)
        self.waiting.extend(Request() for _ in done)  # their callers ask again


class EngineCore:
    def __init__(self, scheduler, device):
        self.scheduler, self.device = scheduler, device

    def step(self):
        self.scheduler.schedule()
        self.device.launch("layer_100us", 40)
        self.device.mark()
        self.device.wait_for_marks(left=1)


def option(name, default):
    return int(sys.argv[sys.argv.index(name) + 1]) if name in sys.argv else default


def main():
    planted.begin()
    planted.thread("dispatch")
    scheduler = Scheduler(option("--blocks", 1000), option("--limit", 64))
    core = EngineCore(scheduler, Device())
    scheduler.waiting.extend(Request() for _ in range(CALLERS))
    planted.ready()
    while planted.running():
        state = {"waiting": len(scheduler.waiting), "running": len(scheduler.running), "free": scheduler.free_blocks,
                 "preemptions": scheduler.num_preemptions}
        with planted.span("step", **state):
            core.step()
    core.device.wait()
    planted.leave()


if __name__ == "__main__":
    main()
