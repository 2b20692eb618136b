# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Steps of 600 kernels that take 2 us each, launched one by one.

    --graph       by one graph launch a step
    --miss N      of steps with graphs each Nth has a batch that none was captured for"""
import sys

import planted
from planted import Device

KERNELS = 600


def capture(device):
    gpu = device.gpu
    gpu.cudaStreamBeginCapture(device.stream, 2)
    device.launch("tiny_2us", KERNELS)
    graph = gpu.out(lambda g: gpu.cudaStreamEndCapture(device.stream, g))
    return gpu.out(gpu.cudaGraphInstantiate, graph, 0)


def forward_eager(device):
    with planted.span("cause"):
        device.launch("tiny_2us", KERNELS)


def forward_graph(device, graph):
    device.gpu.cudaGraphLaunch(graph, device.stream)


class Runner:
    def __init__(self, device, graph, miss):
        self.device, self.graph, self.miss = device, graph, miss

    def execute_model(self, batch):
        if self.graph and batch != "large":
            forward_graph(self.device, self.graph)
        else:
            forward_eager(self.device)

    def step(self, number):
        self.execute_model("large" if self.miss and number % self.miss == 0 else "small")
        self.device.wait()


def main():
    planted.begin()
    planted.thread("dispatch")
    device = Device()
    miss = int(sys.argv[sys.argv.index("--miss") + 1]) if "--miss" in sys.argv else 0
    graph = capture(device) if miss or "--graph" in sys.argv else None
    runner = Runner(device, graph, miss)
    planted.ready()
    number = 0
    while planted.running():
        number += 1
        with planted.span("step"):
            runner.step(number)
    device.wait()
    planted.leave()


if __name__ == "__main__":
    main()
