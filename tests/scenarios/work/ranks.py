# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Two ranks that add up after each half of a step, as in tensor parallelism. What is wrong with rank 1:

    --gc        a million objects that Python's collector looks at every 60 steps
    --frozen    the same objects, taken out of the collector's sight
    --slow      6 ms more of Python in each step than rank 0 has"""
import gc
import secrets
import sys

import planted
from planted import Device, now

from mini_llm.gpu import BF16, GpuError, UniqueId

KERNELS, EVERY, OBJECTS, SLOW_S = 3, 60, 1_000_000, 0.006


class Rank(Device):
    def __init__(self, rank, ident):
        super().__init__(rank)
        unique = UniqueId()
        planted.ctypes.memmove(planted.ctypes.byref(unique), ident, 128)
        self.buffer = self.gpu.out(self.gpu.cudaMalloc, 1 << 20)
        self.communicator = self.gpu.out(self.gpu.ncclCommInitRank, 2, unique, rank)

    def add_up(self):
        self.gpu.ncclAllReduce(self.buffer, self.buffer, 1 << 16, BF16, 0, self.communicator, self.stream)

    def step(self):
        for _ in range(2):
            self.launch("layer_1ms", KERNELS)
            self.add_up()
        self.wait()


def watch_collector():
    begun = []

    def told(phase, _):
        if phase == "start":
            begun.append(now())
        else:
            planted.note("cause", begun.pop(), now())

    gc.callbacks.append(told)


def prepare_inputs():
    """Only this rank does it."""
    with planted.span("cause"):
        planted.work(SLOW_S)


def steps(rank, device, slow, collect):
    number = 0
    while planted.running():
        number += 1
        with planted.span("step", rank=rank, number=number):
            if slow and rank == 1:
                prepare_inputs()
            if collect and number % EVERY == 0:
                gc.collect()
            device.step()


def run(rank, ident, what):
    planted.thread("rank-%d" % rank)
    gc.disable()
    device = Rank(rank, ident)
    heap = [[i] for i in range(OBJECTS)] if rank == 1 and what in ("--gc", "--frozen") else []
    if what == "--frozen":
        gc.freeze()
    watch_collector()
    planted.ready()
    try:
        steps(rank, device, what == "--slow", bool(heap))
    except GpuError:
        assert not planted.running()  # the other rank has stopped already


def main():
    ident = secrets.token_bytes(16) + bytes(112)
    what = sys.argv[1] if len(sys.argv) > 1 else ""
    planted.begin()
    planted.child(run, 1, ident, what)
    run(0, ident, what)
    planted.leave()


if __name__ == "__main__":
    main()
