# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the catalogue of patterns says of reference traces: the right causes, and nothing else."""
import json

import pytest

from lib import traces

pytestmark = pytest.mark.beside

API = {f"P{n:02}" for n in range(1, 13)}  # dispatch, synchronisation, allocation, graphs, compilation


@pytest.fixture
def analyze(tool):
    def run(name, *options):
        window = f"{tool.folder}/{name}.hbw"
        tool.run("import", traces.find(name), "-o", window, "--force", code=0)
        return json.loads(tool.run("analyze", window, "--json", *options, code=0).out)

    return run


def ids(result):
    return [f["id"] for f in result["findings"]]


def all_of(result):
    """Each pattern is in one list, once."""
    lists = [[x["id"] for x in result[k]] for k in ("findings", "ruled_out", "not_checked")]
    seen = [i for part in (set(lists[0]), lists[1], lists[2]) for i in part]
    assert len(seen) == len(set(seen)), sorted(seen)
    return set(seen)


def test_launches_cost_more_than_the_kernels(analyze):
    found = analyze("T1")
    assert ids(found) == ["P08", "P01"]
    cause, symptom = found["findings"]
    assert symptom["effect_of"] == "P08" and not cause.get("effect_of")
    # 3.598 ms of idle time, nearly all of it between kernels that a graph would put one behind the other.
    assert 3.5e6 < cause["exposed_ns"] < 3.598e6
    assert 0.7 < cause["share"] < 0.75
    assert cause["instances"] and cause["fix"] and cause["reference"]


def test_host_bound_alone(analyze):
    found = analyze("T3")
    assert ids(found) == ["P01"]
    (short,) = [r for r in found["ruled_out"] if r["id"] == "P08"]
    assert short["value"] == pytest.approx(0.20, abs=0.01) and short["threshold"] == 0.5


def test_busy_device_with_casts(analyze):
    found = analyze("T2")
    assert ids(found)[0] == "P40d"
    assert not API & set(ids(found))
    first = found["findings"][0]
    # Whose code that is: its operators, and the line that launched the worst one.
    assert "; by operator: aten::mul 24 %, aten::copy_ 18 %, aten::add 9 %" in first["text"]
    assert "modeling_qwen2.py" in {f.get("file", "").split("/")[-1] for f in first["stack"]}
    assert "<..>" in first["text"] and "at::native" not in first["text"]
    (gaps,) = [r for r in found["ruled_out"] if r["id"] == "P01"]
    assert gaps["value"] < 0.05 and gaps["threshold"] == 0.15


@pytest.mark.parametrize("name", ["T9", "T10"])
def test_graphs_keep_the_device_busy(analyze, name):
    assert not API & set(ids(analyze(name)))


def test_missing_activity_is_no_idle_time(analyze):
    """97.9 % of this trace looks idle; in truth the device was busy with what began before it."""
    found = analyze("T7")
    assert not [f for f in found["findings"] if f.get("exposed_ns") or f.get("exposed_max_ns")]
    assert not API & set(ids(found))
    (host,) = [n for n in found["not_checked"] if n["id"] == "P01"]
    assert "device activity missing" in host["text"]


@pytest.mark.parametrize("name", ["T1", "T7", "T10"])
def test_every_pattern_is_accounted_for(analyze, name):
    seen = all_of(analyze(name))
    numbers = {f"P{n:02}" for n in range(1, 50) if n != 40} | {f"P40{c}" for c in "abcdef"}
    assert seen == numbers


def test_thresholds_decide(analyze):
    found = analyze("T3", "--threshold", "p01.gap_share=90%")
    assert "P01" not in ids(found)
    (host,) = [r for r in found["ruled_out"] if r["id"] == "P01"]
    assert host["threshold"] == pytest.approx(0.9)
    found = analyze("T1", "--threshold", "gate.exposed_share=95%", "--threshold", "gate.event=1s")
    assert ids(found) == []
