# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Each part of a step reads a number back from the device before it prepares and launches the next part.

    --later    the number is read once a step, when a step more is queued"""
import sys

import planted
from planted import D2H, Device, now

PARTS, KERNELS, PREPARE_S = 6, 10, 0.0004


class Tensor:
    """Eight bytes on the device."""

    def __init__(self, device):
        self.device, gpu = device, device.gpu
        self.there, self.here = gpu.out(gpu.cudaMalloc, 8), gpu.out(gpu.cudaHostAlloc, 8, 0)

    def copy_back(self):
        self.device.gpu.cudaMemcpyAsync(self.here, self.there, 8, D2H, self.device.stream)

    def item(self):
        with planted.span("wait"):
            self.copy_back()
            self.device.wait()


class EngineCore:
    def __init__(self, device, later):
        self.device, self.length, self.later = device, Tensor(device), later

    def step(self):
        waited = None
        for _ in range(PARTS):
            planted.work(PREPARE_S)
            if waited is not None:
                planted.note("cause", waited, now())  # without it, this part had been launched before the last one ended
            self.device.launch("layer_100us", KERNELS)
            if not self.later:
                waited = now()
                self.length.item()
        self.length.copy_back()
        self.device.mark()
        self.device.wait_for_marks(left=1)


def main():
    planted.begin()
    planted.thread("dispatch")
    device = Device()
    core = EngineCore(device, "--later" in sys.argv)
    planted.ready()
    while planted.running():
        core.step()
    device.wait()
    planted.leave()


if __name__ == "__main__":
    main()
