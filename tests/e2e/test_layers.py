# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""--layers: each operation is seen where it was asked for, and never counted twice (simulated accelerator)."""
import collections
import json
import os
import re

import pytest

from lib import exact, paths
from lib.engine import answered
from lib.exact import base, truth
from lib.processes import wait_for
from lib.tool import OK, USAGE

pytestmark = pytest.mark.beside

MANY = 10**8  # it calls until it is killed
CALLS = ["--rate", 2000, "--threads", 2, "--launches", MANY, "--graphs", MANY, "--copies", MANY, "--syncs", MANY, "--mallocs",
         MANY, "--driver-launches", MANY]


@pytest.fixture
def loop(workload, tmp_path):
    """A program in the middle of its calls: (process, function that reads its log)."""
    folder = str(tmp_path / "truth")
    os.mkdir(folder)
    target = workload("accel_loop", "--lib", paths.built("sim", "libcudart.so.13"), *CALLS, env={"HB_SIM_TRUTH": folder})
    wait_for(lambda: exact.calling(folder), what="the first calls")
    return target, lambda: truth.read(folder)


def traced(hb, loop, *args):
    """A window in the middle of the program's calls: (window, log, report)."""
    target, log = loop
    path, _ = hb.trace("-p", target.pid, *args, duration="2s")
    target.kill()
    return hb.window(path), log(), hb.json(path)


def operations(report):
    return sum(c["count"] for c in report["classes"])


@pytest.mark.parametrize("mode", [[], ["--single-uprobes"]], ids=["multi", "single"])
def test_auto_sees_each_operation_once(hb, loop, mode):
    window, log, report = traced(hb, loop, *mode)
    seen = exact.assert_exact(window, log, exact.AUTO)
    functions = {f for (_, _, f) in seen.calls}
    assert {"cuLaunchKernel", "cuGraphLaunch", "cudaMemcpyAsync", "cudaStreamSynchronize", "cudaMalloc"} <= functions
    assert not [r for r in window.of("accel") if r.get("inner") or r.get("nested")]
    assert operations(report) == len(window.of("accel"))
    assert {c["name"]: c["inner"] for c in report["calls"] if c["inner"]} == {}


def test_ps_counts_the_probes_that_show_lists(hb, loop):
    """Not those besides that only look, for a moment, whether launches arrive at the driver."""
    target, _ = loop
    rows = json.loads(hb.run("ps", "--json", code=OK).out)["processes"]
    counted = {l["path"]: l["probes"] for p in rows if p["pid"] == target.pid for l in p["libraries"]}
    shown, lib = collections.Counter(), None
    for line in hb.run("probes", "show", "-p", target.pid, code=OK).out.splitlines():
        lib = line.strip() if line.startswith("  /") else lib
        shown[lib] += bool(re.search(r" (entry|return) +\S+ +\+0x", line))
    shown = {path: n for path, n in shown.items() if path}
    assert len(counted) == 2 and counted == shown


def test_runtime_only(hb, loop):
    window, log, report = traced(hb, loop, "--layers", "runtime")
    seen = exact.assert_exact(window, log, exact.RUNTIME)
    assert {layer for (_, layer, _) in seen.calls} == {"runtime"}
    assert {"cudaLaunchKernel", "cudaGraphLaunch"} <= {f for (_, _, f) in seen.calls}
    assert operations(report) == len(window.of("accel"))


def test_driver_only(hb, loop):
    window, log, report = traced(hb, loop, "--layers", "driver")
    seen = exact.assert_exact(window, log, exact.DRIVER)
    assert {layer for (_, layer, _) in seen.calls} == {"driver"}
    assert {"cuMemcpyHtoDAsync", "cuStreamSynchronize", "cuMemAlloc"} & {f for (_, _, f) in seen.calls}
    assert not [r for r in window.of("accel") if r.get("inner")]
    assert operations(report) == len(window.of("accel"))


def nesting(log, probed):
    """By call of the log: driver calls made inside that are probed, and whether it was made inside a probed runtime call."""
    inside, inner = collections.Counter(), set()
    open_calls = {}
    for c in log:  # in order of entry
        outer = open_calls.get((c.pid, c.tid))
        if outer and not (outer.enter < c.enter and (not outer.exit or c.exit <= outer.exit)):
            outer = None
        if c.layer == "runtime":
            open_calls[(c.pid, c.tid)] = c if (c.layer, base(c.function)) in probed else None
        elif outer and (c.layer, base(c.function)) in probed:
            inside[outer] += 1
            inner.add(c)
    return inside, inner


def test_both_shows_driver_calls_inside_runtime_calls(hb, loop):
    window, log, report = traced(hb, loop, "--layers", "both")
    seen = exact.assert_exact(window, log, exact.BOTH)
    inside, inner = nesting(log, exact.BOTH)
    # Records and calls of a thread were just shown to be the same, in order; so their nesting can be compared as sums.
    t0, t1 = window.head["start_ns"], window.head["end_ns"]
    whole = [c for c in log.between(t0, t1) if (c.layer, base(c.function)) in exact.BOTH]
    want_inner = collections.Counter(base(c.function) for c in whole if c in inner)
    got_inner = collections.Counter(r["name"] for r in window.of("accel") if r.get("inner"))
    want_nested, got_nested = collections.Counter(), collections.Counter()
    for c in whole:
        want_nested[base(c.function)] += inside[c]
    for r in window.of("accel"):
        got_nested[r["name"]] += r.get("nested", 0)
    edge = edge_calls(window, log)
    assert_nearly(got_inner, want_inner, edge)
    assert_nearly(got_nested, want_nested, edge)
    assert got_inner["cuLaunchKernel"] > 0 and got_nested["cudaLaunchKernel"] > 0
    assert not [r for r in window.of("accel", layer="runtime") if r.get("inner")]
    # A launch made at the driver itself is no part of anything.
    assert [r for r in window.of("accel", name="cuLaunchKernel") if not r.get("inner")]
    assert operations(report) == len(window.of("accel")) - sum(got_inner.values())
    assert sum(c["inner"] for c in report["calls"]) == sum(got_inner.values())
    assert all(seen.recorded[k] == seen.calls[k] for k in seen.recorded)


def edge_calls(window, log):
    """Calls that lie across an edge of the window. At its begin inner calls of a runtime call were seen, the call was not; at
    its end the inner one may have returned, the outer not. Probes fire some instructions before and after the stamps of the
    log, and a thread may be preempted between the two."""
    t0, t1, apart = window.head["start_ns"], window.head["end_ns"], 100_000
    return [c for c in log if (c.layer == "runtime" and c.enter < t0 <= c.exit + apart) or
            (c.enter < t1 + apart and (not c.exit or c.exit > t1 - apart))]


def assert_nearly(got, want, edge):
    """Equal, but for calls at the window's edges and what they enclose."""
    if not edge:
        assert +got == +want
        return
    difference = sum(((+want) - (+got)).values()) + sum(((+got) - (+want)).values())
    assert difference <= 2 * len(edge), (got, want, edge)


@pytest.mark.parametrize("timed", [[], ["--timed", "launch,graph"]], ids=["entries", "timed"])
def test_a_runtime_that_bypasses_the_drivers_exports(hb, engine, timed):
    """Launches move to the runtime, with a note, and those before that were counted are the loss, exactly. What calls the
    driver's exported function by itself goes on being seen there."""
    e = engine(workers=2, env={"HB_SIM_INNER": "1"})
    path, running = hb.open("-p", e.pid, "-d", "6s", *timed)
    answered(e.load(seconds=3))
    window = hb.read(path, running)
    probed = {**exact.AUTO, ("runtime", "cudaLaunchKernel"): False, ("runtime", "cudaGraphLaunch"): False}
    made = exact.in_window(window, e.log(), probed)
    recorded = window.by("layer", "name")
    loss = exact.losses(window)
    late = loss.pop("late")
    assert not loss, loss
    moved = {("runtime", "cudaLaunchKernel"), ("runtime", "cudaGraphLaunch")}
    assert made[("runtime", "cudaLaunchKernel")] > 0 and made[("driver", "cuLaunchKernel")] > 0
    for key in set(made) - moved:
        assert recorded[key] == made[key], key
    assert sum(made[k] - recorded[k] for k in moved) == late > 0
    assert all(recorded[k] > late / 10 for k in moved)
    notes = [n["text"] for n in window.of("note") if n["level"] == "warning"]
    assert {p for p in e.workers if any(f"pid {p}:" in t and "at the runtime from now on" in t for t in notes)} == set(e.workers)
    assert not [r for r in window.of("accel") if r.get("inner")]
    launches = [r for r in window.of("accel") if r["class"] in ("launch", "graph") and "Launch" in r["name"]]
    assert launches and all(("dur" in r) == bool(timed) for r in launches)


def test_timed_classes_have_durations(hb, loop):
    """--timed launch: begin, end and result of each launch, as the program itself saw them; graph launches stay as they were.
    --timed all: all calls."""
    target, log = loop
    some, _ = hb.trace("-p", target.pid, "--timed", "launch", duration="1s")
    most, _ = hb.trace("-p", target.pid, "--timed", "all", duration="1s")
    target.kill()
    timed = {**exact.AUTO, **{("driver", f): not f.startswith("cuGraph") for f in exact.LAUNCHES}}
    exact.assert_exact(hb.window(some), log(), timed)
    ends = {c: {r.get("dur", 0) > 0 for r in hb.window(some).of("accel") if r["class"] == c} for c in ("launch", "graph")}
    assert ends == {"launch": {True}, "graph": {False}}, ends
    rows = hb.window(most).of("accel")
    assert rows and all(r.get("dur", 0) > 0 for r in rows)


def test_a_row_on_the_command_line_is_a_row_of_a_table(hb, loop):
    """--probe: it wins over the built-in ones; a row that is none is said to be none."""
    target, _ = loop
    off = "libcudart.so* cudaMemcpyAsync copy runtime entry off nothrow"
    path, _ = hb.trace("-p", target.pid, "--probe", "api cuda-runtime", "--probe", off, duration="1s")
    seen = {r["name"] for r in hb.window(path).of("accel")}
    assert seen and "cudaMemcpyAsync" not in seen
    result = hb.run("trace", "-p", target.pid, "--probe", "api cuda-runtime", "--probe", "libx.so f nonsense", "-d", "1s", code=USAGE)
    assert len(result.sentences()) == 1 and "nonsense" in result.err
