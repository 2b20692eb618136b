# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the processes of a scenario say themselves: their own notes (work/planted.py), and the simulated device's log.

Times are nanoseconds since the window's begin, and only what lies within the window counts."""
import bisect
import collections
import glob
import json
import os
import sys

from lib import paths

from . import spans

sys.path.insert(0, paths.source("tests", "sim"))
import truth as device_log  # noqa: E402

Thread = collections.namedtuple("Thread", "pid tid")
MARGIN = 10**9  # no operation of a device takes longer


class Truth:
    def __init__(self, notes, device, window):
        """notes: folders of what the processes wrote; device: that of the simulated device's log."""
        self.start = window.head["start_ns"]
        self.length = window.head["end_ns"] - self.start
        self._rows = []
        for path in [p for folder in notes for p in glob.glob(os.path.join(folder, "*.jsonl"))]:
            with open(path, encoding="utf-8") as f:
                self._rows += [json.loads(line) for line in f]
        assert self._rows, f"no process left its truth in {notes}"
        self.device = device_log.read(device) if glob.glob(os.path.join(device, "*.truth")) else None
        if self.device:  # of an engine that lives longer than its window the part that matters
            self.device = self.device.between(self.start - MARGIN, window.head["end_ns"])

    def thread(self, role):
        """The thread that named itself so."""
        (row,) = [r for r in self._rows if r.get("thread") == role]
        return Thread(row["pid"], row["tid"])

    def threads(self, prefix):
        """{tid} of those whose role begins so."""
        return {r["tid"] for r in self._rows if r.get("thread", "").startswith(prefix)}

    def rows(self, kind):
        """Notes of a kind of which some part is in the window, with `begin` and `end` cut to it."""
        out = []
        for r in self._rows:
            if r.get("span") == kind:
                a, b = max(0, r["begin"] - self.start), min(self.length, r["end"] - self.start)
                if a < b:
                    out.append(dict(r, begin=a, end=b, whole=b - a == r["end"] - r["begin"]))
        return sorted(out, key=lambda r: r["begin"])

    def spans(self, kind, **fields):
        return [(r["begin"], r["end"]) for r in self.rows(kind) if all(r.get(k) == v for k, v in fields.items())]

    def after_calls(self, kind):
        """Of spans of that kind, each around calls of the accelerator: from the end of each call to what the thread does next.
        In Python, it takes the GIL again then."""
        calls = sorted((c.tid, c.enter - self.start, c.exit - self.start) for c in self.device.calls(depth=0) if c.exit)
        out = []
        for r in self.rows(kind):
            i = bisect.bisect(calls, (r["tid"], r["begin"]))
            while i < len(calls) and calls[i][0] == r["tid"] and calls[i][2] < r["end"]:
                follows = calls[i + 1][1] if i + 1 < len(calls) and calls[i + 1][0] == r["tid"] else r["end"]
                out.append((calls[i][2], min(follows, r["end"])))
                i += 1
        return out

    def launches(self):
        """Calls within the window that made the device run a kernel: through the driver, where all arrive."""
        return [c for c in self.device.calls(layer="driver") if c.function.startswith("cuLaunchKernel") and
                self.start <= c.enter < self.start + self.length]

    def starved(self, least=20_000):
        """Stretches of some length, in which the device had nothing to do."""
        return [(a, b) for a, b in spans.without([(0, self.length)], self.busy()) if b - a >= least]

    def busy(self, device=0, kinds=("kernel", "h2d", "d2h", "d2d", "memset", "collective")):
        """When the device worked. Of a million operations: no object for each."""
        numbers = {n for n, kind in device_log.KINDS.items() if kind in kinds}
        work = [(row[0] - self.start, row[1] - self.start) for _, row in self.device._device(False)
                if row[8] in numbers and row[12] == device]
        return spans.common(work, [(0, self.length)])

    def exposed(self, kind="cause", device=0):
        """Stretches of that kind, or of a list, in which the device had nothing to do."""
        return spans.without(self.spans(kind) if isinstance(kind, str) else kind, self.busy(device))
