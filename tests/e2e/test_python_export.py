# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Python's exceptions, waits for the GIL and garbage collections in the formats of other tools, held against ndjson."""
import collections
import json
import os
import subprocess

import pytest

from lib import paths, tracing
from lib.tool import OK
from test_python import any_python, fields
from test_python_events import begin, work

pytestmark = pytest.mark.beside


@pytest.fixture(params=any_python)
def events(hb, start, request):
    """(window, its path) of a program that raises, contends for the GIL, collects and runs asyncio tasks."""
    target = begin(start, request.param)

    def act():
        for what in ("gil 1", "raise 30", "gc 3", "tasks"):
            work(target, what)

    path, _, _ = tracing.around(hb, act, "-p", target.pid)
    window = hb.window(path)
    assert window.of("py.gil") and window.of("py.gc") and window.of("py.exception")
    return window, path


def waits(window):
    return [r for r in window.of("py.gil") if not r.get("handover")]


def kineto(hb, path):
    out = os.path.join(hb.folder, "trace.json")
    hb.run("export", path, "--format", "kineto", "-o", out, code=OK)
    with open(out, encoding="utf-8") as f:
        return json.load(f), out


def test_kineto_has_rows_of_them(hb, events):
    window, path = events
    trace, _ = kineto(hb, path)
    base = window.head["start_ns"] - trace["herschel"]["monotonic_base_ns"]
    rows = [e for e in trace["traceEvents"] if e["ph"] == "X"]

    def of(cat):
        return collections.Counter((e["pid"], e["tid"], e["name"], round(e["ts"] * 1000), round(e["dur"] * 1000),
                                    e["args"].get("task"), e["args"].get("holder_tid"), e["args"].get("generation"))
                                   for e in rows if e["cat"] == cat)

    def want(records, name):
        return collections.Counter((r["pid"], r["tid"], name(r), r["ts"] + base, r.get("dur", 0), r.get("task"),
                                    r.get("holder_tid"), r.get("generation")) for r in records)

    assert of("exception") == want([r for r in window.of("py.exception") if not r.get("rest")], lambda r: r["exception"])
    assert of("gil") == want(window.of("py.gil"), lambda r: "GIL handed over" if r.get("handover") else "waits for GIL")
    assert of("gc") == want(window.of("py.gc"), lambda r: "garbage collection")
    odd = [e["args"]["raised_at"] for e in rows if e["name"] == "Odd"]
    assert odd and all(text.startswith("fall (events.py:") for text in odd)
    naps = {e["args"].get("task") for e in rows if e["cat"] == "offcpu"}
    assert naps == {r.get("task") for r in window.of("offcpu")} and len(naps) == 4  # three tasks, and none


def test_hta_takes_them(hb, events, oracle):
    window, path = events
    _, out = kineto(hb, path)
    done = subprocess.run([oracle("hta"), paths.source("tests", "oracles", "read_rows.py"), out], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout[done.stdout.index("{"):])
    assert found["gil waits for GIL"] == len(waits(window))
    assert found["gc garbage collection"] == len(window.of("py.gc"))
    assert found["exception Odd"] == sum(1 for r in window.of("py.exception") if r["exception"] == "Odd" and not r.get("rest"))


def folded(hb, path, what):
    return [line.rsplit(" ", 1) for line in hb.run("export", path, "--format", what, "-o", "-", code=OK).out.splitlines()]


def test_folded_adds_them_up_by_stack(hb, events):
    window, path = events
    lines = folded(hb, path, "folded-exceptions")
    assert sum(int(n) for _, n in lines) == sum(r["count"] for r in window.of("py.exception"))
    assert any("one (events.py" in stack and stack.count(";fall (events.py") == 5 for stack, _ in lines)
    for what, records in (("folded-gil", waits(window)), ("folded-gc", window.of("py.gc"))):
        lines = folded(hb, path, what)
        assert abs(sum(int(n) for _, n in lines) * 1000 - sum(r["dur"] for r in records)) <= 1000 * len(lines), what
    assert any(";burn (events.py" in stack for stack, _ in folded(hb, path, "folded-gil"))
    # CPU time alone is in `folded`, as ever.
    lines = folded(hb, path, "folded")
    assert abs(sum(int(n) for _, n in lines) * 1000 - sum(r["weight_ns"] for r in window.of("sample"))) <= 1000 * len(lines)


def test_pprof_has_values_of_them(hb, events):
    window, path = events
    hb.run("export", path, "--format", "pprof", "-o", path + ".pb", code=OK)
    with open(path + ".pb", "rb") as f:
        rows = list(fields(f.read()))
    strings = [v.decode() for n, v in rows if n == 6]
    names = [strings[dict(fields(v))[1]] for n, v in rows if n == 1]
    assert names == ["samples", "cpu", "gil_wait", "garbage_collection", "exceptions"]
    assert [strings[v] for n, v in rows if n == 14] == ["cpu"]
    sums = [sum(v) for v in zip(*([v for n, v in fields(sample) if n == 2] for number, sample in rows if number == 2))]
    assert sums == [len(window.of("sample")), sum(r["weight_ns"] for r in window.of("sample")),
                    sum(r["dur"] for r in waits(window)), sum(r["dur"] for r in window.of("py.gc")),
                    sum(r["count"] for r in window.of("py.exception"))]
