# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`analyze` against reference traces: counted by hand to the nanosecond, and against TraceLens's own tables.

TraceLens adds microseconds as float64 near 10^12, so that its sums are off by up to 12 ns (1.2e-5 ms). Three tests say
whose error that is: the count by hand is ours to 0 ns (test_timeline_is_exact), the intervals of our window added up in
float64 are its table to 1e-6 ms and to the last bit (test_float64_is_tracelens), and what `analyze` prints differs from
the table by no more than that rounding can do (test_timeline_is_tracelens).
"""
import collections
import decimal
import gzip
import json

import pytest

from lib import float64, traces

pytestmark = pytest.mark.beside

TRACES = ["T1", "T2", "T3", "T7", "T9", "T10"]
FLOAT64 = 2e-5  # ms; what rounding can do to a sum, see test_float64_is_tracelens

# Shares in per cent, as facts of the traces: of macro gaps in the span; of their time until the launch, from there on
# and of dependencies; kernels; short ones of the eager ones, below 10 us of all. None: too few to be a share.
RULES = {
    "T1": (91.2, 89, 11, 0, 60, 65, 97),
    "T2": (3.1, 90, 10, 0, 1029, 11, 11),
    "T3": (81.9, 85, 15, 0, 154, 20, 75),
    "T7": (97.9, 0, 100, 0, 555, None, 67),
    "T9": (0.0, None, None, None, 425, None, 66),
    "T10": (0.0, None, None, None, 413, 6, 24),
}
# A row of TraceLens's table and the field that is the same.
ROWS = {"computation_time": "compute_ns", "exposed_comm_time": "exposed_comm_ns",
        "exposed_memcpy_time": "exposed_memcpy_ns", "busy_time": "busy_ns", "idle_time": "idle_ns",
        "total_time": "span_ns", "total_comm_time": "comm_ns", "total_memcpy_time": "memcpy_ns"}
VERDICT = {"T1": "host", "T2": "device busy", "T3": "host", "T7": "unknown", "T9": "device busy", "T10": "device busy"}


@pytest.fixture(scope="module")
def counted():
    """A trace, counted once for all tests."""
    known = {}
    return lambda name: known.setdefault(name, traces.Trace(traces.find(name)))


@pytest.fixture
def analyze(tool):
    """analyze --json of a trace: analyze("T1", "--linked-only")."""

    def run(name, *options):
        window = f"{tool.folder}/{name}.hbw"
        tool.run("import", traces.find(name), "-o", window, "--force", code=0)
        return json.loads(tool.run("analyze", window, "--json", *options, code=0).out)

    return run


def only(result):
    assert len(result["devices"]) == 1, [d["id"] for d in result["devices"]]
    return result["devices"][0]


def percent(part, whole):
    return 100 * part / whole if whole else 0


@pytest.mark.parametrize("name", TRACES)
@pytest.mark.parametrize("linked", [True, False], ids=["linked-only", "all"])
def test_timeline_is_exact(analyze, counted, name, linked):
    trace = counted(name)
    device = only(analyze(name, *["--linked-only"] * linked))
    want = traces.timeline(trace.linked() if linked else trace.ops)
    assert {k: device[k] for k in want} == dict(want)
    assert device["exposed_comm_ns"] == device["comm_ns"] == 0
    assert device["compute_ns"] + device["exposed_comm_ns"] + device["exposed_memcpy_ns"] + device["idle_ns"] \
        == device["span_ns"]


@pytest.mark.parametrize("name", TRACES)
def test_float64_is_tracelens(tool, analyze, name):
    """Its tables come out of our window when it is added up as TraceLens does; as whole numbers it gives what we print."""
    device = only(analyze(name, "--linked-only"))
    window = tool.window(f"{tool.folder}/{name}.hbw")
    rows = [r for r in window.of("device") if "op_ts" in r and r["kind"] in ("kernel", "memcpy", "memset")]
    assert len(rows) == device["launches"]["linked_ops"]
    table = {r["type"]: float(r["time ms"]) for r in traces.table(f"{name}-gpu_timeline")}
    theirs = float64.timeline(rows, window.head["start_ns"])
    assert theirs == pytest.approx(table, abs=1e-6, rel=0)  # what is asked for
    assert theirs == table  # and what it is
    ours = traces.timeline([traces.Op(r["ts"], r["ts"] + r["dur"], f"gpu_{r['kind']}", "", 0, 0, 0, 0) for r in rows])
    assert {k: device[k] for k in ours} == dict(ours)
    worst = max(abs(device[ours] / 1e6 - table[row]) for row, ours in ROWS.items())
    assert 0 < worst < FLOAT64  # so that the two tests are not the same one


@pytest.mark.parametrize("name", TRACES)
def test_timeline_is_tracelens(analyze, name):
    device = only(analyze(name, "--linked-only"))
    rows = {r["type"]: float(r["time ms"]) for r in traces.table(f"{name}-gpu_timeline")}
    assert set(rows) == set(ROWS)
    for theirs, ours in ROWS.items():
        assert device[ours] / 1e6 == pytest.approx(rows[theirs], abs=FLOAT64), theirs


@pytest.mark.parametrize("name", TRACES)
def test_kernels_are_exact(analyze, counted, name):
    result = analyze(name)
    want = traces.kernels(counted(name).ops)
    got = {k["name"]: k for k in result["kernels"]}
    assert set(got) == set(want)
    for kernel, durations in want.items():
        k, durations = got[kernel], sorted(durations)
        n = len(durations)
        assert (k["count"], k["total_ns"], k["min_ns"], k["max_ns"]) == (n, sum(durations), durations[0], durations[-1])
        assert k["p50_ns"] == durations[(50 * n + 99) // 100 - 1]
        assert k["p95_ns"] == durations[(95 * n + 99) // 100 - 1]
        assert k["mean_ns"] == pytest.approx(sum(durations) / n, abs=1e-3)
    totals = [k["total_ns"] for k in result["kernels"]]
    assert totals == sorted(totals, reverse=True)
    assert sum(k["share"] for k in result["kernels"]) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("name", ["T1", "T2", "T3"])
def test_kernels_are_tracelens(analyze, name):
    """Its table splits a kernel by the operator that launched it; unlinked ones are in it."""
    sums, counts = collections.Counter(), collections.Counter()
    for row in traces.table(f"{name}-kernel_summary"):
        sums[row["Kernel name"]] += float(row["Kernel duration (µs)_sum"])
        counts[row["Kernel name"]] += int(row["Kernel duration (µs)_count"])
    got = {k["name"]: k for k in analyze(name)["kernels"]}
    assert {k: v["count"] for k, v in got.items()} == dict(counts)
    for kernel, us in sums.items():
        assert got[kernel]["total_ns"] / 1e3 == pytest.approx(us, abs=1e-3), kernel


@pytest.mark.parametrize("name", TRACES)
def test_gaps(analyze, counted, name):
    trace = counted(name)
    device = only(analyze(name, "--linked-only"))
    sizes = {"floor": (0, 5000), "micro": (5000, 20000), "macro": (20000, 1 << 63)}
    for size, (least, most) in sizes.items():
        mine = [g for g in traces.gaps(trace.linked(), trace.calls) if least <= g[1] - g[0] < most]
        got = device["gaps"][size]
        assert (got["count"], got["total_ns"]) == (len(mine), sum(e - b for b, e, _ in mine))
        host = sum(call - b for b, _, call in mine if call > b)
        late = sum(e - call for b, e, call in mine if call > b)
        waiting = sum(e - b for b, e, call in mine if call <= b)
        if device["missing_ns"] and size == "macro":
            continue  # part of it is blamed on nobody: see below
        # a call that is still being made is the host's for us, and a dependency for HTA
        assert (got["host_ns"], got["latency_ns"], got["in_call_ns"] + got["dependency_ns"]) == (host, late, waiting)
        assert got["unknown_ns"] == got["missing_ns"] == 0


@pytest.mark.parametrize("name", TRACES)
def test_rules_of_the_catalogue(analyze, name):
    device = only(analyze(name, "--linked-only"))
    share, host, late, waiting, kernels, short, small = RULES[name]
    macro, launches = device["gaps"]["macro"], device["launches"]
    assert percent(macro["total_ns"], device["span_ns"]) == pytest.approx(share, abs=0.06)
    if host is not None:
        split = (macro["host_ns"], macro["latency_ns"] + macro["missing_ns"],
                 macro["in_call_ns"] + macro["dependency_ns"])
        assert [round(percent(s, macro["total_ns"])) for s in split] == [host, late, waiting]
    assert device["kernels"] == kernels
    assert round(percent(device["kernels_below_10us"], kernels)) == small
    if short is not None:
        assert round(percent(launches["shorter_than_call"], launches["eager_kernels"])) == short


@pytest.mark.parametrize("name", TRACES)
def test_verdict(analyze, name):
    assert analyze(name)["verdict"]["kind"] == VERDICT[name]


def test_missing_device_activity(analyze, counted):
    """T7 begins inside a step whose work is not in it: 463 ms that look idle and were not."""
    result = analyze("T7")
    device, trace = only(result), counted("T7")
    begin, end, call = max(traces.gaps(trace.ops, trace.calls), key=lambda g: g[1] - g[0])
    assert end - begin > 463_000_000 and call - begin < 100_000
    assert device["missing_ns"] == device["gaps"]["macro"]["missing_ns"] == end - begin
    assert device["not_known_ns"] == end - begin
    assert "device activity missing" in result["verdict"]["text"]
    for name in ("T1", "T3"):
        assert only(analyze(name))["missing_ns"] == 0


def test_graphs_launch_many(analyze, counted):
    for name, most in (("T7", 544), ("T9", 421), ("T10", 15)):
        launches, trace = only(analyze(name))["launches"], counted(name)
        graph = collections.Counter(o.correlation for o in trace.ops if "Graph" in trace.calls[o.correlation].name)
        assert max(graph.values()) == most
        assert launches["linked_ops"] == len(trace.ops) and launches["unlinked_ops"] == 0
        assert launches["queue"]["max"] >= most
        assert launches["count"] == len({o.correlation for o in trace.ops})


def test_launched_before_the_window(analyze, counted):
    """509 of T2's operations have no call in it."""
    trace, every, linked = counted("T2"), analyze("T2"), analyze("T2", "--linked-only")
    assert len(trace.ops) - len(trace.linked()) == 509
    assert only(every)["launches"]["unlinked_ops"] == 509
    assert only(every)["launches"]["count"] == only(linked)["launches"]["count"] == 1198
    assert linked["device_records"]["left_out"] == 509 and linked["linked_only"]
    assert only(every)["span_ns"] == 49_652_832 and only(linked)["span_ns"] == 34_892_419


@pytest.mark.parametrize("name", TRACES)
def test_copies(analyze, counted, name):
    want = collections.Counter()
    for o in counted(name).ops:
        if o.cat == "gpu_memcpy":
            want[o.name.split()[1]] += 1
            want["bytes"] += o.bytes
            want["ns"] += o.end - o.begin
    got = collections.Counter()
    for c in only(analyze(name))["copies"]:
        got[c["direction"]] += c["count"]
        got["bytes"] += c["bytes"]
        got["ns"] += c["total_ns"]
        assert c["gb_per_s"] == pytest.approx(c["bytes"] / c["total_ns"], abs=1e-6)
        # all are pinned or stay on the device, but what ROCm calls Host may be either
        assert c.get("pageable") is (None if "unknown" in (c["from"], c["to"]) else False), c
    assert got == want


def operators_of(path):
    """By name of the innermost cpu_op around the call of each device operation: (executions, operations, their time)."""
    with gzip.open(path, "rt", encoding="utf-8") as f:
        events = json.load(f, parse_float=decimal.Decimal)["traceEvents"]
    spans, calls, work = [], {}, collections.defaultdict(list)
    for e in events:
        correlation = (e.get("args") or {}).get("correlation")
        if e.get("cat") == "cpu_op":
            spans.append((traces.ns(e["ts"]), traces.ns(e["ts"] + e["dur"]), e["tid"], e["name"]))
        elif e.get("cat") in ("cuda_runtime", "cuda_driver"):
            calls[correlation] = (traces.ns(e["ts"]), e["tid"])
        elif e.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            work[correlation].append(traces.ns(e["dur"]))
    out = collections.defaultdict(lambda: [set(), 0, 0])
    for correlation, (at, tid) in calls.items():
        around = [s for s in spans if s[2] == tid and s[0] <= at < s[1]]
        if around and work[correlation]:
            inner = max(around)
            row = out[inner[3]]
            row[0].add(inner)
            row[1] += len(work[correlation])
            row[2] += sum(work[correlation])
    return {name: (len(r[0]), r[1], r[2]) for name, r in out.items()}


@pytest.mark.parametrize("name", ["T1", "T2", "T3", "T10"])
def test_operators(analyze, name):
    want, result = operators_of(traces.find(name)), analyze(name)
    got = {o["name"]: (o["device"]["count"], o["device"]["operations"], o["device"]["work_ns"])
           for o in result["operators"] if o["basis"] == "operator" and "device" in o}
    assert len(want) > 5 and got == want
    if name == "T1":  # TraceLens: GEMM, 26 operations, 0.197598 ms
        assert got["aten::addmm"] == (26, 26, 197_598)


def test_text_names_the_cause(tool, analyze):
    analyze("T1")
    text = tool.run("analyze", f"{tool.folder}/T1.hbw", code=0).out
    head = text.split("\nDevices\n")[0]
    assert "VERDICT host: the device is idle 92.1 % of the time" in head
    assert "309.4 us (7.9 %)" in text and "Kernels by name" in text
    analyze("T7")
    assert "device activity missing" in tool.run("analyze", f"{tool.folder}/T7.hbw", code=0).out
