# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Scenarios: real processes with a planted, timed cause, and a healthy twin, traced by the real binary (docs/scenarios.md).

The suite is run in thirds (HB_SCENARIOS_THIRD=0, 1, 2), one after the other; without that variable all of it runs."""
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "e2e")]

from bed.record import Stage  # noqa: E402
from bed.table import SCENARIOS  # noqa: E402
from lib import fixtures, kernel  # noqa: E402
from lib.fixtures import _deadline  # noqa: E402,F401

NAMES = [s.name for s in SCENARIOS]
GROUPS = list(dict.fromkeys(s.group for s in SCENARIOS))  # of an engine that is started once


def names():
    """Of the scenarios that are run."""
    groups = GROUPS if third() is None else GROUPS[third()::3]
    return [s.name for s in SCENARIOS if s.group in groups]


def third():
    text = os.environ.get("HB_SCENARIOS_THIRD")
    return int(text) % 3 if text else None


def pytest_configure(config):
    fixtures.configure(config)


def pytest_report_header(config):
    if third() is None:
        return "scenarios: all of them"
    return f"scenarios: third {third() + 1} of 3, {', '.join(names())}; HB_ENGINES_ALL=1 runs all"


def scenario_of(item):
    return item.callspec.params["scenario"].name if hasattr(item, "callspec") and "scenario" in item.callspec.params else None


def pytest_collection_modifyitems(config, items):
    chosen = names()
    gone = [i for i in items if scenario_of(i) and scenario_of(i) not in chosen]
    # One scenario after the other: each of its windows is recorded once, for all of its tests.
    items[:] = sorted((i for i in items if i not in gone), key=lambda i: NAMES.index(scenario_of(i)) if scenario_of(i) else -1)
    if gone:
        config.hook.pytest_deselected(items=gone)


@pytest.fixture(scope="session")
def stage(tmp_path_factory):
    refused = kernel.why_not()
    if refused:
        pytest.skip(refused)
    s = Stage(tmp_path_factory)
    yield s
    s.close()


@pytest.fixture
def cause(stage, scenario):
    """The window of a scenario with its cause planted, and what the processes themselves say of it."""
    return stage.get(scenario, "cause")


@pytest.fixture
def twin(stage, scenario):
    """The same without the cause."""
    return stage.get(scenario, "twin")
