# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a window of an engine on the simulated accelerator must hold, from its truth log."""
import bisect
import collections
import json

from lib import exact

RUNTIME, DRIVER, LIBRARY = "runtime", "driver", "library"

# Stubs (functions that the simulated libraries only count) that engines may call, and why that is no gap that matters:
# the caller takes "not supported" for an answer, on real machines too.
HARMLESS = {
    "cuLogsRegisterCallback": "CUDA 13's PyTorch asks to be told of errors in words; codes come anyway",
    "nvmlSystemGetConfComputeSettings": "SGLang asks whether memory is encrypted, and takes no for an answer",
}


def auto(tool):
    """{(layer, function): timed} of --layers auto where the process has CUDA's driver and runtime: launches and graphs at the
    driver, everything else at the runtime, libraries as they are; from the built-in tables."""
    rows = [r for r in json.loads(tool.run("probes", "list", "--json", code=0).out)
            if r["api"] in ("cuda-driver", "cuda-runtime", "nccl")]
    out = {}
    for r in rows:
        at = LIBRARY if r["layer"] == LIBRARY else DRIVER if r["class"] in ("launch", "graph") else RUNTIME
        if r["on"] and r["layer"] == at:
            out.setdefault((r["layer"], exact.base(r["function"])), r["return"])
    return out


def around(log, window, margin=10**9):
    """The part of a log that a window can be about: minutes of truth are not compared with seconds of window."""
    return log.between(window.head["start_ns"] - margin, window.head["end_ns"] + margin)


def gaps(log):
    """Stubs that were called and may matter: {name: calls}."""
    return {name: n for name, n in log.gaps().items() if name not in HARMLESS}


class Kinds:
    """Launches by where they come from: graph, eager (through the runtime), cublas (inside a call of it), direct (Triton and
    others that call the driver themselves)."""

    @staticmethod
    def _of(name, begin, thread, spans):
        if name.endswith("GraphLaunch"):
            return "graph"
        for kind in ("cublas", "eager"):
            starts, ends = spans.get((kind, thread), ((), ()))
            i = bisect.bisect_right(starts, begin) - 1
            if i >= 0 and begin <= ends[i]:
                return kind
        return "direct"

    @classmethod
    def count(cls, calls, launches):
        """calls: (name, layer, begin, end, thread) in any order. `launches`: the driver's launching functions."""
        spans = collections.defaultdict(list)
        for name, layer, begin, end, thread in calls:
            if layer == LIBRARY and name.startswith("cublas"):
                spans[("cublas", thread)].append((begin, end))
            elif layer == RUNTIME and name in exact.RUNTIME_LAUNCHES:
                spans[("eager", thread)].append((begin, end))
        columns = {k: tuple(zip(*sorted(v))) for k, v in spans.items()}
        return collections.Counter(cls._of(name, begin, thread, columns) for name, layer, begin, _, thread in calls
                                   if layer == DRIVER and name in launches)


def kinds_of_window(window):
    at = window.head["start_ns"]
    return Kinds.count([(r["name"], r["layer"], r["ts"] + at, r["ts"] + at + r.get("dur", 0), (r["pid"], r["tid"]))
                        for r in window.of("accel")], exact.LAUNCHES)


def kinds_of_log(log):
    return Kinds.count([(exact.base(c.function), c.layer, c.enter, c.exit or c.enter, (c.pid, c.tid)) for c in log],
                       exact.LAUNCHES)


def rss(pid):
    """Resident memory, bytes."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS:"))
