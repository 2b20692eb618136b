# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""One rank of a tensor-parallel model: eager prefill, decode by one graph launch a step."""
import argparse
import ctypes
import struct
import sys

from .base import StepLog, become, now
from .channel import Channel
from .gpu import BF16, D2H, H2D, Gpu, UniqueId

BATCHES = (1, 2, 4, 8, 16, 32, 64)
BUCKETS = (64, 256, 1024, 4096)  # prefill tokens a kernel is made for
NODES = ("rms_norm", "rope", "reshape_and_cache", "flash_attn", "rms_norm2", "silu_and_mul")
GEMMS = ("gemm_qkv", "gemm_out", "gemm_gate_up", "gemm_down")
MAX_TOKENS = 8192


class Model:
    def __init__(self, gpu, layers, hidden, comm):
        self.gpu, self.layers, self.hidden, self.comm = gpu, layers, hidden, comm
        self.stream = gpu.out(gpu.cudaStreamCreateWithFlags, 1)
        self.copies = gpu.out(gpu.cudaStreamCreateWithFlags, 1)
        self.event = gpu.out(gpu.cudaEventCreateWithFlags, 2)
        module = gpu.out(gpu.cuModuleLoadData, b"simulated")
        sizes = ["decode"] + ["t%d" % b for b in BUCKETS]
        self.kernels = {s: {n: gpu.register("%s_%s" % (n, s)) for n in NODES} for s in sizes}
        # Like cuBLAS and Triton: these never pass through the runtime.
        self.gemms = {s: {n: gpu.out(gpu.cuModuleGetFunction, module, ("%s_%s" % (n, s)).encode()) for n in GEMMS}
                      for s in sizes}
        self.tail = {n: gpu.register(n) for n in ("embedding", "gather_logits", "argmax_sample")}
        self.lm_head = gpu.out(gpu.cuModuleGetFunction, module, b"gemm_lm_head")
        self.weights = gpu.out(gpu.cudaMalloc, 4 << 30)
        self.kv = gpu.out(gpu.cudaMalloc, 8 << 30)
        self.hidden_states = gpu.out(gpu.cudaMalloc, MAX_TOKENS * hidden * 2)
        self.device = [gpu.out(gpu.cudaMalloc, MAX_TOKENS * 4) for _ in range(3)]
        self.host = [gpu.out(gpu.cudaHostAlloc, MAX_TOKENS * 4, 0) for _ in range(4)]
        self.graphs = {}

    def layer_pass(self, size, tokens):
        gpu, stream = self.gpu, self.stream
        kernels, gemms = self.kernels[size], self.gemms[size]
        grid = max(1, tokens)
        for _ in range(self.layers):
            gpu.launch(kernels["rms_norm"], grid, 256, stream)
            gpu.launch_driver(gemms["gemm_qkv"], 132, 384, stream)
            gpu.launch(kernels["rope"], grid, 128, stream)
            gpu.launch(kernels["reshape_and_cache"], grid, 128, stream)
            gpu.launch(kernels["flash_attn"], 132, 256, stream)
            gpu.launch_driver(gemms["gemm_out"], 132, 384, stream)
            self.all_reduce(tokens)
            gpu.launch(kernels["rms_norm2"], grid, 256, stream)
            gpu.launch_driver(gemms["gemm_gate_up"], 132, 384, stream)
            gpu.launch(kernels["silu_and_mul"], grid, 256, stream)
            gpu.launch_driver(gemms["gemm_down"], 132, 384, stream)
            self.all_reduce(tokens)

    def all_reduce(self, tokens):
        if self.comm:
            self.gpu.ncclAllReduce(self.hidden_states, self.hidden_states, tokens * self.hidden, BF16, 0, self.comm,
                                   self.stream)

    def capture(self):
        gpu = self.gpu
        for batch in BATCHES:
            gpu.cudaStreamBeginCapture(self.stream, 2)
            self.layer_pass("decode", batch)
            graph = gpu.out(lambda g: gpu.cudaStreamEndCapture(self.stream, g))
            self.graphs[batch] = gpu.out(gpu.cudaGraphInstantiate, graph, 0)
            gpu.cudaGraphDestroy(graph)

    def upload(self, tokens):
        """Token ids, positions and block table to the device."""
        data = struct.pack("<%di" % len(tokens), *tokens)
        for host, device in zip(self.host, self.device):
            ctypes.memmove(host, data, len(data))
            self.gpu.cudaMemcpyAsync(device, host, len(data), H2D, self.stream)

    def sample(self, n):
        """What a real model's sampler would give: here the first upload, read back from the device."""
        gpu = self.gpu
        gpu.launch(self.tail["gather_logits"], n, 128, self.stream)
        gpu.launch_driver(self.lm_head, 132, 384, self.stream)
        gpu.launch(self.tail["argmax_sample"], n, 256, self.stream)
        gpu.cudaEventRecord(self.event, self.stream)
        gpu.cudaStreamWaitEvent(self.copies, self.event, 0)
        gpu.cudaMemcpyAsync(self.host[3], self.device[0], n * 4, D2H, self.copies)
        gpu.cudaStreamSynchronize(self.copies)
        return list(struct.unpack("<%di" % n, ctypes.string_at(self.host[3], n * 4)))

    def prefill(self, prompts):
        """prompts: (tokens, first output token) each; one eager pass over all of them."""
        total = min(sum(n for n, _ in prompts), MAX_TOKENS)
        size = "t%d" % next((b for b in BUCKETS if total <= b), BUCKETS[-1])
        self.upload([token for _, token in prompts] + [0] * (total - len(prompts)))
        self.gpu.launch(self.tail["embedding"], total, 128, self.stream)
        self.layer_pass(size, total)
        return self.sample(len(prompts))

    def decode(self, tokens, storm):
        batch = next((b for b in BATCHES if len(tokens) <= b), BATCHES[-1])
        self.upload(tokens)
        self.gpu.cudaGraphLaunch(self.graphs[batch], self.stream)
        for _ in range(storm):
            self.gpu.launch(self.tail["embedding"], 1, 32, self.stream)
        return self.sample(len(tokens))


def run(channel, rank, model, log, storm):
    gpu = model.gpu
    while True:
        plan = channel.next_plan(rank, 5)
        if plan is None:
            continue
        if plan.get("stop"):
            return
        t0 = now()
        first = model.prefill(plan["prefill"]) if plan["prefill"] else []
        more = model.decode(plan["decode"], storm) if plan["decode"] else []
        channel.send_result(rank, {"step": plan["step"], "first": first, "more": more})
        log.write(step=plan["step"], t0=t0, t1=now(), prefill=len(plan["prefill"]), decode=len(plan["decode"]),
                  calls=gpu.take_counts())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--rank", type=int, required=True)
    p.add_argument("--workers", type=int, required=True)
    p.add_argument("--parent", type=int, required=True)
    p.add_argument("--channel", required=True)
    p.add_argument("--lib", required=True)
    p.add_argument("--id", required=True)
    p.add_argument("--layers", type=int, default=24)
    p.add_argument("--hidden", type=int, default=4096)
    p.add_argument("--storm", type=int, default=0)
    p.add_argument("--truth", default="")
    a = p.parse_args()
    become("llm-worker-%d" % a.rank, a.parent)
    channel = Channel(a.channel, a.workers)
    log = StepLog(a.truth, "worker%d" % a.rank)
    gpu = Gpu(a.lib)
    gpu.cudaSetDevice(a.rank)
    comm = None
    if a.workers > 1:
        uid = UniqueId()
        ctypes.memmove(ctypes.byref(uid), bytes.fromhex(a.id), 128)
        comm = gpu.out(gpu.ncclCommInitRank, a.workers, uid, a.rank)
    model = Model(gpu, a.layers, a.hidden, comm)
    model.capture()
    gpu.cudaDeviceSynchronize()
    log.write(step=-1, t0=0, t1=now(), calls=gpu.take_counts())
    channel.send_result(a.rank, {"ready": True})
    run(channel, a.rank, model, log, a.storm)
    if comm:
        gpu.ncclCommDestroy(comm)
    log.write(step=-2, t0=now(), t1=now(), calls=gpu.take_counts(), total=dict(gpu.total))
    return 0


if __name__ == "__main__":
    sys.exit(main())
