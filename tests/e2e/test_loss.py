# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is lost is counted exactly, and a killed tool leaves target, kernel and file in order (simulated accelerator)."""
import json
import os
import re
import signal
import subprocess
import time

import pytest

from lib import exact, kernel, loss, paths
from lib.engine import answered
from lib.processes import wait_for
from lib.tool import OK

pytestmark = pytest.mark.beside


def test_every_cause_is_placed():
    """Each cause of the schema costs records or parts of them, and docs/guide.md says what; tests take the sets from lib/loss.py."""
    with open(paths.source("user", "schema", "words.def"), encoding="utf-8") as f:
        block = f.read().split("#define HB_LOSSES(W)")[1].split("/* Role")[0]
    causes = re.findall(r'"(\w+)"', block)
    placed = [*loss.RECORDS, *loss.PARTS, *loss.MACHINE, *loss.OWN]
    assert len(causes) > 20 and sorted(causes) == sorted(placed)
    with open(paths.source("docs", "guide.md"), encoding="utf-8") as f:
        guide = f.read()
    assert [c for c in causes if not c.startswith("import_") and f"`{c}`" not in guide] == []


def stall(running, seconds):
    """The collector stands still: what is made meanwhile must go into the ring or into the loss."""
    os.kill(running.pid, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(running.pid, signal.SIGCONT)


def test_small_ring_under_the_engine(hb, engine):
    e = engine(workers=2, storm=400)
    path, running = hb.open("-p", e.pid, "-d", "6s", "--buffer", "64KiB")
    client = e.load(seconds=3)
    wait_for(lambda: "ttft_ns" in client.output(), timeout=30, what="the first answer")
    stall(running, 0.5)
    answered(client)
    window = hb.read(path, running)
    made = sum(exact.in_window(window, e.log()).values())
    lacks = exact.losses(window)
    assert lacks.pop("ring_full") > 0
    assert not lacks, lacks
    assert len(window.of("accel")) + exact.lost(window, "ring_full") == made
    # What is there is what was made: no record twice, none out of nothing.
    recorded = window.by("layer", "name")
    made_by = exact.in_window(window, e.log())
    assert all(n <= made_by[key] for key, n in recorded.items())


@pytest.mark.alone  # it takes both CPUs
def test_small_ring_under_a_storm(hb, workload):
    """About a million calls a second, far more than 64 KiB a CPU can hold while the collector stands still."""
    target = workload("storm", "--lib", paths.built("sim", "libcuda.so.1"), "--mix", "--wait", "--ms", 1500,
                      ready='"ready"', stdin=subprocess.PIPE)
    path, running = hb.open("-p", target.pid, "-d", "5s", "--buffer", "64KiB")
    target.popen.stdin.write(b"\n")
    target.popen.stdin.flush()
    time.sleep(0.5)
    stall(running, 0.3)
    wait_for(lambda: '"done"' in target.output(), timeout=30, what="the storm's end")
    window = hb.read(path, running)
    counts = json.loads(next(l for l in target.output().splitlines() if '"counts"' in l))["counts"]
    del counts["cuEventRecord"]  # off in the tables
    recorded = window.calls()
    lacks = exact.losses(window)
    lost = lacks.pop("ring_full")
    assert not lacks and lost > 0
    # Each of the two threads allocates once on either side before its calls.
    assert sum(recorded.values()) + lost == sum(counts.values()) + 4
    assert all(recorded[k] <= n for k, n in counts.items())


# ---- SIGKILL -----------------------------------------------------------------------------------------------------------


def readable(hb, part):
    """What a killed tool wrote: report and export print what there is."""
    report = hb.run("report", part, code=OK)
    assert "incomplete" in report.out + report.err or "not finished" in report.out + report.err, report
    window = hb.window(part)
    assert window.head["complete"] is False
    return window


# The kernel closes single uprobes one after the other, a tenth of a second each on the newest: `make kernel-matrix` holds
# the kernels that need them to 10 s.
@pytest.mark.parametrize("mode,workers,delays", [
    ([], 2, (0, 0.05, 0.15, 0.25, 0.35, 0.5, 0.7, 0.9, 1.2, 1.5, None)),
    # For so long nobody holds the programs: another test would take them for its own tool's.
    pytest.param(["--single-uprobes"], 1, (0.2, 0.8, None), marks=pytest.mark.alone)], ids=["multi", "single"])
def test_killed_at_any_moment(hb, engine, mode, workers, delays):
    """At delays over attach and window, under load: the engine answers on, and soon the kernel is clean."""
    e = engine(workers=workers)
    client = e.load(seconds=240)
    wait_for(lambda: "ttft_ns" in client.output(), timeout=30, what="the first answer")
    parts = 0
    for i, delay in enumerate(delays):
        before = kernel.Snapshot()
        path = os.path.join(hb.folder, f"killed-{i}.hbw")
        running = hb.start("trace", "-p", e.pid, "-d", "60s", "-o", path, *mode)
        if delay is None:  # whenever it begins, the machine may be busy
            wait_for(lambda p=path: os.path.exists(p + ".part"), timeout=60, what="the window's begin")
        time.sleep(0.3 if delay is None else delay)
        assert running.popen.poll() is None, running.wait()
        calls, answers = e.calls(), client.output().count("ttft_ns")
        running.kill()
        running.wait()
        left = before.wait_clean()
        assert not left, (delay, left)
        assert not os.path.exists(path)
        if os.path.exists(path + ".part"):
            parts += os.path.getsize(path + ".part") > 0 and readable(hb, path + ".part") is not None
        wait_for(lambda c=calls: e.calls() > c, what="the engine's next call")
        wait_for(lambda a=answers: client.output().count("ttft_ns") > a, timeout=20, what="the next answer")
    assert parts, "no kill came after the window had begun"
    assert client.running()
    client.signal(signal.SIGTERM)
    assert len(e.one()) == 4
