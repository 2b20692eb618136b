# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`analyze --critical-path`: the longest path of reference traces, as known numbers and as HTA itself finds it; of a live window."""
import json
import os
import subprocess

import pytest

from lib import paths, traces
from lib.engine import answered
from lib.tool import FAILED, OK, USAGE

pytestmark = pytest.mark.beside

ALEXNET = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"
STRETCH = {"T1": ("ProfilerStep", 0), "T2": ("ProfilerStep", 0), "T3": ("ProfilerStep", 0), "T11": (ALEXNET, 1), "T13": ("ProfilerStep", 0)}
# Our words for HTA's.
PARTS = {"host_ns": "cpu_bound", "compute_ns": "gpu_compute_bound", "comm_ns": "gpu_communication_bound",
         "launch_ns": "gpu_kernel_launch_overhead", "kernel_delay_ns": "gpu_kernel_kernel_overhead"}
LINKS = {"span": "OPERATOR_KERNEL", "order": "DEPENDENCY", "launch": "KERNEL_LAUNCH_DELAY", "kernel_delay": "KERNEL_KERNEL_DELAY",
         "sync": "SYNC_DEPENDENCY"}


@pytest.fixture
def critical(tool):
    """critical_path of a trace's stretch, and the window."""

    def run(name, stretch):
        window = os.path.join(tool.folder, name + ".hbw")
        tool.run("import", traces.find(name), "-o", window, "--force", code=OK)
        return json.loads(tool.run("analyze", "--json", f"--critical-path={stretch[0]}:{stretch[1]}", window, code=OK).out)["critical_path"], window

    return run


def sound(found):
    """Each node is reached by a link; they, and the parts, are the length."""
    first, *rest = found["path"]
    assert len(rest) == found["links"] == found["nodes"] - 1 and "link" not in first
    assert sum(x["ns"] for x in rest) == sum(found[k] for k in (*PARTS, "memcpy_ns")) == found["length_ns"]
    assert found["length_ns"] <= rest[-1]["ts_ns"] - first["ts_ns"]
    for a, b in zip(found["path"], rest):
        assert b["ns"] in (0, b["ts_ns"] - a["ts_ns"]), (a, b)
    assert sum(r["total_ns"] for r in found["by_name"]) == found["length_ns"]


def test_alexnet(critical):
    found, _ = critical("T11", STRETCH["T11"])
    sound(found)
    assert found["of"] == ALEXNET and found["instance"] == 1
    assert (found["nodes"], found["links"], found["events"]) == (315, 314, 159)
    assert found["length_ns"] == 241_724_000
    assert [found[k] for k in ("host_ns", "compute_ns", "launch_ns", "kernel_delay_ns")] == [241_190_000, 508_000, 17_000, 9_000]


def test_events(critical):
    found, _ = critical("T13", STRETCH["T13"])
    sound(found)
    assert found["length_ns"] == 2_411_000 and found["nodes"] == 40 and found["graph"]["recorded_waits"] == 4


@pytest.mark.parametrize("name", STRETCH)
def test_hta_finds_the_same(tool, critical, oracle, name):
    """All counts are equal; times to 1 us, as HTA adds floats of microseconds since the trace's begin."""
    found, _ = critical(name, STRETCH[name])
    done = subprocess.run([oracle("hta"), paths.source("tests", "oracles", "read_critical.py"), traces.find(name), STRETCH[name][0],
                           str(STRETCH[name][1])], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    theirs = json.loads(done.stdout[done.stdout.index("{"):])
    sound(found)
    assert theirs["ok"]
    assert [found[k] for k in ("nodes", "links", "events")] == [theirs[k] for k in ("nodes", "links", "events")]
    assert {k: found["graph"][k] for k in LINKS} == {k: theirs["graph"].get(v, 0) for k, v in LINKS.items()}
    assert abs(found["length_ns"] / 1000 - theirs["length_us"]) <= 1
    assert not found["memcpy_ns"], "HTA counts copies as computing"
    for ours, key in PARTS.items():
        assert abs(found[ours] / 1000 - theirs["parts_us"].get(key, 0)) <= 1, ours


def test_text_and_whole_window(tool, critical):
    found, window = critical("T2", STRETCH["T2"])
    text = tool.run("analyze", "--critical-path=ProfilerStep", "--rows", "3", window, code=OK).out
    assert "Critical path of ProfilerStep#6, number 0, process " in text and "33.7" in text.split("Critical path")[1].split("\n")[0]
    assert "Waits for the device were not recorded" in text and "kernel delay" in text and "more (--rows 0 shows all)" in text
    whole = json.loads(tool.run("analyze", "--json", "--critical-path", window, code=OK).out)["critical_path"]
    sound(whole)
    assert "of" not in whole and whole["length_ns"] >= found["length_ns"]
    assert "critical_path" not in json.loads(tool.run("analyze", "--json", window, code=OK).out), "only where it is asked for"


def test_what_is_not_there(tool, critical):
    _, window = critical("T13", STRETCH["T13"])
    for arg, word in (("nothing", '"nothing"'), ("aten::sum:2", "2 spans of this name")):
        r = tool.run("analyze", f"--critical-path={arg}", window, code=FAILED)
        assert len(r.sentences()) == 1 and word in r.err and not r.out
    r = tool.run("analyze", "--critical-path=x:99999999999", window, code=USAGE)
    assert len(r.sentences()) == 1 and "NAME:N" in r.err


def test_steps_of_a_live_window(hb, engine):
    """Without device records: the host's part, which is no longer than the step, and is said to be no more."""
    e = engine(workers=1)
    path, running = hb.open("-p", e.pid, "-d", "5s")
    answered(e.load(seconds=3))
    hb.read(path, running)
    found = json.loads(hb.run("analyze", path, "--json", "--critical-path=step:5", code=OK).out)["critical_path"]
    sound(found)
    assert found["of"] == "step" and found["length_ns"] > 0 and found["compute_ns"] == 0
    assert any(r["name"] == "engine step" for r in found["by_name"])
    assert "the host's part alone" in hb.run("analyze", path, "--critical-path=step:5", code=OK).out
