# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the window of each scenario must show of its cause, by the truth of its processes; and that its twin lacks just that."""
import bisect
import collections

from . import spans
from .expect import hidden, near, samples_fill, sleeps_fill, slept, stacks_name, woken_by

MS = 1_000_000


def exposed_share(recording, kind="cause"):
    return spans.total(recording.truth.exposed(kind)) / recording.truth.length


# ---- a KV service behind a synchronous call ----

def kv_service(cause):
    waits = sleeps_fill(cause, "dispatch", "cause", chan_kind="unix", syscall="recvfrom")
    woken_by(cause, waits, "kv-server")
    stacks_name(waits, "allocate")
    locked = sleeps_fill(cause, "kv-server", "lock", chan_kind="futex")
    woken_by(cause, locked, "kv-evictor")
    # Each call has one step of 30 ms queued.
    rpcs = cause.truth.spans("cause")
    near(spans.total(cause.truth.exposed()), spans.total(rpcs) - len(rpcs) * 30 * MS, "exposed time")


def kv_service_queued(twin, cause):
    sleeps_fill(twin, "dispatch", "cause", chan_kind="unix", syscall="recvfrom")
    hidden(twin)


# ---- a thread that keeps the GIL ----

def gil_waits(recording, role):
    tid = recording.truth.thread(role).tid
    return [r for r in recording.window.of("py.gil", tid=tid) if not r.get("handover")]


def long_waits(truth):
    """Taking the GIL again takes a microsecond when it is free."""
    return [(a, b) for a, b in truth.after_calls("call") if b - a > MS // 2]


def gil(cause):
    truth = cause.truth
    waits, planted = gil_waits(cause, "dispatch"), long_waits(truth)
    near(spans.total(spans.common(spans.of(waits), planted)), spans.total(planted), "waits for the GIL")
    by_holder = collections.Counter()
    for r in waits:
        by_holder[r.get("holder_tid")] += r["dur"]
    assert by_holder[truth.thread("metrics").tid] >= 0.9 * sum(by_holder.values()), by_holder
    frames = collections.Counter(f["f"] for r in waits for f in r.get("holder_stack", ()))
    assert frames["render_metrics"], frames
    assert exposed_share(cause, planted) > 0.05


def gil_exposed(truth):
    return spans.total(truth.exposed(long_waits(truth)))


def gil_released(twin, cause):
    assert spans.total(twin.truth.spans("hold")) > 0.2 * twin.truth.length, "it does call the function"
    hidden(twin, long_waits(twin.truth))


# ---- threads in a row at one lock ----

def convoy(cause):
    truth = cause.truth
    (address,) = {r["value"] for r in truth.rows("cause")}
    waits = sleeps_fill(cause, "dispatch", "cause", chan_kind="futex")
    at_lock = sum(r["dur"] for r in waits if hex(address) in r["chan"])
    assert at_lock >= 0.9 * sum(r["dur"] for r in waits), (hex(address), waits[0])
    owners = truth.threads("worker-")
    named = [r for r in waits if (r.get("waker") or {}).get("tid") in owners]
    assert len(named) >= 0.9 * len(waits)
    holds = sorted(b - a for a, b in truth.spans("hold"))
    asked = sorted(b - a for a, b in truth.spans("cause"))
    assert asked[len(asked) // 2] > 2 * holds[len(holds) // 2], "it waits for more than one owner"


def convoy_sharded(twin, cause):
    hidden(twin)


# ---- a pool whose threads park and wake for each task ----

def parks(recording):
    """(sleeps of the pool's threads in the window during the rounds, what they say themselves)"""
    truth = recording.truth
    rounds = [r for r in truth.rows("cause") if r["whole"]]
    inside = spans.union([(r["begin"], r["end"]) for r in rounds])
    tids = truth.threads("pool-")
    seen = [r for r in recording.window.of("offcpu", chan_kind="futex") if r["tid"] in tids]
    ends = [(r["ts"] + r["dur"], r["ts"] + r["dur"] + 1) for r in seen]
    return spans.total(spans.common(ends, inside)), sum(r["value"] for r in rounds)


def pool(cause):
    seen, true = parks(cause)
    # A thread may sleep at the lock too, when it is woken while another has it: never less than it parks.
    assert seen >= 0.85 * true, (seen, true)
    assert true / (cause.truth.length / 1e9) > 5000, "parks a second"
    waits = slept(cause, cause.truth.thread("dispatch").tid, chan_kind="futex")
    wakers = {(r.get("waker") or {}).get("tid") for r in waits}
    assert wakers & cause.truth.threads("pool-")


def pool_batched(twin, cause):
    assert parks(twin)[1] < 0.1 * parks(cause)[1]


# ---- exceptions as a way of saying no ----

def exceptions(cause):
    raised = sum(r["raised"] for r in cause.truth.rows("cause") if r["whole"])
    seen = [r for r in cause.window.of("py.exception") if r["exception"] == "NotCached"]
    near(sum(r["count"] for r in seen), raised, "exceptions", 0.02)
    assert {r["function"].split(".")[-1] for r in seen} == {"find"}
    assert exposed_share(cause) > 0.05


def exceptions_exposed(truth):
    """The device has nothing to do while the cache is asked."""
    return sum(r["spent"] for r in truth.rows("cause") if r["whole"])


def exceptions_asked(twin, cause):
    assert not [r for r in twin.window.of("py.exception") if r["exception"] == "NotCached"]


# ---- a number that is read back within a step ----

def calls(recording, name, kind):
    """Calls of the dispatching thread that began within its spans of that kind."""
    truth, tid = recording.truth, recording.truth.thread("dispatch").tid
    return spans.beginning_in(recording.window.of("accel", name=name, tid=tid), truth.spans(kind))


def readback(cause):
    truth = cause.truth
    waits = calls(cause, "cudaStreamSynchronize", "wait")
    near(len(waits), len(truth.spans("wait")), "read-backs", 0.02)
    near(sum(r["dur"] for r in waits), spans.total(truth.spans("wait")), "time in them")
    stacks_name(waits, "item")
    copies = calls(cause, "cudaMemcpyAsync", "wait")
    assert {(r["bytes"], r["kind"]) for r in copies} == {(8, "DtoH")}
    assert exposed_share(cause) > 0.15


def readback_later(twin, cause):
    assert not twin.truth.spans("wait")
    assert spans.total(twin.truth.starved()) < 0.1 * twin.truth.length


# ---- a copy to memory that is not pinned ----

def pageable(cause):
    copies = calls(cause, "cudaMemcpyAsync", "cause")
    near(sum(r["dur"] for r in copies), spans.total(cause.truth.spans("cause")), "time in the copies")
    assert {(r["bytes"], r["kind"]) for r in copies} == {(256 << 10, "DtoH")}
    assert without_kernels(cause.truth) > 0.15 * cause.truth.length
    stacks_name(copies, "snapshot")


def without_kernels(truth):
    """While the copies blocked, no kernel ran."""
    return spans.total(spans.without(truth.spans("cause"), truth.busy(kinds=("kernel",))))


def pageable_pinned(twin, cause):
    assert without_kernels(twin.truth) < 0.01 * twin.truth.length
    copies = calls(twin, "cudaMemcpyAsync", "cause")
    assert copies and sorted(r["dur"] for r in copies)[len(copies) // 2] < MS


# ---- launches one by one, and graphs ----

def launched(recording, name):
    return len(calls(recording, name, "step"))


def storm(cause):
    near(launched(cause, "cuLaunchKernel"), len(cause.truth.rows("step")) * 600, "launches", 0.02)
    assert not cause.window.of("accel", name="cuGraphLaunch")
    assert exposed_share(cause) > 0.15


def storm_graphs(twin, cause):
    assert launched(twin, "cuGraphLaunch") > 100
    assert spans.total(twin.truth.starved()) < 0.15 * twin.truth.length


def graph_miss(cause):
    steps, eager = len(cause.truth.rows("step")), len(cause.truth.rows("cause"))
    near(launched(cause, "cuGraphLaunch"), steps - eager, "steps with a graph", 0.05)
    near(launched(cause, "cuLaunchKernel"), eager * 600, "launches without", 0.05)


# ---- a journal on the way to the device ----

def fsync(cause):
    waits = [r for r in slept(cause, cause.truth.thread("dispatch").tid, syscall="fsync")]
    rows = cause.truth.rows("cause")
    slept_ns, wall, cpu = sum(r["dur"] for r in waits), sum(r["end"] - r["begin"] for r in rows), sum(r["cpu"] for r in rows)
    assert 0.85 * (wall - cpu) <= slept_ns <= 1.02 * wall, (slept_ns, wall, cpu)
    stacks_name([r for r in waits if r["dur"] >= 100_000], "append")
    assert all("journal.log" in str(r.get("args", "")) + str(r.get("chan", "")) for r in waits[:10]), waits[0]
    assert exposed_share(cause) > 0.05


def fsync_exposed(truth):
    """The calls' time blocked, to all of it: what they compute shows in CPU samples only, unless all calls are recorded."""
    exposed = spans.total(truth.exposed())
    return exposed - sum(r["cpu"] for r in truth.rows("cause")), exposed


def fsync_aside(twin, cause):
    truth = twin.truth
    assert truth.spans("aside") and not truth.spans("cause")
    assert not slept(twin, truth.thread("dispatch").tid, syscall="fsync")


# ---- waiting for a CPU ----

def waited_for_cpu(recording):
    """(what the window shows, what the kernel counted for the thread) over the steps that are whole."""
    truth = recording.truth
    steps = [r for r in truth.rows("step") if r["whole"]]
    lo, hi = steps[0]["begin"], steps[-1]["end"]
    mine = [r for r in slept(recording, truth.thread("dispatch").tid) if lo <= r["ts"] + r["dur"] <= hi]
    return sum(r.get("runnable_ns", 0) for r in mine), sum(r["value"] for r in steps)


def run_queue(cause):
    seen, true = waited_for_cpu(cause)
    near(seen, true, "time ready to run but not running")
    assert true > 0.1 * cause.truth.length
    instead = collections.Counter()
    for r in slept(cause, cause.truth.thread("dispatch").tid):
        instead[r.get("ran", {}).get("comm")] += r.get("runnable_ns", 0)
    assert instead["batch-job"] >= 0.8 * sum(instead.values()), instead


def run_queue_apart(twin, cause):
    assert waited_for_cpu(twin)[1] < 0.02 * twin.truth.length


def delay_exposed(truth):
    """What the wait for a CPU cost the device: of each step the part in which it had nothing to do, or the wait, if less."""
    busy, cost = truth.busy(), 0
    for r in truth.rows("step"):
        cost += min(r["value"], spans.total(spans.without([(r["begin"], r["end"])], busy)))
    return cost


def throttled(cause):
    seen, true = waited_for_cpu(cause)
    near(seen, true, "time ready to run but not running")
    assert true > 0.3 * cause.truth.length


def not_throttled(twin, cause):
    assert waited_for_cpu(twin)[1] < 0.1 * twin.truth.length


def cpu_time(truth):
    return sum(r["cpu"] for r in truth.rows("cause") if r["whole"])


# ---- an event loop that is held ----

def tokenizer(cause):
    truth, loop = cause.truth, cause.truth.thread("event-loop").tid
    samples_fill(cause, loop, "tokenize", cpu_time(truth))
    lags = sorted(b - a for a, b in truth.spans("lag"))
    assert lags[len(lags) * 9 // 10] > 40 * MS
    assert exposed_share(cause) > 0.3


def tokenizer_short(twin, cause):
    hidden(twin)
    assert spans.total(twin.truth.busy()) > 0.8 * twin.truth.length


# ---- two ranks ----

def asked_for(recording, rank):
    """{number of the step: when that rank asked for its first collective}"""
    steps = {r["number"]: (r["begin"], r["end"]) for r in recording.truth.rows("step") if r["rank"] == rank and r["whole"]}
    tid = recording.truth.thread(f"rank-{rank}").tid
    asked = sorted(r["ts"] for r in recording.window.of("accel", name="ncclAllReduce", tid=tid))
    return {n: asked[bisect.bisect(asked, a)] for n, (a, b) in steps.items()}


def late_launches(recording):
    """How much later rank 1 asks for the first collective of a step than rank 0: ns."""
    first, second = asked_for(recording, 0), asked_for(recording, 1)
    return [second[n] - first[n] for n in first if n in second]


def collector(cause):
    truth, rank = cause.truth, cause.truth.thread("rank-1")
    seen = [r for r in cause.window.of("py.gc", pid=rank.pid) if r["dur"] > MS]
    assert {(r["tid"], r["generation"]) for r in seen} == {(rank.tid, 2)}
    near(spans.total(spans.of(seen)), spans.total(truth.spans("cause", tid=rank.tid)), "collections of rank 1")
    assert spans.total(truth.exposed(truth.spans("cause", tid=rank.tid), device=1)) > 0.05 * truth.length


def collector_exposed(truth):
    return spans.total(truth.exposed(truth.spans("cause", tid=truth.thread("rank-1").tid), device=1))


def collector_frozen(twin, cause):
    truth = twin.truth
    assert truth.spans("cause"), "it does collect"
    assert spans.total(truth.spans("cause")) < 0.01 * truth.length


def slow_rank(cause):
    truth = cause.truth
    late = sorted(late_launches(cause))
    assert late and late[len(late) // 2] > 4 * MS, late[::50]
    samples_fill(cause, truth.thread("rank-1").tid, "prepare_inputs", cpu_time(truth))
    assert slow_rank_exposed(truth) > 0.1 * truth.length


def slow_rank_exposed(truth):
    """Of its own device: that of the other rank is in a collective, which looks busy."""
    return spans.total(truth.exposed(device=1))


def even_ranks(twin, cause):
    late = sorted(map(abs, late_launches(twin)))
    assert late[len(late) // 2] < 2 * MS
    assert spans.total(twin.truth.starved()) < 0.1 * twin.truth.length


# ---- what an engine's fields say ----

STATE = {"waiting": "waiting:len", "running": "running:len", "free": "free_blocks", "limit": "max_num_seqs",
         "blocks": "num_blocks", "preemptions": "num_preemptions"}
FIELDS = ("--py-hook", "eval_frame",
          *(x for path in STATE.values() for x in ("--field", f"*:EngineCore.step self.scheduler.{path}")))


def readings(recording, name):
    """[(when, value)] of one field."""
    asked = f"*:EngineCore.step self.scheduler.{STATE[name]}"
    mine = recording.window.of("py.field", field=asked)
    return sorted((r["ts"], r["value"]) for r in mine if "value" in r and not r.get("late"))


def fields_are_true(recording):
    """What was read in each step is what the engine noted as it began; returns its steps."""
    steps = recording.truth.rows("step")
    begins = [r["begin"] for r in steps]
    for name in ("waiting", "running", "free", "preemptions"):
        compared = 0
        for when, value in readings(recording, name):
            i = bisect.bisect(begins, when) - 1
            if i >= 0 and steps[i]["whole"]:
                assert steps[i][name] == value, (name, when, value, steps[i])
                compared += 1
        assert compared > 0.9 * len(steps), (name, compared, len(steps))
    return steps


def preemption(cause):
    fields_are_true(cause)
    counted = [value for _, value in readings(cause, "preemptions")]
    near(counted[-1] - counted[0], len(cause.truth.rows("preempt")), "preemptions")
    assert counted[-1] - counted[0] > 10 * cause.truth.length / 1e9


def preemptions(truth):
    return len(truth.rows("preempt"))


def no_preemption(twin, cause):
    fields_are_true(twin)
    assert not twin.truth.rows("preempt")


def small_batch(cause):
    steps = fields_are_true(cause)
    held = [r for r in steps if r["waiting"] and r["free"] > 500]
    assert len(held) > 0.9 * len(steps) and {value for _, value in readings(cause, "limit")} == {4}


def batch_for_all(twin, cause):
    held = [r for r in fields_are_true(twin) if r["waiting"] > 4]
    assert len(held) < 0.05 * len(twin.truth.rows("step")), "all but those of the first step are let in at once"


def waiting_time(truth):
    """Time in which requests waited though there was room for them."""
    return spans.total([(r["begin"], r["end"]) for r in truth.rows("step") if r["waiting"]])
