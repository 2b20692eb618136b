# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`export --format perfetto` of real windows, decoded by Perfetto's own protobuf classes and held against ndjson."""
import collections
import json
import os
import subprocess
import sys

import pytest

from lib import loss, paths
from lib.tool import OK

pytestmark = pytest.mark.beside

TASK_CONTEXTS = ("task", "own_send")

PAIR = r"""
import os, socket, time
a, b = socket.socketpair()
child = os.fork() == 0
print("ready", flush=True)
while child:
    b.send(b.recv(1))
while True:
    a.send(b"x")
    a.recv(1)
    time.sleep(0.001)
"""


def decoded(tool, oracle, window, name="w.pftrace"):
    out = os.path.join(tool.folder, name)
    tool.run("export", window, "--format", "perfetto", "-o", out, "--force", code=OK)
    done = subprocess.run([oracle("perfetto"), paths.source("tests", "oracles", "read_perfetto.py"), out], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    trace = json.loads(done.stdout)
    assert trace["unknown"] == 0, "fields that the published schema does not have"
    assert trace["unbalanced"] == 0, "slices that do not end"
    assert not trace["flows_bad"], trace["flows_bad"]
    assert not trace["snapshots_differ"]
    return trace


_traced = []  # the window is made once for all tests that look at it


@pytest.fixture
def traced(hb, workload, oracle):
    """A window of calls with calls inside, sleeps, system calls and samples: (ndjson's view, Perfetto's)."""
    if not _traced:
        target = workload("accel_loop", "--lib", paths.built("sim", "libcudart.so.13"), "--threads", 2, "--launches", 1000000,
                          "--copies", 1000000, "--syncs", 1000000, "--mallocs", 1000000, "--rate", 1500)
        path, _ = hb.trace("-p", target.pid, "--layers", "both", "--syscalls", "all")
        _traced.extend([hb.window(path), decoded(hb, oracle, path)])
    return _traced


def timed(window, kind, name):
    """What the trace should have of a type, exactly: (thread, name, begin, length)."""
    start = window.head["start_ns"]
    return collections.Counter((r["tid"], name(r), start + r["ts"], r.get("dur")) for r in window.of(kind))


def shown(trace, category):
    rows = trace["slices"] + trace["instants"]
    return collections.Counter((e["tid"], e["name"], e["ts"], e.get("dur")) for e in rows if category(e["cat"]))


def offcpu_name(r):
    return "preempted" if r["state"] == "R" else f"off-CPU {r['syscall']}" if "syscall" in r else "off-CPU"


def test_every_record_is_there_to_the_nanosecond(traced):
    window, trace = traced
    apis = {r["api"] for r in window.of("accel")}
    calls = timed(window, "accel", lambda r: r["name"])
    assert sum(calls.values()) > 1000
    assert shown(trace, lambda c: c[0] in apis) == calls
    assert shown(trace, lambda c: c == ["syscall"]) == timed(window, "syscall", lambda r: r["name"])
    sleeps = shown(trace, lambda c: c == ["offcpu"])
    assert collections.Counter({k: v for k, v in sleeps.items() if k[1] != "runnable"}) == timed(window, "offcpu", offcpu_name)
    samples = collections.Counter((r["tid"], window.head["start_ns"] + r["ts"]) for r in window.of("sample"))
    assert samples and collections.Counter((s["tid"], s["ts"]) for s in trace["samples"]) == samples
    assert trace["dropped"] == 0 or window.lost()


def test_stacks_are_those_of_ndjson(traced):
    window, trace = traced
    start = window.head["start_ns"]
    want = {(r["tid"], start + r["ts"], offcpu_name(r)): [f["f"] for f in r["stack"]] for r in window.of("offcpu") if r.get("stack")}
    got = {(e["tid"], e["ts"], e["name"]): [f for f, _ in e["stack"]] for e in trace["slices"] if "stack" in e}
    assert want and {k: got.get(k) for k in want} == want
    sampled = {(r["tid"], start + r["ts"]): [f["f"] for f in r.get("stack", [])] for r in window.of("sample")}
    assert {(s["tid"], s["ts"]): [f for f, _ in s["stack"]] for s in trace["samples"]} == sampled
    modules = {m for s in trace["samples"] for _, m in s["stack"]}
    assert any(m.endswith("libc.so.6") for m in modules), modules


def test_names_say_what_it_is(traced):
    _, trace = traced
    assert [n for n in trace["processes"].values() if n.endswith("(simulated accelerator)")]
    assert set(trace["snapshots"][0]) == {"1", "3", "6"}  # wall clock, monotonic, since boot


def test_calls_inside_calls_are_linked(traced):
    """Each driver call inside a runtime call hangs below it and is where a flow from it ends."""
    window, trace = traced
    outer = collections.defaultdict(list)
    for r in window.of("accel"):
        if not r.get("inner") and r.get("dur"):
            outer[r["tid"]].append((r["ts"], r["ts"] + r["dur"]))
    inside = [r for r in window.of("accel", inner=True)
              if any(b <= r["ts"] and r["ts"] + r.get("dur", 0) <= e for b, e in outer[r["tid"]])]
    assert len(inside) > 200
    flows = [f for f in trace["flows"] if f["from"]["cat"][0] != "wake"]
    assert len(flows) == len(inside)
    for f in flows:
        assert f["from"]["tid"] == f["to"]["tid"] and f["to"]["parent"] == f["from"]["name"], f
        assert f["from"]["ts"] <= f["to"]["ts"] <= f["from"]["ts"] + f["from"]["dur"], f
    assert {(f["from"]["cat"][0], f["to"]["cat"][0]) for f in flows} == {("cuda-runtime", "cuda-driver")}


def test_wake_ups_are_linked(hb, start, oracle):
    """From the waker's thread, when it woke, to the runnable part of the sleep, which is inside of its call."""
    target = start([sys.executable, "-c", PAIR], ready="ready")
    path, _ = hb.trace("-p", target.pid, "--syscalls", "all")
    window, trace = hb.window(path), decoded(hb, oracle, path)
    begin, known = window.head["start_ns"], {}
    for r in window.of("offcpu"):
        waker = r.get("waker")
        if waker and waker["context"] in TASK_CONTEXTS and waker["comm"] != "?" and r["state"] != "R":
            known[(r["tid"], begin + r["ts"] + r["dur"] - r["runnable_ns"])] = waker["tid"]
    flows = [f for f in trace["flows"] if f["from"]["cat"] == ["wake"]]
    assert len(known) > 100
    assert {(f["to"]["tid"], f["to"]["ts"]): f["from"]["tid"] for f in flows} == known
    assert all(f["from"]["ts"] + 1 == f["to"]["ts"] and f["to"]["name"] == "runnable" for f in flows)
    assert len({f["from"]["tid"] for f in flows} & window.pids()) == 2, "both processes wake each other"
    parents = collections.Counter(e["parent"] for e in trace["slices"] if e["name"] == "off-CPU recvfrom")
    assert parents["recvfrom"] > 100
    # what began or ended outside the window is announced, and what was not seen; a call may sleep twice
    outside = sum(parents.values()) - parents["recvfrom"]
    assert outside <= 2 * sum(loss.records(window, "syscall").values()), (parents, window.loss["rows"])
    assert {e["parent"] for e in trace["slices"] if e["name"] == "runnable"} <= {
        e["name"] for e in trace["slices"] if e["cat"] == ["offcpu"]}


def test_what_is_left_of_a_cut_window(hb, workload, oracle):
    """Cut in the middle: the rest is a whole trace, and its loss is on a track."""
    target = workload("accel_loop", "--lib", paths.built("sim", "libcudart.so.13"), "--launches", 1000000, "--rate", 20000)
    path, _ = hb.trace("-p", target.pid)
    with open(path, "rb") as f:
        data = f.read()
    with open(path + ".cut.hbw", "wb") as f:
        f.write(data[:len(data) // 2])
    trace = decoded(hb, oracle, path + ".cut.hbw")
    window = hb.window(path + ".cut.hbw")
    calls = [e for e in trace["instants"] + trace["slices"] if len(e["cat"]) == 2]  # API and class
    assert len(window.of("accel")) == len(calls) > 0
    assert "loss" in trace["tracks"]
    assert window.head["damage"] in {e["name"] for e in trace["slices"] if e["cat"] == ["loss"]}
