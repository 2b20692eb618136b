# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calls of a real engine's functions, unmodified vLLM on the CPU: in each step the scheduler is asked once and told once, and
each request is added once. The hook is none for it: torch takes it away, which is said."""
import concurrent.futures
import os
import time

import pytest

from lib.processes import wait_for
from lib.tool import OK
from test_vllm_cpu import engine_pids, server  # noqa: F401
from test_vllm_fields import completion

pytestmark = pytest.mark.engine("vllm-cpu")

FUNCTIONS = ["vllm.v1.core.sched.scheduler:Scheduler.schedule", "*:Scheduler.update_from_output", "*:Scheduler.add_request",
             "*/v1/engine/core.py:EngineCore.step"]


@pytest.mark.parametrize("hook", ["off", "eval_frame!"])
def test_selected_calls(hb, server, hook):  # noqa: F811
    pid = engine_pids(server)["core"]
    path = os.path.join(hb.folder, f"calls-{len(hook)}.hbw")
    said = hb.run("probes", "check", "-p", pid, code=OK).out
    assert "eval_frame: refused: torch is loaded" in said
    run = hb.start("trace", "-p", pid, "-d", "120s", "-o", path, "--py-hook", hook, *[o for f in FUNCTIONS for o in ("--calls", f)])
    wait_for(lambda: os.path.exists(path + ".part"), 60, "the window's begin")
    time.sleep(1)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        told = list(pool.map(completion, [server.port] * 16, range(16)))
    time.sleep(1)
    run.interrupt()
    result = run.wait(90)
    assert result.code == OK, result
    window = hb.window(path)
    calls = window.of("py.call")
    if hook != "off":
        assert "hook was taken away" in result.err and window.loss["late"] > 0
        return
    count = {f: sum(r["qualname"] == f for r in calls) for f in ("Scheduler.schedule", "Scheduler.update_from_output",
                                                                  "Scheduler.add_request", "EngineCore.step")}
    assert count["Scheduler.add_request"] == len(told) == 16
    assert count["Scheduler.schedule"] == count["Scheduler.update_from_output"] > 16
    assert 0 <= count["EngineCore.step"] - count["Scheduler.schedule"] <= 2 + len(told), count
    assert {r["module"] for r in calls} == {"vllm.v1.core.sched.scheduler", "vllm.v1.engine.core"}
    assert not any("dur" in r for r in calls)
    assert "left by a tool" not in hb.run("probes", "check", "-p", pid, code=OK).out
