# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A multi-process engine under load (simulated accelerator): what the window holds is what the engine did, call by call."""
import json
import re
import signal
import time

import pytest

from lib import exact
from lib.engine import answered
from lib.processes import wait_for

pytestmark = pytest.mark.beside


def assert_made_by_workers(window, engine, comparison):
    assert {p["pid"] for p in window.head["processes"]} == set(engine.pids)
    for pid in engine.workers:
        for key in (("driver", "cuLaunchKernel"), ("driver", "cuGraphLaunch"), ("runtime", "cudaMemcpyAsync"),
                    ("runtime", "cudaStreamSynchronize"), ("library", "ncclAllReduce"), ("driver", "cuLaunchKernelEx")):
            assert comparison.calls[(pid, *key)] > 0, (pid, key)


def assert_each_operation_once(hb, path, window):
    """Nothing in auto is part of another operation, and the report counts what the file holds."""
    assert not [r for r in window.of("accel") if r.get("inner")]
    report = hb.json(path)
    assert sum(p["operations"] for p in report["processes"]) == len(window.of("accel"))
    assert {(c["name"], c["pid"]): c["count"] for c in report["calls"]} == {
        key: n for key, n in window.by("name", "pid").items()}


def test_attached_before_the_load(hb, engine):
    e = engine(workers=2)
    path, running = hb.open("-p", e.pid, "-d", "10s")
    answered(e.load(seconds=6))
    window = hb.read(path, running)
    assert window.head["end_ns"] - window.head["start_ns"] >= 10 * 10**9
    seen = exact.assert_exact(window, e.log())
    assert not exact.losses(window), "the engine was at rest at both edges"
    # At rest at the edges, so the plain sums must be equal too.
    assert exact.in_window(window, e.log()) == sum_of(seen)
    assert_made_by_workers(window, e, seen)
    assert_each_operation_once(hb, path, window)


def sum_of(comparison):
    out = type(comparison.calls)()
    for (_, layer, function), n in comparison.calls.items():
        out[(layer, function)] += n
    return out


@pytest.mark.parametrize("mode", [[], ["--single-uprobes"]], ids=["multi", "single"])
def test_attached_and_detached_under_load(hb, engine, mode):
    """Calls in flight at an edge: those without a duration belong to the window they begin in, those with one are a loss
    `unfinished` when one of their ends is outside."""
    e = engine(workers=2)
    client = e.load(seconds=240)
    wait_for(lambda: "ttft_ns" in client.output(), timeout=30, what="the first answer")
    path, running = hb.open("-p", e.pid, "-d", "3s", *mode)
    result = running.wait(90)
    assert result.code == 0, result
    window = hb.window(path)
    # How long the kernel will need to take single uprobes away is said.
    assert bool(re.search(r"without uprobe_multi .*: \d+ single uprobes, .* in some \d+ s", result.err)) == bool(mode), result
    assert client.running(), "the load ended before the window"
    seen = exact.assert_exact(window, e.log())
    assert_made_by_workers(window, e, seen)
    assert_each_operation_once(hb, path, window)
    # The engine goes on as if nothing had been.
    before = e.calls()
    wait_for(lambda: e.calls() > before, what="the next call after the detach")
    client.signal(signal.SIGTERM)
    assert len(e.one()) == 4


def test_one_worker_of_a_larger_engine(hb, engine):
    e = engine(workers=2)
    path, running = hb.open("-p", e.workers[1], "-d", "4s")
    answered(e.load(seconds=2))
    window = hb.read(path, running)
    exact.assert_exact(window, e.log(), pids=[e.workers[1]])
    assert {r["pid"] for r in window.of("accel")} == {e.workers[1]}


def test_no_step_holds_the_wait_for_a_request(hb, engine):
    """One request, a pause, the next one: the steps are those of the requests, and the pauses are counted beside them."""
    e, pause, waited = engine(workers=2), 0.6, 0
    e.one()
    path, running = hb.open("-p", e.pid, "-d", "5s")
    for _ in range(5):
        assert len(e.one()) == 4
        begin = time.monotonic_ns()
        time.sleep(pause)
        waited += time.monotonic_ns() - begin
    window = hb.read(path, running)
    wall = window.head["end_ns"] - window.head["start_ns"]
    result = json.loads(hb.run("analyze", path, "--json", code=0).out)
    assert {s["pid"] for s in result["steps"]} == set(e.workers)
    for s in result["steps"]:
        assert s["source"] == "read-back" and s["count"] >= 10
        # With the pauses every third or fourth was longer than one; on a machine that is busy elsewhere none need be short.
        assert s["max_ns"] < pause * 1e9
        # What is left of a pause is what the engine did around it, and what the client's clock saw of the answer's way.
        assert 0.8 * waited < s["no_load_ns"] <= wall - s["total_ns"]
    compared = json.loads(hb.run("compare", path, path, "--json", code=0).out)
    steps = {s["pid"]: s for s in result["steps"]}[compared["a"]["steps"]["pid"]]
    assert (compared["a"]["steps"]["max_ns"], compared["a"]["steps"]["no_load_ns"]) == (steps["max_ns"], steps["no_load_ns"])
    assert " waited for data from outside (no load, or " in hb.run("analyze", path, code=0).out.split("Steps of the engine")[1]
