# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A cache whose misses are told by exceptions: 1,000 of them in each step, while the device has nothing to do.

    --ask    it is asked first"""
import sys

import planted
from planted import Device, now

KERNELS, MISSES = 4, 1000


class NotCached(KeyError):
    pass


class Cache:
    def __init__(self):
        self.blocks = {}

    def find(self, key):
        block = self.blocks.get(key)
        if block is None:
            raise NotCached(key)
        return block

    def has(self, key):
        return key in self.blocks


def schedule_asking(cache):
    return sum(not cache.has(key) for key in range(MISSES))


def schedule(cache):
    spent = made = 0
    begin = now()
    for key in range(MISSES):
        t = now()
        try:
            cache.find(key)
        except NotCached:
            made += 1
        spent += now() - t
    planted.note("cause", begin, now(), raised=made, spent=spent)


def main():
    planted.begin()
    planted.thread("dispatch")
    device, cache, ask = Device(), Cache(), "--ask" in sys.argv
    planted.ready()
    while planted.running():
        if ask:
            schedule_asking(cache)
        else:
            schedule(cache)
        device.launch("layer_1ms", KERNELS)
        device.wait()
    planted.leave()


if __name__ == "__main__":
    main()
