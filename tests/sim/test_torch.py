# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Unmodified PyTorch, Triton and torch.compile on the simulated accelerator.

Needs a virtual environment with PyTorch's CUDA wheels (scripts/engines-setup; HB_GPU_VENV names another one). The
libraries are laid over a copy of it made of hard links, so the environment itself stays as it is.
"""
import glob
import hashlib
import os
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import simlib  # noqa: E402
import stubs  # noqa: E402
import test_sim  # noqa: E402
import truth  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.environ.get("HB_CACHE", "/var/cache/herschel-bpf-tests")
VENV = os.environ.get("HB_GPU_VENV", os.path.join(CACHE, "vllm-gpu", "venv"))

PREAMBLE = """
import time, torch
def settle(): torch.cuda.synchronize()
"""


def lay(venv, *options):
    return subprocess.run([sys.executable, os.path.join(HERE, "lay"), venv, "--build", simlib.BUILD] + list(options),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=300)


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


@pytest.fixture(scope="session")
def venv(tmp_path_factory):
    if not glob.glob(os.path.join(VENV, "lib", "python3*", "site-packages", "nvidia", "cuda_runtime", "lib", "libcudart.so.*")):
        pytest.skip("no PyTorch with CUDA in %s (scripts/engines-setup installs it)" % VENV)
    for old in glob.glob(os.path.join(os.path.dirname(VENV), "test-torch.*")):  # of runs that were killed
        if not os.path.exists("/proc/" + old.rpartition(".")[2]):
            shutil.rmtree(old, ignore_errors=True)
    copy = os.path.join(os.path.dirname(VENV), "test-torch.%d" % os.getpid())  # hard links need the same file system
    subprocess.run(["cp", "-al", VENV, copy], check=True)
    try:
        r = lay(copy)
        assert r.returncode == 0, r.stderr
        yield copy
    finally:
        shutil.rmtree(copy, ignore_errors=True)


@pytest.fixture
def torch_run(venv, tmp_path):
    """Runs code that has torch, in a process of its own; returns what it printed and the truth log."""
    def run(code, **env):
        logs = tmp_path / "truth"
        logs.mkdir(exist_ok=True)
        libs = os.path.join(venv, "hb-sim")
        e = simlib.environment(LD_LIBRARY_PATH=libs, TRITON_LIBCUDA_PATH=libs, HB_SIM_TRUTH=logs,
                               TRITON_CACHE_DIR=tmp_path / "triton", TORCHINDUCTOR_CACHE_DIR=tmp_path / "inductor",
                               TORCHINDUCTOR_COMPILE_THREADS=1, **env)
        script = tmp_path / "script.py"  # Triton reads the source of its kernels from a file
        script.write_text(PREAMBLE + code)
        r = subprocess.run([os.path.join(venv, "bin", "python"), str(script)], env=e, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, universal_newlines=True, timeout=300)
        assert r.returncode == 0, "exit %d: %s" % (r.returncode, r.stderr[-3000:])
        log = truth.read(str(logs))
        assert log.gaps() == {}
        return r.stdout, log
    return run


# ---- lay ----

def test_lay_refuses_what_is_no_such_environment(tmp_path):
    r = lay(str(tmp_path))
    assert r.returncode == 1 and "no virtual environment" in r.stderr and len(r.stderr.splitlines()) == 1
    (tmp_path / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    (tmp_path / "pyvenv.cfg").write_text("")
    r = lay(str(tmp_path))
    assert r.returncode == 1 and "no CUDA wheels" in r.stderr and len(r.stderr.splitlines()) == 1


def test_lay_replaces_files_twice_and_takes_them_back(venv):
    pattern = os.path.join("lib", "python3*", "site-packages", "nvidia", "*", "lib", "*.so.*")
    reals = [p for p in glob.glob(os.path.join(venv, pattern + ".real"))]
    assert {os.path.basename(p) for p in reals} >= {"libcudart.so.12.real", "libcublas.so.12.real", "libnccl.so.2.real"}
    small = [p for p in reals if os.path.getsize(p) < 100 << 20]
    for real in small:
        ours, theirs = real[:-5], os.path.join(VENV, os.path.relpath(real[:-5], venv))
        assert os.path.samefile(real, theirs) and digest(ours) != digest(theirs)
    assert lay(venv).returncode == 0                            # once more: the same
    assert all(os.path.samefile(r, os.path.join(VENV, os.path.relpath(r[:-5], venv))) for r in reals)
    os.unlink(small[0][:-5])                                    # as if interrupted between two steps
    assert lay(venv).returncode == 0 and os.path.exists(small[0][:-5])
    try:
        assert lay(venv, "--undo").returncode == 0
        assert not glob.glob(os.path.join(venv, pattern + ".real")) and not os.path.exists(os.path.join(venv, "hb-sim"))
        assert all(os.path.samefile(r[:-5], os.path.join(VENV, os.path.relpath(r[:-5], venv))) for r in reals)
    finally:
        assert lay(venv).returncode == 0


@pytest.mark.skipif(not shutil.which("objdump") or os.uname().machine != "x86_64", reason="needs objdump on x86-64")
@pytest.mark.parametrize("library,expected", [("libcuda.so.1", ["cmpl", "je", "jmp"]), ("libcudart.so.12", ["push"]),
                                              ("libcublas.so.12", ["push"]), ("libnvidia-ml.so.1", ["push"])])
def test_stubs_begin_as_the_real_functions(venv, library, expected):
    path = os.path.join(venv, "hb-sim", library)
    names = stubs.of_library(path) - stubs.of_library(os.path.join(simlib.LIB, library))
    begins = test_sim.first_instructions(path, len(expected))
    assert len(names) > 100 and {n: begins[n] for n in names if begins[n] != expected} == {}


# ---- torch ----

def test_basics(torch_run):
    out, log = torch_run("""
p = torch.cuda.get_device_properties(0)
assert (p.major, p.minor) == (9, 0) and p.total_memory == 80 << 30 and p.multi_processor_count == 132
assert torch.tensor([1, 2, 3]).cuda().cpu().tolist() == [1, 2, 3]
host = torch.arange(10000).pin_memory()
assert host.is_pinned() and not torch.arange(3).is_pinned()
assert torch.equal(host.cuda(non_blocking=True).cpu(), host)
z, s = torch.zeros(1 << 22, device="cuda"), torch.cuda.Stream()
a, b = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
settle()
with torch.cuda.stream(s):
    a.record()
    for i in range(1000): z.add_(1)
    b.record()
    assert not s.query() and not b.query()
s.synchronize()
assert s.query() and 50 <= a.elapsed_time(b) < 1000, a.elapsed_time(b)
try:
    torch.empty(200 << 30, dtype=torch.uint8, device="cuda")
    raise SystemExit("no OOM")
except torch.OutOfMemoryError as e:
    assert "80.00 GiB" in str(e)
torch.empty(40 << 30, dtype=torch.uint8, device="cuda")
for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
    m = torch.ones(64, 64, device="cuda", dtype=dtype)
    m @ m
q = torch.ones(1, 8, 128, 64, device="cuda", dtype=torch.bfloat16)
torch.nn.functional.scaled_dot_product_attention(q, q, q)
torch.sort(torch.rand(1000, device="cuda")); torch.topk(torch.rand(1000, device="cuda"), 10)
x = torch.zeros(8, 16, device="cuda")[:, :4].contiguous().cpu()      # rows at a distance
assert x.shape == (8, 4)
settle()
print(open("/proc/self/status").read().split("VmRSS:")[1].split()[0])
""", HB_SIM_COSTS="kernel_ns=50000")
    assert int(out) < 2 << 20  # KiB
    counts = log.counts()
    assert counts[("runtime", "cudaLaunchKernel")] > 1000
    # Each launch by the runtime is one launch in the driver.
    assert counts[("driver", "cuLaunchKernel")] >= counts[("runtime", "cudaLaunchKernel")]


def test_capture_with_a_second_stream_and_replay(torch_run):
    out, log = torch_run("""
x, side, g = torch.zeros(1024, device="cuda"), torch.cuda.Stream(), torch.cuda.CUDAGraph()
x.add_(1); x.mul_(2)
settle()
with torch.cuda.graph(g):
    x.add_(1)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side): x.mul_(2)
    torch.cuda.current_stream().wait_stream(side)
    x.add_(3)
for i in range(10): g.replay()
settle()
try:
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        x.add_(1)
        torch.cuda.synchronize()
    raise SystemExit("synchronising in a capture was allowed")
except RuntimeError as e:
    assert "captur" in str(e), e
""")
    assert log.counts()[("runtime", "cudaGraphLaunch")] == 10
    graph = [o for o in log.operations(kind="kernel") if o.exec]
    assert len(graph) == 30 and len({o.node for o in graph}) == 3


TRITON = """
import triton, triton.language as tl
@triton.jit
def plus_one(x, y, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + o, tl.load(x + o, mask=o < n) + 1, mask=o < n)
x = torch.zeros(1000, device="cuda"); y = torch.empty_like(x)
for i in range(7): plus_one[(4,)](x, y, 1000, BLOCK=256)
settle()
"""


def test_triton(torch_run):
    _, log = torch_run(TRITON)
    ours = [o for o in log.operations(kind="kernel") if o.name == "plus_one"]
    assert len(ours) == 7


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compile(torch_run, mode):
    _, log = torch_run("""
m = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64)).cuda()
f = torch.compile(m, mode=%r)
with torch.no_grad():
    for i in range(6): f(torch.ones(8, 64, device="cuda"))
settle()
""" % mode)
    assert any(o.name.startswith("triton_") for o in log.operations(kind="kernel"))
    assert (log.counts().get(("runtime", "cudaGraphLaunch"), 0) > 0) == (mode == "reduce-overhead")


def test_training_step(torch_run):
    torch_run("""
m = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8)).cuda()
opt = torch.optim.AdamW(m.parameters())
for i in range(3):
    opt.zero_grad(); m(torch.ones(4, 64, device="cuda")).sum().backward(); opt.step()
settle()
""")


@pytest.mark.parametrize("conf", ["expandable_segments:True", "backend:cudaMallocAsync"])
def test_other_allocators(torch_run, conf):
    _, log = torch_run("""
x = [torch.full((3 << 20,), i, dtype=torch.uint8).cuda() for i in range(20)]
assert all(bool((t.cpu() == i).all()) for i, t in enumerate(x))
big = torch.zeros(60 << 20, device="cuda")                          # spans several of them
assert float(big.cpu().sum()) == 0
del x, big
torch.cuda.empty_cache()
try:
    torch.empty(200 << 30, dtype=torch.uint8, device="cuda")
    raise SystemExit("no OOM")
except torch.OutOfMemoryError:
    pass
settle()
""", PYTORCH_CUDA_ALLOC_CONF=conf)
    used = {f for _, f in log.counts()}
    if conf.startswith("expandable"):
        assert {"cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap", "cuMemRelease"} <= used
    else:
        assert {"cudaMallocAsync", "cudaFreeAsync"} <= used
