# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Simulated NCCL beyond what test_sim.py has: communicators made in groups, split and shrunk, reductions, memory, abort."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import simlib  # noqa: E402
import truth  # noqa: E402
from test_sim import built, first_instructions, ranks  # noqa: E402,F401

MORE = """
def value(f, c):
    v = C.c_int()
    assert f(c, C.byref(v)) == 0
    return v.value
def split(color, key, c=None):
    p = P()
    assert nc.ncclCommSplit(c or comm, color, key, C.byref(p), None) == 0
    return p
def reduce_on(c, n=1024, op=0, t=7):
    return nc.ncclAllReduce(buf, buf, S(n), t, op, c, s)
"""

# One process, no ranks to start.
SINGLE = """
nc = C.CDLL(LIB + "/libnccl.so.2", mode=C.RTLD_GLOBAL)
class Id(C.Structure):
    _fields_ = [("b", C.c_char * 128)]
s, buf = stream(), out(rt.cudaMalloc, S(1 << 20))
""" + MORE


def test_version_can_be_set():
    code = SINGLE + "v = C.c_int()\nassert nc.ncclGetVersion(C.byref(v)) == 0 and nc.ncclGetVersion(None) == 4\nprint(v.value)"
    assert simlib.run(code).split() == ["22705"]
    assert simlib.run(code, HB_SIM_NCCL_VERSION="22809").split() == ["22809"]


def test_all_devices_of_one_process(tmp_path):
    simlib.run(SINGLE + """
n = 4
cs = (P * n)()
assert nc.ncclCommInitAll(cs, n, None) == 0
cs = [P(c) for c in cs]
for i, c in enumerate(cs):
    assert (value(nc.ncclCommUserRank, c), value(nc.ncclCommCount, c), value(nc.ncclCommCuDevice, c)) == (i, n, i)
streams, bufs = [], []
for i in range(n):
    rt.cudaSetDevice(i)
    streams.append(stream()); bufs.append(out(rt.cudaMalloc, S(4096)))
rt.cudaSetDevice(0)
assert nc.ncclGroupStart() == 0
for c, st, b in zip(cs, streams, bufs):
    assert nc.ncclAllReduce(b, b, S(1024), 7, 0, c, st) == 0
assert nc.ncclGroupEnd() == 0
for i in range(n):
    rt.cudaSetDevice(i)
    assert rt.cudaStreamSynchronize(streams[i]) == 0
assert all(nc.ncclCommDestroy(c) == 0 for c in cs)
""", HB_SIM_TRUTH=tmp_path)
    ops = truth.read(str(tmp_path)).operations(kind="collective")
    assert sorted(o.device for o in ops) == [0, 1, 2, 3] and not any(o.unresolved for o in ops)


def test_ranks_of_one_process_meet_at_the_end_of_the_group():
    simlib.run(SINGLE + """
uid, cs = Id(), [P(), P(), P()]
assert nc.ncclGetUniqueId(C.byref(uid)) == 0
assert nc.ncclGroupStart() == 0
for i, c in enumerate(cs):
    rt.cudaSetDevice(i)
    assert nc.ncclCommInitRank(C.byref(c), 3, uid, i) == 0
assert nc.ncclGroupEnd() == 0
assert [value(nc.ncclCommUserRank, c) for c in cs] == [0, 1, 2]
# and split there
ps = [P(), P(), P()]
assert nc.ncclGroupStart() == 0
for i, (c, p) in enumerate(zip(cs, ps)):
    rt.cudaSetDevice(i)
    assert nc.ncclCommSplit(c, 0, -i, C.byref(p), None) == 0
assert nc.ncclGroupEnd() == 0
assert [value(nc.ncclCommUserRank, p) for p in ps] == [2, 1, 0]
""")


def test_split_by_color_and_key(tmp_path):
    outs = ranks(MORE + """
p = split(rank % 2, -rank)                    # two halves, in reversed order
print(value(nc.ncclCommCount, p), value(nc.ncclCommUserRank, p))
for i in range(20):
    assert reduce_on(p) == 0
assert reduce_on(comm) == 0
sync()
q = split(-1 if rank == 3 else 7, 0)          # one rank is in none
print(value(nc.ncclCommCount, q) if q.value else "none")
if q.value:
    assert reduce_on(q) == 0
    sync()
    r = split(0, 0, q)                        # a split of a split
    assert value(nc.ncclCommCount, r) == 3 and reduce_on(r) == 0
    sync()
assert nc.ncclCommSplit(comm, -2, 0, C.byref(P()), None) == 4
assert nc.ncclCommDestroy(p) == 0 and reduce_on(p) == 4 and reduce_on(comm) == 0
sync()
""", 4, HB_SIM_TRUTH=tmp_path)
    assert [o.split() for o in outs] == [["2", "1", "3"], ["2", "1", "3"], ["2", "0", "3"], ["2", "0", "none"]]
    assert truth.read(str(tmp_path)).counts()[("library", "ncclCommSplit")] == 4 * 3 + 3


def test_halves_do_not_wait_for_each_other():
    outs = ranks(MORE + """
p = split(rank // 2, rank)
if rank >= 2:
    time.sleep(0.5)
t = time.monotonic_ns()
assert reduce_on(p) == 0
sync()
print(time.monotonic_ns() - t)
""", 4)
    assert all(int(o) < 300000000 for o in outs)


def test_shrink_leaves_ranks_out():
    outs = ranks(MORE + """
if rank != 1:
    p = P()
    assert nc.ncclCommShrink(comm, (C.c_int * 1)(1), 1, C.byref(p), None, 0) == 0
    print(value(nc.ncclCommCount, p), value(nc.ncclCommUserRank, p))
    assert reduce_on(p) == 0
    sync()
else:
    assert nc.ncclCommShrink(comm, (C.c_int * 1)(1), 1, C.byref(P()), None, 0) == 4
""", 3)
    assert [o.split() for o in outs] == [["2", "0"], [], ["2", "1"]]


def test_kernels_are_named_after_reduction_and_type(tmp_path):
    ranks(MORE + """
op = C.c_int()
assert nc.ncclRedOpCreatePreMulSum(C.byref(op), C.byref(C.c_float(2)), 7, 1, comm) == 0 and op.value >= 5
for o, t in ((0, 9), (2, 7), (4, 6), (op.value, 7)):
    assert reduce_on(comm, op=o, t=t) == 0
assert nc.ncclReduceScatter(buf, buf, S(64), 4, 1, comm, s) == 0
assert nc.ncclAllGather(buf, buf, S(64), 4, comm, s) == 0
assert nc.ncclAlltoAll(buf, buf, S(64), 4, comm, s) == 0
sync()
assert nc.ncclRedOpDestroy(op, comm) == 0 and reduce_on(comm, op=op.value) == 4 and nc.ncclRedOpDestroy(op, comm) == 4
assert nc.ncclRedOpDestroy(0, comm) == 4 and reduce_on(comm, op=99) == 4
""", HB_SIM_TRUTH=tmp_path)
    ops = truth.read(str(tmp_path)).operations(kind="collective")
    names = {o.name for o in ops}
    assert len(ops) == 2 * 7 and names == {"ncclDevKernel_%s_RING_LL" % n for n in (
        "AllReduce_Sum_bf16", "AllReduce_MinMax_f32", "AllReduce_SumPostDiv_f16", "AllReduce_PreMulSum_f32",
        "ReduceScatter_Prod_i64", "AllGather")}


VALUES = MORE + """
import struct
other = out(rt.cudaMalloc, S(4096))
def put(values, at=0, to=None, fmt="q"):
    b = struct.pack("%d%s" % (len(values), fmt), *values)
    assert rt.cudaMemcpyAsync(P((to or buf).value + at), b, S(len(b)), 1, s) == 0
def got(n, at=0, frm=None, fmt="q"):
    b = C.create_string_buffer(n * struct.calcsize(fmt))
    assert rt.cudaMemcpyAsync(b, P((frm or buf).value + at), S(len(b)), 2, s) == 0
    sync()
    return list(struct.unpack("%d%s" % (n, fmt), b.raw))
I64, F32, SUM, MAX, AVG = 4, 7, 0, 2, 4
"""


def test_what_all_ranks_agree_on_is_known_after_a_collective():
    ranks(VALUES + """
put([7, 8]); assert nc.ncclAllReduce(buf, other, S(2), I64, SUM, comm, s) == 0
assert got(2, frm=other) == [7 * ranks, 8 * ranks]
put([7, 8]); assert nc.ncclAllReduce(buf, buf, S(2), I64, MAX, comm, s) == 0 and got(2) == [7, 8]
put([1.5], fmt="f"); assert nc.ncclAllReduce(buf, buf, S(1), F32, SUM, comm, s) == 0 and got(1, fmt="f") == [1.5 * ranks]
put([1.5], fmt="f"); assert nc.ncclAllReduce(buf, buf, S(1), F32, AVG, comm, s) == 0 and got(1, fmt="f") == [1.5]
put([435, 6]); assert nc.ncclAllGather(buf, other, S(2), I64, comm, s) == 0 and got(2 * ranks, frm=other) == [435, 6] * ranks
put([9], 8 * rank, other); assert nc.ncclAllGather(P(other.value + 8 * rank), other, S(1), I64, comm, s) == 0    # in place
assert got(ranks, frm=other) == [9] * ranks
put(range(ranks)); assert nc.ncclReduceScatter(buf, other, S(1), I64, SUM, comm, s) == 0
assert got(1, frm=other) == [rank * ranks]
put(range(ranks)); assert nc.ncclAlltoAll(buf, other, S(1), I64, comm, s) == 0 and got(ranks, frm=other) == [rank] * ranks
put([3]); assert nc.ncclBcast(buf, S(1), I64, 0, comm, s) == 0 and got(1) == [3]
""", 3)


def test_what_kernels_computed_stays_unknown_and_so_does_what_is_large_or_grouped():
    ranks(VALUES + """
register(0x1000, b"k")
token = lambda v: all(5 <= x < 500 for x in v)
put([7]); launch(s); assert nc.ncclAllReduce(buf, buf, S(1), I64, SUM, comm, s) == 0 and token(got(1))
put([7] * 16384); assert nc.ncclAllReduce(buf, buf, S(16384), I64, SUM, comm, s) == 0 and token(got(1))
put([7]); nc.ncclGroupStart(); reduce_on(comm, 1, SUM, I64); reduce_on(comm, 1, SUM, I64)
assert nc.ncclGroupEnd() == 0 and token(got(1))
for bad in (P(8), P(buf.value + (1 << 40)), None):      # never read: nothing of ours is there
    assert nc.ncclAllReduce(bad, bad, S(64), I64, SUM, comm, s) == 0 and nc.ncclAllGather(buf, bad, S(64), I64, comm, s) == 0
sync()
""")


def test_ranks_that_one_process_holds_are_known_to_planted_faults(tmp_path):
    (tmp_path / "faults").write_text("slow_rank rank=1 delay_us=60000\n")
    simlib.run(SINGLE + """
cs = (P * 2)()
assert nc.ncclCommInitAll(cs, 2, (C.c_int * 2)(5, 6)) == 0      # ranks 0 and 1 are devices 5 and 6
streams = []
for i in (5, 6):
    rt.cudaSetDevice(i); streams.append(stream())
t = time.monotonic_ns()
nc.ncclGroupStart()
for c, st in zip(cs, streams):
    assert nc.ncclAllReduce(buf, buf, S(8), 7, 0, P(c), st) == 0
assert nc.ncclGroupEnd() == 0
rt.cudaSetDevice(5); rt.cudaStreamSynchronize(streams[0])
assert time.monotonic_ns() - t >= 60000000
""", HB_SIM_FAULTS=tmp_path / "faults")


def test_bytes_of_an_operation_are_logged(tmp_path):
    ranks("all_reduce(1000)\nsync()", HB_SIM_TRUTH=tmp_path)
    calls = truth.read(str(tmp_path)).calls("ncclAllReduce")
    assert [c.bytes for c in calls] == [4000, 4000] and all(c.stream for c in calls)


def test_a_group_of_many_operations(tmp_path):
    ranks(MORE + """
peer = 1 - rank
assert nc.ncclGroupStart() == 0
for i in range(16):
    assert nc.ncclSend(buf, S(64), 7, peer, comm, s) == 0 and nc.ncclRecv(buf, S(64), 7, peer, comm, s) == 0
assert nc.ncclGroupEnd() == 0
sync()
assert nc.ncclGroupStart() == 0                   # more than one kernel holds: refused, not stuck
for i in range(65):
    assert reduce_on(comm) == 0
assert nc.ncclGroupEnd() == 5
nc.ncclGetLastError.restype = C.c_char_p
assert b"more than 64" in nc.ncclGetLastError(comm)
""", HB_SIM_TRUTH=tmp_path)
    assert len(truth.read(str(tmp_path)).operations(kind="collective")) == 2


def test_a_group_can_be_simulated():
    ranks(MORE + """
class Info(C.Structure):
    _fields_ = [("size", S), ("magic", C.c_uint), ("version", C.c_uint), ("us", C.c_float)]
i = Info(S(24), 0x74685283, 22705, 0)
nc.ncclGroupStart(); reduce_on(comm); reduce_on(comm)
assert nc.ncclGroupSimulateEnd(C.byref(i)) == 0 and 19 < i.us < 30
assert rt.cudaStreamQuery(s) == 0                 # nothing was launched
i.magic = 0
nc.ncclGroupStart()
assert nc.ncclGroupSimulateEnd(C.byref(i)) == 4 and nc.ncclGroupEnd() == 0 and nc.ncclGroupSimulateEnd(C.byref(i)) == 5
""")


def test_memory_buffers_and_windows():
    ranks(MORE + """
p, handle, window = P(), P(), P(7)
assert nc.ncclMemAlloc(C.byref(p), S(1 << 20)) == 0 and p.value and rt.cudaMemset(p, 0, S(1 << 20)) == 0
assert nc.ncclCommRegister(comm, p, S(1 << 20), C.byref(handle)) == 0 and handle.value
assert nc.ncclCommDeregister(comm, handle) == 0 and nc.ncclCommDeregister(comm, None) == 4
assert nc.ncclCommWindowRegister(comm, p, S(1 << 20), C.byref(window), 0) == 0 and not window.value
assert nc.ncclCommWindowDeregister(comm, window) == 0
assert nc.ncclMemFree(p) == 0 and nc.ncclMemFree(p) == 4 and nc.ncclMemFree(None) == 0
assert nc.ncclMemAlloc(C.byref(p), S(1 << 45)) == 1
""")


def test_configurations_are_checked():
    simlib.run(SINGLE + """
class Config(C.Structure):
    _fields_ = [("size", S), ("magic", C.c_uint), ("version", C.c_uint), ("blocking", C.c_int), ("more", C.c_int * 20)]
uid, c = Id(), P()
nc.ncclGetUniqueId(C.byref(uid))
good, bad = Config(S(64), 0xcafebeef, 22705, 0), Config(S(64), 0, 0, 0)
assert nc.ncclCommInitRankConfig(C.byref(c), 1, uid, 0, C.byref(bad)) == 4
assert nc.ncclCommInitRankConfig(C.byref(c), 1, uid, 0, C.byref(good)) == 0
e = C.c_int(9)
assert nc.ncclCommGetAsyncError(c, C.byref(e)) == 0 and e.value == 0
assert nc.ncclCommFinalize(c) == 0 and nc.ncclCommDestroy(c) == 0 and nc.ncclCommFinalize(c) == 4
ids = (Id * 2)()
nc.ncclGetUniqueId(C.byref(ids[0])); nc.ncclGetUniqueId(C.byref(ids[1]))
assert nc.ncclCommInitRankScalable(C.byref(c), 1, 0, 2, ids, None) == 4      # more ids than ranks
assert nc.ncclCommInitRankScalable(C.byref(c), 1, 0, 1, ids, None) == 0
""")


def test_abort_ends_the_wait_of_others():
    outs = ranks(MORE + """
all_reduce(); sync()
if rank:
    time.sleep(0.2)
    assert nc.ncclCommAbort(comm) == 0 and nc.ncclCommAbort(comm) == 4
else:
    all_reduce(); sync()
    print(value(nc.ncclCommGetAsyncError, comm))
""")
    assert outs[0].split() == ["6"]


def test_a_rank_that_dies_ends_a_split():
    outs = ranks(MORE + """
if rank:
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(0.3)
all_reduce(); sync()                              # the dead rank is noticed
t, p = time.monotonic_ns(), P()
print(nc.ncclCommSplit(comm, 0, 0, C.byref(p), None), p.value, time.monotonic_ns() - t < 5e9)
""")
    assert outs[0].split() == ["2", "None", "True"]


def test_bad_communicators_give_codes():
    simlib.run(SINGLE + """
v = C.c_int()
for bad in (None, P(0x77), P(0xffffffffffffff00), s, buf):
    assert reduce_on(bad) == 4 and nc.ncclCommDestroy(bad) == 4 and nc.ncclCommAbort(bad) == 4
    assert nc.ncclCommCount(bad, C.byref(v)) == 4 and nc.ncclCommSplit(bad, 0, 0, C.byref(P()), None) == 4
assert nc.ncclCommInitRank(C.byref(P()), 2, Id(), 2) == 4 and nc.ncclCommInitAll((P * 2)(), 0, None) == 4
assert nc.ncclCommInitAll((P * 2)(), 2, (C.c_int * 2)(0, 99)) == 1     # no such device: nobody waits
""")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="first instructions of x86-64")
def test_functions_and_their_profiling_names_begin_with_push():
    begins = first_instructions("libnccl.so.2", 1)
    names = {n for n in begins if n.startswith(("nccl", "pnccl")) and not n.endswith(("String", "Error", "DebugInit"))}
    assert len(names) > 30 and not [n for n in names if begins[n] != ["push"]]
