# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""End-to-end tests: the real binary on real processes. What they share lies in lib/."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from lib import fixtures  # noqa: E402
from lib.fixtures import *  # noqa: E402,F401,F403
from lib.fixtures import _bpf_refused, _deadline  # noqa: E402,F401


def pytest_configure(config):
    fixtures.configure(config)
