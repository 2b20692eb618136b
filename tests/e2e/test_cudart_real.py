# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""NVIDIA's own runtime library. Without a device every call fails, but each is made, known numbers of times."""
import json
import os
import subprocess

import pytest

from lib import exact
from lib.processes import wait_for
from lib.tool import OK, USAGE

pytestmark = pytest.mark.beside

CUDART = os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "lib64", "libcudart.so.13")
NO_CUDART = not os.path.exists(CUDART)
WHY = f"{CUDART} is not there: the CUDA toolkit is not installed"
# Off in the built-in tables because programs ask it in loops; a table of the user's own turns it on.
GETTER = "api cuda-runtime\nlibcudart.so*  cudaGetDeviceCount  other  runtime  return  nothrow  handle=a0\n"


def make_calls(hb, target, *args):
    """A window around everything the target does: (window, what the target says of it)."""
    path, running = hb.open("-p", target.pid, "-d", "60s", *args)
    target.popen.stdin.write(b"\n")
    target.popen.stdin.flush()
    wait_for(lambda: '"done"' in target.output(), timeout=30, what="the end of the calls")
    running.interrupt()
    window = hb.read(path, running)
    said = json.loads(next(l for l in target.output().splitlines() if '"calls"' in l))
    return window, said["calls"]


@pytest.mark.skipif(NO_CUDART, reason=WHY)
@pytest.mark.parametrize("mode", [[], ["--layers", "both"]], ids=["auto", "both"])
def test_counts_results_and_arguments(hb, workload, tmp_path, mode):
    table = tmp_path / "getter.tbl"
    table.write_text(GETTER)
    target = workload("cudart_real", CUDART, 20, ready='"ready"', stdin=subprocess.PIPE)
    window, calls = make_calls(hb, target, "--probes", table, *mode)
    assert {k: v["count"] for k, v in calls.items()} == {"cudaGetDeviceCount": 60, "cudaMalloc": 100, "cudaMemcpyAsync": 140,
                                                         "cudaLaunchKernel": 220, "cudaStreamSynchronize": 260}
    assert dict(window.calls()) == {k: v["count"] for k, v in calls.items()}
    assert not exact.losses(window)
    assert window.head["simulated"] is False
    for name, made in calls.items():
        assert made["ret"] != 0, "there is a device after all"
        rows = window.of("accel", name=name)
        assert {(r["pid"], r["api"], r["layer"]) for r in rows} == {(target.pid, "cuda-runtime", "runtime")}
        if name == "cudaLaunchKernel" and "both" not in mode:
            assert not any("ret" in r or "dur" in r for r in rows), "launches are taken at their entry"
        else:
            assert {r["ret"] for r in rows} == {made["ret"]} and all(r["dur"] > 0 for r in rows)
    assert {r["bytes"] for r in window.of("accel", name="cudaMalloc")} == {4096}
    assert {(r["bytes"], r["kind"]) for r in window.of("accel", name="cudaMemcpyAsync")} == {(64, "HtoD")}
    launches = window.of("accel", name="cudaLaunchKernel")
    assert {(tuple(r["grid"]), tuple(r["block"]), r["stream"]) for r in launches} == {((1, 1, 1), (1, 1, 1), "0x0")}
    assert len({r["function"] for r in launches}) == 1 and int(launches[0]["function"], 16) != 0


@pytest.mark.skipif(NO_CUDART, reason=WHY)
def test_report_names_the_failures(hb, workload):
    target = workload("cudart_real", CUDART, 2, ready='"ready"', stdin=subprocess.PIPE)
    window, calls = make_calls(hb, target)
    assert "cudaGetDeviceCount" not in window.calls(), "it is off unless a table turns it on"
    report = hb.json(os.path.join(hb.folder, "window-0.hbw"))
    for row in report["calls"]:
        made = calls[row["name"]]
        if row["name"] == "cudaLaunchKernel":
            assert row["results_known"] == 0 and row["errors"] == 0
        else:
            assert row["errors"] == made["count"] and row["results"] == [{"ret": made["ret"], "count": made["count"]}]
    assert {r["name"] for r in report["calls"]} == set(calls) - {"cudaGetDeviceCount"}


@pytest.mark.skipif(NO_CUDART, reason=WHY)
def test_a_table_can_turn_a_row_off(hb, workload, tmp_path):
    table = tmp_path / "off.tbl"
    table.write_text("api cuda-runtime\nlibcudart.so*  cudaMalloc  alloc  runtime  entry  off  nothrow\n")
    target = workload("cudart_real", CUDART, 2, ready='"ready"', stdin=subprocess.PIPE)
    window, calls = make_calls(hb, target, "--probes", table)
    assert "cudaMalloc" not in window.calls()
    assert window.calls()["cudaMemcpyAsync"] == calls["cudaMemcpyAsync"]["count"]


@pytest.mark.skipif(NO_CUDART, reason=WHY)
def test_a_bad_table_stops_before_anything_is_attached(hb, workload, tmp_path):
    table = tmp_path / "bad.tbl"
    table.write_text("api cuda-runtime\nlibcudart.so*  cudaMalloc  alloc  runtime  return\n")
    target = workload("cudart_real", CUDART, 1, ready='"ready"', stdin=subprocess.PIPE)
    result = hb.run("trace", "-p", target.pid, "-d", "1s", "--probes", table, code=USAGE)
    assert len(result.sentences()) == 1 and f"{table}:2:" in result.err and "nothrow" in result.err, result


STATIC = "has the cuda runtime linked in statically"


def test_a_static_runtime_is_explained_in_one_line(hb, workload):
    target = workload("cudart_static", ready='"ready"', stdin=subprocess.PIPE)
    for command in ("show", "check"):
        said = hb.run("probes", command, "-p", target.pid, code=OK).out
        lines = [l for l in said.splitlines() if STATIC in l]
        assert len(lines) == 1 and "driver library" in lines[0], said
    window, _ = make_calls(hb, target)
    assert not window.of("accel")
    notes = [n["text"] for n in window.of("note") if STATIC in n["text"]]
    assert len(notes) == 1 and target.command[0] in notes[0], window.of("note")
