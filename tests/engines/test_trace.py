# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Windows of vLLM on the simulated accelerator against its truth log, call by call."""
import collections

import pytest
from bed import expect
from lib import exact, kernel
from lib.exact import truth
from lib.processes import alive, wait_for

GRAPHS = [pytest.param("vllm-graphs", id="graphs"), pytest.param("vllm-tp2", id="tp2")]
# cuBLAS with ends, so that launches can be seen to lie inside.
CUBLAS = """api cublas
libcublas.so*    cublasGemm*     other  library  return  nothrow
libcublas.so*    cublasSgemm*    other  library  return  nothrow
libcublasLt.so*  cublasLtMatmul  other  library  return  nothrow
"""


@pytest.fixture
def engine(stage, request):
    return stage.get(request.node.callspec.params["name"])


def log_of(engine, window):
    return expect.around(truth.read(engine.truth), window)


def assert_equal_to_truth(hb, engine, path, window):
    """Every call once, nothing else, nothing lost; and the report counts what the file holds."""
    seen = exact.assert_exact(window, log_of(engine, window), probed=expect.auto(hb), pids=engine.accelerated(),
                             compilers=True)
    assert {r["pid"] for r in window.of("accel")} == set(engine.accelerated())
    report = hb.json(path)
    assert report["window"]["simulated"]
    assert {(c["name"], c["pid"]): c["count"] for c in report["calls"]} == {
        key: n for key, n in window.by("name", "pid").items()}
    names = collections.Counter()
    for (_, layer, name), n in seen.calls.items():
        names[(layer, name)] += n
    assert names[("driver", "cuGraphLaunch")] and names[("driver", "cuLaunchKernel")], names
    assert names[("runtime", "cudaMemcpyAsync")] and names[("runtime", "cudaEventSynchronize")], names
    return names


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.deadline(700)
def test_attached_before_the_load(hb, engine, name):
    path, running = hb.open("-p", engine.pid, "-d", "12s")
    answers = engine.load(requests=12).wait(60)
    assert answers.ok, answers
    window = hb.read(path, running)
    names = assert_equal_to_truth(hb, engine, path, window)
    assert set(exact.losses(window)) <= {"late"}, "the engine was at rest at both edges"
    assert exact.in_window(window, log_of(engine, window), expect.auto(hb)) == names
    # The engine's own count of its steps: each decode step is one graph launch a worker, at least.
    steps = [s for s in engine.step_rows() if window.head["start_ns"] <= s["at_ns"] < window.head["end_ns"]]
    decodes = sum(1 for s in steps if not s["prompt_tokens"] and s["generated_tokens"])
    graphs = names[("driver", "cuGraphLaunch")] / len(engine.accelerated())
    assert decodes and graphs >= decodes, (decodes, graphs)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.deadline(700)
def test_attached_under_load(hb, engine, name):
    client = engine.load(seconds=240)
    wait_for(lambda: client.answered() > 4, 60, "the first answers")
    path, running = hb.open("-p", engine.pid, "-d", "3s")
    window = hb.read(path, running)
    assert client.running(), "the load ended before the window"
    assert_equal_to_truth(hb, engine, path, window)
    answers = client.finish()
    assert answers.ok, answers


@pytest.mark.parametrize("name", GRAPHS[:1])
@pytest.mark.deadline(700)
def test_launches_are_told_apart(hb, engine, name, tmp_path):
    """Graph launches, eager launches through the runtime, those of cuBLAS, and those of compiled code through the driver."""
    table = tmp_path / "cublas.tbl"
    table.write_text(CUBLAS)
    path, running = hb.open("-p", engine.pid, "-d", "10s", "--layers", "both", "--probes", str(table))
    answers = engine.load(requests=8).wait(60)
    assert answers.ok, answers
    window = hb.read(path, running)
    found, true = expect.kinds_of_window(window), expect.kinds_of_log(log_of(engine, window).between(
        window.head["start_ns"], window.head["end_ns"]))
    print(dict(true))
    assert found == true
    assert all(true[k] for k in ("graph", "eager", "cublas", "direct")), true


@pytest.mark.parametrize("name", GRAPHS[:1])
@pytest.mark.deadline(700)
def test_kill_of_the_tool_leaves_the_server_answering(tool, engine, name, _bpf_refused):
    if _bpf_refused:
        pytest.skip(_bpf_refused)
    before = kernel.Snapshot()
    client = engine.load(seconds=240)
    wait_for(lambda: client.answered() > 2, 60, "the first answers")
    _, running = tool.open("-p", engine.pid, "-d", "60s")
    running.kill()
    running.popen.wait(20)
    done = client.answered()
    wait_for(lambda: client.answered() > done + 20, 60, "answers after the kill")
    answers = client.finish()
    assert answers.ok, answers
    assert not before.wait_clean(), before.left()
    assert engine.healthy()
    for pid in engine.pids():
        assert alive(pid)
        with open(f"/proc/{pid}/status", encoding="utf-8") as f:
            assert "TracerPid:\t0" in f.read()
    assert engine.load(requests=4).wait(60).ok
