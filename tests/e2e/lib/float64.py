# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a device did, reckoned the way TraceLens reckons: in microseconds, as float64, from the times as a trace has them.

A reference table is off from the truth by this arithmetic alone: the reference traces have times of 1.4 to 6.5 10^12 us,
where two neighbouring float64 are 0.24 to 0.98 ns apart. An operation's begin and its end (begin + duration) are rounded
to that, and each stretch of the union hands both on to the sum. So the same intervals, taken from our window, must give
that table to its last digit. Were an interval of the window another one, or the rules others, they would not.
"""
import bisect


def union(spans):
    """Joined, in order of begin; what touches is one."""
    out = []
    for begin, end in sorted(spans):
        if out and begin <= out[-1][1]:
            out[-1][1] = max(out[-1][1], end)
        else:
            out.append([begin, end])
    return out


def without(spans, taken):
    """Of joined spans what lies in none of the joined `taken`."""
    out, ends = [], [t[1] for t in taken]
    for begin, end in spans:
        at = begin
        for lo, hi in taken[bisect.bisect_right(ends, begin):]:
            if lo >= end:
                break
            if lo > at:
                out.append([at, lo])
            at = max(at, hi)
        if at < end:
            out.append([at, end])
    return out


def total(spans):
    """Stretch by stretch, from the first on: the order is part of what is compared."""
    out = 0.0
    for begin, end in spans:
        out += end - begin
    return out


def timeline(rows, start):
    """{row of the table: ms} of device records (as in ndjson), of which none is a collective; `start` is that of the
    window, ns. Dividing whole ns by 1000 gives the float64 that reading the trace's decimals gives: both are the nearest
    to the same number."""
    kinds = {True: [], False: []}
    for r in rows:
        begin = (start + r["ts"]) / 1000
        kinds[r["kind"] == "memcpy"].append((begin, begin + r["dur"] / 1000))
    work, copies, both = (union(k) for k in (kinds[False], kinds[True], kinds[False] + kinds[True]))
    span, busy = both[-1][1] - both[0][0], total(both)
    us = {"computation_time": total(work), "exposed_comm_time": 0.0, "exposed_memcpy_time": total(without(copies, work)),
          "busy_time": busy, "idle_time": span - busy, "total_time": span, "total_comm_time": 0.0,
          "total_memcpy_time": total(copies)}
    return {name: value / 1000 for name, value in us.items()}
