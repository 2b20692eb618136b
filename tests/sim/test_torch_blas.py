# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Unmodified PyTorch on the simulated cuBLAS, NVML and NCCL (where it is installed: test_torch.py)."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from test_torch import torch_run, venv  # noqa: E402,F401

PRODUCTS = """
import torch.nn.functional as F
def check(dt):
    z = lambda *n: torch.zeros(*n, device="cuda", dtype=dt)
    a, b, c, bias, A, B = z(64, 128), z(128, 32), z(64, 32), z(32), z(4, 64, 128), z(4, 128, 32)
    assert (a @ b).shape == (64, 32) and (b.t() @ a.t()).shape == (32, 64)
    torch.addmm(c, a, b); torch.addmm(bias, a, b); F.linear(a, b.t(), bias); torch.bmm(A, B); torch.baddbmm(z(4, 64, 32), A, B)
    torch.addmv(c[:, 0], a, b[:, 0]); torch.einsum("bij,bjk->bik", A, B); torch.bmm(A.transpose(1, 2), A); z(33, 35) @ z(35, 37)
    torch.dot(bias, bias); torch.vdot(bias, bias); torch.outer(bias, bias)
    settle()
"""


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"])
def test_products_of_all_types(torch_run, dtype):  # noqa: F811
    _, log = torch_run(PRODUCTS + "check(torch.%s)" % dtype)
    counts = log.counts()
    asked = sum(n for (layer, name), n in counts.items() if layer == "library" and ("emm" in name or "emv" in name))
    assert asked >= 9
    # what the library launched for them lies a level below, in the exported driver
    assert len([c for c in log.layer("driver").calls() if c.function.startswith("cuLaunchKernel") and c.depth == 1]) >= asked


def test_epilogues_fp8_int8_and_solving(torch_run):  # noqa: F811
    _, log = torch_run(PRODUCTS + """
one = torch.ones((), device="cuda")
for dt in (torch.float16, torch.bfloat16, torch.float32):
    x, w, b = (torch.zeros(*n, device="cuda", dtype=dt) for n in ((64, 128), (256, 128), (256,)))
    torch._addmm_activation(b, x, w.t(), use_gelu=True); torch._addmm_activation(b, x, w.t())
    w.requires_grad_(); F.linear(x, w, b).sum().backward()
x, y = (torch.zeros(n, 128, device="cuda").to(torch.float8_e4m3fn) for n in (64, 256))
assert torch._scaled_mm(x, y.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16).shape == (64, 256)
torch._scaled_mm(x, y.t(), scale_a=one, scale_b=one, bias=torch.zeros(256, device="cuda", dtype=torch.bfloat16),
                 out_dtype=torch.bfloat16, use_fast_accum=True)
i = torch.zeros(64, 128, device="cuda", dtype=torch.int8)
assert torch._int_mm(i, torch.zeros(128, 64, device="cuda", dtype=torch.int8)).dtype == torch.int32
torch.linalg.solve_triangular(torch.eye(64, device="cuda"), torch.zeros(64, 8, device="cuda"), upper=True)
settle()
""")
    names = {o.name for o in log.operations(kind="kernel")}
    assert log.counts()[("library", "cublasLtMatmul")] >= 8
    assert any(n.startswith("nvjet_qqtst") for n in names) and any("i8i32" in n for n in names) and "strsm_kernel" in names


def test_products_in_a_graph(torch_run):  # noqa: F811
    _, log = torch_run("""
a, g, s = torch.zeros(64, 64, device="cuda", dtype=torch.bfloat16), torch.cuda.CUDAGraph(), torch.cuda.Stream()
with torch.cuda.stream(s):
    a @ a
settle()
with torch.cuda.graph(g):
    for i in range(10): a @ a
for i in range(5): g.replay()
settle()
""")
    ops = [o for o in log.operations(kind="kernel") if o.name.startswith("nvjet")]
    assert sum(1 for o in ops if o.exec) == 50 and sum(1 for o in ops if not o.exec) == 1


def test_what_torch_asks_of_management(torch_run):  # noqa: F811
    printed, log = torch_run("""
print(torch.cuda.device_count(), torch.cuda.temperature(), torch.cuda.utilization(), torch.cuda.power_draw(), torch.cuda.clock_rate())
try:
    torch.zeros(100 << 30, device="cuda", dtype=torch.uint8)
except torch.cuda.OutOfMemoryError as e:      # looks at the processes on the device
    print("this process has" in str(e))
""")
    assert printed.split() == ["8", "35", "0", "120000", "1980", "True"]
    assert log.counts()[("library", "nvmlDeviceGetComputeRunningProcesses")] == 1


RANKS = """
import datetime, os, sys, torch.distributed as dist, torch.multiprocessing as mp
def work(rank, n, path, eager):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method="file://" + path, rank=rank, world_size=n, timeout=datetime.timedelta(seconds=60),
                            device_id=torch.device("cuda", rank) if eager else None)
    x = torch.ones(1024, device="cuda", dtype=torch.bfloat16)
    out, big = [torch.empty_like(x) for _ in range(n)], torch.empty(1024 * n, device="cuda", dtype=torch.bfloat16)
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.AVG, dist.ReduceOp.MAX, dist._make_nccl_premul_sum(2.0)): dist.all_reduce(x, op=op)
    dist.all_gather(out, x); dist.all_gather_into_tensor(big, x); dist.reduce_scatter_tensor(x, big)
    dist.broadcast(x, 0); dist.reduce(x, 0); dist.all_to_all_single(big, big.clone()); dist.barrier()
    dist.send(x, 1) if rank == 0 else dist.recv(x, 0)
    for r in dist.batch_isend_irecv([dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, x, 1 - rank)]): r.wait()
    dist.all_reduce(x, group=dist.new_group([0, 1]))
    if eager:
        dist.all_reduce(x, group=dist.split_group(None, [[0], [1]]))
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for i in range(4): dist.all_reduce(x)
    for i in range(10): g.replay()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).cuda(), device_ids=[rank])   # ranks compare shapes
    for i in range(3): model(torch.ones(8, 64, device="cuda")).sum().backward()
    torch.cuda.synchronize()
    dist.destroy_process_group()
if __name__ == "__main__":
    mp.spawn(work, (2, sys.argv[0] + ".meet", %r), nprocs=2)
"""


@pytest.mark.parametrize("eager", [False, True])
def test_two_ranks(torch_run, eager):  # noqa: F811
    _, log = torch_run(RANKS % eager)
    ops, counts = log.operations(kind="collective"), log.counts()
    assert not any(o.unresolved for o in ops) and sum(1 for o in ops if o.exec) == 2 * 40
    assert counts[("library", "ncclReduceScatter")] == 2 and counts[("library", "ncclRedOpCreatePreMulSum")] == 2
    assert (counts.get(("library", "ncclCommSplit"), 0) > 0) == eager
    # both ranks did the same, and each pair ended at once
    ends = [sorted(o.end for o in ops if o.pid == p and o.exec) for p in sorted({o.pid for o in ops})]
    assert len(ends) == 2 and len(ends[0]) == len(ends[1])
    assert max(abs(a - b) for a, b in zip(*ends)) < 1000
