# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`compare A B`: twins differ in nothing, a planted change is found under its name, and what is not comparable is said."""
import json
import os
import random
import sys

import pytest

from lib import paths
from lib.tool import FAILED, OK, USAGE

pytestmark = pytest.mark.beside


def trace(seed, steps=450, kernel_us=900, kernels=3, extra=None):
    """A Chrome trace of an engine: kernels of about a length, waited for in each step."""
    rng, rows, at, number = random.Random(seed), [], 1000.0, 0

    def about(us):
        return round(us * rng.uniform(0.85, 1.15), 3)

    def put(cat, name, ts, dur, **args):
        rows.append({"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": 7, "ts": round(ts, 3), "dur": dur, "args": args})

    for _ in range(steps):
        end = at
        for k in range(kernels):
            number += 1
            put("cuda_runtime", "cudaLaunchKernel", at, about(8), correlation=number)
            dur = about(kernel_us)
            put("kernel", "gemm", max(end, at + 20), dur, correlation=number, device=0, stream=7, context=1)
            end = max(end, at + 20) + dur
            at += 12
        if extra:
            number += 1
            put("cuda_runtime", "cudaLaunchKernel", at, about(8), correlation=number)
            put("kernel", extra, end, 400, correlation=number, device=0, stream=7, context=1)
            end, at = end + 400, at + 12
        put("cuda_runtime", "cudaStreamSynchronize", at, round(end - at + 5, 3), correlation=0)
        at = end + about(60)
    return {"traceEvents": rows}


@pytest.fixture
def window(tool):
    def make(name, content):
        source, path = (os.path.join(tool.folder, f"{name}.{end}") for end in ("json", "hbw"))
        with open(source, "w", encoding="utf-8") as f:
            json.dump(content, f)
        tool.run("import", source, "-o", path, "--force", code=OK)
        return path

    return make


@pytest.fixture
def compare(tool):
    return lambda a, b, *options: json.loads(tool.run("compare", a, b, "--json", *options, code=OK).out)


def changed(result):
    return {(r["kind"], r["name"]) for r in result["rows"] if r["changed"]}


def row(result, kind, name):
    return next(r for r in result["rows"] if (r["kind"], r["name"]) == (kind, name))


def test_twins_are_silent(window, compare, tool):
    a = window("a", trace(1))
    for seed in (2, 3, 4):
        b = window("b", trace(seed))
        result = compare(a, b)
        assert (result["comparable"], result["per"], result["changed"]) == ("yes", "step", 0), (result["cautions"], changed(result))
        assert result["numbers"] > 8
    text = tool.run("compare", a, b, code=OK).out
    assert "nothing above noise" in text and "comparable: same command" in text


def test_window_with_itself(window, compare):
    a = window("a", trace(1))
    result = compare(a, a)
    assert result["changed"] == 0
    for r in result["rows"]:
        assert r["count_a"] == r["count_b"] and r["total_a_ns"] == r["total_b_ns"]


def test_slower_kernel_is_found(window, compare, tool):
    a, b = window("a", trace(1)), window("b", trace(2, kernel_us=1100))
    result = compare(a, b)
    each = row(result, "kernel", "gemm")["each"]
    assert each["is"] == "more" and each["change"] == pytest.approx(200 / 900, rel=0.1)
    assert 0 < each["difference_low"] < 200000 < each["difference_high"] < 300000
    assert each["a"]["q1"] < each["a"]["median"] < each["a"]["q3"] < each["b"]["q1"]
    assert row(result, "kernel", "gemm")["count"]["is"] == "within noise"
    assert row(result, "step", "length")["time"]["is"] == "more"
    assert {r["name"]: r["kind"] for r in reversed(result["rows"]) if r["changed"]}["length"] == "step"
    text = tool.run("compare", a, b, code=OK).out
    assert "kernel gemm" in text and "more" in text
    back = compare(b, a)
    assert row(back, "kernel", "gemm")["each"]["is"] == "less"


def test_new_kernel_and_gone_kernel(window, compare):
    a, b = window("a", trace(1)), window("b", trace(2, extra="memset_all"))
    result = compare(a, b)
    new = row(result, "kernel", "memset_all")
    assert new["changed"] and new["count"]["is"] == "more" and new["count_a"] == 0
    assert new["count"]["b"]["median"] == pytest.approx(1)
    assert row(compare(b, a), "kernel", "memset_all")["count"]["is"] == "less"
    assert not row(result, "kernel", "gemm")["changed"]


def test_least_change(window, compare, tool):
    a, b = window("a", trace(1)), window("b", trace(2, kernel_us=1100))
    assert changed(compare(a, b, "--least", "50%")) == set()
    for wrong in ("5", "0%", "x%", "100%", "-3%", "nan%"):
        tool.run("compare", a, b, "--least", wrong, code=USAGE)


def test_not_comparable(window, compare, tool):
    a, short = window("a", trace(1)), window("short", trace(2, steps=60))
    assert "length" in {c["kind"] for c in compare(a, short)["cautions"]}
    few = compare(a, window("few", trace(2, steps=5)))
    assert few["per"] == "second" and {"slices", "length"} <= {c["kind"] for c in few["cautions"]}
    host_only = {"traceEvents": [r for r in trace(2)["traceEvents"] if r["cat"] != "kernel"]}
    result = compare(a, window("host", host_only))
    assert any("no device records" in c["text"] for c in result["cautions"])
    assert row(result, "kernel", "gemm")["each"]["is"] == "not compared"
    assert ("kernel", "gemm") not in changed(result)


def test_every_key_is_documented(window, compare):
    with open(paths.source("docs", "compare.md"), encoding="utf-8") as f:
        text = f.read()

    def keys(x):
        if isinstance(x, dict):
            for k, v in x.items():
                yield k
                yield from keys(v)
        if isinstance(x, list):
            for v in x:
                yield from keys(v)

    result = compare(window("a", trace(1)), window("b", trace(2, kernel_us=1100, extra="memset_all")))
    assert [k for k in sorted(set(keys(result))) if f"`{k}`" not in text] == []


def test_usage(tool, window):
    a = window("a", trace(1, steps=20))
    tool.run("compare", code=USAGE)
    tool.run("compare", a, code=USAGE)
    tool.run("compare", a, a, a, code=USAGE)
    missing = tool.run("compare", a, "nothing.hbw", code=FAILED)
    assert len(missing.sentences()) == 1 and "nothing.hbw" in missing.sentences()[0]
    assert "compare" in tool.run("--help", code=OK).out


# ---- two windows of one running program ----

PROGRAM = """
import ctypes, os, sys, time
rt = ctypes.CDLL(sys.argv[1])
host, device = ctypes.create_string_buffer(65536), ctypes.c_void_p()
assert rt.cudaMalloc(ctypes.byref(device), ctypes.c_size_t(65536)) == 0
print("ready", flush=True)
while True:
    changed = os.path.exists(sys.argv[2])
    for _ in range(9 if changed else 3):
        rt.cudaMemcpyAsync(device, host, ctypes.c_size_t(4096), 1, None)
    rt.cudaStreamSynchronize(None)
    time.sleep(0.009 if changed else 0.003)
"""


@pytest.mark.alone  # twins differ in nothing as long as nobody else comes and goes
def test_before_and_after_a_change(hb, start, tmp_path):
    lib, flag = paths.built("sim", "libcudart.so.13"), tmp_path / "changed"
    if not os.path.exists(lib):
        pytest.skip(f"{lib} is not built")
    target = start([sys.executable, "-c", PROGRAM, lib, str(flag)], ready="ready")
    before, _ = hb.trace("-p", target.pid, duration="3s")
    twin, _ = hb.trace("-p", target.pid, duration="3s")
    flag.write_text("")
    after, _ = hb.trace("-p", target.pid, duration="3s")

    def compare(a, b):
        return json.loads(hb.run("compare", a, b, "--json", "--least", "20%", code=OK).out)

    same, other = compare(before, twin), compare(before, after)
    assert same["comparable"] != "no" and other["comparable"] != "no", (same["cautions"], other["cautions"])
    assert {(k, n) for k, n in changed(same) if k in ("step", "call")} == set()
    copies = row(other, "call", "cudaMemcpyAsync")["count"]
    assert copies["is"] == "more" and copies["a"]["median"] == pytest.approx(3, rel=0.05)
    assert copies["b"]["median"] == pytest.approx(9, rel=0.05)
    length = row(other, "step", "length")["time"]
    assert length["is"] == "more" and length["b"]["median"] > length["a"]["median"] + 5e6
    sleeps = [r for r in other["rows"] if r["kind"] == "wait" and "clock_nanosleep" in r["name"]]
    assert any(r["time"]["is"] == "more" for r in sleeps), other["rows"][:20]
    # Another program altogether.
    stranger = start([sys.executable, "-c", PROGRAM.replace("import ctypes", "import ctypes as ctypes"), lib, str(flag)], ready="ready")
    alien, _ = hb.trace("-p", stranger.pid, duration="2s")
    assert "target" in {c["kind"] for c in compare(before, alien)["cautions"]}
