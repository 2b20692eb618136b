# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Simulated device time: what kernels and copies cost, what overlaps, and that a seed decides all that varies."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import simlib  # noqa: E402
import truth  # noqa: E402
from test_sim import built  # noqa: E402,F401

BIG = """
def big(stream, host=0x1000, blocks=132):
    assert rt.cudaLaunchKernel(P(host), Dim3(blocks, 1, 1), Dim3(256, 1, 1), None, S(0), stream) == 0
register(0x1000, b"k")
"""


def kernels(tmp_path, code, **env):
    """Kernel operations of the program, in the order of start."""
    simlib.run(BIG + code, HB_SIM_TRUTH=tmp_path, **env)
    return truth.read(str(tmp_path)).operations(kind="kernel")


def durations(ops):
    return [o.end - o.start for o in ops]


def overlap(a, b):
    return a.start < b.end and b.start < a.end


def test_a_tiny_kernel_is_launch_bound(tmp_path):
    ops = kernels(tmp_path, "s = stream()\nfor i in range(50): launch(s)\nrt.cudaStreamSynchronize(s)")
    assert all(2000 <= d <= 3000 for d in durations(ops))


def test_bandwidth_bounds_a_kernel_that_moves_much(tmp_path):
    costs = tmp_path / "costs"
    costs.write_text("kernel k ns=1000 bytes=1000\nhbm_bps 1e12\n")
    ops = kernels(tmp_path, "s = stream()\nfor n in (132, 1320, 13200): big(s, blocks=n)\nrt.cudaStreamSynchronize(s)",
                  HB_SIM_COSTS=costs)
    # 256 threads * 1,000 bytes a block at 1 TB/s: 256 ns a block
    assert durations(ops) == [1000 + 256 * 132, 1000 + 256 * 1320, 1000 + 256 * 13200]


def test_waves_of_blocks(tmp_path):
    costs = tmp_path / "costs"
    costs.write_text("kernel k* ns=500 wave=10000   # 8 blocks of 256 threads an SM\nkernel * 7\n")
    ops = kernels(tmp_path, """
s = stream()
register(0x2000, b"other")
for n in (1, 1056, 1057, 10560): big(s, blocks=n)
big(s, 0x2000)
rt.cudaStreamSynchronize(s)
""", HB_SIM_COSTS=costs)
    assert durations(ops) == [10500, 10500, 20500, 100500, 7]


def test_hints_price_a_product(tmp_path):
    costs = tmp_path / "costs"
    costs.write_text("kernel half_* peak=bf16 reach=0.5\nkernel nvjet_* ns=2500 wave=5000 peak=bf16\n")
    ops = kernels(tmp_path, """
core = C.c_void_p.in_dll(cu, "hb_sim_core")
table = C.cast(C.addressof(core), C.POINTER(C.c_void_p))
hint = C.CFUNCTYPE(None, C.c_uint64, C.c_uint64)(table[12])
register(0x2000, b"nvjet_tst_128x128_h_bz"); register(0x3000, b"half_speed")
s = stream()
hint(989 * 10**9, 0); big(s, 0x2000)           # 1 ms at the peak of bf16
hint(10, 3350 * 10**6); big(s, 0x2000)         # 1 ms at the bandwidth
big(s, 0x2000)                                 # the hint was taken
hint(989 * 10**9, 0); big(s, 0x3000)
hint(989 * 10**9, 0); big(s, 0x2000, 33)       # a quarter of the device
rt.cudaStreamSynchronize(s)
""", HB_SIM_COSTS=costs)
    assert durations(ops) == [1002500, 1002500, 7500, 2000000, 4002500]


def test_a_row_that_is_not_understood_is_said():
    r = simlib.subprocess.run(simlib.command("rt.cudaFree(None)"), env=simlib.environment(HB_SIM_COSTS="kernel k bytes=x,kernel"),
                              stderr=simlib.subprocess.PIPE, universal_newlines=True)
    assert r.returncode == 0 and r.stderr.count("not understood") == 2


def test_small_kernels_of_two_streams_overlap_big_ones_do_not(tmp_path):
    ops = kernels(tmp_path, """
a, b = stream(), stream()
launch(a); launch(b); rt.cudaDeviceSynchronize()
big(a); big(b); rt.cudaDeviceSynchronize()
""", HB_SIM_COSTS="kernel_ns=20000000")
    assert overlap(ops[0], ops[1]) and not overlap(ops[2], ops[3])


def test_big_kernels_do_not_wait_for_one_whose_turn_is_far_away(tmp_path):
    costs = tmp_path / "costs"
    costs.write_text("kernel long 50000000\nkernel * 1000000\n")
    ops = kernels(tmp_path, """
a, b = stream(), stream()
register(0x2000, b"long")
launch(a, 0x2000); big(a); big(b); big(b); big(a); rt.cudaDeviceSynchronize()
""", HB_SIM_COSTS=costs)
    assert [o.name for o in ops] == ["long", "k", "k", "k", "k"]
    assert ops[2].end < ops[0].end <= ops[3].start and not any(overlap(a, b) for a, b in zip(ops[1:], ops[2:]))


def test_branches_of_a_graph_overlap_and_join(tmp_path):
    ops = kernels(tmp_path, """
a, b, e, f = stream(), stream(), out(rt.cudaEventCreate), out(rt.cudaEventCreate)
register(0x2000, b"root"); register(0x3000, b"left"); register(0x4000, b"right"); register(0x5000, b"join")
rt.cudaStreamBeginCapture(a, 0)
launch(a, 0x2000)
rt.cudaEventRecord(e, a); rt.cudaStreamWaitEvent(b, e, 0)
for i in range(3): launch(a, 0x3000)
for i in range(2): launch(b, 0x4000)
rt.cudaEventRecord(f, b); rt.cudaStreamWaitEvent(a, f, 0)
launch(a, 0x5000)
g = out(lambda p: rt.cudaStreamEndCapture(a, p))
x = out(rt.cudaGraphInstantiate, g, C.c_ulonglong(0))
for i in range(2):
    rt.cudaGraphLaunch(x, a)
rt.cudaStreamSynchronize(a)
""", HB_SIM_COSTS="kernel_ns=10000000")
    for run in (ops[:7], ops[7:]):
        by = {name: [o for o in run if o.name == name] for name in ("root", "left", "right", "join")}
        root, left, right, join = by["root"][0], by["left"], by["right"], by["join"][0]
        assert root.end <= left[0].start and root.end <= right[0].start and overlap(left[0], right[0])
        assert left[0].end <= left[1].start and right[0].end <= right[1].start
        assert join.start >= left[2].end >= right[1].end and overlap(left[1], right[1])
        assert join.end - root.start < 5.2 * 10000000  # not 7 kernels one after another
    assert ops[7].start >= ops[6].end


def test_a_side_stream_that_goes_on_after_its_event_does_not_hold_up_the_join(tmp_path):
    ops = kernels(tmp_path, """
a, b, e, f, h = stream(), stream(), out(rt.cudaEventCreate), out(rt.cudaEventCreate), out(rt.cudaEventCreate)
register(0x2000, b"side"); register(0x3000, b"main")
rt.cudaStreamBeginCapture(a, 0)
rt.cudaEventRecord(e, a); rt.cudaStreamWaitEvent(b, e, 0)
launch(b, 0x2000)
rt.cudaEventRecord(f, b)
launch(b, 0x2000)
rt.cudaStreamWaitEvent(a, f, 0)
launch(a, 0x3000)
rt.cudaEventRecord(h, b); rt.cudaStreamWaitEvent(a, h, 0)
g = out(lambda p: rt.cudaStreamEndCapture(a, p))
x = out(rt.cudaGraphInstantiate, g, C.c_ulonglong(0))
rt.cudaGraphLaunch(x, a); launch(a)
rt.cudaStreamSynchronize(a)
""", HB_SIM_COSTS="kernel_ns=10000000")
    first, second = [o for o in ops if o.name == "side"]
    main, after = [o for o in ops if o.name == "main"][0], [o for o in ops if o.name == "k"][0]
    assert main.start >= first.end and overlap(main, second) and after.start >= max(main.end, second.end)


def test_many_branches_are_joined(tmp_path):
    ops = kernels(tmp_path, """
a, e = stream(), out(rt.cudaEventCreate)
register(0x2000, b"branch"); register(0x3000, b"join")
rt.cudaStreamBeginCapture(a, 0)
rt.cudaEventRecord(e, a)
for i in range(20):
    b, f = stream(), out(rt.cudaEventCreate)
    rt.cudaStreamWaitEvent(b, e, 0)
    for k in range(1 + i): launch(b, 0x2000)
    rt.cudaEventRecord(f, b); rt.cudaStreamWaitEvent(a, f, 0)
launch(a, 0x3000)
g = out(lambda p: rt.cudaStreamEndCapture(a, p))
x = out(rt.cudaGraphInstantiate, g, C.c_ulonglong(0))
rt.cudaGraphLaunch(x, a)
rt.cudaStreamSynchronize(a)
""", HB_SIM_COSTS="kernel_ns=1000000,node_ns=0")
    join = [o for o in ops if o.name == "join"]
    ends = [o.end for o in ops if o.name == "branch"]
    assert len(ends) == 210 and len(join) == 1 and join[0].start == max(ends)
    assert max(ends) - min(o.start for o in ops) == 20 * 1000000


@pytest.mark.parametrize("seed", [1, 77])
def test_a_seed_decides_durations(tmp_path, seed):
    code = "a, b = stream(), stream()\nfor i in range(200):\n    big(a); launch(b)\nrt.cudaDeviceSynchronize()"
    runs = []
    for name, value in (("x", seed), ("y", seed), ("z", seed + 1)):
        folder = tmp_path / name
        folder.mkdir()
        ops = kernels(folder, code, HB_SIM_SEED=value, HB_SIM_COSTS="kernel_ns=10000")
        runs.append([[o.end - o.start for o in ops if o.grid[0] == n] for n in (132, 1)])
    assert runs[0] == runs[1] != runs[2]
    for stream in runs[0]:
        assert len(stream) == 200 and 9800 <= min(stream) < 9900 and 10100 < max(stream) <= 10200
        assert abs(sum(stream) / 200 - 10000) < 50


def test_without_a_seed_nothing_varies(tmp_path):
    ops = kernels(tmp_path, "s = stream()\nfor i in range(100): big(s)\nrt.cudaStreamSynchronize(s)",
                  HB_SIM_COSTS="kernel_ns=10000")
    assert set(durations(ops)) == {10000}


def test_the_table_works_where_the_library_is_copied(tmp_path):
    simlib.subprocess.run(["cp", os.path.join(simlib.LIB, "libcuda.so.1"), str(tmp_path)], check=True)
    logs = tmp_path / "logs"
    logs.mkdir()
    simlib.subprocess.run([sys.executable, "-c", """
import ctypes as C
P = C.c_void_p
cu = C.CDLL(%r)
ctx, m, f = P(), P(), P()
cu.cuInit(0); cu.cuDevicePrimaryCtxRetain(C.byref(ctx), 0); cu.cuCtxSetCurrent(ctx)
cu.cuModuleLoadData(C.byref(m), b"simulated"); cu.cuModuleGetFunction(C.byref(f), m, b"sgemm_topk_kernel")
assert cu.cuLaunchKernel(f, 132, 1, 1, 1024, 1, 1, 0, None, None, None) == 0
""" % str(tmp_path / "libcuda.so.1")], check=True, env=simlib.environment(HB_SIM_TRUTH=logs))
    assert durations(truth.read(str(logs)).operations(kind="kernel")) == [44500]
