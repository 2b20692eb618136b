# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Records the window of a scenario: its processes started, traced for some seconds, stopped, and their truth read."""
import json
import os
import sys

import pytest

from lib import kernel, paths
from lib.processes import Process
from lib.tool import OK, Tool

from .scenario import COSTS
from .truth import Truth

WORK = paths.source("tests", "scenarios", "work")


class Recording:
    """path: the window file; window: its records; truth: what the processes say."""

    def __init__(self, tool, path, window, truth):
        self.tool, self.path, self.window, self.truth = tool, path, window, truth
        self._analysis = None

    def analysis(self):
        """`analyze --json` of it."""
        if self._analysis is None:
            self._analysis = json.loads(self.tool.run("analyze", self.path, "--json", code=OK).out)
        return self._analysis


def command(scenario, side):
    program, *args = scenario.program
    args = [*args, *getattr(scenario, side)]
    if program.endswith(".py"):
        return [sys.executable, "-u", os.path.join(WORK, program), *args]
    return [paths.built("scenarios", program), *args]


def environment(scenario, notes, device):
    env = {"HB_PLANTED": notes, "HB_SIM_TRUTH": device, "HB_SIM_LIB": paths.built("sim"), "HB_SIM_SEED": "1",
           "PYTHONDONTWRITEBYTECODE": "1", "LD_LIBRARY_PATH": paths.built("sim")}
    env["HB_SIM_COSTS"] = os.path.join(notes, "costs")
    with open(env["HB_SIM_COSTS"], "w", encoding="ascii") as f:
        f.write(scenario.costs + COSTS)
    return {**env, **scenario.env}


def _first():
    """What else runs on the machine is not part of the scenario: its processes come first."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except OSError:
        _nice()  # not in this control group


def _nice():
    """The same where the scenario needs the fair scheduler."""
    os.setpriority(os.PRIO_PROCESS, 0, -19)
    try:
        with open("/proc/self/autogroup", "w", encoding="ascii") as f:
            f.write("-19")  # where sessions compete as groups, a nice value counts within its session only
    except OSError:
        pass  # they do not here


def record(scenario, side, folder):
    """Runs one side of a scenario under the tool; a Recording."""
    reason = scenario.impossible and scenario.impossible()
    if reason:
        pytest.skip(reason)
    notes, device = os.path.join(folder, "notes"), os.path.join(folder, "device")
    os.mkdir(notes)
    os.mkdir(device)
    tool = Tool(folder)
    before = kernel.Snapshot()
    with scenario.around(side):
        target = Process(command(scenario, side), ready="ready", env=environment(scenario, notes, device), cwd=folder,
                         preexec_fn=_nice if side in scenario.fair else _first)
        try:
            path = os.path.join(folder, "window.hbw")
            tool.run("trace", "-p", target.pid, "-d", f"{scenario.seconds}s", "-o", path, *scenario.trace, code=OK)
            assert target.running(), target.output()
        finally:
            target.stop()
    left = before.wait_clean()
    assert not left, "left in the kernel:\n" + "\n".join(left)
    window = tool.window(path)
    return Recording(tool, path, window, Truth(notes, device, window))


class Stage:
    """Keeps the windows of one scenario at a time: all of its tests read the same two."""

    def __init__(self, factory):
        self._factory, self._name, self._kept = factory, None, {}

    def get(self, scenario, side):
        if self._name != scenario.name:
            self._name, self._kept = scenario.name, {}
        if side not in self._kept:
            folder = str(self._factory.mktemp(f"{scenario.name}-{side}"))
            try:
                self._kept[side] = record(scenario, side, folder)
            except (AssertionError, pytest.skip.Exception) as why:
                self._kept[side] = why
        if isinstance(self._kept[side], BaseException):
            raise self._kept[side]
        return self._kept[side]
