# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Planted faults: switched while the program runs, with a trace in the truth log of when and how often."""
import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import simlib  # noqa: E402
import truth  # noqa: E402
from test_sim import built, ranks  # noqa: E402,F401

FAULT = """
PATH = os.environ["HB_SIM_FAULTS"]
def plant(text):
    with open(PATH + ".new", "w") as f:
        f.write(text)
    os.rename(PATH + ".new", PATH)
    time.sleep(0.06)
    rt.cudaGetDevice(C.byref(C.c_int()))
register(0x1000, b"gemm_kernel"); register(0x2000, b"norm_kernel")
s = stream()
def burst(n=20):
    for i in range(n):
        launch(s, 0x1000); launch(s, 0x2000)
    rt.cudaStreamSynchronize(s)
"""


def planted(tmp_path, code, **env):
    """Runs the program; what it printed, and its truth."""
    env.setdefault("HB_SIM_COSTS", "kernel_ns=10000")
    out = simlib.run(FAULT + code, HB_SIM_TRUTH=tmp_path, HB_SIM_FAULTS=tmp_path / "faults", **env)
    return out, truth.read(str(tmp_path))


def times(log, name):
    return [o.end - o.start for o in log.operations(kind="kernel", name=name)]


@pytest.mark.parametrize("line,gemm,norm,kind", [
    ("clock_throttled factor=2.5", 25000, 25000, "clock_throttled"),
    ("clock_throttled factor=2.5 device=0", 25000, 25000, "clock_throttled"),
    ("clock_throttled factor=2.5 device=1", 10000, 10000, None),
    ("slow_kernel glob=gemm* factor=3", 30000, 10000, "slow_kernel"),
    ("slow_rank rank=0 factor=4", 40000, 40000, "slow_rank"),
    ("slow_rank rank=1 factor=4", 10000, 10000, None),
])
def test_kernels_become_slower_and_fast_again(tmp_path, line, gemm, norm, kind):
    _, log = planted(tmp_path, """
burst(); plant("# a comment\\n%s  # why\\n"); burst(); plant(""); burst()
""" % line)
    assert times(log, "gemm_kernel") == [10000] * 20 + [gemm] * 20 + [10000] * 20
    assert times(log, "norm_kernel") == [10000] * 20 + [norm] * 20 + [10000] * 20
    on, off = log.faults()
    assert (on.on, on.line.strip(), off.on, off.line) == (True, line, False, on.line)
    slow = [o for o in log.operations(kind="kernel") if o.end - o.start > 10000]
    assert all(on.time < o.queued < off.time for o in slow)
    assert log.applied() == ({kind: len(slow)} if kind else {})


def test_faults_add_up_and_a_file_may_vanish(tmp_path):
    _, log = planted(tmp_path, """
plant("clock_throttled factor=2\\nslow_kernel glob=gemm* factor=3\\n"); burst(1); os.remove(PATH); time.sleep(0.06)
rt.cudaGetDevice(C.byref(C.c_int())); burst(1)
""")
    assert times(log, "gemm_kernel") == [60000, 10000] and times(log, "norm_kernel") == [20000, 10000]
    assert [f.on for f in log.faults()] == [True, True, False, False]


def test_malformed_lines_are_said_and_left_out(tmp_path):
    bad = ["nonsense", "clock_throttled", "clock_throttled factor=x", "slow_kernel factor=2", "launch_stall us=5 every=0",
           "slow_rank rank=1 speed=3", "lost_event 3", "clock_throttled factor=-1", "x" * 300]
    (tmp_path / "faults").write_text("\n".join(bad + ["slow_kernel glob=gemm* factor=2"]) + "\n")
    r = subprocess.run(simlib.command(FAULT + "burst(1)"), stderr=subprocess.PIPE, universal_newlines=True,
                       env=simlib.environment(HB_SIM_TRUTH=tmp_path, HB_SIM_FAULTS=tmp_path / "faults",
                                              HB_SIM_COSTS="kernel_ns=10000"))
    assert r.returncode == 0 and r.stderr.count("not understood") >= len(bad)
    log = truth.read(str(tmp_path))
    assert times(log, "gemm_kernel") == [20000] and len(log.faults()) == 1


@pytest.mark.parametrize("variable", ["HB_SIM_FAULTS", "HB_SIM_COSTS"])
@pytest.mark.parametrize("what", ["fifo", "folder", "huge", "junk", "/dev/zero"])
def test_a_file_of_settings_that_is_none_holds_nobody_up(tmp_path, variable, what):
    path = tmp_path / "settings" if what[0] != "/" else what
    if what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what != "/dev/zero":
        path.write_bytes(b"\xff\x01=\0\n" * (1000 if what == "junk" else 300000))
    r = subprocess.run(simlib.command("register(0x1000, b'k'); launch(); print(rt.cudaDeviceSynchronize())"),
                       env=simlib.environment(**{variable: path}), timeout=20, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert r.stdout == b"0\n" and 1 <= r.stderr.count(variable.encode()) < 20


def test_pageable_copies_become_synchronous_and_slow(tmp_path):
    out, log = planted(tmp_path, """
d, h = out(rt.cudaMalloc, S(8 << 20)), out(rt.cudaHostAlloc, S(8 << 20), 0)
def took(*a):
    t = time.monotonic_ns(); assert rt.cudaMemcpyAsync(*a) == 0
    return time.monotonic_ns() - t
def both():
    r = took(h, d, S(8 << 20), 2, s), rt.cudaStreamQuery(s)
    rt.cudaStreamSynchronize(s)
    print(r[0], r[1], took(d, h, S(8 << 20), 1, s))
    rt.cudaStreamSynchronize(s)
both(); both(); plant("pageable_copies\\n"); both()
""", HB_SIM_COSTS="d2h_bps=1e9,h2d_bps=1e10,pageable_bps=5e8")
    _, good, bad = [list(map(int, line.split())) for line in out.splitlines()]
    assert good[1] == 600 and bad[1] == 0
    assert bad[0] >= 16000000 and bad[2] >= 16000000 and good[2] < 16000000
    assert log.applied() == {"pageable_copies": 2}


def test_a_copy_is_planted_after_each_step(tmp_path):
    out, log = planted(tmp_path, """
def step(wait):
    launch(s)
    rt.cudaEventRecord(e, s)
    t = time.monotonic_ns(); wait()
    return time.monotonic_ns() - t
e = out(rt.cudaEventCreate)
waits = [lambda: rt.cudaStreamSynchronize(s), lambda: rt.cudaEventSynchronize(e), lambda: rt.cudaDeviceSynchronize()]
plant("blocking_d2h us=20000 bytes=4096\\n")
print([step(w) for w in waits])
rt.cudaStreamSynchronize(s); rt.cudaEventSynchronize(e)      # nothing ran: nothing is planted
""")
    assert all(t >= 20000000 for t in eval(out))
    copies = log.operations(kind="d2h")
    assert len(copies) == 3 and all(o.planted and o.bytes == 4096 and o.end - o.start == 20000000 for o in copies)
    waits = {c.correlation for f in ("cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize")
             for c in log.calls(f)}
    assert {o.correlation for o in copies} < waits and log.applied() == {"blocking_d2h": 3}
    assert not any(o.planted for o in log.operations(kind="kernel"))


def test_copies_compete_for_the_bus(tmp_path):
    _, log = planted(tmp_path, """
d, h = out(rt.cudaMalloc, S(8 << 20)), out(rt.cudaHostAlloc, S(8 << 20), 0)
def copies():
    rt.cudaMemcpyAsync(d, h, S(1000), 1, s); rt.cudaMemcpyAsync(h, d, S(1000), 2, s)
    rt.cudaMemcpyAsync(d, P(d.value + 4096), S(1000), 3, s)
copies(); plant("copy_contention factor=4\\n"); copies()
""", HB_SIM_COSTS="copy_ns=1000,h2d_bps=0,d2h_bps=0,d2d_bps=0")
    assert [(o.kind, o.end - o.start) for o in log.operations(kind="copy")] == [
        ("h2d", 1000), ("d2h", 1000), ("d2d", 1000), ("h2d", 4000), ("d2h", 4000), ("d2d", 1000)]
    assert log.applied() == {"copy_contention": 2}


def test_launches_stall(tmp_path):
    _, log = planted(tmp_path, "burst(); plant('launch_stall us=3000 every=10\\n'); burst()")
    took = [c.exit - c.enter for c in log.calls("cudaLaunchKernel")]
    assert len(took) == 80 and all(took[i] >= 3000000 for i in (49, 59, 69, 79))
    assert sum(t < 3000000 for t in took) > 60  # the machine may be busy
    assert log.applied() == {"launch_stall": 4}


def test_events_are_lost_but_come_in_the_end(tmp_path):
    out, log = planted(tmp_path, """
es = [out(rt.cudaEventCreate) for i in range(9)]
plant("lost_event every=3 ms=300\\n")
t = time.monotonic_ns()
for e in es:
    assert rt.cudaEventRecord(e, s) == 0
assert rt.cudaStreamSynchronize(s) == 0
print([rt.cudaEventQuery(e) for e in es])
assert rt.cudaEventSynchronize(es[2]) == 0
print(time.monotonic_ns() - t)
""")
    states, took = out.splitlines()
    assert eval(states) == [0, 0, 600] * 3 and 300000000 <= int(took)
    assert log.applied() == {"lost_event": 3}


def test_one_slow_rank_holds_up_the_others(tmp_path):
    (tmp_path / "faults").write_text("slow_rank rank=1 delay_us=5000\n")
    ranks("""
for i in range(10):
    all_reduce()
sync()
""", HB_SIM_TRUTH=tmp_path, HB_SIM_FAULTS=tmp_path / "faults", HB_SIM_COSTS="coll_ns=1000")
    log = truth.read(str(tmp_path))
    took = {}
    for o in log.operations(kind="collective"):
        took.setdefault(o.pid, []).append(o.end - o.start)
    quick, slow = sorted(took.values(), key=sum)
    assert all(t < 1000000 for t in quick[1:]) and sum(slow) >= 35000000  # it is the others that wait
    assert log.applied() == {"slow_rank": 10}
