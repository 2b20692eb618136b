# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The simulated accelerator itself: ABI, semantics, error codes, truth log, meeting of ranks."""
import ctypes
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import simlib  # noqa: E402
import truth  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
LIBRARIES = ("libcuda.so.1", "libcudart.so.12", "libcudart.so.13", "libnccl.so.2")
TABLES = {"libcuda.so.1": ("cuda.def",), "libcudart.so.12": ("cudart.def", "cudart12.def"),
          "libcudart.so.13": ("cudart.def", "cudart13.def"), "libnccl.so.2": ("nccl.def",)}
CUDA = os.environ.get("CUDA_HOME", "/usr/local/cuda")


@pytest.fixture(scope="session", autouse=True)
def built():
    subprocess.run(["make", "-s", "-C", simlib.ROOT, "B=" + simlib.BUILD, "sim"], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def functions(tables):
    """Rows of .def files: exported names."""
    text = ""
    for table in tables:
        with open(os.path.join(HERE, "fronts", table)) as f:
            text += f.read()
    return re.findall(r"^[FP]\((\w+),", text, re.M) + re.findall(r"^[GQ]\([^,]+, (\w+),", text, re.M)


# ---- shape of the libraries ----

def first_instructions(library, n):
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", os.path.join(simlib.LIB, library)], check=True,
                          stdout=subprocess.PIPE, universal_newlines=True).stdout
    found, name = {}, None
    for line in text.splitlines():
        m = re.match(r"^[0-9a-f]+ <(\w+)>:", line)
        if m:
            name = m.group(1)
            found[name] = []
        elif name and line.startswith(" ") and len(found[name]) < n:
            found[name].append(line.split("\t")[1].split()[0])
    return found


@pytest.mark.skipif(not shutil.which("objdump") or os.uname().machine != "x86_64", reason="needs objdump on x86-64")
@pytest.mark.parametrize("library,expected", [("libcuda.so.1", ["cmpl", "je", "jmp"]), ("libcudart.so.12", ["push"]), ("libcudart.so.13", ["push"]),
                                              ("libnccl.so.2", ["push"])])
def test_functions_begin_as_the_real_ones(library, expected):
    begins = first_instructions(library, len(expected))
    names = functions(TABLES[library])
    assert len(names) > 20
    wrong = {n: begins.get(n) for n in names if begins.get(n) != expected}
    assert not wrong


@pytest.mark.skipif(not shutil.which("objdump") or os.uname().machine != "x86_64", reason="needs objdump on x86-64")
@pytest.mark.parametrize("front,expected", [("push", ["push", "pop", "jmp"]), ("endbr", ["endbr64", "jmp"]), ("nop5", ["nopl", "jmp"])])
def test_other_fronts(tmp_path, front, expected):
    library = str(tmp_path / "sim" / "libcuda.so.1")
    subprocess.run(["make", "-s", "-C", simlib.ROOT, f"B={tmp_path}", f"SIM_FRONT={front}", library], check=True, timeout=300)
    begins = first_instructions(library, len(expected))
    wrong = {n: begins.get(n) for n in functions(TABLES["libcuda.so.1"]) if begins.get(n) != expected}
    assert not wrong
    assert ctypes.CDLL(library).cuInit(0) == 0


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_row_and_the_mark_are_exported(library):
    lib = ctypes.CDLL(os.path.join(simlib.LIB, library))
    for name in functions(TABLES[library]):
        assert lib[name]
    assert ctypes.c_char_p(ctypes.addressof(ctypes.c_char.in_dll(lib, "hb_simulated_accelerator"))).value \
        == b"simulated accelerator"


WHEEL = os.path.join(os.environ.get("HB_CACHE", "/var/cache/herschel-bpf-tests"), "vllm-gpu", "venv", "lib")


def headers(version):
    """Folder with the real headers of this CUDA version: of the toolkit, or of PyTorch's wheels."""
    for folder in [os.path.join(CUDA, "include")] + glob.glob(
            os.path.join(WHEEL, "python3.*", "site-packages", "nvidia", "cuda_runtime", "include")):
        path = os.path.join(folder, "cuda.h")
        if os.path.exists(path):
            with open(path, errors="replace") as f:
                if re.search(r"^#define CUDA_VERSION %d" % version, f.read(), re.M):
                    return folder
    return None


@pytest.mark.parametrize("version", [12, 13])
@pytest.mark.parametrize("source", ["fronts/cuda", "fronts/cudart", "core/device", "core/module"])
def test_abi_agrees_with_the_real_headers(source, version):
    folder = headers(version)
    if not folder:
        pytest.skip("no headers of CUDA %d here" % version)
    r = subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-DHB_SIM_REAL_HEADERS", "-DHB_CUDART=%d" % version, "-w",
                        "-fsyntax-only", "-I", folder, os.path.join(HERE, source + ".c")],
                       stderr=subprocess.PIPE, universal_newlines=True)
    assert r.returncode == 0, r.stderr


# ---- semantics ----

def test_launches_are_asynchronous_and_events_follow_device_time():
    simlib.run("""
register(0x1000, b"k")
s, a, b = stream(), out(rt.cudaEventCreate), out(rt.cudaEventCreate)
assert rt.cudaEventRecord(a, s) == 0
for i in range(20):
    assert launch(s) == 0
assert rt.cudaEventRecord(b, s) == 0
assert rt.cudaStreamQuery(s) == 600 and rt.cudaEventQuery(b) == 600
ms = C.c_float()
assert rt.cudaEventElapsedTime(C.byref(ms), a, b) == 600
assert rt.cudaStreamSynchronize(s) == 0
assert rt.cudaStreamQuery(s) == 0 and rt.cudaEventQuery(b) == 0
assert rt.cudaEventElapsedTime(C.byref(ms), a, b) == 0
assert ms.value >= 400, ms.value
assert rt.cudaGetLastError() == 0
""", HB_SIM_COSTS="kernel_ns=20000000")


def test_kernel_cost_by_name(tmp_path):
    costs = tmp_path / "costs"
    costs.write_text("# comment\nkernel slow_* 50000000\nkernel_ns 1000\n")
    simlib.run("""
register(0x1000, b"slow_kernel"); register(0x2000, b"other")
s = stream()
t = time.monotonic_ns(); launch(s, 0x1000); rt.cudaStreamSynchronize(s)
assert time.monotonic_ns() - t >= 50000000
""", HB_SIM_COSTS=str(costs))


@pytest.mark.parametrize("mode", ["spin", "yield", "block"])
def test_each_way_of_waiting_waits(mode):
    simlib.run("""
register(0x1000, b"k")
s = stream()
for i in range(5):
    launch(s)
assert rt.cudaStreamSynchronize(s) == 0 and rt.cudaStreamQuery(s) == 0
""", HB_SIM_COSTS="kernel_ns=5000000", HB_SIM_SYNC=mode)


def test_a_full_queue_blocks_the_caller():
    simlib.run("""
register(0x1000, b"k")
s = stream()
t = time.monotonic_ns()
for i in range(8):
    launch(s)
assert time.monotonic_ns() - t >= 4 * 20000000
""", HB_SIM_COSTS="kernel_ns=20000000,queue=4")


def test_legacy_stream_waits_for_blocking_streams_only():
    simlib.run("""
register(0x1000, b"k")
blocking, free = out(rt.cudaStreamCreate), stream()
launch(free)
assert rt.cudaStreamQuery(None) == 0
launch(blocking)
assert rt.cudaStreamQuery(None) == 600
assert rt.cudaDeviceSynchronize() == 0
assert rt.cudaStreamQuery(free) == 0 and rt.cudaStreamQuery(blocking) == 0
""", HB_SIM_COSTS="kernel_ns=200000000")


def test_memory():
    simlib.run("""
d, h, o = out(rt.cudaMalloc, S(8 << 20)), out(rt.cudaHostAlloc, S(4096), 0), C.create_string_buffer(4096)
assert d.value % (2 << 20) == 0
C.memset(h, 7, 4096)
assert rt.cudaMemcpy(d, h, S(4096), 1) == 0 and rt.cudaMemcpy(o, d, S(4096), 2) == 0 and o.raw == b"\\7" * 4096
assert rt.cudaMemset(d, 0, S(8 << 20)) == 0 and rt.cudaMemcpy(o, d, S(4096), 2) == 0 and o.raw == bytes(4096)
assert rt.cudaMemcpy(d, h, S(4096), 9) == 21
assert rt.cudaMemcpy(P(d.value + (8 << 20) - 10), h, S(4096), 1) == 1
free, total = S(), S()
assert rt.cudaMemGetInfo(C.byref(free), C.byref(total)) == 0
assert total.value == 64 << 20 and free.value == 56 << 20
p = P()
assert rt.cudaMalloc(C.byref(p), S(57 << 20)) == 2 and rt.cudaGetLastError() == 2 and rt.cudaGetLastError() == 0
assert rt.cudaFree(P(d.value + 8)) == 1 and rt.cudaFree(d) == 0 and rt.cudaFree(d) == 1 and rt.cudaFree(None) == 0
assert rt.cudaFreeHost(h) == 0 and rt.cudaFreeHost(h) == 1
class A(C.Structure):
    _fields_ = [("type", C.c_int), ("device", C.c_int), ("d", P), ("h", P), ("r", C.c_long * 8)]
a, m = A(), out(rt.cudaMallocManaged, S(100), 1)
for ptr, kind in ((out(rt.cudaMalloc, S(100)), 2), (out(rt.cudaHostAlloc, S(100), 0), 1), (m, 3), (P(C.addressof(o)), 0)):
    assert rt.cudaPointerGetAttributes(C.byref(a), ptr) == 0 and a.type == kind, (a.type, kind)
""", HB_SIM_COSTS="memory=%d" % (64 << 20))


def test_large_device_memory_is_not_resident():
    simlib.run("""
d = out(rt.cudaMalloc, S(60 << 30))
assert rt.cudaMemset(d, 0, S(60 << 30)) == 0
rss = int(open("/proc/self/statm").read().split()[1]) * 4096
assert rss < 500 << 20, rss
""")


def test_capture_and_graphs():
    simlib.run("""
register(0x1000, b"k")
s, t, e, f = stream(), stream(), out(rt.cudaEventCreate), out(rt.cudaEventCreate)
assert rt.cudaStreamEndCapture(s, C.byref(P())) == 401
assert rt.cudaStreamBeginCapture(None, 0) == 900
assert rt.cudaStreamBeginCapture(s, 0) == 0 and rt.cudaStreamBeginCapture(s, 0) == 401
status = C.c_int()
launch(s); rt.cudaEventRecord(e, s)
assert rt.cudaStreamWaitEvent(t, e, 0) == 0          # the second stream joins
assert rt.cudaStreamIsCapturing(t, C.byref(status)) == 0 and status.value == 1
launch(t); rt.cudaEventRecord(f, t); rt.cudaStreamWaitEvent(s, f, 0); launch(s)
assert rt.cudaStreamEndCapture(t, C.byref(P())) == 903
g = P()
assert rt.cudaStreamEndCapture(s, C.byref(g)) == 0
assert rt.cudaStreamIsCapturing(t, C.byref(status)) == 0 and status.value == 0
assert rt.cudaStreamQuery(s) == 0                    # nothing has run
n = S()
assert rt.cudaGraphGetNodes(g, None, C.byref(n)) == 0 and n.value == 3
x = out(rt.cudaGraphInstantiate, g, C.c_ulonglong(0))
assert rt.cudaGraphDestroy(g) == 0                   # the exec keeps its own nodes
assert rt.cudaGraphLaunch(x, s) == 0 and rt.cudaStreamQuery(s) == 600 and rt.cudaStreamSynchronize(s) == 0
assert rt.cudaGraphExecDestroy(x) == 0 and rt.cudaGraphLaunch(x, s) == 400
# a forbidden call spoils the capture
assert rt.cudaStreamBeginCapture(s, 0) == 0
assert rt.cudaStreamSynchronize(s) == 900 and launch(s) == 901
assert rt.cudaStreamEndCapture(s, C.byref(g)) == 901 and launch(s) == 0
""", HB_SIM_COSTS="kernel_ns=50000000")


def test_graph_copies_happen_at_launch():
    simlib.run("""
s, d, h, o = stream(), out(rt.cudaMalloc, S(64)), out(rt.cudaHostAlloc, S(64), 0), C.create_string_buffer(64)
rt.cudaStreamBeginCapture(s, 0)
assert rt.cudaMemcpyAsync(d, h, S(64), 1, s) == 0
g = out(lambda p: rt.cudaStreamEndCapture(s, p))
x = out(rt.cudaGraphInstantiate, g, C.c_ulonglong(0))
for v in (1, 2):
    C.memset(h, v, 64)
    assert rt.cudaGraphLaunch(x, s) == 0 and rt.cudaStreamSynchronize(s) == 0
    assert rt.cudaMemcpy(o, d, S(64), 2) == 0 and o.raw == bytes([v]) * 64
""")


def test_host_functions_run_on_another_thread():
    simlib.run("""
register(0x1000, b"k")
s, seen = stream(), []
fn = C.CFUNCTYPE(None, P)(lambda a: seen.append((a, threading.get_native_id())))
launch(s)
assert rt.cudaLaunchHostFunc(s, fn, P(42)) == 0
end = time.time() + 10
while not seen and time.time() < end:
    time.sleep(0.01)
assert seen[0][0] == 42 and seen[0][1] != threading.get_native_id()
""")


def test_bad_handles_give_codes():
    simlib.run("""
register(0x1000, b"k")
s, e = stream(), out(rt.cudaEventCreate)
for bad in (P(0x77), P(s.value + 8), P(0xffffffffffffff00), e):
    assert rt.cudaStreamSynchronize(bad) == 400 and launch(bad) == 400 and rt.cudaStreamDestroy(bad) == 400
assert rt.cudaEventRecord(s, s) == 400 and rt.cudaEventSynchronize(P(1)) == 400 and rt.cudaGraphLaunch(s, s) == 400
assert rt.cudaStreamDestroy(s) == 0 and rt.cudaStreamSynchronize(s) == 400
assert launch(None, 0x5555) == 98
assert rt.cudaLaunchKernel(P(0x1000), Dim3(0, 1, 1), ONE, None, S(0), None) == 9
assert rt.cudaLaunchKernel(P(0x1000), ONE, Dim3(2048, 1, 1), None, S(0), None) == 9
assert rt.cudaSetDevice(99) == 101 and rt.cudaSetDevice(-1) == 101
assert cu.cuLaunchKernel(None, 1, 1, 1, 1, 1, 1, 0, None, None, None) == 400
""")


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("ready", [False, True])
def test_no_function_dies_of_empty_arguments(library, ready):
    names = [n for n in functions(TABLES[library]) if n != "ncclGroupStart"]
    out = simlib.run("""
if %r:
    assert rt.cudaFree(None) == 0
lib = C.CDLL(LIB + "/%s")
zero = [P(0)] * 12
for name in %r:
    f = lib[name]
    print(name, f(*zero))
""" % (ready, library, names))
    assert len(out.splitlines()) == len(names)


def test_before_init_and_without_context():
    simlib.run("""
n = C.c_int()
assert cu.cuDeviceGetCount(C.byref(n)) == 3 and cu.cuStreamSynchronize(None) == 3
assert cu.cuInit(1) == 1 and cu.cuInit(0) == 0
assert cu.cuDeviceGetCount(C.byref(n)) == 0 and n.value == 8
p = C.c_ulonglong()
assert cu.cuMemAlloc_v2(C.byref(p), S(100)) == 201 and cu.cuCtxSynchronize() == 201
""")


def test_get_proc_address():
    simlib.run("""
def get(name, flags=0):
    p, st = P(), C.c_int()
    r = cu.cuGetProcAddress_v2(name, C.byref(p), 13000, C.c_uint64(flags), C.byref(st))
    return r, p.value, st.value
at = lambda f: C.cast(f, P).value
assert get(b"cuMemAlloc") == (0, at(cu.cuMemAlloc_v2), 0)
assert get(b"cuLaunchKernel") == (0, at(cu.cuLaunchKernel), 0)
assert get(b"cuLaunchKernel", 2) == (0, at(cu.cuLaunchKernel_ptsz), 0)
assert get(b"cuEventElapsedTime") == (0, at(cu.cuEventElapsedTime_v2), 0)
assert get(b"cuNoSuchThing") == (500, None, 1)
""")


def test_children_of_an_initialised_process_get_an_error_others_work():
    simlib.run("""
def child(call):
    pid = os.fork()
    if pid == 0:
        os._exit(call())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
count = lambda: rt.cudaGetDeviceCount(C.byref(C.c_int()))
assert child(count) == 0
assert rt.cudaFree(None) == 0
assert child(count) == 3 and child(lambda: rt.cudaStreamSynchronize(None)) == 3 and child(lambda: cu.cuCtxSynchronize()) == 3
assert rt.cudaStreamSynchronize(None) == 0
""")


def test_without_a_driver_the_runtime_says_so(tmp_path):
    shutil.copy(os.path.join(simlib.LIB, "libcudart.so.13"), str(tmp_path))
    out = subprocess.run([sys.executable, "-c", """
import ctypes as C
rt = C.CDLL(%r)
n = C.c_int()
print(rt.cudaGetDeviceCount(C.byref(n)), rt.cudaMalloc(C.byref(C.c_void_p()), C.c_size_t(1)))
""" % str(tmp_path / "libcudart.so.13")], env=simlib.environment(LD_LIBRARY_PATH=""), stdout=subprocess.PIPE, check=True)
    if b"0 0" in out.stdout:
        pytest.skip("this machine has a driver")
    assert out.stdout.split() == [b"35", b"35"]


# ---- truth log ----

def test_truth_counts_nesting_and_results(tmp_path):
    simlib.run("""
register(0x1000, b"k")
s = stream()
for i in range(100):
    launch(s)
p = P()
rt.cudaMalloc(C.byref(p), S(1 << 50))
def other():
    for i in range(50):
        launch(s)
t = threading.Thread(target=other); t.start(); t.join()
rt.cudaStreamSynchronize(s)
cu.cuInit(0)
print(s.value)
""", HB_SIM_TRUTH=tmp_path)
    log = truth.read(str(tmp_path))
    counts = log.counts()
    assert counts[("runtime", "cudaLaunchKernel")] == 150 and counts[("driver", "cuLaunchKernel")] == 150
    assert {c.depth for c in log.calls("cudaLaunchKernel")} == {0} and {c.depth for c in log.calls("cuLaunchKernel")} == {1}
    assert log.calls("cuInit")[-1].depth == 0
    assert [(c.result, c.bytes) for c in log.calls("cudaMalloc")] == [(2, 1 << 50)]
    assert len({c.tid for c in log.calls("cudaLaunchKernel")}) == 2
    assert all(c.exit >= c.enter > 0 for c in log) and log.dropped == 0
    last = log.calls("cudaStreamSynchronize")[0]
    assert sum(n for (_, f), n in log.counts(t1=last.enter).items() if f == "cudaLaunchKernel") == 150
    outer, inner = log.calls("cudaLaunchKernel")[0], log.calls("cuLaunchKernel")[0]
    assert outer.enter <= inner.enter and inner.exit <= outer.exit and outer.stream == inner.stream


def test_truth_survives_sigkill(tmp_path):
    p = subprocess.Popen(simlib.command("""
register(0x1000, b"k")
s = stream()
for i in range(5000):
    launch(s)
print("made", flush=True)
rt.cudaStreamSynchronize(s)
"""), env=simlib.environment(HB_SIM_TRUTH=tmp_path, HB_SIM_COSTS="kernel_ns=1000000000,queue=60000,launch_ns=0"),
        stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"made\n"
    end = time.time() + 20
    while time.time() < end and not truth.read(str(tmp_path)).calls("cuStreamSynchronize"):
        time.sleep(0.05)
    p.kill()
    p.wait()
    log = truth.read(str(tmp_path))
    assert len(log.calls("cudaLaunchKernel")) == len(log.calls("cuLaunchKernel")) == 5000
    assert [c.exit for c in log.calls("cudaStreamSynchronize")] == [0]  # it had not returned


def test_truth_of_forks_and_execs(tmp_path):
    simlib.run("""
n = C.c_int()
for i in range(3):
    if os.fork() == 0:
        rt.cudaGetDeviceCount(C.byref(n)); rt.cudaGetDeviceCount(C.byref(n))
        os._exit(0)
for i in range(3):
    os.wait()
rt.cudaGetDeviceCount(C.byref(n))
if len(sys.argv) < 2:
    os.execv(sys.executable, [sys.executable, "-c", open("/proc/self/cmdline").read().split("\\0")[2], "again"])
""", HB_SIM_TRUTH=tmp_path)
    log = truth.read(str(tmp_path))
    assert len(log.calls("cudaGetDeviceCount")) == 14
    assert len(log.pids()) == 7 and len(os.listdir(str(tmp_path))) == 8


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_truth_on_a_full_disk_is_a_counted_loss(tmp_path):
    r = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(tmp_path)], stderr=subprocess.PIPE)
    if r.returncode:
        pytest.skip("cannot mount here: %s" % r.stderr.decode().strip())
    try:
        simlib.run("""
register(0x1000, b"k")
s = stream()
for i in range(40000):
    assert launch(s) == 0
""", HB_SIM_TRUTH=tmp_path, HB_SIM_COSTS="kernel_ns=0,launch_ns=0")
        with open(tmp_path / "filler", "wb", buffering=0) as f:  # not even room for the header
            with pytest.raises(OSError):
                while True:
                    f.write(bytes(4096))
        assert simlib.run("register(0x1000, b'k'); print(launch())", HB_SIM_TRUTH=tmp_path) == "0\n"
        assert len([n for n in os.listdir(tmp_path) if n.endswith(".truth")]) == 1
        log = truth.read(str(tmp_path))
        assert log.dropped > 0 and len(log.calls("cudaLaunchKernel")) + len(log.calls("cuLaunchKernel")) + log.dropped >= 80000
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_inner_addresses_bypass_the_exported_functions(tmp_path):
    simlib.run("""
register(0x1000, b"k")
for i in range(10):
    assert launch() == 0
""", HB_SIM_TRUTH=tmp_path, HB_SIM_INNER=1)
    counts = truth.read(str(tmp_path)).counts()
    assert counts[("runtime", "cudaLaunchKernel")] == 10 and ("driver", "cuLaunchKernel") not in counts


def test_two_copies_of_the_runtime_in_one_process(tmp_path):
    copy = str(tmp_path / "libcudart.e8e8b82a.so.12")
    shutil.copy(os.path.join(simlib.LIB, "libcudart.so.13"), copy)
    logs = tmp_path / "truth"
    logs.mkdir()
    r = subprocess.run([os.path.join(simlib.WORKLOADS, "accel_loop"), "--lib", os.path.join(simlib.LIB, "libcudart.so.13"),
                        "--second", copy, "--threads", "2", "--launches", "30", "--driver-launches", "4"],
                       env=simlib.environment(HB_SIM_TRUTH=logs, LD_LIBRARY_PATH=simlib.LIB), stdout=subprocess.PIPE,
                       check=True)
    out = json.loads(r.stdout.decode())
    counts = truth.read(str(logs)).counts()
    assert out["errors"] == 0 and out["counts"]["cudaLaunchKernel"] == 60 == counts[("runtime", "cudaLaunchKernel")]
    assert counts[("driver", "cuLaunchKernel")] == 68


# ---- ranks ----

RANK = """
nc = C.CDLL(LIB + "/libnccl.so.2", mode=C.RTLD_GLOBAL)
class Id(C.Structure):
    _fields_ = [("b", C.c_char * 128)]
rank, ranks, uid = int(os.environ["RANK"]), int(os.environ["RANKS"]), Id()
C.memmove(C.byref(uid), bytes.fromhex(os.environ["ID"]).ljust(128, b"\\0"), 128)
assert rt.cudaSetDevice(rank) == 0
comm, s, buf = P(), stream(), out(rt.cudaMalloc, S(1 << 20))
assert nc.ncclCommInitRank(C.byref(comm), ranks, uid, rank) == 0
def all_reduce(n=1024):
    assert nc.ncclAllReduce(buf, buf, S(n), 7, 0, comm, s) == 0
def sync():
    assert rt.cudaStreamSynchronize(s) == 0
"""


def ranks(code, n=2, **env):
    """Runs the code as n ranks; what each printed."""
    ident = os.urandom(16).hex()
    ps = [subprocess.Popen(simlib.command(RANK + code), env=simlib.environment(RANK=i, RANKS=n, ID=ident, **env),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True) for i in range(n)]
    outs = []
    for p in ps:
        out, err = p.communicate(timeout=120)
        assert p.returncode in (0, -signal.SIGKILL), err[-2000:]
        outs.append(out)
    return outs


@pytest.mark.parametrize("n", [2, 4])
def test_no_rank_is_done_before_the_last_has_come(n):
    outs = ranks("""
if rank == ranks - 1:
    time.sleep(0.5)
    print(time.monotonic_ns())
all_reduce()
sync()
print(time.monotonic_ns())
""", n)
    came = int(outs[-1].split()[0])
    assert all(int(o.split()[-1]) > came for o in outs)


def test_a_rank_may_run_ahead():
    ranks("""
register(0x1000, b"k")
if rank:
    time.sleep(0.3)
for i in range(900):
    all_reduce()
    launch(s) if i % 100 == 0 else None
assert rank or rt.cudaStreamQuery(s) == 600
sync()
for i in range(9000):
    all_reduce()
sync()
""", HB_SIM_COSTS="coll_ns=1000,launch_ns=0")


def test_collectives_in_graphs_and_all_kinds(tmp_path):
    ranks("""
rt.cudaStreamBeginCapture(s, 0)
for i in range(10):
    all_reduce()
g = out(lambda p: rt.cudaStreamEndCapture(s, p))
x = out(rt.cudaGraphInstantiate, g, C.c_ulonglong(0))
for i in range(50):
    assert rt.cudaGraphLaunch(x, s) == 0
    if i % 7 == rank:
        sync()
sync()
assert nc.ncclAllGather(buf, buf, S(64), 7, comm, s) == 0
assert nc.ncclReduceScatter(buf, buf, S(64), 7, 0, comm, s) == 0
assert nc.ncclBroadcast(buf, buf, S(64), 7, 0, comm, s) == 0
peer = 1 - rank
assert nc.ncclGroupStart() == 0
assert nc.ncclSend(buf, S(64), 7, peer, comm, s) == 0 and nc.ncclRecv(buf, S(64), 7, peer, comm, s) == 0
assert nc.ncclGroupEnd() == 0
sync()
assert nc.ncclGroupEnd() == 5 and nc.ncclAllReduce(buf, buf, S(1), 99, 0, comm, s) == 4
assert nc.ncclSend(buf, S(64), 7, 9, comm, s) == 4
assert nc.ncclCommDestroy(comm) == 0 and nc.ncclCommDestroy(comm) == 4
assert nc.ncclAllReduce(buf, buf, S(1), 7, 0, comm, s) == 4
""", HB_SIM_TRUTH=tmp_path)
    log = truth.read(str(tmp_path))
    counts = log.counts()
    assert counts[("library", "ncclAllReduce")] == 24 and counts[("runtime", "cudaGraphLaunch")] == 100
    # a group is one kernel; failed calls launch none
    assert counts[("driver", "cuLaunchKernelEx")] == 2 * (10 + 3 + 1)


def test_a_dead_peer_ends_the_wait():
    outs = ranks("""
all_reduce(); sync()
if rank:
    os.kill(os.getpid(), signal.SIGKILL)
all_reduce(); sync()
e = C.c_int()
assert nc.ncclCommGetAsyncError(comm, C.byref(e)) == 0
print(e.value)
""")
    assert outs[0].split() == ["6"]


# ---- mini_llm ----

class Server:
    def __init__(self, *args):
        env = simlib.environment(PYTHONPATH=os.path.join(simlib.ROOT, "tests/workloads"))
        self.env = env
        self.process = subprocess.Popen([sys.executable, "-m", "mini_llm.serve", "--lib", simlib.LIB] + list(args), env=env,
                                        stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        assert line, "the server did not come up"
        self.ready = json.loads(line.decode())
        p = self.ready["pids"]
        self.pids = [p["front"], p["engine"]] + p["workers"]

    def load(self, *args):
        r = subprocess.run([sys.executable, "-m", "mini_llm.load", "--port", str(self.ready["port"])] + list(args),
                           env=self.env, stdout=subprocess.PIPE, timeout=120)
        lines = [json.loads(x) for x in r.stdout.decode().splitlines()]
        return lines[:-1], lines[-1]

    def stop(self):
        self.process.terminate()
        return self.process.wait(30)


def alive(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_mini_llm_counts_equal_the_libraries_truth(tmp_path):
    server = Server("--truth", str(tmp_path), "--workers", "2")
    requests, summary = server.load("--concurrency", "3", "--count", "12", "--tokens", "4-20", "--prompt", "10-600")
    assert summary["requests"] == len(requests) == 12 and summary["errors"] == 0
    assert summary["tokens"] == sum(r["tokens"] for r in requests)
    assert server.stop() == 0
    log = truth.read(str(tmp_path))
    for rank, pid in enumerate(server.ready["pids"]["workers"]):
        with open(str(tmp_path / ("worker%d.%d.steps.jsonl" % (rank, pid)))) as f:
            steps = [json.loads(line) for line in f]
        mine = {}
        for s in steps:
            for name, n in s["calls"].items():
                mine[name] = mine.get(name, 0) + n
        theirs = {}
        for c in log.pid(pid).calls(depth=0):
            if not c.function.startswith("__"):
                theirs[c.function] = theirs.get(c.function, 0) + 1
        assert mine == theirs
        assert mine["cudaGraphLaunch"] == sum(1 for s in steps if s.get("decode"))
    assert not any(alive(p) for p in server.pids)


def test_mini_llm_refuses_bad_requests_and_keeps_serving():
    import http.client
    server = Server("--workers", "1", "--layers", "2")
    try:
        c = http.client.HTTPConnection("127.0.0.1", server.ready["port"], timeout=30)
        for body in (b"", b"{", b'{"prompt": 5}', b'{"prompt_tokens": -1}', b'{"prompt_tokens": 10, "max_tokens": 999999}'):
            c.request("POST", "/v1/completions", body)
            r = c.getresponse()
            assert r.status == 400, (body, r.status)
            r.read()
        c.request("POST", "/v1/completions", b'{"prompt": "one two", "max_tokens": 3}')
        assert len(json.loads(c.getresponse().read().decode())["tokens"]) == 3
    finally:
        assert server.stop() == 0


def test_mini_llm_scarce_kv_blocks_preempt_and_finish(tmp_path):
    server = Server("--workers", "1", "--layers", "2", "--blocks", "20", "--truth", str(tmp_path))
    try:
        _, summary = server.load("--concurrency", "6", "--count", "12", "--tokens", "60", "--prompt", "40", "--quiet")
        assert summary["requests"] == 12 and summary["errors"] == 0
    finally:
        assert server.stop() == 0
    steps = [json.loads(x) for x in next(tmp_path.glob("engine.*.jsonl")).read_text().splitlines()]
    assert steps[-1]["preempted"] > 0 and steps[-1]["free_blocks"] == 20


def test_mini_llm_children_die_with_the_front_end():
    server = Server("--workers", "2", "--layers", "2")
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait(10)
    end = time.time() + 20
    while time.time() < end and any(alive(p) for p in server.pids):
        time.sleep(0.1)
    assert not [p for p in server.pids if alive(p)]
