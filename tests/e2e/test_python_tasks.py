# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Names of asyncio's tasks, on every CPython here: as the program itself prints them, and none that is another's."""
import collections
import json
import os

import pytest

from lib import paths
from lib.pythons import Other
from lib.tool import OK
from test_python import PYTHONS, any_python
from test_python_builds import BUILDS

pytestmark = pytest.mark.beside

PROGRAM = paths.source("tests", "workloads", "python", "named_tasks.py")
each_python = pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())


def truth_of(target):
    """{address: name}; of a long name its begin."""
    rows = [line.split(" ", 1) for line in target.output().splitlines() if line.startswith("0x")]
    return {root: name if len(name) < 64 else name[:len("größer ") + 25] for root, name in rows}


def seen_in(window):
    """{address: names that its sleeps had}"""
    seen = collections.defaultdict(set)
    for r in window.of("offcpu"):
        if "task" in r:
            name = r.get("task_name")
            seen[r["task"]].add(name if not name or len(name) < 40 else name[:len("größer ") + 25])
    return dict(seen)


@each_python
@pytest.mark.parametrize("kind", [(), ("--python",)], ids=["c", "python"])
def test_names_are_the_programs_own(hb, start, python, kind):
    target = start([python, PROGRAM, *kind], ready="ready")
    path, _ = hb.trace("-p", target.pid, duration="2s")
    window = hb.window(path)
    truth = truth_of(target)
    assert len(truth) == 7 and "decode of request 7" in truth.values()
    assert kind or any(n.startswith("Task-") for n in truth.values())
    assert seen_in(window) == {root: {name} for root, name in truth.items()}
    assert window.loss["python_tasks"] == 0


@pytest.mark.parametrize("build", BUILDS)
def test_names_on_other_builds(hb, start, build):
    other = Other(build)
    try:
        target = start(other.command(other.put(PROGRAM)), ready="ready")
        path, _ = hb.trace("-p", target.pid, duration="2s")
        truth = truth_of(target)
        assert len(truth) == 7 and seen_in(hb.window(path)) == {root: {name} for root, name in truth.items()}
    finally:
        other.close()


@pytest.mark.parametrize("python", any_python)
def test_other_formats_have_the_names(hb, start, python):
    target = start([python, PROGRAM], ready="ready")
    path, _ = hb.trace("-p", target.pid, duration="1s")
    out = os.path.join(hb.folder, "trace.json")
    hb.run("export", path, "--format", "kineto", "-o", out, code=OK)
    with open(out, encoding="utf-8") as f:
        rows = [e["args"] for e in json.load(f)["traceEvents"] if e["ph"] == "X"]
    named = collections.Counter((r["task"], r.get("task_name")) for r in rows if "task" in r)
    assert named == collections.Counter((r["task"], r.get("task_name")) for r in hb.window(path).of("offcpu") if "task" in r)
    hb.run("export", path, "--format", "perfetto", "-o", out + ".pb", code=OK)
    with open(out + ".pb", "rb") as f:
        assert b"decode of request 7" in f.read()


@each_python
def test_tasks_that_follow_each_other_keep_their_names(hb, start, python):
    """Coroutines come to lie where others were: names follow in their order, and most records have one."""
    target = start([python, PROGRAM, "--short"], ready="ready")
    path, _ = hb.trace("-p", target.pid, duration="3s")
    window = hb.window(path)
    rows = [r for r in window.of("offcpu", state="S") if any(f["f"].endswith("short") for f in r.get("stack", ()))]
    names = [int(r["task_name"].split()[1]) for r in rows if "task_name" in r]
    assert names == sorted(names) and len(set(names)) >= 3
    assert all(n <= 40 for n in collections.Counter(names).values())  # each sleeps 40 times
    assert len(names) >= 0.5 * len(rows)
