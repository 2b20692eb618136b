# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tests on real LLM engines; the tool's fixtures are those of tests/e2e.

The suite is run in thirds (HB_ENGINES_THIRD=0, 1, 2), one after the other, because starting and loading every engine takes
longer than a check may; without that variable all of it runs."""
import os
import sys

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "e2e")]

from bed import engines, venv  # noqa: E402
from lib import fixtures  # noqa: E402
from lib.fixtures import *  # noqa: E402,F401,F403
from lib.fixtures import _bpf_refused, _deadline  # noqa: E402,F401

THIRDS = (("vllm-graphs", "train"), ("vllm-tp2", "generate", "vllm-eager"), ("vllm-cpu", "vllm-moe", "vllm-8b"))
assert sorted(sum(THIRDS, ()) + ("sglang",)) == sorted(engines.NAMES)


def third():
    text = os.environ.get("HB_ENGINES_THIRD")
    return int(text) % 3 if text else None


def pytest_configure(config):
    fixtures.configure(config)
    config.addinivalue_line("markers", "engine(name): the engine that a test is about")
    config.addinivalue_line("markers", "third(n): a test of no engine, run with that third")


def pytest_report_header(config):
    if third() is None:
        return "engines: all of them"
    return f"engines: third {third() + 1} of 3, {', '.join(THIRDS[third()])}; HB_ENGINES_ALL=1 runs all"


def engine_of(item):
    """The engine a test is about: a parameter, or a mark on the module or the test."""
    name = getattr(item, "callspec", None) and item.callspec.params.get("name")
    mark = item.get_closest_marker("engine")
    return name or (mark.args[0] if mark else None)


def of_other_third(item):
    mark = item.get_closest_marker("third")
    if third() is None:
        return False
    return mark.args[0] != third() if mark else bool(engine_of(item)) and engine_of(item) not in THIRDS[third()]


def pytest_collection_modifyitems(config, items):
    gone = [i for i in items if of_other_third(i)]
    # One engine after the other; what traces it comes before the long load, which makes its logs long.
    items[:] = sorted((i for i in items if i not in gone), key=lambda i: list(engines.NAMES).index(engine_of(i))
                      if engine_of(i) else -1)
    if gone:
        config.hook.pytest_deselected(items=gone)


class Stage:
    """One running engine at a time: starting one takes half a minute, and two share too few CPUs."""

    def __init__(self, factory):
        self._factory, self._engine, self._failed = factory, None, {}

    def get(self, name):
        e = self._engine
        if e and e.name == name and e.process.running():
            return e
        self.close()
        if name in self._failed:
            pytest.fail(self._failed[name])
        try:
            self._engine = engines.start(name, self._factory.mktemp(name))
        except venv.Missing as why:
            pytest.skip(str(why))
        except AssertionError as why:
            self._failed[name] = f"{name} does not start: {why}"
            pytest.fail(self._failed[name])
        return self._engine

    def close(self):
        if self._engine:
            self._engine.stop()
        self._engine = None


@pytest.fixture(scope="session")
def stage(tmp_path_factory):
    s = Stage(tmp_path_factory)
    yield s
    s.close()
