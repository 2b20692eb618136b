# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""vLLM, unmodified, CPU build: both of its processes traced under load."""
import os
import signal
import statistics

import pytest
from lib import loss
from lib.processes import alive, wait_for

pytestmark = pytest.mark.engine("vllm-cpu")


@pytest.fixture
def server(stage):
    return stage.get("vllm-cpu")


def load(server, requests, tokens="32"):
    """Per-request rows of the load client, run to its end."""
    answers = server.load(requests=requests, tokens=tokens, concurrency=1).wait(200)
    assert answers.ok, answers
    return answers.rows


def engine_pids(server):
    """Front end and engine core: the two processes that matter."""
    return {role: pids[0] for role, pids in server.roles().items()}


def median(rows, key):
    return statistics.median(r[key] for r in rows) / 1e6


def trace_under_load(hb, server, requests=24, **more):
    path = os.path.join(hb.folder, "vllm.hbw")
    running = hb.start("trace", "-p", server.pid, "-d", "60s", "-o", path, "--force", **more)
    wait_for(lambda: os.path.exists(path + ".part"), 60, "the window's begin")
    rows = load(server, requests)
    running.interrupt()
    result = running.wait(90)
    assert result.code == 0, result
    return path, rows, result


@pytest.mark.deadline(900)
def test_both_processes_linked_without_loss(hb, server):
    pids = engine_pids(server)
    assert set(pids) == {"api", "core"}, pids
    plain, traced = [], []
    for _ in range(3):  # interleaved, so that a noisy neighbour hits both
        plain += load(server, 12)
        path, rows, result = trace_under_load(hb, server, 12)
        traced += rows
    w = hb.window(path)
    assert {pids["api"], pids["core"]} <= {r["pid"] for r in w.of("offcpu")}
    assert {pids["api"], pids["core"]} <= {p["pid"] for p in w.head["processes"]}
    edges = {(r["waker"]["pid"], r["pid"]) for r in w.of("offcpu") if r.get("waker")}
    assert (pids["api"], pids["core"]) in edges, "no wake-up from the front end to the engine core"
    assert (pids["core"], pids["api"]) in edges, "no wake-up from the engine core to the front end"
    # The kernel of some guests does not run programs while certain processes are current: hooks and ticks in
    # their time are missing, and counted. Of hooks that is little; of ticks it is what the machine makes it.
    lacks = loss.records(w)
    assert set(lacks) <= {"missed"}, w.loss["rows"]
    assert lacks["missed"] < 0.02 * len(w.rows), (lacks, len(w.rows))
    assert server.healthy()
    print()
    for key in ("ttft_ns", "tpot_ns"):
        a, b = median(plain, key), median(traced, key)
        print(f"{key[:4]}: median {a:.2f} ms without, {b:.2f} ms with the tool (x{b / a:.3f}), {len(plain)} requests each")
    print(result.out)


@pytest.mark.deadline(600)
def test_kill_of_the_tool_leaves_the_server_answering(hb, server):
    path = os.path.join(hb.folder, "killed.hbw")
    running = hb.start("trace", "-p", server.pid, "-d", "60s", "-o", path)
    wait_for(lambda: os.path.exists(path + ".part"), 60, "the window's begin")
    load(server, 4)
    running.kill()
    running.popen.wait(20)
    assert len(load(server, 4)) == 4
    assert server.healthy()
    for pid in engine_pids(server).values():
        assert alive(pid)
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            assert "TracerPid:\t0" in f.read()
    hb.run("report", path + ".part", code=0)
    os.kill(server.pid, signal.SIGCONT)
