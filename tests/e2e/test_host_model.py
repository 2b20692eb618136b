# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Steps of a live engine (simulated accelerator), without device records: as many and as long as the engine's own log says."""
import json
import threading
import time

import pytest
from lib.engine import answered
from lib.tool import OK


def log_of(engine, pid, window):
    """Steps of a worker, begun and ended inside of the window."""
    start, end = window.head["start_ns"], window.head["end_ns"]
    (path,) = (p for p in engine.step_logs() if f".{pid}." in p)
    with open(path, encoding="utf-8") as f:
        rows = [json.loads(line) for line in f]
    return [r for r in rows if r["step"] >= 0 and start <= r["t0"] and r["t1"] <= end]


def middle(values):
    return sorted(values)[len(values) // 2]


def test_steps_are_the_engines_own(hb, engine):
    e = engine(workers=2)
    path, running = hb.open("-p", e.pid, "-d", "6s")
    answered(e.load(seconds=4))
    window = hb.read(path, running)
    steps = {s["pid"]: s for s in json.loads(hb.run("analyze", path, "--json", code=OK).out)["steps"]}
    assert set(steps) == set(e.workers)
    for pid in e.workers:
        # A step ends when its tokens are read back; one that only prefills has them too, and runs on into the next.
        ends = [r["t1"] for r in log_of(e, pid, window) if r["decode"]]
        assert len(ends) > 50, "too little was seen"
        assert steps[pid]["source"] == "read-back"
        assert steps[pid]["dispatch_thread"]["tid"] == pid
        assert abs(steps[pid]["count"] - (len(ends) - 1)) <= 2
        true = middle([b - a for a, b in zip(ends, ends[1:])])
        assert abs(steps[pid]["p50_ns"] - true) <= 0.05 * true, (steps[pid], true)


@pytest.mark.parametrize("whole", [True, False], ids=["service", "worker"])
def test_few_requests_are_no_load(hb, engine, whole):
    """A client on this machine, not traced, asks now and then: nobody is to blame for the time between, least of all the client.

    Traced alone, a worker waits for its engine, and nobody knows for what that one waits.
    """
    e = engine(workers=1)
    over = threading.Event()

    def ask():
        while not over.is_set():
            e.one()
            time.sleep(0.4)

    client = threading.Thread(target=ask)
    client.start()
    try:
        path, _ = hb.trace("-p", e.pid if whole else e.workers[0], duration="4s")
    finally:
        over.set()
        client.join()
    result = json.loads(hb.run("analyze", path, "--json", code=OK).out)
    assert result["verdict"]["kind"] == "no load" and "from outside" in result["verdict"]["text"], result["verdict"]
    assert not {f["id"] for f in result["findings"]} - {"P30"}, result["findings"]
    assert sum(f["share"] for f in result["findings"]) < 0.1, result["findings"]
