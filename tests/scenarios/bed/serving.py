# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Scenarios on an unmodified engine: vLLM on the simulated accelerator, started once for all that want the same one."""
import contextlib
import dataclasses
import json
import os
import sys

import pytest

from lib import paths
from lib.processes import wait_for

from . import favour
from .program import WORK, Target
from .scenario import Scenario

sys.path.append(paths.source("tests"))
from engines.bed import engines, venv  # noqa: E402

WARM = 20  # requests of a kind, until which everything is compiled
KEPT = 2  # engines at a time: one with the cause, and its twin
RANKS = ("--logits-processors", "hb_plugins:Uneven")
PLUGINS = ("--middleware", "hb_plugins.bill", "--logits-processors", "hb_plugins:Journal", "--kv-transfer-config", json.dumps(
    {"kv_connector": "Connector", "kv_connector_module_path": "hb_plugins", "kv_role": "kv_both"}))
COSTS = "kernel *FlashAttnFwdSm90* 1000000\n"  # 8 layers: a step of 9 ms, as of a large model


@dataclasses.dataclass(frozen=True)
class Served(Scenario):
    """program: the engine (tests/engines/bed) and words for its server; cause and twin: further words. Where these are alike, one
    server does for both sides, and `switch` or `fault` says what differs."""
    costs: str = COSTS
    plugins: tuple = ()  # words that add what work/plugins has, by its own interfaces
    switch: str = ""  # the cause that they are told to plant
    fault: str = ""  # a line for the simulated accelerator (docs/simulator.md)
    clients: int = 2
    load: dict = dataclasses.field(default_factory=dict)  # further options of the client (tests/engines/bed/load.py)
    busy: bool = False  # it leaves no CPU to whoever comes after it: the tracer has to come first as well
    within: object = lambda _side, _engine: contextlib.nullcontext()  # within(side, engine): context of the window

    @property
    def group(self):
        return "+".join([*self.program, *self.twin, *self.plugins, self.costs])

    def words(self, side):
        return (*self.program[1:], *getattr(self, side), *self.plugins)

    def running(self, side, folder, servers):
        return servers.loaded(self, side, folder)


class Server:
    """One that runs, its folder, and the two files that plant causes in it."""

    def __init__(self, scenario, side, folder):
        self.folder = folder
        self.notes, self.device = os.path.join(folder, "notes"), os.path.join(folder, "device")
        self._switch, self._faults = os.path.join(folder, "switch"), os.path.join(folder, "faults")
        os.mkdir(self.notes)
        os.mkdir(self.device)
        costs = os.path.join(folder, "costs")
        with open(costs, "w", encoding="ascii") as f:
            f.write(scenario.costs)
        self.plant("", "")
        env = {"HB_PLANTED": self.notes, "HB_SWITCH": self._switch, "HB_SIM_FAULTS": self._faults, "HB_SIM_COSTS": costs,
               "HB_SIM_SEED": "1", "PYTHONPATH": os.path.join(WORK, "plugins"), **scenario.env}
        self.engine = engines.start(scenario.program[0], folder, truth=self.device, env=env, options=scenario.words(side))
        for asked in ({}, {"logprobs": 1}):  # what few requests ask for is compiled anew when two do at once
            answers = self.load(scenario, requests=WARM, **asked).wait(120)
            assert answers.ok, f"{answers}\n{self.engine.log()[-3000:]}"

    def load(self, scenario, **options):
        """Starts the scenario's clients."""
        return self.engine.load(**{"concurrency": scenario.clients, "tokens": "32-64", **scenario.load, **options})

    def plant(self, switch, fault):
        for path, text in ((self._switch, switch), (self._faults, fault)):
            with open(path + ".new", "w", encoding="ascii") as f:
                f.write(text + "\n")
            os.rename(path + ".new", path)

    def threads(self):
        """{role: (pid, tid)}: the main threads of its processes."""
        roles = self.engine.roles()
        found = {"event-loop": roles["api"][0], "dispatch": roles["core"][0]}
        found.update((f"rank-{i}", pid) for i, pid in enumerate(sorted(roles.get("workers", ()), key=engines.title_of)))
        return found

    def leave(self, folder, answers, steps):
        """What the engine and its clients know of themselves, as notes."""
        with open(os.path.join(folder, "engine.jsonl"), "w", encoding="utf-8") as f:
            for role, pid in self.threads().items():
                f.write(json.dumps({"thread": role, "pid": pid, "tid": pid}) + "\n")
            for r in answers.rows:
                f.write(json.dumps({**r, "span": "request", "begin": r["start_ns"], "end": r["end_ns"]}) + "\n")
            for last, this in zip(steps, steps[1:]):
                f.write(json.dumps({**this, "span": "step", "begin": last["at_ns"], "end": this["at_ns"]}) + "\n")


class Servers:
    def __init__(self, factory):
        self._factory, self._running = factory, {}

    def of(self, scenario, side):
        key = (scenario.program[0], scenario.words(side), scenario.costs)
        if key not in self._running:
            while len(self._running) >= KEPT:
                self._running.pop(next(iter(self._running))).engine.stop()
            try:
                self._running[key] = Server(scenario, side, str(self._factory.mktemp("server")))
            except venv.Missing as why:
                pytest.skip(str(why))
        self._running[key] = self._running.pop(key)  # what was asked for last goes last
        return self._running[key]

    @contextlib.contextmanager
    def loaded(self, scenario, side, folder):
        """Under load, for one window."""
        server = self.of(scenario, side)
        engine = server.engine
        before = len(engine.step_rows())
        server.plant(*((scenario.switch, scenario.fault) if side == "cause" else ("", "")))
        client = server.load(scenario, seconds=120)
        first = [] if side in scenario.fair else engine.pids() + [client.process.pid]
        answers = None
        try:
            with favour.processes(first, scenario.busy), scenario.within(side, engine):
                wait_for(lambda: client.answered() > scenario.clients, 60, "the first answers")
                yield Target(engine.process, [folder, server.notes], server.device)
            answers = client.finish()
            assert answers.ok, f"{answers}\n{engine.log()[-3000:]}"
            server.leave(folder, answers, engine.step_rows()[before:])
        finally:
            server.plant("", "")
            if answers is None:
                client.process.kill()

    def close(self):
        while self._running:
            self._running.popitem()[1].engine.stop()
