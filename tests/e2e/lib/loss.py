# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which loss may have cost a record, and which is of no concern to a test that counts records: said here and nowhere else, after
the table of docs/guide.md."""
import collections

# What is missing are records.
RECORDS = {"ring_full", "late", "unfinished", "missed", "nesting", "no_storage", "disk", "damaged", "unknown_type", "import_odd",
           "import_cut"}
# What is missing are words, names or stacks of records that are there. A test of those looks at the record itself.
PARTS = {"stack_full", "stack_unreadable", "args_unreadable", "tasks", "python_truncated", "python_unreadable", "python_unresolved",
         "python_moved", "python_tasks", "python_functions", "python_replaced"}
# Mapping events are those of the whole machine, of whoever loads libraries there; where some were lost the maps of the targets
# are read instead. What that costs is `late`.
MACHINE = {"mmap_lost"}
# A cause of one type's records alone.
OWN = {"python_exceptions": "py.exception"}
# What a window must not lack where every Python stack is compared with the program's own.
STACKS = ("python_truncated", "python_unreadable", "python_unresolved", "stack_full")


def records(window, of=None):
    """Loss that may have cost a record of this type (None: of any), by cause: Counter. Ticks that did not come are no records:
    they are what the machine makes them."""
    out = collections.Counter()
    for r in window.loss["rows"]:
        kind = r.get("of") or OWN.get(r["cause"])
        if r["cause"] in PARTS | MACHINE or (of and (kind or of) != of):
            continue
        if r["cause"] == "missed" and kind == "sample" and of != "sample":
            continue
        out[r["cause"]] += r["count"]
    return out
