# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What is asked of records and of findings."""
import re

from . import spans

TOLERANCE = 0.15
PERIOD_NS = 10**9 // 99  # of CPU samples


def near(seen, true, what, tolerance=TOLERANCE):
    assert true > 0, f"{what}: nothing of it was planted in the window"
    assert abs(seen - true) <= tolerance * true, f"{what}: the window shows {seen:,}, the truth is {true:,}"


def slept(recording, tid, **fields):
    """Sleeps of a thread: records."""
    return recording.window.of("offcpu", tid=tid, **fields)


def unseen(recording, kind="cause"):
    """Most that a sleep or two may have been for which the kernel ran no hook. The window counts such; more are too many."""
    missed = sum(r["count"] for r in recording.window.loss["rows"] if (r["cause"], r.get("of")) == ("missed", "offcpu"))
    return min(missed, 2) * max((b - a for a, b in recording.truth.spans(kind)), default=0)


def sleeps_fill(recording, role, kind, **fields):
    """The thread's sleeps (of these fields) are as long as its own spans of that kind say; returns them."""
    truth = recording.truth
    mine = slept(recording, truth.thread(role).tid, **fields)
    planted = truth.spans(kind)
    inside = spans.common(spans.of(mine), planted)
    seen, true = spans.total(inside), spans.total(planted)
    near(min(true, seen + unseen(recording, kind)) if seen < true else seen, true, f"sleeps of {role} within its spans '{kind}'")
    return spans.beginning_in(mine, planted)


def woken_by(recording, records, role):
    """Most of the time of these sleeps was ended by that thread."""
    tid = recording.truth.thread(role).tid
    whole = [r for r in records if not r.get("open")]
    named = sum(r["dur"] for r in whole if (r.get("waker") or {}).get("tid") == tid)
    assert whole and named >= 0.9 * sum(r["dur"] for r in whole), (role, tid, [r.get("waker") for r in whole])


def stacks_name(records, function):
    """Most of the time of these records was spent under a Python function of that name."""
    weigh = lambda r: r.get("dur") or r.get("weight_ns") or 1
    named = sum(weigh(r) for r in records if any(f["f"].split(".")[-1] == function for f in r.get("stack", ())))
    assert records and named >= 0.9 * sum(map(weigh, records)), (function, [r.get("stack") for r in records[:3]])


def samples_fill(recording, tid, function, true):
    """CPU samples of a thread under a Python function are as long as that. On virtual machines ticks are missed."""
    mine = [r for r in recording.window.of("sample", tid=tid)
            if any(f["f"].split(".")[-1] == function for f in r.get("stack", ()))]
    seen = sum(r["weight_ns"] for r in mine)
    missed = sum(r["count"] for r in recording.window.loss["rows"] if (r["cause"], r.get("of")) == ("missed", "sample"))
    low, high = (1 - TOLERANCE) * true, (1 + TOLERANCE) * true
    assert seen <= high and seen + missed * PERIOD_NS >= low, \
        f"samples in {function}: {seen:,} ns, {missed} ticks missed; the truth is {true:,}"
    assert seen > 0.3 * true


def hidden(recording, kind="cause"):
    """What was planted cost the device nothing: at most 1 % of the window."""
    truth = recording.truth
    cost = spans.total(truth.exposed(kind))
    assert cost <= 0.01 * truth.length, f"{cost:,} ns of {truth.length:,} were exposed"


# ---- findings: fields of docs/analyze-json.md ----

def amount(finding, judge):
    """(least, most, what is said first): exposed time is a range where the device's activity was not recorded."""
    if judge == "exposed" and "exposed_ns" not in finding:
        return finding["exposed_min_ns"], finding["exposed_max_ns"], finding["exposed_likely_ns"]
    value = finding["exposed_ns" if judge == "exposed" else judge]
    return value, value, value


def numbers(value):
    """All numbers somewhere in a JSON value."""
    if isinstance(value, dict):
        return {n for v in value.values() for n in numbers(v)}
    if isinstance(value, list):
        return {n for v in value for n in numbers(v)}
    return {value} if isinstance(value, int) and not isinstance(value, bool) else set()


def named_first(recording, scenario):
    """The right cause comes first, with what it cost, and with who is to blame."""
    found = recording.analysis()["findings"]
    ids = [f["id"] for f in found]
    assert ids, f"no finding, expected {scenario.patterns}"
    assert ids[0] in scenario.patterns, f"expected {scenario.patterns} first, got {ids}"
    low, high, likely = amount(found[0], scenario.judge)
    least, most = scenario.true_amount(recording.truth)
    if scenario.judge == "exposed":
        least = max(0, least - unseen(recording))
    assert low <= most * (1 + TOLERANCE) and high >= least * (1 - TOLERANCE) and \
        least * (1 - TOLERANCE) <= likely <= most * (1 + TOLERANCE), \
        f"{ids[0]}: {scenario.judge} {likely:,} ({low:,} to {high:,}), the truth is {least:,} to {most:,}"
    tids = {tid for role in scenario.blamed for tid in recording.truth.threads(role)}
    said = numbers([found[0].get(k) for k in ("thread", "waker", "instances")])
    assert not scenario.blamed or tids & said, f"{ids[0]}: none of {scenario.blamed} ({tids}) is named: {found[0]}"
    chain = found[0].get("chain", "")
    assert re.search(".*".join(map(re.escape, scenario.chain)), chain), f"{ids[0]}: {scenario.chain} is not in '{chain}'"


def silent(recording):
    found = recording.analysis()["findings"]
    assert not found, "findings in the healthy twin:\n" + "\n".join(f"{f['id']} {f['title']}" for f in found)
