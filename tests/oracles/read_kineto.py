# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Loads a Kineto trace with Holistic Trace Analysis and says in JSON what it found. Run by the python of the venv that
has it (tests/e2e/lib/oracles.py). usage: read_kineto.py FILE
Afterwards it adds a kernel row for each launch, as a device would, to see that HTA finds the launch by its correlation."""
import collections
import json
import os
import sys
import warnings

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
warnings.simplefilter("ignore")

from hta.common.trace_file import create_rank_to_trace_dict  # noqa: E402
from hta.trace_analysis import TraceAnalysis  # noqa: E402

LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC")


def analysis(path):
    ok, ranks = create_rank_to_trace_dict([path])
    assert ok and list(ranks) == [0], ranks
    return TraceAnalysis(trace_files=ranks)


def launch_stats(ta):
    return len(ta.get_cuda_kernel_launch_stats(visualize=False, include_memory_events=False)[0])


def with_kernels(path):
    """A copy of the trace in which each launch has a kernel."""
    with open(path, encoding="utf-8") as f:
        trace = json.load(f)
    rows = trace["traceEvents"]
    for r in [r for r in rows if r.get("name") in LAUNCHES]:
        rows.append({"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": r["ts"] + r["dur"] + 5, "dur": 3,
                     "args": {"correlation": r["args"]["correlation"], "stream": 7, "device": 0}})
    out = path.replace(".json", "-kernels.json")
    with open(out, "w", encoding="utf-8") as f:
        json.dump(trace, f, indent=1)  # the rank is looked for line by line
    return out


def main(path):
    ta = analysis(path)
    df, names = ta.t.get_trace(0), ta.t.symbol_table.get_sym_table()
    rows = collections.Counter()
    ns = collections.Counter()
    for cat, name, dur in zip(df["cat"], df["name"], df["dur"]):
        rows[f"{names[cat]} {names[name]}"] += 1
        ns[f"{names[cat]} {names[name]}"] += round(dur * 1000)
    calls = df[df["correlation"] > 0]
    out = {"rows": rows, "ns": ns, "pids": sorted(set(map(int, df["pid"]))), "correlations": int(calls["correlation"].nunique()),
           "device_rows": int((df["stream"] != -1).sum()), "launch_stats": launch_stats(ta),
           "launch_stats_with_kernels": launch_stats(analysis(with_kernels(path)))}
    json.dump(out, sys.stdout)


main(sys.argv[1])
