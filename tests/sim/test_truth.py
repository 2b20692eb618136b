# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The truth log: what the devices did, correlation with the calls that asked for it, gaps, and what bounds the log."""
import collections
import json
import os
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import simlib  # noqa: E402
import truth  # noqa: E402
from test_sim import built, ranks  # noqa: E402,F401


def end_to_end(ops):
    return all(a.end <= b.start for a, b in zip(ops, ops[1:]))


def test_each_operation_is_there_once_with_times_and_correlation(tmp_path):
    out = simlib.run("""
register(0x1000, b"first_kernel"); register(0x2000, b"second_kernel")
s = stream()
d, h = out(rt.cudaMalloc, S(1 << 20)), out(rt.cudaHostAlloc, S(1 << 20), 0)
rt.cudaMemcpyAsync(d, h, S(4096), 1, s)
rt.cudaMemsetAsync(d, 0, S(8192), s)
for i in range(3):
    rt.cudaLaunchKernel(P(0x1000), Dim3(7, 2, 1), Dim3(64, 1, 1), None, S(1024), s)
launch(s, 0x2000)
rt.cudaMemcpyAsync(d, P(d.value + 8192), S(512), 3, s)
rt.cudaMemcpyAsync(h, d, S(256), 2, s)
e = out(rt.cudaEventCreate)
rt.cudaEventRecord(e, s)
t0 = time.monotonic_ns()
rt.cudaStreamSynchronize(s)
print(s.value, t0, time.monotonic_ns())
""", HB_SIM_TRUTH=tmp_path, HB_SIM_COSTS="kernel_ns=3000000")
    s, before, after = map(int, out.split())
    log = truth.read(str(tmp_path))
    ops = log.operations()
    assert [o.kind for o in ops] == ["h2d", "memset"] + ["kernel"] * 4 + ["d2d", "d2h", "event"]
    assert [o.bytes for o in ops if o.kind != "kernel"] == [4096, 8192, 512, 256, 0]
    assert {o.stream for o in ops} == {s} and end_to_end(ops) and ops[-1].end <= after
    kernels = log.operations(kind="kernel")
    assert [o.name for o in kernels] == ["first_kernel"] * 3 + ["second_kernel"]
    assert kernels[0].grid == (7, 2, 1) and kernels[0].block == (64, 1, 1) and kernels[0].shared == 1024
    assert all(3000000 <= o.end - o.start < 3000100 for o in kernels) and kernels[-1].end > before
    # the runtime's call and the driver's call it makes share the number; no two calls of the application do
    calls = log.calls("cudaLaunchKernel")
    assert [c.correlation for c in calls] == [c.correlation for c in log.calls("cuLaunchKernel")]
    assert [c.correlation for c in calls] == [o.correlation for o in kernels]
    assert len({c.correlation for c in log if c.depth == 0}) == len([c for c in log if c.depth == 0])
    assert all(c.correlation for c in log)
    assert {o.tid for o in ops} == {c.tid for c in calls} and all(c.enter <= o.queued <= c.exit
                                                                 for c, o in zip(calls, kernels))
    assert log.operations(correlation=calls[1].correlation) == [kernels[1]]
    assert log.operations(kind="copy") == [o for o in ops if o.kind in truth.COPIES] and not log.gaps()


def test_graph_launches_give_node_records(tmp_path):
    simlib.run("""
register(0x1000, b"k")
s = stream()
rt.cudaStreamBeginCapture(s, 0)
for i in range(5):
    launch(s)
g = out(lambda p: rt.cudaStreamEndCapture(s, p))
x, y = out(rt.cudaGraphInstantiate, g, C.c_ulonglong(0)), out(rt.cudaGraphInstantiate, g, C.c_ulonglong(0))
for e in (x, x, y):
    rt.cudaGraphLaunch(e, s)
rt.cudaStreamSynchronize(s)
""", HB_SIM_TRUTH=tmp_path)
    log = truth.read(str(tmp_path))
    launches, ops = log.calls("cudaGraphLaunch"), log.operations(kind="kernel")
    assert [c.correlation for c in launches for _ in range(5)] == [o.correlation for o in ops] and len(ops) == 15
    assert len({o.exec for o in ops[:10]}) == 1 and ops[10].exec not in (0, ops[0].exec)
    nodes = [o.node for o in ops]
    assert nodes[:5] == nodes[5:10] and len(set(nodes[:5])) == 5 and 0 not in nodes and end_to_end(ops)


def test_collectives_are_resolved_when_the_other_rank_has_come(tmp_path):
    outs = ranks("""
register(0x1000, b"k")
if rank:
    time.sleep(0.3)
    print(time.monotonic_ns())
for i in range(50):
    all_reduce(); launch(s)
sync()
""", HB_SIM_TRUTH=tmp_path)
    came = int(outs[1].split()[0])
    log = truth.read(str(tmp_path))
    ends = collections.defaultdict(list)
    for o in log.operations(kind="collective"):
        assert not o.unresolved and not o.broken and o.end > came
        ends[o.pid].append(o.end)
    a, b = ends.values()
    assert a == b and len(a) == 50  # the same operation ends at the same time everywhere
    for pid in ends:
        assert end_to_end(log.pid(pid).operations())
    assert {c.correlation for c in log.calls(layer="library")} == {0}


def test_what_never_comes_stays_flagged(tmp_path):
    ranks("""
all_reduce(); sync()
if rank == 0:
    all_reduce()
    os.kill(os.getpid(), signal.SIGKILL)
""", HB_SIM_TRUTH=tmp_path)
    ops = truth.read(str(tmp_path)).operations(kind="collective")
    assert [o.unresolved for o in ops] == [False, False, True]


STUB = """
core = C.c_void_p.in_dll(cu, "hb_sim_core")
table = C.cast(C.addressof(core), C.POINTER(C.c_void_p))
reg = C.CFUNCTYPE(C.c_uint, C.c_uint, C.POINTER(C.c_char_p), C.c_uint)(table[1])
enter = C.CFUNCTYPE(None, P, C.c_uint)(table[2])
leave = C.CFUNCTYPE(None, P, C.c_int, C.c_uint64, C.c_uint64)(table[3])
names = (C.c_char_p * 2)(b"cuNotThere", b"cuNeverCalled")
first = reg(1 | 0x80, names, 2)
call = C.create_string_buffer(64)
for i in range(4):
    enter(call, first); leave(call, 801, 0, 0)
"""


def test_calls_of_stubs_are_gaps(tmp_path):
    simlib.run(STUB, HB_SIM_TRUTH=tmp_path)
    log = truth.read(str(tmp_path))
    assert log.gaps() == {"cuNotThere": 4} and log.counts()[("driver", "cuNotThere")] == 4
    assert [c.result for c in log.calls("cuNotThere")] == [801] * 4


def test_chatter_can_be_left_out_but_is_counted(tmp_path):
    simlib.run("""
n = C.c_int()
for i in range(1000):
    rt.cudaGetDevice(C.byref(n))
rt.cudaFree(None)
""", HB_SIM_TRUTH=tmp_path, HB_SIM_TRUTH_SKIP="cuNothing,cudaGetDevice,cudaGetDev")
    log = truth.read(str(tmp_path))
    assert log.skipped == 1000 and not log.calls("cudaGetDevice") and len(log.calls("cudaFree")) == 1


def test_a_bound_on_the_size_is_a_counted_loss(tmp_path):
    simlib.run("""
register(0x1000, b"k")
s = stream()
for i in range(20000):
    launch(s)
""", HB_SIM_TRUTH=tmp_path, HB_SIM_TRUTH_MAX=6 << 20, HB_SIM_COSTS="kernel_ns=0,launch_ns=0")
    log = truth.read(str(tmp_path))
    path = os.path.join(str(tmp_path), os.listdir(str(tmp_path))[0])
    made = len(log.calls("cudaLaunchKernel")) + len(log.calls("cuLaunchKernel"))
    assert os.path.getsize(path) <= 6 << 20 and log.dropped > 0 and made + log.dropped >= 40000
    assert len(log.operations()) + log.dropped_operations == 20000 and log.dropped_operations > 0


def test_a_million_calls_are_read_in_seconds(tmp_path):
    simlib.run("""
n = C.c_int()
import subprocess
env = dict(os.environ, HB_SIM_COSTS="launch_ns=0,kernel_ns=0,copy_ns=0,h2d_bps=0,d2h_bps=0,event_ns=1,alloc_ns=0")
subprocess.run([%r, "--lib", LIB + "/libcuda.so.1", "--ms", "1000", "--rate", "500000"], env=env, check=True)
""" % os.path.join(simlib.WORKLOADS, "storm"), HB_SIM_TRUTH=tmp_path)
    t = time.process_time()
    n = len(truth.read(str(tmp_path)))
    took = time.process_time() - t
    assert n > 100000 and took < 20e-6 * n, (n, took)


def test_an_observer_is_told_of_calls_and_operations(tmp_path):
    out = simlib.run("""
seen = []
Enter = C.CFUNCTYPE(None, P, C.c_uint, C.c_char_p)
Leave = C.CFUNCTYPE(None, P, C.c_int)
Operation = C.CFUNCTYPE(None, C.POINTER(C.c_uint64))
class Observer(C.Structure):
    _fields_ = [("enter", Enter), ("leave", Leave), ("operation", Operation)]
o = Observer(Enter(lambda c, layer, name: seen.append(name.decode())), Leave(lambda c, r: seen.append(r)),
             Operation(lambda op: seen.append(op[1] - op[0])))
register(0x1000, b"k")
s = stream()
launch(s)
slot = C.cast(C.addressof(C.c_void_p.in_dll(cu, "hb_sim_core")), C.POINTER(C.c_void_p))[13]
where = C.cast(slot, C.POINTER(C.c_void_p))
where[0] = C.addressof(o)
launch(s)
where[0] = None
launch(s)
print(json.dumps(seen))
""", HB_SIM_COSTS="kernel_ns=12345")
    assert json.loads(out) == ["cudaLaunchKernel", "cuLaunchKernel", 12345, 0, 0]


def test_damaged_files_are_one_clear_error(tmp_path):
    simlib.run("""
register(0x1000, b"k")
for i in range(3000):
    launch()
""", HB_SIM_TRUTH=tmp_path, HB_SIM_COSTS="launch_ns=0,kernel_ns=0")
    path = next(tmp_path.glob("*.truth"))
    whole = path.read_bytes()
    blocks = struct.unpack_from("<Q", whole, 32)[0]
    damage = {"cut": whole[:truth.RECORDS + (blocks - 1) * truth.BLOCK * 48 + 5], "header": whole[:50], "magic": b"X" + whole[1:],
              "size": whole[:8] + b"\xff" + whole[9:], "block": whole[:12] + b"\0\0\0\0" + whole[16:],
              "names": whole[:truth.NAMES + 40] + b"\n\xff\n" + whole[truth.NAMES + 43:],
              "layer": whole[:truth.RECORDS + truth.LAYER_AT] + b"\x77" + whole[truth.RECORDS + truth.LAYER_AT + 1:]}
    for what, content in damage.items():
        path.write_bytes(content)
        r = subprocess.run([sys.executable, truth.__file__, str(tmp_path), "--operations"], stderr=subprocess.PIPE,
                           stdout=subprocess.PIPE, universal_newlines=True)
        assert r.returncode == 1 and r.stderr.startswith("truth.py: ") and r.stderr.count("\n") == 1, (what, r.stderr)
    path.write_bytes(b"")  # it died as it opened the file: nothing was called
    assert len(truth.read(str(tmp_path))) == 0
