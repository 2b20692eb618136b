# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Traces of several ranks in one window: who waits for whom, who has more to do, how fast they talk."""
import json
import os

import pytest

from lib import ranks
from lib.tool import OK

pytestmark = pytest.mark.beside


@pytest.fixture
def analyze(tool):
    def run(n=2, **plan):
        files = [ranks.write(tool.folder, r, ranks=n, base=ranks.BASE + r * 123_000, **plan) for r in range(n)]
        window = os.path.join(tool.folder, "ranks.hbw")
        tool.run("import", *files, "-o", window, "--force", code=OK)
        found = json.loads(tool.run("analyze", window, "--json", code=OK).out)
        return {f["id"]: f for f in found["findings"]}, {r["id"]: r for r in found["ruled_out"]}, found

    return run


def test_a_late_rank(analyze):
    found, _, whole = analyze(late=1000)
    assert len(whole["devices"]) == 2
    late = found["P33"]
    assert "rank 1" in late["text"] and "it is the last in" in late["text"]
    assert late["device_ns"] == pytest.approx(80 * 1_000_000, rel=0.01)
    assert not {"P34", "P46", "P40a"} & set(found), "waiting is neither a slow transport nor a slow kernel"


def test_clocks_of_two_hosts(analyze):
    found, out, _ = analyze(ahead=900)
    assert "P33" not in found and out["P33"]["value"] == 0


def test_uneven_experts(analyze):
    found, _, _ = analyze(n=4, experts=(2000, 2000, 2000, 3600))
    assert "rank 3" in found["P34"]["text"]
    assert found["P34"]["device_ns"] == pytest.approx(80 * 1_200_000, rel=0.03)


def test_a_slow_transport(analyze):
    found, _, _ = analyze(transfer=2500)
    assert "26.8 GB/s" in found["P46"]["text"]


def test_even_ranks(analyze):
    found, _, whole = analyze()
    assert not {"P33", "P34", "P46", "P40f", "P47"} & set(found)
    assert not {"P33", "P34", "P46"} & {n["id"] for n in whole["not_checked"]}


def test_two_runs_are_no_ranks(tool):
    """The same program, a minute later: what they do is alike, and has nothing to do with one another."""
    files = []
    for rank, base in enumerate((ranks.BASE, ranks.BASE + 60_000_000_000)):
        path = ranks.write(tool.folder, rank, late=1000)
        with open(path, encoding="utf-8") as f:
            trace = json.load(f)
        trace["baseTimeNanoseconds"] = base
        with open(path, "w", encoding="utf-8") as f:
            json.dump(trace, f)
        files.append(path)
    window = os.path.join(tool.folder, "runs.hbw")
    tool.run("import", *files, "-o", window, code=OK)
    found = json.loads(tool.run("analyze", window, "--json", code=OK).out)
    assert {"P34", "P46"} <= {n["id"] for n in found["not_checked"]}
