# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Records the window of a scenario: its processes started, traced for some seconds, stopped, and their truth read."""
import json
import os

import pytest

from lib import kernel
from lib.tool import OK, Tool

from .serving import Servers
from .truth import Truth


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


def record(scenario, side, folder, servers):
    """Runs one side of a scenario under the tool; a Recording."""
    reason = scenario.impossible and scenario.impossible()
    if reason:
        pytest.skip(reason)
    tool = Tool(folder)
    path = os.path.join(folder, "window.hbw")
    before = kernel.Snapshot()
    with scenario.around(side), scenario.running(side, folder, servers) as target:
        tool.run("trace", "-p", target.process.pid, "-d", f"{scenario.seconds}s", "-o", path, *scenario.trace, code=OK)
        assert target.process.running(), target.process.output()
    left = before.wait_clean()
    assert not left, "left in the kernel:\n" + "\n".join(left)
    window = tool.window(path)
    return Recording(tool, path, window, Truth(target.notes, target.device, window))


class Stage:
    """Keeps the windows of one scenario at a time: all of its tests read the same two."""

    def __init__(self, factory):
        self._factory, self._name, self._kept = factory, None, {}
        self._servers = Servers(factory)

    def get(self, scenario, side):
        if self._name != scenario.name:
            self._name, self._kept = scenario.name, {}
        if side not in self._kept:
            folder = str(self._factory.mktemp(f"{scenario.name}-{side}"))
            try:
                self._kept[side] = record(scenario, side, folder, self._servers)
            except (AssertionError, pytest.skip.Exception) as why:
                self._kept[side] = why
        if isinstance(self._kept[side], BaseException):
            raise self._kept[side]
        return self._kept[side]

    def close(self):
        self._servers.close()
