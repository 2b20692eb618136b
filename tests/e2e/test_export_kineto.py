# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`export --format kineto` of a real window, loaded by Holistic Trace Analysis and held against ndjson."""
import collections
import json
import os
import subprocess
import sys

import pytest

from lib import paths
from lib.tool import OK

pytestmark = pytest.mark.beside

CATEGORY = {"driver": "cuda_driver", "runtime": "cuda_runtime", "library": "user_annotation"}


@pytest.fixture
def traced(hb, workload):
    """(ndjson's view, path of the JSON file)"""
    target = workload("accel_loop", "--lib", paths.built("sim", "libcudart.so.13"), "--threads", 2, "--launches", 1000000,
                      "--copies", 1000000, "--syncs", 1000000, "--rate", 2000)
    path, _ = hb.trace("-p", target.pid, "--layers", "runtime", "--syscalls", "all")
    out = os.path.join(hb.folder, "trace.json")
    hb.run("export", path, "--format", "kineto", "-o", out, code=OK)
    return hb.window(path), out


def test_it_is_json_with_the_keys_of_kineto(traced):
    window, path = traced
    done = subprocess.run([sys.executable, "-m", "json.tool", path, os.devnull], stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    with open(path, encoding="utf-8") as f:
        trace = json.load(f)
    assert set(trace) >= {"schemaVersion", "deviceProperties", "distributedInfo", "displayTimeUnit", "baseTimeNanoseconds",
                          "traceEvents", "traceName"}
    rows = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert all(e["ts"] >= 0 and e["dur"] >= 0 and e["cat"] and e["name"] for e in rows)
    got = collections.Counter((e["pid"], e["tid"], e["name"], round(e["ts"] * 1000), round(e["dur"] * 1000))
                              for e in rows if "correlation" in e["args"])
    base = trace["herschel"]["monotonic_base_ns"]
    want = collections.Counter((r["pid"], r["tid"], r["name"], window.head["start_ns"] + r["ts"] - base, r.get("dur", 0))
                               for r in window.of("accel"))
    assert got == want
    names = [e for e in trace["traceEvents"] if e["ph"] == "M" and e["name"] == "process_name"]
    assert names and all("simulated accelerator" in e["args"]["name"] for e in names)
    assert trace["herschel"]["loss"] == {k: v for k, v in window.loss.items() if isinstance(v, int)}


def test_hta_reads_it(traced, oracle):
    window, path = traced
    done = subprocess.run([oracle("hta"), paths.source("tests", "oracles", "read_kineto.py"), path], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout[done.stdout.index("{"):])
    want, ns = collections.Counter(), collections.Counter()
    for r in window.of("accel"):
        want[f"{CATEGORY[r['layer']]} {r['name']}"] += 1
        ns[f"{CATEGORY[r['layer']]} {r['name']}"] += r.get("dur", 0)
    for r in window.of("syscall"):
        want[f"syscall {r['name']}"] += 1
    assert want["cuda_runtime cudaLaunchKernel"] > 100 and want["cuda_runtime cudaStreamSynchronize"] > 100
    assert {k: v for k, v in found["rows"].items() if not k.startswith("offcpu")} == want
    assert sum(v for k, v in found["rows"].items() if k.startswith("offcpu")) == len(window.of("offcpu"))
    assert {k: found["ns"][k] for k in ns} == ns
    assert found["pids"] == sorted({r["pid"] for r in window.rows if r["type"] in ("accel", "offcpu", "syscall")})
    assert found["correlations"] == len(window.of("accel"))
    assert found["device_rows"] == found["launch_stats"] == 0  # there are no device records yet
    assert found["launch_stats_with_kernels"] == want["cuda_runtime cudaLaunchKernel"]
