# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Stretches of time, as lists of (begin, end)."""
import bisect


def union(spans):
    """In order, without overlap."""
    out = []
    for a, b in sorted(spans):
        if out and a <= out[-1][1]:
            out[-1] = (out[-1][0], max(b, out[-1][1]))
        elif b > a:
            out.append((a, b))
    return out


def total(spans):
    return sum(b - a for a, b in union(spans))


def common(left, right):
    """What is in both."""
    left, right, out, i, j = union(left), union(right), [], 0, 0
    while i < len(left) and j < len(right):
        a, b = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if a < b:
            out.append((a, b))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return out


def without(left, right):
    """What is in the first only."""
    left = union(left)
    if not left:
        return []
    edges, gaps = left[0][0], []
    for a, b in union(right):
        gaps.append((edges, max(edges, a)))
        edges = max(edges, b)
    gaps.append((edges, max(edges, left[-1][1])))
    return common(left, gaps)


def beginning_in(records, where):
    """Records that begin in one of the stretches."""
    where = union(where)
    begins, out = [a for a, _ in where], []
    for r in records:
        i = bisect.bisect(begins, r["ts"]) - 1
        if i >= 0 and r["ts"] < where[i][1]:
            out.append(r)
    return out


def of(records):
    """Of the window's records that have a duration."""
    return [(r["ts"], r["ts"] + r["dur"]) for r in records if r.get("dur")]
