# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Python's exceptions, waits for the GIL and garbage collections: on every CPython here a window has what the program itself knows
of them."""
import collections
import json
import os
import re
import shutil
import subprocess
import time

import pytest

from lib import paths, tracing
from lib.accounts import agree
from lib.processes import wait_for
from lib.tool import OK, USAGE
from test_python import PYTHONS, any_python

pytestmark = pytest.mark.beside

PROGRAM = paths.source("tests", "workloads", "python", "events.py")
each_python = pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())
own_gils = {k: v for k, v in PYTHONS.items() if int(re.search(r"3\.(\d+)", v).group(1)) in (12, 13)}
THROWS = """
#include <stdexcept>
namespace engine { struct out_of_blocks : std::runtime_error { using std::runtime_error::runtime_error; }; }
extern "C" int fails() { try { throw engine::out_of_blocks("no"); } catch (const std::exception &) { return 1; } return 0; }
"""


def begin(start, python, *args, env=None):
    return start([python, PROGRAM, *args], ready="ready", stdin=subprocess.PIPE, env=env)


def work(target, what, timeout=60):
    """Has the program do it; what it says of it."""
    before = target.output().count("done ")
    target.popen.stdin.write(what.encode() + b"\n")
    target.popen.stdin.flush()
    wait_for(lambda: target.output().count("done ") > before, timeout=timeout, what=what)
    return json.loads(target.output().splitlines()[-1].split(" ", 1)[1])


def traced(hb, target, what, *args):
    result = []

    def act():
        result.append(work(target, what))
        time.sleep(0.3)

    path, said, _ = tracing.around(hb, act, "-p", target.pid, *args, name=f"{time.monotonic_ns()}.hbw")
    return hb.window(path), result[0], path, said


def exceptions_of(window):
    """{"Class function:line": [count, frames gone through]} of the program's own code."""
    seen = {}
    for r in window.of("py.exception"):
        if r.get("file") == PROGRAM:
            entry = seen.setdefault("%s %s:%d" % (r["exception"], r["function"].split(".")[-1], r["line"]), [0, 0])
            entry[0] += r["count"]
            entry[1] += r.get("unwound", 0)
    return seen


def no_loss(window, torn=0):
    """`torn`: so many holders of a GIL may have run too fast for their stacks to be read."""
    rows = [r for r in window.loss["rows"] if r.get("of", "").startswith("py.") and r["cause"] not in ("missed", "python_tasks")]
    holders = [r for r in rows if r["of"] == "py.gil" and r["cause"] == "python_moved"]
    assert sum(r["count"] for r in holders) <= torn
    assert [r for r in rows if r not in holders] == []


@each_python
def test_exceptions_are_exact_by_class_and_place(hb, start, python):
    target = begin(start, python)
    window, truth, path, _ = traced(hb, target, "raise 300")
    assert exceptions_of(window) == truth
    names = collections.Counter(r["exception"] for r in window.of("py.exception"))
    assert not set(names) & {"StopIteration", "StopAsyncIteration", "GeneratorExit"}
    # The first of each is there whole; most of so many in a moment are counted only. Nothing of messages.
    first = [r for r in window.of("py.exception") if r["exception"] == "Odd"][0]
    assert [f["f"].split(".")[-1] for f in first["stack"]][-6:] == ["one"] + ["fall"] * 5
    assert 1 <= sum(1 for r in window.of("py.exception") if r["exception"] == "Odd") < 300
    assert not any("message" in r or "message_hash" in r for r in window.of("py.exception"))
    no_loss(window)
    report = hb.run("report", path, code=OK).out
    assert re.search(r"Odd +300 +5 +fall \(events.py:\d+\)", report), report
    trace = hb.run("export", path, "--format", "perfetto", "-o", path + ".pb", code=OK)
    assert not trace.err


@pytest.mark.parametrize("python", any_python)
def test_messages_on_request_only(hb, start, python):
    target = begin(start, python)
    window, _, _, _ = traced(hb, target, "raise 2", "--exceptions", "text")
    texts = {r["exception"]: r["message"] for r in window.of("py.exception") if r.get("file") == PROGRAM and "message" in r}
    assert texts == {"Odd": "request 7 failed", "RuntimeError": "größer", "ValueError": "invalid literal for int() with base 10: 'not a number'"
                     [:64], "KeyError": "missing", "FileNotFoundError": "No such file or directory"}
    window, _, path, _ = traced(hb, target, "raise 2", "--exceptions", "hash")
    hashes = {r["message_hash"] for r in window.of("py.exception") if r["exception"] == "Odd" and "message_hash" in r}
    assert len(hashes) == 1 and not any("message" in r for r in window.of("py.exception"))
    with open(path, "rb") as f:
        assert b"request 7" not in f.read()
    window, _, _, _ = traced(hb, target, "raise 2", "--exceptions", "off")
    assert not window.of("py.exception")
    wrong = hb.run("trace", "-p", target.pid, "--exceptions", "all", code=USAGE)
    assert "off, types, hash or text" in wrong.err


@each_python
def test_asyncio_tasks_are_told_apart(hb, start, python):
    target = begin(start, python)
    window, roots, _, _ = traced(hb, target, "tasks")
    seen = collections.Counter(r.get("task") for r in window.of("py.exception") if r["exception"] == "KeyError" and
                               r.get("function", "").endswith("wait_and_fail") and not r.get("rest"))
    assert seen == dict.fromkeys(roots, 3)
    naps = {r.get("task") for r in window.of("offcpu") if any(f["f"].endswith("request") for f in r.get("stack", ()))}
    assert naps == set(roots)
    idle = [r for r in window.of("offcpu") if r.get("stack") and not any(f["f"].endswith("request") for f in r["stack"])]
    assert idle and not any("task" in r for r in idle)


def within(intervals, spans):
    """Time of the spans that is in any of the intervals."""
    total = 0
    for begin_ns, end_ns in spans:
        at = begin_ns
        for a, b in sorted(intervals):
            total += max(0, min(b, end_ns) - max(a, at))
            at = max(at, min(b, end_ns))
    return total


def of_thread(records, tid):
    return [(r["ts"], r["ts"] + r["dur"]) for r in records if r["tid"] == tid]


@pytest.mark.alone  # time is compared with time
@each_python
def test_waits_for_the_gil_are_as_long_as_the_program_says(hb, start, python):
    """Between its two looks at the clock a thread waits for the GIL, or, on a busy machine, for a CPU: that is in the window too."""
    target = begin(start, python)

    def look():
        window, truth, path, _ = traced(hb, target, "gil 3")
        head, tid = window.head["start_ns"], truth["tid"]
        spans = [(a - head, b - head) for a, b in truth["waits"]]
        waits = [r for r in window.of("py.gil") if not r.get("handover")]
        preempted = of_thread(window.of("offcpu", state="R"), tid)
        real = sum(b - a for a, b in spans) - within(preempted, spans)
        seen = within(of_thread(waits, tid) + preempted, spans) - within(preempted, spans)
        assert len(spans) >= 3 and abs(seen - real) <= 0.02 * real, (seen, real, spans)
        return window, path, tid, spans, waits

    window, path, tid, spans, waits = agree(look)
    # Almost each wait is one record, of several sleeps; the holder is one of the other threads.
    waits = [r for r in waits if r["tid"] == tid]
    assert len(waits) <= 1.5 * len(spans) + 10 and any(r["sleeps"] > 1 for r in waits)
    others = {r["tid"] for r in window.of("py.gil")} - {tid}
    assert len(others) >= 2
    long = [r for r in waits if r["dur"] > 1000000]
    named = [r for r in long if r.get("holder_tid") in others]
    assert len(named) >= 0.9 * len(long) and not any(r.get("holder_tid") == tid for r in waits)
    assert any(f["f"] == "burn" for r in named for f in r.get("holder_stack", ()))
    report = json.loads(hb.run("report", path, "--json", code=OK).out)
    rows = {r["tid"]: r for r in report["gil_waits"]}
    assert rows[tid]["count"] == len(waits) and rows[tid]["total_ns"] == sum(r["dur"] for r in waits)
    assert {r["tid"] for r in report["gil_holders"] if "tid" in r} & others
    no_loss(window, torn=0.05 * len(window.of("py.gil")))


@pytest.mark.parametrize("python", own_gils.values(), ids=own_gils.keys())
def test_each_interpreter_has_its_gil(hb, start, python):
    target = begin(start, python)
    window, tids, _, _ = traced(hb, target, "subs 2")
    waits = [r for r in window.of("py.gil") if not r.get("handover")]
    gils = collections.Counter(r["gil"] for r in waits)
    assert len([g for g in gils if gils[g] > 5]) == 2, gils
    own = {r["gil"] for r in waits if r["tid"] in tids}
    assert len(own) == 1 and not any(r["gil"] in own for r in waits if r["tid"] not in tids + [target.pid])


def generations(window):
    return collections.Counter(str(r.get("generation")) for r in window.of("py.gc"))


@each_python
def test_garbage_collections_are_all_seen(hb, start, python):
    target = begin(start, python)
    said = hb.run("probes", "check", "-p", target.pid, code=OK).out
    window, truth, _, _ = traced(hb, target, "gc 20")
    if "no visible hook" in said:
        assert not window.of("py.gc")
        return
    assert "garbage collections complete, with generation" in said
    assert generations(window) == truth["all"]
    assert all(r["dur"] > 0 for r in window.of("py.gc"))
    no_loss(window)


@pytest.mark.parametrize("python", [v for v in PYTHONS.values() if "3.13" in v])
def test_without_symbols_automatic_collections_are_seen(hb, start, python, tmp_path):
    """As distributions ship it: no .symtab, and no USDT."""
    real = os.path.realpath(subprocess.run([python, "-c", "import sysconfig as s; print(s.get_config_var('LIBDIR'), "
                                            "s.get_config_var('INSTSONAME'), sep='/')"], stdout=subprocess.PIPE, text=True,
                                           check=True).stdout.strip())
    subprocess.run(["strip", "-s", "-o", str(tmp_path / os.path.basename(real)), real], check=True)
    target = begin(start, python, env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)})
    said = hb.run("probes", "check", "-p", target.pid, code=OK).out
    assert str(tmp_path) in said and "automatic garbage collections only" in said
    window, truth, _, _ = traced(hb, target, "gc 20")
    assert generations(window) == truth["automatic"]
    assert {r["how"] for r in window.of("py.gc")} == {"pending"}
    window, truth, _, _ = traced(hb, target, "raise 20")
    assert exceptions_of(window) == truth


@pytest.mark.skipif(not shutil.which("g++"), reason="no C++ compiler")
@pytest.mark.parametrize("python", any_python)
def test_exceptions_of_cxx_have_their_types(hb, start, python, tmp_path):
    source, library = tmp_path / "throws.cc", tmp_path / "throws.so"
    source.write_text(THROWS)
    subprocess.run(["g++", "-shared", "-fPIC", "-fno-omit-frame-pointer", "-o", str(library), str(source)], check=True)
    target = begin(start, python, str(library), env={**os.environ, "LD_PRELOAD": str(library)})
    window, _, _, _ = traced(hb, target, "throw 50")
    native = [r for r in window.of("py.exception") if r.get("native")]
    assert sum(r["count"] for r in native) == 50
    assert {(r["exception"], r["function"]) for r in native} == {("engine::out_of_blocks", "fails")}
    frames = [f["f"] for f in native[0]["stack"]]
    assert "throw" in frames and "fails" in frames


@pytest.mark.parametrize("python", any_python)
def test_python_off_leaves_them_out(hb, start, python):
    target = begin(start, python)
    window, _, _, _ = traced(hb, target, "raise 5", "--python", "off")
    assert not window.of("py.exception") and not window.of("py.gil") and not window.of("py.gc")
