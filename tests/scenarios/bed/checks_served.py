# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the windows of unmodified engines must show, as in checks.py."""
from . import spans
from .checks import exposed_share
from .expect import near, sleeps_fill, stacks_name, woken_by


def calls(recording, name):
    return recording.window.of("accel", name=name)


# ---- graphs are off ----

def eager(cause):
    assert not calls(cause, "cuGraphLaunch")
    near(len(calls(cause, "cuLaunchKernel")) + len(calls(cause, "cuLaunchKernelEx")), len(cause.truth.launches()), "launches", 0.02)
    assert eager_exposed(cause.truth) > 0.5 * cause.truth.length


def eager_exposed(truth):
    """Also the short breaks between kernels count: each waits for its launch."""
    return spans.total(truth.starved(least=0))


def graphs(twin, cause):
    assert len(calls(twin, "cuGraphLaunch")) > 50 * twin.truth.length / 1e9
    starved = [spans.total(r.truth.starved()) / r.truth.length for r in (twin, cause)]
    assert starved[0] < 0.5 * starved[1], starved


# ---- the plug-ins ----

def kv(cause):
    waits = sleeps_fill(cause, "dispatch", "cause", chan_kind="unix", syscall="recvfrom")
    woken_by(cause, waits, "kv-server")
    stacks_name(waits, "get_num_new_matched_tokens")
    assert exposed_share(cause) > 0.1


def kv_aside(twin, cause):
    assert twin.truth.spans("aside")
    assert not twin.truth.spans("cause")


def bill(cause):
    assert len(cause.truth.spans("cause")) > cause.truth.length / 1e9


def no_bill(twin, cause):
    assert not twin.truth.spans("cause")
