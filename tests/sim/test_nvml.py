# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Simulated NVML: devices, memory, peers, processes; agreement with the driver; vLLM's own binding where it is installed."""
import glob
import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import simlib  # noqa: E402
import truth  # noqa: E402
from test_sim import built, first_instructions  # noqa: E402,F401

# No driver in the preamble: management does not load it.
NVML = """
import ctypes as C, os
LIB = %r
nv = C.CDLL(LIB + "/libnvidia-ml.so.1")
P, U, Q = C.c_void_p, C.c_uint, C.c_ulonglong
def device(i):
    p = P()
    assert nv.nvmlDeviceGetHandleByIndex_v2(i, C.byref(p)) == 0
    return p
def number(name, *a, t=U):
    v = t()
    assert nv[name](*a, C.byref(v)) == 0, name
    return v.value
def text(name, *a, size=96):
    b = C.create_string_buffer(size)
    assert nv[name](*a, b, size) == 0, name
    return b.value.decode()
def mapped(name):
    return any(name in line for line in open("/proc/self/maps"))
""" % simlib.LIB
DRIVER = """
cu = C.CDLL(LIB + "/libcuda.so.1", mode=C.RTLD_GLOBAL)
assert cu.cuInit(0) == 0
"""


def run(code, **env):
    r = subprocess.run([sys.executable, "-c", NVML + code], env=simlib.environment(**env), stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, universal_newlines=True, timeout=120)
    assert r.returncode == 0, "exit %d: %s" % (r.returncode, r.stderr[-2000:])
    return r.stdout


def test_it_does_not_load_the_driver():
    run("assert nv.nvmlInit_v2() == 0 and number('nvmlDeviceGetCount_v2') == 8 and not mapped('libcuda')")


def test_before_init_and_after_shutdown():
    run("""
v = U()
assert nv.nvmlDeviceGetCount_v2(C.byref(v)) == 1
assert nv.nvmlInit_v2() == 0 and nv.nvmlInit_v2() == 0 and nv.nvmlShutdown() == 0
assert nv.nvmlDeviceGetCount_v2(C.byref(v)) == 0          # as many shutdowns as inits
assert nv.nvmlShutdown() == 0 and nv.nvmlDeviceGetCount_v2(C.byref(v)) == 1 and nv.nvmlShutdown() == 1
""")


def test_number_and_memory_are_those_of_the_settings(tmp_path):
    code = """
nv.nvmlInit_v2()
m = (Q * 3)()
assert nv.nvmlDeviceGetMemoryInfo(device(0), m) == 0
print(number("nvmlDeviceGetCount_v2"), m[0], m[0] == m[1] + m[2])
"""
    assert run(code, HB_SIM_COSTS="devices=2,memory=%d" % (10 << 30)).split() == ["2", str(10 << 30), "True"]
    costs = tmp_path / "costs"
    costs.write_text("# devices 5\nkernel devices 7\ndevices 3\nmemory=%d\n" % (20 << 30))
    assert run(code, HB_SIM_COSTS=costs).split() == ["3", str(20 << 30), "True"]


def test_devices_are_found_by_all_their_names():
    run("""
nv.nvmlInit_v2()
for i in range(8):
    d = device(i)
    assert number("nvmlDeviceGetIndex", d) == i
    uuid, p = text("nvmlDeviceGetUUID", d), P()
    assert nv.nvmlDeviceGetHandleByUUID(uuid.encode(), C.byref(p)) == 0 and p.value == d.value
    info = C.create_string_buffer(68)
    assert nv.nvmlDeviceGetPciInfo_v3(d, info) == 0
    bus = info.raw[36:].split(b"\\0")[0]
    assert nv.nvmlDeviceGetHandleByPciBusId_v2(bus, C.byref(p)) == 0 and p.value == d.value
p = P()
assert nv.nvmlDeviceGetHandleByIndex_v2(8, C.byref(p)) == 2 and nv.nvmlDeviceGetHandleByUUID(b"GPU-0", C.byref(p)) == 6
assert nv.nvmlDeviceGetHandleByPciBusId_v2(b"0000:99:00.0", C.byref(p)) == 6
assert nv.nvmlDeviceGetHandleByPciBusId_v2(b"nonsense", C.byref(p)) == 2
short = C.create_string_buffer(4)
assert nv.nvmlDeviceGetUUID(device(0), short, 4) == 7 and nv.nvmlDeviceGetName(device(0), None, 90) == 2
""")


def test_what_engines_ask():
    run("""
nv.nvmlInit_v2()
a, b = device(0), device(1)
major, minor = C.c_int(), C.c_int()
assert nv.nvmlDeviceGetCudaComputeCapability(a, C.byref(major), C.byref(minor)) == 0 and (major.value, minor.value) == (9, 0)
assert number("nvmlDeviceGetP2PStatus", a, b, 2) == 5      # no peers: no custom all-reduce
assert number("nvmlDeviceGetTopologyCommonAncestor", a, b) == 50
assert nv.nvmlDeviceGetMigMode(a, C.byref(U()), C.byref(U())) == 3 and nv.nvmlDeviceGetFanSpeed(a, C.byref(U())) == 3
assert number("nvmlDeviceGetTemperature", a, 0) < 60 and 1000 < number("nvmlDeviceGetClockInfo", a, 1) < 3000
assert nv.nvmlDeviceGetClockInfo(a, 9, C.byref(U())) == 2
assert 50000 < number("nvmlDeviceGetPowerUsage", a) < number("nvmlDeviceGetEnforcedPowerLimit", a)
n = U(0)
assert nv.nvmlDeviceGetComputeRunningProcesses_v3(a, C.byref(n), None) == 0 and n.value == 0
cpus = (C.c_ulong * 4)()
assert nv.nvmlDeviceGetCpuAffinity(a, 4, cpus) == 0
assert sum(bin(x).count("1") for x in cpus) == os.sysconf("SC_NPROCESSORS_CONF")
v2 = C.create_string_buffer(40)
assert nv.nvmlDeviceGetMemoryInfo_v2(a, v2) == 0
assert int(text("nvmlSystemGetDriverVersion").split(".")[0]) >= 570
nv.nvmlErrorString.restype = C.c_char_p
assert b"not support" in nv.nvmlErrorString(3) and nv.nvmlErrorString(12345)
""")


def test_bad_devices_give_codes():
    run("""
nv.nvmlInit_v2()
good = device(0)
for bad in (None, P(8), P(good.value + 1), P(good.value - 4), P(good.value + 4 * 8), P(0xffffffffffffff00)):
    assert nv.nvmlDeviceGetIndex(bad, C.byref(U())) == 2 and nv.nvmlDeviceGetMemoryInfo(bad, (Q * 3)()) == 2
    assert nv.nvmlDeviceGetName(bad, C.create_string_buffer(96), 96) == 2 and nv.nvmlDeviceGetPowerUsage(bad, C.byref(U())) == 2
    assert nv.nvmlDeviceGetP2PStatus(good, bad, 0, C.byref(U())) == 2
assert nv.nvmlDeviceGetIndex(good, None) == 2
""")


def test_clocks_follow_the_planted_fault(tmp_path):
    faults = tmp_path / "faults"
    run("""
nv.nvmlInit_v2()
clock = lambda i, kind=1: number("nvmlDeviceGetClockInfo", device(i), kind)
reasons = lambda i: number("nvmlDeviceGetCurrentClocksThrottleReasons", device(i), t=Q)
path = os.environ["HB_SIM_FAULTS"]
assert clock(0) == 1980 and reasons(0) == 0                # no file, no fault
open(path, "w").write("# clock_throttled factor=9\\n  clock_throttled factor=2 device=1\\nslow_rank rank=0 factor=3\\n")
assert clock(0) == 1980 and clock(1) == 990 and reasons(0) == 0 and reasons(1) == 0x20 and clock(1, 2) == 2619
assert number("nvmlDeviceGetMaxClockInfo", device(1), 1) == 1980
open(path, "w").write("clock_throttled factor=3\\n")
assert clock(0) == clock(7) == 660
os.unlink(path)
assert clock(1) == 1980 and reasons(1) == 0
""", HB_SIM_FAULTS=faults)


@pytest.mark.parametrize("ready", [False, True])
def test_no_function_dies_of_empty_arguments(ready):
    text = subprocess.run(["nm", "-D", "--defined-only", os.path.join(simlib.LIB, "libnvidia-ml.so.1")], check=True,
                          stdout=subprocess.PIPE, universal_newlines=True).stdout
    names = [line.split()[2] for line in text.splitlines() if " T nvml" in line]
    assert len(names) > 100
    printed = run("""
if %r:
    nv.nvmlInit_v2()
for name in %r:
    if name != "nvmlShutdown":
        print(name, nv[name](*[P(0)] * 12))
""" % (ready, names))
    assert len(printed.splitlines()) == len(names) - 1


def test_it_agrees_with_the_driver():
    run(DRIVER + """
nv.nvmlInit_v2()
n, name, uuid, bus, version = C.c_int(), C.create_string_buffer(64), C.create_string_buffer(16), C.c_int(), C.c_int()
assert cu.cuDeviceGetCount(C.byref(n)) == 0 and n.value == number("nvmlDeviceGetCount_v2")
assert cu.cuDriverGetVersion(C.byref(version)) == 0 and version.value == number("nvmlSystemGetCudaDriverVersion_v2")
for i in (0, 5):
    assert cu.cuDeviceGetName(name, 64, i) == 0 and name.value.decode() == text("nvmlDeviceGetName", device(i))
    assert cu.cuDeviceGetUuid_v2(uuid, i) == 0
    assert text("nvmlDeviceGetUUID", device(i)).replace("-", "")[3:] == uuid.raw.hex()
    info = C.create_string_buffer(68)
    assert cu.cuDeviceGetAttribute(C.byref(bus), 33, i) == 0 and nv.nvmlDeviceGetPciInfo_v3(device(i), info) == 0
    assert info.raw[36:].split(b"\\0")[0].decode().split(":")[1] == "%02X" % bus.value
""")


def test_memory_and_processes_of_a_process_that_uses_the_device():
    run(DRIVER + """
nv.nvmlInit_v2()
ctx, p, m, d = P(), Q(), (Q * 3)(), device(0)
assert cu.cuDevicePrimaryCtxRetain(C.byref(ctx), 0) == 0 and cu.cuCtxSetCurrent(ctx) == 0
assert nv.nvmlDeviceGetMemoryInfo(d, m) == 0
before = m[2]
assert cu.cuMemAlloc_v2(C.byref(p), C.c_size_t(3 << 30)) == 0 and nv.nvmlDeviceGetMemoryInfo(d, m) == 0
assert m[2] - before == 3 << 30 and m[0] == m[1] + m[2]
class Info(C.Structure):
    _fields_ = [("pid", U), ("used", Q), ("gi", U), ("ci", U)]
n, infos = U(0), (Info * 4)()
assert nv.nvmlDeviceGetComputeRunningProcesses_v3(d, C.byref(n), None) == 7 and n.value == 1
n.value = 4
assert nv.nvmlDeviceGetComputeRunningProcesses_v3(d, C.byref(n), infos) == 0 and n.value == 1
assert infos[0].pid == os.getpid() and infos[0].used >= 3 << 30
""")


def test_calls_are_in_the_truth_log_of_a_process_with_a_driver(tmp_path):
    run("nv.nvmlInit_v2()\n" + DRIVER + "for i in range(5): number('nvmlDeviceGetPowerUsage', device(0))", HB_SIM_TRUTH=tmp_path)
    counts = truth.read(str(tmp_path)).counts()
    assert counts[("library", "nvmlDeviceGetPowerUsage")] == 5 and ("library", "nvmlInit_v2") not in counts


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="first instructions of x86-64")
def test_functions_begin_with_push():
    begins = first_instructions("libnvidia-ml.so.1", 1)
    names = [n for n in begins if n.startswith("nvml") and n != "nvmlErrorString"]
    assert len(names) > 100 and not [n for n in names if begins[n] != ["push"]]


def test_vllms_own_binding():
    found = glob.glob("/var/cache/herschel-bpf-tests/vllm-gpu/venv/lib/python3*/site-packages/vllm/third_party/pynvml.py")
    if not found:
        pytest.skip("vLLM for GPUs is not installed here")
    printed = run("""
import importlib.util, sys
spec = importlib.util.spec_from_file_location("pynvml", %r)
p = importlib.util.module_from_spec(spec)
sys.modules["pynvml"] = p
spec.loader.exec_module(p)
p.nvmlInit()
a, b = (p.nvmlDeviceGetHandleByIndex(i) for i in (0, 1))
assert p.nvmlDeviceGetCount() == 8 and p.nvmlDeviceGetCudaComputeCapability(a) == (9, 0)
assert p.nvmlDeviceGetMemoryInfo(a).total == 80 << 30 == p.nvmlDeviceGetMemoryInfo(a, p.nvmlMemory_v2).total
assert p.nvmlDeviceGetP2PStatus(a, b, p.NVML_P2P_CAPS_INDEX_NVLINK) != p.NVML_P2P_STATUS_OK
assert p.nvmlDeviceGetComputeRunningProcesses(a) == [] and p.nvmlDeviceGetUtilizationRates(a).gpu == 0
try:
    p.nvmlDeviceGetMigMode(a)
except p.NVMLError_NotSupported:
    print("not supported")
p.nvmlShutdown()
""" % found[0], LD_LIBRARY_PATH=simlib.LIB)
    assert printed.split() == ["not", "supported"]
