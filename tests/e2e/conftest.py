# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""End-to-end tests: the real binary on real processes. What they share lies in lib/."""
import os
import re
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from lib import fixtures  # noqa: E402
from lib.fixtures import *  # noqa: E402,F401,F403
from lib.fixtures import _bpf_refused, _deadline  # noqa: E402,F401


def pytest_configure(config):
    fixtures.configure(config)


VERSION = re.compile(r"^(pyenv|debian|source)-3\.(\d+)")


# Two runs of pytest may share the files between them (scripts/check): a folder where each file belongs to who names it first.
SHARED = os.environ.get("HB_SHARED_FILES")
ours = {}


def is_ours(path):
    """True when this run has the file, from now on or since before."""
    if path not in ours:
        try:
            os.close(os.open(os.path.join(SHARED, os.path.basename(path)), os.O_CREAT | os.O_EXCL))
            ours[path] = True
        except FileExistsError:
            ours[path] = False
    return ours[path]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    """What the other run has is no test of this one: it neither passes nor is it skipped."""
    return None if not SHARED or is_ours(item.location[0]) else True


def case_of(item):
    return item.callspec.id if hasattr(item, "callspec") else ""


def pytest_collection_modifyitems(config, items):
    """Of the CPythons that a test is repeated on one third is taken in a run (HB_PYTHON_THIRD=0, 1, 2, by scripts/check), the
    system's own always; and of the tests that are repeated with single uprobes, which the kernel takes away slowly. All without
    that variable."""
    third = os.environ.get("HB_PYTHON_THIRD")
    if not third:
        return
    versions = {i: int(m.group(2)) for i in items if (m := VERSION.match(case_of(i)))}
    singles = dict((i, n) for n, i in enumerate(i for i in items if case_of(i) == "single"))
    gone = [i for i, n in {**versions, **singles}.items() if n % 3 != int(third) % 3]
    items[:] = [i for i in items if i not in gone]
    config.hook.pytest_deselected(items=gone)
