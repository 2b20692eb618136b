# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each step's snapshot is copied to the host, asynchronously as it says, but to memory that is not pinned: the call returns
when the copy is done, and only then the next step is launched.

    --pinned    to pinned memory: the call returns at once"""
import ctypes
import sys

import planted
from planted import D2H, Device

KERNELS, SIZE = 100, 256 << 10


def snapshot(device, side, there, here):
    """Of what the step has left, on a stream of its own."""
    with planted.span("cause"):
        device.gpu.cudaMemcpyAsync(here, there, SIZE, D2H, side)


def main():
    planted.begin()
    planted.thread("dispatch")
    device = Device()
    gpu = device.gpu
    there = gpu.out(gpu.cudaMalloc, SIZE)
    side = gpu.out(gpu.cudaStreamCreateWithFlags, 1)
    buffer = ctypes.create_string_buffer(SIZE)
    here = gpu.out(gpu.cudaHostAlloc, SIZE, 0) if "--pinned" in sys.argv else ctypes.addressof(buffer)
    planted.ready()
    while planted.running():
        device.launch("layer_100us", KERNELS)
        device.wait()
        snapshot(device, side, there, here)
    planted.leave()


if __name__ == "__main__":
    main()
