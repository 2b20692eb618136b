# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""CPU seconds that Holistic Trace Analysis takes for a trace: to read it, and for each analysis that `analyze` does too, as JSON. Run
by the python of the venv that has it. usage: time_hta.py FILE"""
import json
import logging
import os
import resource
import sys
import warnings

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

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
    "critical_path_analysis": {"rank": 0, "annotation": "", "instance_id": None},  # of the whole trace
}


def cpu():
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def main(path):
    _, ranks = create_rank_to_trace_dict([path])
    ANALYSES["critical_path_analysis"]["rank"] = next(iter(ranks))
    t = cpu()
    ta = TraceAnalysis(trace_files=ranks)
    out = {"read": cpu() - t, "analyses": {}, "failed": {}}
    for name, more in ANALYSES.items():
        t = cpu()
        try:
            getattr(ta, name)(**more)
            out["analyses"][name] = cpu() - t
        except Exception as e:  # one that gives up is left out of the sum
            out["failed"][name] = f"{type(e).__name__}: {e}"[:200]
    json.dump(out, sys.stdout)


main(sys.argv[1])
