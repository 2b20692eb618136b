# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Tests on real LLM engines; fixtures are those of tests/e2e."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from lib import fixtures  # noqa: E402
from lib.fixtures import *  # noqa: E402,F401,F403
from lib.fixtures import _bpf_refused, _deadline  # noqa: E402,F401


def pytest_configure(config):
    fixtures.configure(config)
