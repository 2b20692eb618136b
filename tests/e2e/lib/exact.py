# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Compares a window with the truth log call by call: every call of the window is there once, and nothing else is.

A probe fires before its function can write the truth log, so a call's entry as the tool sees it lies between the thread's
previous stamp in the log and the call's own. Within that (about a microsecond, except where the thread is preempted) a call
at the edge of the window may or may not belong to it; the comparison then looks whether it was recorded and demands that the
rest fits. A call belongs to the window it begins in; a timed one that has not ended at the window's end is no record but one
loss `unfinished`.
"""
import collections
import os
import re
import struct
import sys

from . import loss, paths

sys.path.insert(0, os.path.join(paths.ROOT, "tests", "sim"))
import truth  # noqa: E402,F401

LAUNCHES = {"cuLaunchKernel", "cuLaunchKernelEx", "cuLaunchCooperativeKernel", "cuGraphLaunch"}
# Calls of the workloads that have a duration, by layer; "instantiate" is taken where graph launches are.
DRIVER_INSTANTIATE = {"cuGraphInstantiateWithFlags", "cuGraphInstantiate", "cuGraphInstantiateWithParams"}
RUNTIME_TIMED = {"cudaMalloc", "cudaFree", "cudaHostAlloc", "cudaFreeHost", "cudaMemcpyAsync", "cudaMemsetAsync",
                 "cudaStreamSynchronize", "cudaEventSynchronize", "cudaDeviceSynchronize", "cudaStreamBeginCapture",
                 "cudaStreamEndCapture"}
RUNTIME_ENTRY = {"cudaEventRecord", "cudaEventRecordWithFlags"}
LIBRARY_TIMED = {"ncclAllReduce", "ncclAllGather", "ncclReduceScatter", "ncclGroupEnd", "ncclCommInitRank", "ncclCommDestroy"}
LIBRARY_ENTRY = {"ncclGroupStart"}

DRIVER_TIMED = {"cuMemAlloc", "cuMemFree", "cuMemHostAlloc", "cuMemFreeHost", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync",
                "cuMemcpyDtoDAsync", "cuMemcpyAsync", "cuMemsetD8Async", "cuStreamSynchronize", "cuEventSynchronize",
                "cuCtxSynchronize", "cuStreamBeginCapture", "cuStreamEndCapture"}
RUNTIME_LAUNCHES = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaLaunchCooperativeKernel", "cudaGraphLaunch"}
RUNTIME_INSTANTIATE = {"cudaGraphInstantiate", "cudaGraphInstantiateWithFlags", "cudaGraphInstantiateWithParams"}

# What --layers auto records where runtime and driver are mapped: {(layer, function): timed}
AUTO = {**{("driver", f): False for f in LAUNCHES}, **{("driver", f): True for f in DRIVER_INSTANTIATE},
        **{("runtime", f): True for f in RUNTIME_TIMED}, **{("runtime", f): False for f in RUNTIME_ENTRY},
        **{("library", f): True for f in LIBRARY_TIMED},
        **{("library", f): False for f in LIBRARY_ENTRY}}

RUNTIME = {**{("runtime", f): False for f in RUNTIME_LAUNCHES | RUNTIME_ENTRY},
           **{("runtime", f): True for f in RUNTIME_TIMED | RUNTIME_INSTANTIATE}}
DRIVER = {**{("driver", f): False for f in LAUNCHES}, **{("driver", f): True for f in DRIVER_TIMED | DRIVER_INSTANTIATE}}
BOTH = {**DRIVER, **{key: True for key in RUNTIME}, **{("runtime", f): False for f in RUNTIME_ENTRY}}


def base(name):
    """A symbol as outputs show it: without version suffix."""
    return re.sub(r"(_v\d+|_ptsz|_ptds|_spt)+$", "", name)


def lost(window, cause, of="accel"):
    """Loss of a cause that is about records of this type, or about no type in particular."""
    return sum(r["count"] for r in window.loss["rows"] if r["cause"] == cause and r.get("of", of) == of)


def losses(window):
    """Every loss that may have cost an accelerator call: {cause: count}."""
    return dict(loss.records(window, "accel"))


def calling(folder, calls=300):
    """True once the processes that log into this folder have made so many calls; a condition to wait for."""
    try:
        return len(truth.read(folder)) > calls
    except (ValueError, struct.error):
        return False  # a file that is just being made


def _stamped(log):
    """[(previous stamp of the thread, call, next stamp of the thread)] by thread; the log holds all calls, probed or not."""
    threads = collections.defaultdict(list)
    for c in log:
        threads[(c.pid, c.tid)].append(c)
    for key, calls in threads.items():
        stamps = sorted(s for c in calls for s in (c.enter, c.exit) if s)
        at = {s: i for i, s in enumerate(stamps)}
        rows = []
        for c in calls:
            i = at[c.enter]
            j = at.get(c.exit)
            rows.append((stamps[i - 1] if i else 0, c, stamps[j + 1] if j is not None and j + 1 < len(stamps) else 1 << 63))
        yield key, rows


class Comparison:
    """What came of it. `recorded` and `calls` are Counters by (pid, layer, function)."""

    def __init__(self):
        self.recorded, self.calls = collections.Counter(), collections.Counter()
        self.wrong = []  # sentences, at most some
        self.unfinished = [0, 0]  # at least, at most

    def say(self, text):
        if len(self.wrong) < 20:
            self.wrong.append(text)


def _one(out, call, timed, records, prev, after, window):
    """One call against the records of its thread that are not used yet. True when it was recorded."""
    lo, hi = window
    key = (call.layer, base(call.function))
    head = records[0] if records else None
    # Its record, if there is one, is the next: begin between the stamps around the entry.
    mine = head if head and (head["layer"], head["name"]) == key and prev <= head["begin"] <= call.enter else None
    end_in = not timed or (call.exit and after < hi)  # must be; exit < hi alone: may be
    end_out = timed and (not call.exit or call.exit >= hi)
    must = prev >= lo and call.enter < hi and end_in
    mustnt = call.enter < lo or prev >= hi or end_out
    if mine and mustnt:
        out.say(f"{call} was recorded, but is outside of the window")
    if must and not mine:
        out.say(f"{call} is missing; the thread's next record is {head}")
    if mine:
        if timed and (mine.get("dur") is None or mine["begin"] + mine["dur"] < call.exit or mine["ret"] != call.result):
            out.say(f"{call} was recorded as {mine}")
        if not timed and mine.get("dur") is not None:
            out.say(f"{call} has a duration")
        records.popleft()
        return True
    if timed:
        surely = prev >= lo and call.enter < hi and end_out
        maybe = prev < hi and call.enter >= lo and (not call.exit or after >= hi)
        out.unfinished[0] += surely
        out.unfinished[1] += maybe
    return False


def compare(window, log, probed=None, pids=None, since=None):
    """Matches all records of `pids` (default: all of the log) with the log, from the moment `since` on (default: the window's
    begin). `probed`: {(layer, function): timed}."""
    probed = AUTO if probed is None else probed
    start, hi = window.head["start_ns"], window.head["end_ns"]
    lo = since or start
    out = Comparison()
    by_thread = collections.defaultdict(list)
    for r in window.of("accel"):
        if (pids is None or r["pid"] in pids) and r["ts"] + start >= lo:
            by_thread[(r["pid"], r["tid"])].append(dict(r, begin=r["ts"] + start))
            out.recorded[(r["pid"], r["layer"], r["name"])] += 1
    for thread, rows in _stamped(log if pids is None else log.pid(*pids)):
        records = collections.deque(sorted(by_thread.pop(thread, []), key=lambda r: r["begin"]))
        for prev, call, after in rows:
            key = (call.layer, base(call.function))
            if key in probed and _one(out, call, probed[key], records, prev, after, (lo, hi)):
                out.calls[(call.pid, *key)] += 1
        for r in records:
            out.say(f"a record without a call: {r}")
    for thread, records in by_thread.items():
        out.say(f"thread {thread} recorded {len(records)} calls but is not in the truth log")
    assert log.dropped == 0
    return out


def assert_exact(window, log, probed=None, pids=None, compilers=False):
    """Every call in the window was recorded, once, with its result, and nothing was lost but the calls in flight at its
    end. Returns the Comparison. `compilers`: the target starts some when it likes; each that is gone before it could be
    looked at is a stretch of cause late, whatever it called."""
    out = compare(window, log, probed, pids)
    assert not out.wrong, "\n".join(out.wrong)
    assert out.recorded == out.calls
    lacks = losses(window)
    unfinished = lacks.pop("unfinished", 0)
    if compilers:
        lacks.pop("late", 0)
    assert out.unfinished[0] <= unfinished <= out.unfinished[1], (unfinished, out.unfinished)
    assert not lacks, lacks
    return out


def in_window(window, log, probed=None):
    """Calls of the log that certainly began in the window, by (layer, function)."""
    probed = AUTO if probed is None else probed
    t0, t1 = window.head["start_ns"], window.head["end_ns"]
    out = collections.Counter()
    for c in log.between(t0, t1):
        if (c.layer, base(c.function)) in probed:
            out[(c.layer, base(c.function))] += 1
    return out
