# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the windows of unmodified engines must show, as in checks.py."""
from . import cgroup, spans
from .checks import exposed_share, slow_rank_exposed
from .expect import near, samples_fill, sleeps_fill, slept, stacks_name, woken_by


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


# ---- what the scheduler's fields say ----

STATE = {"waiting": "waiting:len", "running": "running:len", "limit": "max_num_running_reqs",
         "blocks": "kv_cache_manager.block_pool.num_gpu_blocks",
         "free": "kv_cache_manager.block_pool.free_block_queue.num_free_blocks"}
READ = {name: f"*:Scheduler.schedule self.{path}" for name, path in STATE.items()}
READ["preempted"] = "*:Scheduler._preempt_request request.num_preemptions"  # a reading for each
FIELDS = tuple(x for asked in READ.values() for x in ("--field", asked))


def readings(recording, name):
    return [r["value"] for r in recording.window.of("py.field", field=READ[name]) if "value" in r]


def small_batch(cause):
    assert set(readings(cause, "limit")) == {2}
    assert sum(n > 0 for n in readings(cause, "waiting")) > 0.8 * len(readings(cause, "waiting"))
    assert min(readings(cause, "free")) > 0.5 * max(readings(cause, "blocks"))


def batch_for_all(twin, cause):
    assert set(readings(twin, "limit")) == {16}
    assert sum(n > 0 for n in readings(twin, "waiting")) < 0.1 * len(readings(twin, "waiting"))


def waiting_time(truth):
    """By the engine's own count, after each step."""
    return spans.total([(r["begin"], r["end"]) for r in truth.rows("step") if r.get("waiting")])


def preemption(cause):
    near(len(cause.window.of("py.field", field=READ["preempted"])), preemptions(cause.truth), "preemptions")
    assert preemptions(cause.truth) > 2 * cause.truth.length / 1e9


def preemptions(truth):
    return sum(r["preempted"] for r in truth.rows("step"))


def no_preemption(twin, cause):
    assert not twin.window.of("py.field", field=READ["preempted"]) and not preemptions(twin.truth)


# ---- a quota ----

def quota(side, engine):
    return cgroup.limited(side, engine.roles()["core"], 12000)


def waited_for_cpu(recording):
    mine = slept(recording, recording.truth.thread("dispatch").tid)
    return sum(r.get("runnable_ns", 0) for r in mine)


def throttled(cause):
    # How much of it meets this thread, not another of the process for which it waits, is chance: 17 to 44 % were seen.
    assert waited_for_cpu(cause) > 0.1 * cause.truth.length
    assert starved(cause.truth) > 0.2 * cause.truth.length


def not_throttled(twin, cause):
    assert waited_for_cpu(twin) < 0.05 * twin.truth.length
    assert starved(twin.truth) < 0.1 * twin.truth.length


def starved(truth):
    """Without the quota the device has always something to do."""
    return spans.total(truth.starved())


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


# ---- a slow rank ----

def slow_rank(cause):
    truth = cause.truth
    planted = truth.spans("cause")
    assert len(planted) > 10 * truth.length / 1e9
    samples_fill(cause, truth.thread("rank-1").tid, "look_at_the_batch", sum(r["cpu"] for r in truth.rows("cause") if r["whole"]))
    assert slow_rank_exposed(truth) > 0.1 * truth.length


def even_ranks(twin, cause):
    assert not twin.truth.spans("cause")
    assert spans.total(twin.truth.starved()) < 0.2 * twin.truth.length
