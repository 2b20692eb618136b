# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Of each scenario: the window shows what was planted; `analyze` names it first, and says nothing of the healthy twin."""
import subprocess

import pytest

from bed import expect
from bed.table import SCENARIOS
from lib import paths

each = pytest.mark.parametrize("scenario", SCENARIOS, ids=str)


@pytest.fixture
def analyzer():
    said = subprocess.run([paths.TOOL, "analyze", "--help"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    if said.returncode != 0:
        pytest.skip("this herschel-bpf has no `analyze` yet")


@pytest.fixture
def judged(analyzer, cause):
    if not any(cause.analysis()[key] for key in ("findings", "ruled_out", "not_checked")):
        pytest.skip("`analyze` looks for no pattern yet")


@pytest.fixture
def pending(request, scenario):
    """What `analyze` cannot name yet has to fail, so that this is taken back when it can."""
    if scenario.pending:
        request.applymarker(pytest.mark.xfail(strict=True, reason=scenario.pending))


@each
def test_the_window_shows_the_cause(scenario, cause):
    scenario.shows(cause)


@each
def test_the_twin_differs_in_just_that(scenario, twin, cause):
    scenario.healthy(twin, cause)


@each
def test_the_cause_is_named_first(scenario, judged, pending, cause):
    expect.named_first(cause, scenario)


@each
def test_the_twin_is_silent(scenario, judged, twin):
    expect.silent(twin)
