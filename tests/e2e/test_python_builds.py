# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""CPythons of other distributions, fetched by scripts/pythons: stripped, with C libraries of their own, in a root of their own.
They show what this machine's show: stacks at a call, at a sleep and in a CPU sample, and calls."""
import collections
import json
import re
import subprocess

import pytest

from lib import loss, paths, tracing
from lib.pythons import Other
from lib.tool import OK
from test_python import PROGRAM, assert_same, python_frames, sleeps, truth_of
from test_python_calls import check, no_loss, one_round
from test_python_events import traced
from test_python_odd import constructors

pytestmark = pytest.mark.beside

BUILDS = ["debian-3.13", "debian-3.14", "debian-3.15", "source-3.13t", "source-3.14t"]
CALLS = paths.source("tests", "workloads", "python", "calls.py")
CONSTRUCTORS = paths.source("tests", "workloads", "python", "constructors.py")
EVENTS = paths.source("tests", "workloads", "python", "events.py")


@pytest.fixture(params=BUILDS)
def other(request):
    o = Other(request.param)
    yield o
    o.close()


def test_constructors(hb, start, other):
    constructors(hb, start(other.command(other.put(CONSTRUCTORS)), ready="ready"))


def test_stacks_equal_the_programs_own(hb, start, other):
    target = start(other.command(other.put(PROGRAM), other.simulated()), ready="ready")
    told = hb.run("probes", "check", "-p", target.pid, code=OK).out
    assert re.search(r"Python 3\.\d+\S* .*in /.*: stacks work, also without the GIL", told), told
    path, result = hb.trace("-p", target.pid, duration="3s")
    window = hb.window(path)
    assert_same({python_frames(r) for r in sleeps(window)}, truth_of(target, "sleep"))
    assert_same({python_frames(r) for r in window.of("accel", name="cudaDeviceSynchronize")}, truth_of(target, "call"))
    for cause in loss.STACKS:
        assert window.loss[cause] == 0, window.loss["rows"]
    assert "no Python stacks" not in result.err


def test_samples_equal_the_programs_own(hb, start, other):
    target = start(other.command(other.put(PROGRAM), other.simulated(), "burn"), ready="ready")
    path, _ = hb.trace("-p", target.pid, duration="2s")
    samples = [r for r in hb.window(path).of("sample") if r["tid"] == target.pid]
    assert len(samples) > 20
    assert_same({python_frames(r) for r in samples}, truth_of(target, "burn"))


def calls_of(window, program):
    seen = collections.defaultdict(lambda: [0, 0])
    for r in window.of("py.call"):
        if r.get("file") == program:
            seen[r["qualname"]][r["end"] == "yield"] += 1
    return dict(seen)


def test_call_counts_are_what_probes_check_says(hb, start, other):
    program = other.put(CALLS)
    truth = json.loads(subprocess.run(other.command(program, "truth"), stdout=subprocess.PIPE, text=True, timeout=60,
                                      check=True).stdout)
    target = start(other.command(program, "run"), ready="ready", stdin=subprocess.PIPE)
    said, _ = check(hb, target)
    assert "only ends are seen" in said and "not complete" in said, said
    path, _, _ = tracing.around(hb, lambda: one_round(target), "-p", target.pid, "--python", "calls")
    window = hb.window(path)
    assert calls_of(window, program) == {f: [ends, 0] for f, (ends, _) in truth.items()}
    no_loss(window)


def test_exceptions_are_exact_by_class_and_place(hb, start, other):
    program = other.put(EVENTS)
    target = start(other.command(program), ready="ready", stdin=subprocess.PIPE)
    window, truth, _, _ = traced(hb, target, "raise 100")
    seen = collections.defaultdict(int)
    for r in window.of("py.exception"):
        if r.get("file") == program:
            seen["%s %s:%d" % (r["exception"], r["function"].split(".")[-1], r["line"])] += r["count"]
    assert dict(seen) == {place: n for place, (n, _) in truth.items()}


def test_collections_are_what_probes_check_says(hb, start, other):
    target = start(other.command(other.put(EVENTS)), ready="ready", stdin=subprocess.PIPE)
    said = hb.run("probes", "check", "-p", target.pid, code=OK).out
    window, truth, _, _ = traced(hb, target, "gc 10")
    if "no visible hook" in said:
        assert not window.of("py.gc")
    else:
        which = "automatic" if "automatic garbage collections only" in said else "all"
        assert len(window.of("py.gc")) == sum(truth[which].values()), (said, truth)
