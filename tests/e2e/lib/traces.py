# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reference traces of other people's profilers, and what they say when counted by hand, in whole nanoseconds.

Nothing here is shared with the program: a sweep over moments, where the program adds up intervals.
"""
import collections
import csv
import decimal
import glob
import gzip
import json
import os

import pytest

from . import paths

FOLDER = os.environ.get("HB_TRACES") or os.path.join(paths.ROOT, "..", "shared", "traces")


def find(name):
    """Path of a trace by its id (T1); skips where the traces are not."""
    found = glob.glob(os.path.join(FOLDER, name + "-*.json.gz"))
    if not found:
        pytest.skip(f"the reference traces are not in {FOLDER} (HB_TRACES names another folder)")
    return found[0]


def table(name):
    """Rows of a reference result, T1-gpu_timeline.csv, as dictionaries; None where there is none."""
    path = os.path.join(FOLDER, name + ".csv")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8", newline="") as f:
        return list(csv.DictReader(f))


def ns(us):
    """Microseconds with three decimals, exactly."""
    value = decimal.Decimal(us) * 1000
    assert value == int(value), us
    return int(value)


Op = collections.namedtuple("Op", "begin end cat name correlation device stream bytes")
Call = collections.namedtuple("Call", "begin end name")


class Trace:
    """Device operations and host calls of a trace."""

    def __init__(self, path):
        with gzip.open(path, "rt", encoding="utf-8") as f:
            events = json.load(f, parse_float=decimal.Decimal)["traceEvents"]
        self.calls, self.ops = {}, []
        for e in events:
            args, cat = e.get("args") or {}, e.get("cat")
            if cat in ("cuda_runtime", "cuda_driver") and "correlation" in args:
                self.calls[args["correlation"]] = Call(ns(e["ts"]), ns(e["ts"] + e["dur"]), e["name"])
            if cat in ("kernel", "gpu_memcpy", "gpu_memset"):
                self.ops.append(Op(ns(e["ts"]), ns(e["ts"] + e["dur"]), cat, e["name"], args.get("correlation"),
                                   args["device"], args["stream"], args.get("bytes", 0)))
        self.ops.sort(key=lambda o: o.begin)

    def linked(self):
        return [o for o in self.ops if o.correlation in self.calls]


def timeline(ops):
    """What a device did, asked at each moment where something begins or ends."""
    changes = collections.defaultdict(lambda: [0, 0])
    for o in ops:
        copy = o.cat == "gpu_memcpy"
        changes[o.begin][copy] += 1
        changes[o.end][copy] -= 1
    moments, running, out = sorted(changes), [0, 0], collections.Counter()
    for now, then in zip(moments, moments[1:]):
        running = [r + c for r, c in zip(running, changes[now])]
        work, copy = running[0] > 0, running[1] > 0
        out["compute_ns"] += (then - now) * work
        out["memcpy_ns"] += (then - now) * copy
        out["exposed_memcpy_ns"] += (then - now) * (copy and not work)
        out["busy_ns"] += (then - now) * (copy or work)
        out["idle_ns"] += (then - now) * (not copy and not work)
    out["span_ns"] = moments[-1] - moments[0]
    return out


def gaps(ops, calls):
    """(begin, end, begin of the call that launched what ended it or None) of each."""
    end, out = ops[0].begin, []
    for o in ops:
        if o.begin > end:
            call = calls.get(o.correlation)
            out.append((end, o.begin, call.begin if call else None))
        end = max(end, o.end)
    return out


def kernels(ops):
    """Durations of kernels by name."""
    out = collections.defaultdict(list)
    for o in ops:
        if o.cat == "kernel":
            out[o.name].append(o.end - o.begin)
    return out
