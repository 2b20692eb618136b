# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Seconds that Holistic Trace Analysis takes for a trace: to read it, and for the analyses that `analyze` does too, as JSON. Run by
the python of the venv that has it. usage: time_hta.py FILE"""
import json
import os
import sys
import time
import warnings

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
warnings.simplefilter("ignore")

from hta.common.trace_file import create_rank_to_trace_dict  # noqa: E402
from hta.trace_analysis import TraceAnalysis  # noqa: E402

ANALYSES = {
    "get_temporal_breakdown": {"visualize": False},
    "get_idle_time_breakdown": {"visualize": False},
    "get_gpu_kernel_breakdown": {"visualize": False},
    "get_comm_comp_overlap": {"visualize": False},
    "get_cuda_kernel_launch_stats": {"visualize": False},
    "get_queue_length_summary": {},
    "get_memory_bw_summary": {},
}


def main(path):
    _, ranks = create_rank_to_trace_dict([path])
    t = time.perf_counter()
    ta = TraceAnalysis(trace_files=ranks)
    out = {"read": time.perf_counter() - t, "analyses": 0.0, "failed": {}}
    for name, more in ANALYSES.items():
        t = time.perf_counter()
        try:
            getattr(ta, name)(**more)
            out["analyses"] += time.perf_counter() - t
        except Exception as e:  # one that gives up is left out of the sum
            out["failed"][name] = f"{type(e).__name__}: {e}"[:200]
    json.dump(out, sys.stdout)


main(sys.argv[1])
