# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fields of Python objects: on every CPython here, what a window has of each call is what the program itself found in its objects
when that call began or ended."""
import json
import os
import re
import signal
import time

import pytest

from lib import paths, tracing
from lib.tool import OK, USAGE
from test_export_perfetto import decoded
from test_python import PYTHONS, any_python

pytestmark = pytest.mark.beside

PROGRAM = paths.source("tests", "workloads", "python", "fields.py")
FIELDS = ["self.scheduler.running:len", "self.scheduler.waiting:len", "self.scheduler.by_id", "self.scheduler.share:float",
          "self.scheduler.paused:bool", "self.scheduler.policy", "self.steps:int", "batch"]
MORE = ["scale", "self.current.request_id:str", "self.current.priority:int", "self.scheduler.limit", "self.name"]
CONSTANT = ["self.scheduler.limit"]  # of the class: always read by the collector, and always the same
ASKED = 12  # calls of which a field may be unread or late: until its functions and types are known


def begin(start, python, folder, *args):
    return start([python, PROGRAM, os.path.join(folder, "truth.txt"), *args], ready="ready")


def options(fields, function="*:Core.step"):
    return [o for f in fields for o in ("--field", f"{function} {f}")]


def ways(python):
    """Options by which calls are seen: at their end, at their begin."""
    if int(re.search(r"3\.(\d+)", python).group(1)) < 11:
        return [()]
    return [("--py-hook", "eval_frame!")] + ([()] if "pyenv" in python else [])


CASES = {f"{name}{'-hook' if way else ''}": (python, way) for name, python in PYTHONS.items() for way in ways(python)}


def truth_of(target, folder):
    """[[begin, end, {path: value at begin}, {path: value at end}]]"""
    target.popen.terminate()
    target.popen.wait(timeout=20)
    with open(os.path.join(folder, "truth.txt"), encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def row_at(truth, at):
    rows = [t for t in truth if t[0] <= at <= t[1]]
    assert len(rows) == 1, (at, rows)
    return rows[0]


def assert_equal(window, truth, fields):
    calls = window.of("py.call", qualname="Core.step") or window.of("py.call", qualname="step")
    seen = {(r["ts"], r["field"]): r for r in window.of("py.field")}
    known = dict.fromkeys(fields, 0)
    assert len(calls) > 50
    for call in calls:
        row = row_at(truth, window.head["start_ns"] + call["ts"])
        now = row[2] if "dur" in call else row[3]
        for path in fields:
            spec = "*:Core.step " + path
            record = seen[(call["ts"], spec)]
            assert record["tid"] == call["tid"]
            if record["kind"] == "unreadable" or (record.get("late") and path not in CONSTANT):
                continue
            assert record["value"] == now[path], (path, record, now)
            assert call["fields"][spec] == now[path]
            known[path] += 1
    assert min(known.values()) >= len(calls) - ASKED, (len(calls), known)


@pytest.mark.parametrize("python,way", CASES.values(), ids=CASES.keys())
def test_fields_equal_the_programs_own(hb, start, tmp_path, python, way):
    target = begin(start, python, str(tmp_path))
    windows = []
    for fields in (FIELDS, MORE):
        path, result = hb.trace("-p", target.pid, *way, "--capture-strings", *options(fields), duration="2s")
        assert "refused" not in result.err and "no such function" not in result.err, result
        windows.append((hb.window(path), fields))
    truth = truth_of(target, str(tmp_path))
    for window, fields in windows:
        assert_equal(window, truth, fields)


@pytest.mark.parametrize("python", [p for p in PYTHONS.values() if "pyenv" in p][-1:] or any_python)
def test_what_cannot_be_read_is_named(hb, start, tmp_path, python):
    target = begin(start, python, str(tmp_path))
    wrong = {"self.scheduler.runing:len": 'self.scheduler has no attribute "runing": it is a __main__.Scheduler',
             "self.scheduler.load": '"load" of self.scheduler (a __main__.Scheduler) is computed by code',
             "self.scheduler.limit.real": '"real"',
             "this.scheduler": 'step has no variable "this"; it has self, batch, scale',
             "self.name:int": "self.name is a str, no int",
             "self.scheduler": "self.scheduler is a __main__.Scheduler, of which no value can be read"}
    path, result = hb.trace("-p", target.pid, *options(wrong), "--field", "*:Core.stop self.name", duration="2s")
    window = hb.window(path)
    notes = [r["text"] for r in window.of("note")]
    for field, sentence in wrong.items():
        for said in (result.err.splitlines(), notes):
            mine = [line for line in said if f"--field '*:Core.step {field}': " in line]
            assert len(mine) == 1 and sentence in mine[0], (field, said)
    assert "--field '*:Core.stop self.name': no such function was called" in result.err
    assert not [r for r in window.of("py.field") if "value" in r]
    assert all("fields" not in r for r in window.of("py.call"))


@pytest.mark.parametrize("python", any_python)
def test_texts_are_kept_on_request_only(hb, start, tmp_path, python):
    way = ways(python)[0]
    target = begin(start, python, str(tmp_path))
    path, _ = hb.trace("-p", target.pid, *way, *options(["self.current.request_id", "self.name", "self.scheduler.policy"]), duration="2s")
    window = hb.window(path)
    truth = truth_of(target, str(tmp_path))
    values = {r["value"] for r in window.of("py.field", field="*:Core.step self.name") if "value" in r}
    assert len(values) == 1 and re.fullmatch("#[0-9a-f]{16}", values.pop())
    ids = [(r["value"], r["length"]) for r in window.of("py.field") if r["kind"] == "hash" and "request_id" in r["field"]]
    assert len(ids) > 50 and len(set(ids)) >= len(ids) - 1
    assert {n for _, n in ids} == {len(t[3]["self.current.request_id:str"]) for t in truth if t[0] > window.head["start_ns"]}
    with open(path, "rb") as f:
        assert b"req-0" not in f.read()
    text = json.dumps(window.rows)
    assert "req-0" not in text and "fcfs" not in text


@pytest.mark.parametrize("python", any_python)
def test_numbers_in_reports_and_counters(hb, start, oracle, tmp_path, python):
    target = begin(start, python, str(tmp_path))
    fields = ["self.scheduler.running:len", "self.scheduler.share", "self.current.priority", "self.name"]
    path, _ = hb.trace("-p", target.pid, *ways(python)[0], *options(fields), duration="2s")
    window = hb.window(path)
    trace = decoded(hb, oracle, path)
    rows = {r["field"]: r for r in hb.json(path)["python_fields"]}
    text = hb.run("report", path, code=OK).out
    for field in fields:
        spec = "*:Core.step " + field
        values = [(r["ts"] + window.head["start_ns"], r["value"]) for r in window.of("py.field", field=spec) if "value" in r]
        row = rows[spec]
        assert row["count"] == len(window.of("py.field", field=spec)) and spec in text
        if field == "self.name":
            assert row["texts"] == len(values) and row["different"] == 1 and row["numbers"] == 0
            assert f"{target.pid} {spec}" not in trace["counters"]
            continue
        numbers = sorted(v for _, v in values)
        assert (row["numbers"], row["last"]) == (len(values), pytest.approx(values[-1][1]))
        assert (row["min"], row["max"]) == (pytest.approx(numbers[0]), pytest.approx(numbers[-1]))
        assert row["median"] == pytest.approx(numbers[(len(numbers) - 1) // 2])
        assert trace["counters"][f"{target.pid} {spec}"] == [list(v) for v in values]


@pytest.mark.parametrize("python", any_python)
def test_a_library_that_comes_later_changes_nothing(hb, start, tmp_path, python):
    """The process is looked at anew then; what is known of its functions and types stays."""
    target = begin(start, python, str(tmp_path), paths.built("sim", "libcudart.so.13"))
    run, path = tracing.begin(hb, "-p", target.pid, *ways(python)[0], *options(["self.scheduler.running:len"]))
    target.popen.send_signal(signal.SIGUSR1)
    opened = time.monotonic_ns()
    time.sleep(1.5)
    run.interrupt()
    assert run.wait().code == OK
    window = hb.window(path)
    assert [r for r in window.of("map") if "libcudart" in r["path"]]
    late = [r for r in window.of("py.call") if r["qualname"].endswith("step") and r["ts"] + window.head["start_ns"] > opened + 0.3e9]
    assert len(late) > 50 and all("fields" in r for r in late)


@pytest.mark.parametrize("python,way", CASES.values(), ids=CASES.keys())
def test_types_that_change_places(hb, start, python, way):
    """What the kernel reads is never that of another type's layout."""
    target = start([python, paths.source("tests", "workloads", "python", "changing.py")], ready="ready")
    path, _ = hb.trace("-p", target.pid, *way, *options(["o.once:int", "o.twice:int"], "*:look"), duration="3s")
    values = {}
    for r in hb.window(path).of("py.field"):
        if "value" in r and not r.get("late"):
            values.setdefault((r["tid"], r["ts"]), {})[r["field"].split(".")[-1]] = r["value"]
    pairs = [v for v in values.values() if len(v) == 2]
    assert len(pairs) > 50, len(values)
    wrong = [v for v in pairs if v["twice:int"] != 2 * v["once:int"] + 1]
    assert not wrong, (len(pairs), wrong[:10])


@pytest.mark.parametrize("field,sentence", [
    ("Core.step", "a field is a function and, after a blank, a variable"), ("Core.step self.x:list", '"list" is no type of a field'),
    ("Core.step self..x", "a variable of the function and attributes"), ("Core.step a.b.c.d.e.f", "4 attributes"),
    ("Core.step self.x y", "a field is a function"), ("core: self.x", "names no function")])
def test_grammar(hb, field, sentence):
    result = hb.run("trace", "-p", os.getpid(), "-d", "1s", "--field", field, code=USAGE)
    assert sentence in result.err, result


def test_options_that_need_each_other(hb):
    assert "--field needs Python" in hb.run("trace", "-p", os.getpid(), "--python", "off", "--field", "f x", code=USAGE).err
    assert "--capture-strings" in hb.run("trace", "-p", os.getpid(), "--capture-strings", code=USAGE).err
