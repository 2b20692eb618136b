# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Python stacks: on every CPython here, what a window shows at a call, at a sleep and in a CPU sample is what the program's own
look at its stack says: function, file and line of every frame."""
import glob
import json
import os
import re
import subprocess

import pytest

from lib import loss, paths
from lib.exact import lost
from lib.tool import OK, USAGE

pytestmark = pytest.mark.beside

PROGRAM = paths.source("tests", "workloads", "python", "stacks.py")
CUDART = paths.built("sim", "libcudart.so.13")
NAP_NS = 10_000_000  # sleeps of the program itself are longer


def interpreters():
    """{name: path} of the CPythons on this machine, one a version and build."""
    found = {}
    for path in sorted(glob.glob("/root/.pyenv/versions/3.*/bin/python") + glob.glob("/usr/bin/python3.*")):
        name = re.search(r"3\.\d+(\.\d+)?", path).group(0)
        if not path.endswith("config") and int(name.split(".")[1]) >= 8 and os.access(path, os.X_OK):
            found[("pyenv-" if "pyenv" in path else "system-") + name] = path
    return found


PYTHONS = interpreters()
each_python = pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())
any_python = list(PYTHONS.values())[-1:] or ["python3"]


def python_frames(record):
    """Python's part of a stack, outermost first; what is native lies within."""
    return tuple((f["f"], f.get("file"), f.get("line")) for f in record.get("stack", ()) if f["lang"] == "py")


def fields(data):
    """(number, value) of a protobuf message: ints, and bytes for what has a length."""
    pos = 0

    def varint():
        nonlocal pos
        value = shift = 0
        while True:
            byte = data[pos]
            pos += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while pos < len(data):
        tag = varint()
        value = varint()
        if tag & 7 == 2:
            value, pos = data[pos:pos + value], pos + value
        yield tag >> 3, value


def pprof(path):
    """[(stack outermost first as (function, file, line), nanoseconds)] of a profile."""
    with open(path, "rb") as f:
        rows = list(fields(f.read()))
    strings = [v.decode() for n, v in rows if n == 6]
    functions = {m[1]: (strings[m[2]], strings[m[4]] or None) for m in (dict(fields(v)) for n, v in rows if n == 5)}
    places = {}
    for m in (dict(fields(v)) for n, v in rows if n == 4):
        line = dict(fields(m[4]))
        places[m[1]] = (*functions[line[1]], line.get(2))
    out = []
    for sample in (list(fields(v)) for n, v in rows if n == 2):
        out.append((tuple(places[v] for n, v in sample if n == 1)[::-1], [v for n, v in sample if n == 2][1]))
    return out


def truth_of(target, kind):
    return {tuple(tuple(f) for f in stack) for stack in json.loads(target.output().splitlines()[0])[kind]}


def text(stacks):
    return "\n".join(" > ".join(f"{f}({os.path.basename(file or '?')}:{line})" for f, file, line in s) for s in sorted(stacks, key=str))


def assert_same(seen, truth):
    assert seen == truth, f"not in the truth:\n{text(seen - truth)}\nnot in the window:\n{text(truth - seen)}"


def sleeps(window):
    """Sleeps that time.sleep() made: by itself or, up to 3.10, in select()."""
    return [r for r in window.of("offcpu") if r["state"] == "S" and r["dur"] >= NAP_NS and
            r.get("syscall") in ("clock_nanosleep", "select", "pselect6") and not r.get("before")]


@each_python
def test_stacks_equal_the_programs_own(hb, start, python):
    target = start([python, PROGRAM, CUDART], ready="ready")
    path, result = hb.trace("-p", target.pid, duration="3s")
    window = hb.window(path)
    naps = sleeps(window)
    assert_same({python_frames(r) for r in naps}, truth_of(target, "sleep"))
    calls = window.of("accel", name="cudaDeviceSynchronize")
    assert_same({python_frames(r) for r in calls}, truth_of(target, "call"))
    for cause in loss.STACKS:
        assert window.loss[cause] == 0, window.loss["rows"]
    assert "no Python stacks" not in result.err


@each_python
def test_samples_equal_the_programs_own(hb, start, python):
    target = start([python, PROGRAM, CUDART, "burn"], ready="ready")
    path, _ = hb.trace("-p", target.pid, duration="2s")
    window = hb.window(path)
    samples = [r for r in window.of("sample") if r["tid"] == target.pid]
    assert len(samples) > 20
    assert_same({python_frames(r) for r in samples}, truth_of(target, "burn"))
    # What the interpreter was at is below.
    assert any(r["stack"][-1]["lang"] == "native" for r in samples)
    folded = path + ".folded"
    hb.run("export", path, "--format", "folded", "-o", folded, code=OK)
    with open(folded, encoding="utf-8") as f:
        assert re.search(r";main \(stacks\.py:\d+\);(Spinner\.)?spin \(stacks\.py:\d+\)", f.read())
    hb.run("export", path, "--format", "pprof", "-o", path + ".pb", code=OK)
    profile = pprof(path + ".pb")
    assert sum(weight for _, weight in profile) == sum(r["weight_ns"] for r in window.of("sample"))
    assert {tuple(f for f in stack if (f[1] or "").endswith(".py")) for stack, _ in profile} >= truth_of(target, "burn")


def test_an_engine(hb, engine):
    """Accelerator calls of a multi-process engine carry the Python stack that made them, whole, in (nearly) all cases."""
    e = engine(workers=1)
    client = e.load(6)
    path, _ = hb.trace("-p", e.pid, duration="2s")
    client.wait(60)
    window = hb.window(path)
    calls = window.of("accel")
    whole = [r for r in calls if python_frames(r) and "stack_state" not in r]
    assert len(calls) > 100 and len(whole) >= 0.98 * len(calls), (len(whole), len(calls), window.loss["rows"])
    assert all(python_frames(r)[0][0] == "<module>" or "run" in python_frames(r)[0][0] or "bootstrap" in python_frames(r)[0][0]
               for r in whole), {python_frames(r)[0] for r in whole}
    named = {f for r in whole for f, file, _ in python_frames(r) if file and "mini_llm" in file}
    assert any("step" in f or "forward" in f or "decode" in f for f in named), named
    sleeps_here = [r for r in window.of("offcpu") if r["dur"] >= 100_000 and not r.get("before")]
    with_python = [r for r in sleeps_here if python_frames(r)]
    assert len(with_python) > 0.9 * len(sleeps_here), (len(with_python), len(sleeps_here))
