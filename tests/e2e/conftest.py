# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""End-to-end tests: the real binary on real processes. What they share lies in lib/."""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from lib import fixtures  # noqa: E402
from lib.fixtures import *  # noqa: E402,F401,F403
from lib.fixtures import _bpf_refused, _deadline  # noqa: E402,F401


def pytest_configure(config):
    fixtures.configure(config)


VERSION = re.compile(r"^(pyenv|debian|source)-3\.(\d+)")


def pytest_collection_modifyitems(config, items):
    """Of the CPythons that a test is repeated on one third is taken in a run (HB_PYTHON_THIRD=0, 1, 2, by scripts/check); the
    system's own always, and all without that variable."""
    third = os.environ.get("HB_PYTHON_THIRD")
    if not third:
        return
    gone = []
    for item in items:
        m = VERSION.match(item.callspec.id) if hasattr(item, "callspec") else None
        if m and int(m.group(2)) % 3 != int(third) % 3:
            gone.append(item)
    items[:] = [i for i in items if i not in gone]
    config.hook.pytest_deselected(items=gone)
