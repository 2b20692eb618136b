# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`import` of traces that PyTorch's profiler wrote on real devices, held against another reader, the tables of another
tool, and itself by way of `export --format kineto`."""
import collections
import csv
import gzip
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from lib import paths
from lib.tool import FAILED, OK, USAGE

sys.path.insert(0, paths.source("tests", "oracles"))
from read_trace import Trace  # noqa: E402

pytestmark = pytest.mark.beside

TRACES = os.path.join(os.path.dirname(paths.ROOT), "shared", "traces")
NAMES = ("T1", "T2", "T3", "T7", "T9", "T10", "T11", "T13")
SYNC_ALL = 4294967295


def trace_file(name):
    found = [f for f in os.listdir(TRACES) if f.startswith(name + "-") and f.endswith(".json.gz")] if os.path.isdir(TRACES) else []
    if not found:
        pytest.skip(f"the trace {name} is not in {TRACES}")
    return os.path.join(TRACES, found[0])


def imported(tool, path, name="w.hbw"):
    out = os.path.join(tool.folder, name)
    result = tool.run("import", path, "-o", out, "--force", code=OK)
    return tool.window(out), out, result


def spans(rows, name="name"):
    return collections.Counter((r[name], r["ts"], r["dur"]) for r in rows)


def work(window):
    return collections.Counter((r["kind"], r["name"], r["ts"], r["dur"], r.get("stream", -1), r.get("correlation", 0))
                               for r in window.of("device"))


def python_name(row):
    return f"{row['file']}({row['line']}): {row['qualname']}" if row.get("file") else row["qualname"]


def linked(window):
    calls = {r["correlation"] for r in window.of("accel") if "correlation" in r}
    return sum(r.get("correlation") in calls for r in window.of("device") if r["kind"] in ("kernel", "memcpy", "memset"))


def expected_work(trace):
    """All of a context is no stream here, -1 or the largest number there."""
    return collections.Counter({(*k[:4], -1 if k[4] in (-1, SYNC_ALL) else k[4], k[5]): n for k, n in trace.device().items()})


@pytest.mark.parametrize("name", NAMES)
def test_every_row_is_there_to_the_nanosecond(tool, name):
    path = trace_file(name)
    window, _, _ = imported(tool, path)
    trace = Trace(path)
    assert window.lost() == 0
    assert window.head["start_ns"] == trace.start and window.head["end_ns"] == trace.end
    assert work(window) == expected_work(trace)
    assert spans(window.of("op")) == trace.spans("cpu_op", "user_annotation", "gpu_user_annotation")
    calls = window.of("accel")
    assert collections.Counter((r["ts"], r["dur"], r["correlation"]) for r in calls) == trace.calls()
    python = window.of("py.call")
    assert collections.Counter((python_name(r), r["ts"], r["dur"]) for r in python) == trace.spans("python_function")
    assert linked(window) == trace.linked()
    begin = {r["correlation"]: r["ts"] for r in calls}
    assert all(r.get("op_ts") == begin.get(r.get("correlation")) for r in window.of("device"))
    kinds = collections.Counter(r["kind"] for r in window.of("device"))
    assert kinds["kernel"] == len(trace.of("kernel")) > 0 and kinds["memcpy"] == len(trace.of("gpu_memcpy"))
    assert len({r["pid"] for r in window.rows if r.get("pid")}) == 1


@pytest.mark.parametrize("name", ("T1", "T2", "T3"))
def test_kernels_below_their_operators_as_tracelens_counts_them(tool, name):
    """The innermost operator in the stack of the call that launched a kernel is what TraceLens calls its parent."""
    window, _, _ = imported(tool, trace_file(name))
    parent = {}
    for r in window.of("accel"):
        operators = [f["f"] for f in r.get("stack", ()) if f["lang"] == "native"]
        parent[r.get("correlation")] = operators[-1] if operators else ""
    got = collections.defaultdict(lambda: [0, 0])
    for r in window.of("device"):
        if r["kind"] != "kernel":
            continue
        row = got[parent.get(r["correlation"], ""), r["name"], r["stream"]]
        row[0] += 1
        row[1] += r["dur"]
    with open(os.path.join(TRACES, f"{name}-kernel_summary.csv"), encoding="utf-8", newline="") as f:
        want = {(r["Parent cpu_op"], r["Kernel name"], int(float(r["Kernel stream"]))):
                [int(float(r["Kernel duration (µs)_count"])), round(float(r["Kernel duration (µs)_sum"]) * 1000)]
                for r in csv.DictReader(f)}
    assert want
    assert dict(got) == want


def test_plain_and_gzipped_and_by_pipe_are_the_same(tool):
    path = trace_file("T3")
    plain = os.path.join(tool.folder, "plain.json")
    with gzip.open(path) as f, open(plain, "wb") as out:
        out.write(f.read())
    a, _, _ = imported(tool, path)
    b, _, _ = imported(tool, plain)
    assert a.rows == b.rows and a.loss == b.loss
    out = os.path.join(tool.folder, "piped.hbw")
    with open(path, "rb") as f:
        done = subprocess.run([paths.TOOL, "import", "-", "-o", out], stdin=f, stdout=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 0
    assert tool.window(out).rows == a.rows


@pytest.mark.parametrize("compressed", (False, True))
def test_a_truncated_trace_keeps_what_is_whole_and_says_so(tool, compressed):
    path = trace_file("T2")
    whole, _, _ = imported(tool, path)
    with open(path, "rb") as f:
        data = f.read() if compressed else gzip.decompress(f.read())
    cut = os.path.join(tool.folder, "cut.json" + (".gz" if compressed else ""))
    before = 0
    for part in (0.5, 0.7, 0.95):
        with open(cut, "wb") as f:
            f.write(data[:int(len(data) * part)])
        window, out, result = imported(tool, cut)
        assert "cut off" in result.err
        assert window.loss["import_cut"] == 1 and window.loss["import_odd"] == 0
        assert any("cut off after" in r["text"] and r["level"] == "warning" for r in window.of("note"))
        rows = len(window.of("op")) + len(window.of("py.call")) + len(window.of("accel")) + len(window.of("device"))
        assert rows > before
        before = rows
        base = window.head["start_ns"] - whole.head["start_ns"]
        ops = collections.Counter((r["name"], r["ts"] + base, r["dur"]) for r in window.of("op"))
        assert ops and not ops - spans(whole.of("op"))
        assert "import_cut" in tool.run("report", out, code=OK).out


@pytest.mark.parametrize("name", NAMES)
def test_there_and_back_again(tool, name):
    """Exported for Kineto's readers and imported again: the same window."""
    first, path, _ = imported(tool, trace_file(name))
    out = os.path.join(tool.folder, "back.json")
    tool.run("export", path, "--format", "kineto", "-o", out, code=OK)
    with open(out, encoding="utf-8") as f:
        rows = json.load(f)["traceEvents"]
    again, _, _ = imported(tool, out, "again.hbw")
    lines = [sorted(json.dumps(r, sort_keys=True) for r in w.rows if r["type"] != "note") for w in (first, again)]
    assert lines[0] == lines[1]
    assert again.lost() == 0
    begins = collections.Counter(r["id"] for r in rows if r["ph"] == "s")
    ends = collections.Counter(r["id"] for r in rows if r["ph"] == "f")
    assert set(begins.values()) <= {1} and set(begins) <= set(ends)
    assert sum(ends[i] for i in begins) == linked(first)


@pytest.mark.parametrize("name", ("T1", "T2", "T3", "T13"))
def test_hta_says_the_same_of_the_trace_and_of_our_export(tool, oracle, name):
    _, path, _ = imported(tool, trace_file(name))
    files = [os.path.join(tool.folder, f) for f in ("theirs.json", "ours.json")]
    with gzip.open(trace_file(name)) as f, open(files[0], "wb") as out:
        out.write(f.read())
    tool.run("export", path, "--format", "kineto", "-o", files[1], code=OK)
    found = []
    for f in files:
        done = subprocess.run([oracle("hta"), paths.source("tests", "oracles", "read_devices.py"), f], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=280)
        assert done.returncode == 0, done.stderr[-3000:]
        found.append(json.loads(done.stdout[done.stdout.index("{"):]))
    assert found[0]["kernels"] == len(Trace(trace_file(name)).of("kernel"))
    for key, value in found[0]["breakdown"].items():
        assert abs(found[1]["breakdown"][key] - value) <= 0.5, key  # its columns are floats of absolute times
    for key in ("kernels", "launches"):
        assert found[0][key] == found[1][key], key


def test_perfetto_has_streams_and_flows(tool, oracle):
    window, path, _ = imported(tool, trace_file("T2"))
    out = os.path.join(tool.folder, "w.pftrace")
    tool.run("export", path, "--format", "perfetto", "-o", out, code=OK)
    done = subprocess.run([oracle("perfetto"), paths.source("tests", "oracles", "read_perfetto.py"), out], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    trace = json.loads(done.stdout)
    assert not trace["unknown"] and not trace["unbalanced"] and not trace["flows_bad"]
    assert "device 0, stream 7" in trace["tracks"]
    start = window.head["start_ns"]
    got = collections.Counter((s["name"], s["ts"] - start, s["dur"]) for s in trace["slices"] if "device" in s["cat"])
    assert got == spans(window.of("device"))
    assert len(trace["flows"]) == linked(window)
    assert all(f["from"]["args"]["correlation"] == f["to"]["args"]["correlation"] for f in trace["flows"])


def test_the_window_is_one_like_others(tool):
    """`report`, its JSON and folded stacks of an imported trace."""
    _, path, _ = imported(tool, trace_file("T1"))
    report = tool.json(path)
    assert report["window"]["meta"]["profile"] == "imported"
    calls = {c["name"]: c["count"] for c in report["calls"]}
    assert calls["cudaLaunchKernel"] == 34 and calls["cuLaunchKernel"] == 22
    text = tool.run("report", path, code=OK).out
    assert "aten::addmm" in text and "cudaLaunchKernel" in text


def test_interrupted_it_leaves_nothing(tool):
    """Its input never ends; a part of the window is there when the signal comes, or not yet."""
    out = os.path.join(tool.folder, "w.hbw")
    done = subprocess.Popen([paths.TOOL, "import", "-", "-o", out], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    done.stdin.write(b'{"traceEvents":[')
    done.stdin.flush()
    time.sleep(0.5)
    done.terminate()
    assert done.wait(20) == -signal.SIGTERM
    done.stdin.close()
    assert not [f for f in os.listdir(tool.folder) if f.startswith("w.hbw")]


def rank_trace(tool, rank, base, pid=251):
    """Of one rank: 10 calls, each with a kernel. The same ids in each; the clock begins elsewhere."""
    rows = []
    for i in range(10):
        ts = 1000 + i * 100 + rank * 7 - (base - 1_700_000_000_000_000_000) / 1000
        rows.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": pid, "tid": pid, "ts": ts, "dur": 5,
                     "args": {"correlation": i + 1}})
        rows.append({"ph": "X", "cat": "kernel", "name": f"kernel_of_rank_{rank}", "pid": 0, "tid": 7, "ts": ts + 10, "dur": 50,
                     "args": {"correlation": i + 1, "device": 0, "stream": 7, "context": 1}})
    path = os.path.join(tool.folder, f"rank{rank}.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": 2},
                   "deviceProperties": [{"id": 0, "name": f"Device of {rank}", "numSms": 132}],
                   "traceEvents": rows, "baseTimeNanoseconds": base}, f)
    return path


def whose(kernels):
    return sorted((k["pid"], k["name"], k["ts"], k["dur"]) for k in kernels)


def test_traces_of_several_ranks_are_one_window(tool):
    """Processes of one number stay two, each with its own calls and kernels, on one clock."""
    files = [rank_trace(tool, 0, 1_700_000_000_000_000_000), rank_trace(tool, 1, 1_700_000_000_000_400_000)]
    out = os.path.join(tool.folder, "ranks.hbw")
    said = tool.run("import", *files, "-o", out, code=OK).out
    assert "2 traces: 40 rows" in said and "calls 20, kernels 20" in said
    window = tool.window(out)
    kernels = window.of("device")
    pids = {rank: {k["pid"] for k in kernels if k["name"] == f"kernel_of_rank_{rank}"} for rank in (0, 1)}
    assert [len(p) for p in pids.values()] == [1, 1] and pids[0] != pids[1] and pids[0] == {251}
    for rank in (0, 1):
        (pid,) = pids[rank]
        calls = sorted(c["ts"] for c in window.of("accel") if c["pid"] == pid)
        assert calls == [i * 100_000 + rank * 7000 for i in range(10)], "in ns, since the first call of all"
        assert sorted(k["ts"] for k in kernels if k["pid"] == pid) == [t + 10_000 for t in calls]
    found = json.loads(tool.run("analyze", out, "--json", code=OK).out)
    assert [d["linked"] if "linked" in d else 10 for d in found["devices"]] == [10, 10]
    # One list of rows again: the numbers of calls are made different, so that each kernel finds its own call.
    back, again = os.path.join(tool.folder, "back.json"), os.path.join(tool.folder, "again.hbw")
    tool.run("export", out, "--format", "kineto", "-o", back, code=OK)
    tool.run("import", back, "-o", again, code=OK)
    assert whose(tool.window(again).of("device")) == whose(kernels)
    # Alone each is what it was.
    alone = os.path.join(tool.folder, "alone.hbw")
    tool.run("import", files[1], "-o", alone, code=OK)
    assert len(tool.window(alone).of("device")) == 10


def test_a_rank_that_is_cut_off_stays_on_the_clock_of_the_others(tool):
    files = [rank_trace(tool, rank, 1_700_000_000_000_000_000) for rank in (0, 1)]
    with open(files[1], encoding="utf-8") as f:
        text = f.read()
    with open(files[1], "w", encoding="utf-8") as f:
        f.write(text[:text.index('"correlation": 8')])
    out = os.path.join(tool.folder, "cut.hbw")
    said = tool.run("import", *files, "-o", out, code=OK)
    assert "one of the traces is cut off" in said.err
    calls = tool.window(out).of("accel")
    assert len(calls) == 17 and max(c["ts"] for c in calls) == 900_000
    assert "does not say what its times count from" in tool.run("report", out, code=OK).out


def test_traces_of_other_times_are_told(tool):
    files = [rank_trace(tool, 0, 1_700_000_000_000_000_000), os.path.join(tool.folder, "later.json")]
    with open(files[0], encoding="utf-8") as f:
        later = json.load(f)
    later["baseTimeNanoseconds"] += 60_000_000_000
    with open(files[1], "w", encoding="utf-8") as f:
        json.dump(later, f)
    out = os.path.join(tool.folder, "apart.hbw")
    tool.run("import", *files, "-o", out, code=OK)
    assert "no time in common" in tool.run("report", out, code=OK).out


def test_words_and_codes(tool):
    trace = os.path.join(tool.folder, "t.json")
    with open(trace, "w", encoding="utf-8") as f:
        json.dump({"traceEvents": [{"ph": "X", "name": "a", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 1, "dur": 1}]}, f)
    out = os.path.join(tool.folder, "t.hbw")
    tool.run("import", trace, "-o", out, code=OK)
    for args, code, say in ((("import",), USAGE, "needs a trace"), (("import", trace), USAGE, "needs -o"),
                            (("import", trace, trace, "-o", out), USAGE, "given twice"),
                            (("import", trace, "-o", out), FAILED, "--force"),
                            (("import", trace, "-o", trace, "--force"), USAGE, "the trace itself"),
                            (("import", "/nowhere.json", "-o", out, "--force"), FAILED, "No such file"),
                            (("import", tool.folder, "-o", out, "--force"), FAILED, "is a folder"),
                            (("import", paths.TOOL, "-o", out, "--force"), FAILED, "no trace"),
                            (("import", out, "-o", out + "2"), FAILED, "no trace"),
                            (("import", trace, "-o", "/nowhere/x.hbw"), FAILED, "/nowhere")):
        result = tool.run(*args, code=code)
        assert len(result.sentences()) == 1 and say in result.err, result
    assert tool.window(out).of("op", name="a"), "an import that failed left the window alone"
    assert not os.path.exists(out + "2") and not [f for f in os.listdir(tool.folder) if f.endswith(".part")]
    tool.run("import", trace, "-o", out, "--force", code=OK)
    assert "TRACE.json" in tool.run("import", "--help", code=OK).out
