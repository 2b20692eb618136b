# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Where a CPU-bound program spends its time: as the program itself measures it, and as other people's samplers see it."""
import collections
import json
import os
import re
import subprocess

import pytest

from lib import paths
from lib.accounts import agree
from lib.processes import wait_for
from test_python import PYTHONS, each_python, python_frames

PROGRAM = paths.source("tests", "workloads", "python", "shares.py")
PARTS = ("most", "some", "rest")
SECONDS = 6
# The others look at the clock, not at the CPU: on a busy machine they see where the program waits for its turn.
AHEAD = ["nice", "-n", "-19"]
# Versions that both samplers read right: py-spy 0.4.3 finds frames of the past in 3.11.
JUDGED = {k: v for k, v in PYTHONS.items() if re.search(r"pyenv-3\.(9|10|12)\.", k)}


def spent(target):
    """CPU time of each part so far, by the program."""
    before = target.output().count("{")
    target.popen.stdin.write(b"\n")
    target.popen.stdin.flush()
    wait_for(lambda: target.output().count("{") > before and target.output().endswith("\n"), what="the program's own times")
    return collections.Counter(json.loads(target.output().splitlines()[-1]))


def shares(times):
    total = sum(times[p] for p in PARTS)
    return {p: 100 * times[p] / total for p in PARTS}


def ours(window, pid):
    seen = collections.Counter()
    for r in window.of("sample"):
        if r["tid"] == pid:
            seen.update(f[0] for f in python_frames(r) if f[0] in PARTS)
    return seen


def folded(text, separator):
    """{part: value} of lines "frame;frame;.. VALUE"."""
    seen = collections.Counter()
    for line in text.splitlines():
        stack, _, value = line.rpartition(" ")
        names = re.split(separator, stack)
        if value.isdigit():
            seen.update({p: int(value) for p in PARTS if p in names})
    return seen


def apart(a, b):
    """What two differ in, in words: more than 3 points and what chance makes of so many samples (two standard deviations)."""
    points = 3 + 200 * (0.25 / min(sum(a.values()), sum(b.values()))) ** 0.5
    x, y = shares(a), shares(b)
    return "" if all(abs(x[p] - y[p]) <= points for p in PARTS) else f"{points:.1f} points:\n{a} {x}\n{b} {y}"


def assert_close(a, b, what):
    assert not apart(a, b), f"{what}, {apart(a, b)}"


def window_of(hb, target, *beside):
    """(window, truth) of some seconds, with other programs beside."""
    begin = spent(target)
    running = [subprocess.Popen([*AHEAD, *c], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL) for c in beside]
    try:
        path, _ = hb.trace("-p", target.pid, "--frequency", "997", duration=f"{SECONDS}s")
        truth = spent(target) - begin
        for p in running:
            p.communicate(timeout=30)
    finally:
        for p in running:
            p.kill()
    return hb.window(path), truth


@each_python
def test_shares_are_those_that_the_program_measures(hb, start, python):
    target = start([*AHEAD, python, PROGRAM], ready="ready", stdin=subprocess.PIPE)

    def look():
        window, truth = window_of(hb, target)
        seen = ours(window, target.pid)
        assert sum(seen.values()) > 300
        assert_close(seen, truth, "window and program")

    agree(look)


def judged(seen, truth, spy, austin):
    assert_close(seen, truth, "window and program")
    # They look at a moment of their own choice, for as long as they get a CPU: one that is not even near the program's own
    # times is no judge.
    peers = {"py-spy": folded(spy.read_text(), r" \(|;"), "austin": folded(austin.read_text(), r"[:;]")}
    judges = {name: peer for name, peer in peers.items() if not apart(peer, truth)}
    for name, peer in judges.items():
        assert_close(seen, peer, f"window and {name}")
    if not judges:
        pytest.skip(f"neither agrees with the program itself here: {peers}, {truth}")


@pytest.mark.parametrize("python", JUDGED.values(), ids=JUDGED.keys())
def test_shares_are_those_of_py_spy_and_austin(hb, start, oracle, tmp_path, python):
    folder = os.path.dirname(oracle("samplers"))
    target = start([*AHEAD, python, PROGRAM], ready="ready", stdin=subprocess.PIPE)
    spy, austin = tmp_path / "spy.folded", tmp_path / "austin.folded"

    def look():
        window, truth = window_of(
            hb, target,
            [f"{folder}/py-spy", "record", "-p", str(target.pid), "-d", str(SECONDS), "-r", "200", "--nonblocking", "-f", "raw", "-o", str(spy)],
            [f"{folder}/austin", "-s", "-i", "4ms", "-x", str(SECONDS), "-o", str(austin), "-p", str(target.pid)])
        judged(ours(window, target.pid), truth, spy, austin)

    agree(look)
