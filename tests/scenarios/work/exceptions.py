# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A cache whose misses are told by exceptions: 2,000 of them in each step, more than the device has work for.

    --ask    it is asked first"""
import sys

import planted
from planted import Device

KERNELS, MISSES = 20, 2000


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


def schedule(cache, ask):
    made = 0
    for key in range(MISSES):
        if ask:
            made += not cache.has(key)
            continue
        try:
            cache.find(key)
        except NotCached:
            made += 1
    return made


def main():
    planted.begin()
    planted.thread("dispatch")
    device, cache, ask = Device(), Cache(), "--ask" in sys.argv
    planted.ready()
    while planted.running():
        with planted.span("cause", raised=0 if ask else MISSES):
            schedule(cache, ask)
        device.launch("layer_100us", KERNELS)
        device.mark()
        device.wait_for_marks(left=1)
    device.wait()
    planted.leave()


if __name__ == "__main__":
    main()
