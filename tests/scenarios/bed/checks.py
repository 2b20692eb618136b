# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the window of each scenario must show of its cause, by the truth of its processes."""
from . import spans
from .expect import hidden, near, sleeps_fill, slept, stacks_name, woken_by  # noqa: F401


def kv_service(cause):
    waits = sleeps_fill(cause, "dispatch", "cause", chan_kind="unix", syscall="recvfrom")
    woken_by(cause, waits, "kv-server")
    stacks_name(waits, "allocate")
    locked = sleeps_fill(cause, "kv-server", "lock", chan_kind="futex")
    woken_by(cause, locked, "kv-evictor")
    # Each call has one step of 30 ms queued.
    rpcs = cause.truth.spans("cause")
    near(spans.total(cause.truth.exposed()), spans.total(rpcs) - len(rpcs) * 30_000_000, "exposed time")


def kv_service_queued(twin, cause):
    sleeps_fill(twin, "dispatch", "cause", chan_kind="unix", syscall="recvfrom")
    hidden(twin)
