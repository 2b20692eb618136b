# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A profiler's trace, counted by a reader that has nothing in common with the importer: all of it in memory, times as
decimal numbers, thousandths of a microsecond made integers at the end."""
import collections
import decimal
import gzip
import json

DEVICE = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset", "cuda_sync": "sync"}
CALLS = ("cuda_runtime", "cuda_driver")


def ns(value):
    return int(decimal.Decimal(value) * 1000)


class Trace:
    def __init__(self, path):
        with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
            self.json = json.load(f, parse_float=decimal.Decimal, parse_int=decimal.Decimal)
        self.rows = [r for r in self.json["traceEvents"] if r.get("ph") == "X" and r.get("cat") != "Trace"]
        self.start = min(ns(r["ts"]) for r in self.rows)
        self.end = max(ns(r["ts"]) + ns(r["dur"]) for r in self.rows)

    def of(self, *cats):
        return [r for r in self.rows if r["cat"] in cats]

    def spans(self, *cats):
        """Name, begin since the first row, length: Counter."""
        return collections.Counter((r["name"], ns(r["ts"]) - self.start, ns(r["dur"])) for r in self.of(*cats))

    def calls(self):
        """Begin, length, correlation of the calls of both layers: Counter."""
        return collections.Counter((ns(r["ts"]) - self.start, ns(r["dur"]), int(r["args"]["correlation"])) for r in self.of(*CALLS))

    def device(self):
        """Kind, name, begin, length, stream, correlation: Counter."""
        return collections.Counter((DEVICE[r["cat"]], r["name"], ns(r["ts"]) - self.start, ns(r["dur"]),
                                    int(r["args"]["stream"]), int(r["args"]["correlation"])) for r in self.of(*DEVICE))

    def linked(self):
        """Pieces of work (no syncs) whose correlation a call of the trace has."""
        calls = {int(r["args"]["correlation"]) for r in self.of(*CALLS)}
        return sum(int(r["args"]["correlation"]) in calls for r in self.of("kernel", "gpu_memcpy", "gpu_memset"))
