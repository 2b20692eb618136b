# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A real OpenCL runtime (PoCL) behind the real loader: what a program enqueued, read and waited for."""
import glob
import json
import os
import subprocess

import pytest
from lib import exact, processes, tracing
from lib.tool import OK

pytestmark = pytest.mark.beside

ROUNDS = 60


@pytest.fixture
def program(workload):
    """The workload, built its kernel already, waiting at the line before its calls."""
    if not glob.glob("/etc/OpenCL/vendors/*.icd"):
        pytest.skip("no OpenCL platform is installed (apt install pocl-opencl-icd)")
    return workload("opencl_loop", ROUNDS, ready='"ready"', timeout=120, stdin=subprocess.PIPE)


def go_on(program):
    program.popen.stdin.write(b"\n")
    program.popen.stdin.flush()


def truth_of(program):
    """What it printed of its own calls."""
    line = processes.wait_for(lambda: [l for l in program.output().splitlines() if '"counts"' in l], timeout=60,
                              what="the end of its rounds")[0]
    return json.loads(line)


@pytest.fixture
def window(hb, program):
    """(Window, path, truth) of all calls between the two lines."""
    def rounds():
        go_on(program)
        return truth_of(program)

    path, _, truth = tracing.around(hb, rounds, "-p", program.pid)
    return hb.window(path), path, truth


def test_counts_are_exact(window):
    w, _, truth = window
    # PoCL starts a linker that may be gone before it has probes: a stretch of that kind is all that may be missing.
    assert set(exact.losses(w)) <= {"late"}, w.loss
    seen = w.calls(pid=truth["pid"])
    assert {n: seen[n] for n in truth["counts"]} == truth["counts"], seen
    assert not w.of("accel", layer="driver") and {r["api"] for r in w.of("accel")} == {"opencl"}


def test_sizes_results_and_grids(window):
    w, _, truth = window
    reads, writes = w.of("accel", name="clEnqueueReadBuffer"), w.of("accel", name="clEnqueueWriteBuffer")
    assert {r["bytes"] for r in reads + writes} == {truth["bytes"]}
    assert {r["ret"] for r in reads + writes + w.of("accel", name="clFinish")} == {0}
    kernels = w.of("accel", name="clEnqueueNDRangeKernel")
    assert {r["grid"][0] for r in kernels} == {4096} and all(r["class"] == "launch" for r in kernels)
    assert len({r["function"] for r in kernels}) == 1 and len({r["stream"] for r in kernels + reads}) == 1


def test_waits_are_timed(hb, window):
    """A blocking read waits for three kernels in front of it; what the calls took fits into the window."""
    w, path, _ = window
    span = w.head["end_ns"] - w.head["start_ns"]
    reads, finishes = w.of("accel", name="clEnqueueReadBuffer"), w.of("accel", name="clFinish")
    for calls in (reads, finishes):
        assert all(r["dur"] > 0 for r in calls) and sum(r["dur"] for r in calls) <= span
        assert all(0 <= r["ts"] and r["ts"] + r["dur"] <= span for r in calls)
    # one thread made all calls, one after the other
    calls = sorted((r for r in w.of("accel") if "dur" in r), key=lambda r: r["ts"])
    assert all(a["ts"] + a["dur"] <= b["ts"] for a, b in zip(calls, calls[1:]) if a["tid"] == b["tid"])
    # kernels run for tens of microseconds: the reads that wait for them cannot be shorter than calls that do not
    shortest_read = min(r["dur"] for r in reads)
    assert sum(r["dur"] for r in reads) > sum(r["dur"] for r in w.of("accel", name="clEnqueueWriteBuffer")), shortest_read
    row = next(c for c in json.loads(hb.run("report", path, "--json", code=OK).out)["calls"] if c["name"] == "clFinish")
    assert row["count"] == len(finishes) and row["total_ns"] == sum(r["dur"] for r in finishes)
    assert row["max_ns"] == max(r["dur"] for r in finishes)


def test_what_it_waited_on(window):
    """PoCL computes on threads of its own: the caller sleeps in a lock that one of them releases."""
    w, _, truth = window
    sleeps = [r for r in w.of("offcpu", pid=truth["pid"], tid=truth["pid"]) if r["chan_kind"] == "futex"]
    assert sleeps, w.of("offcpu")[:5]
    wakers = {r["waker"]["tid"] for r in sleeps if r.get("waker", {}).get("context") == "task"}
    threads = {int(t) for t in os.listdir(f"/proc/{truth['pid']}/task")} - {truth["pid"]}
    assert wakers and wakers <= threads, (wakers, threads)
