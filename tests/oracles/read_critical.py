# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The critical path that Holistic Trace Analysis finds in a trace, as JSON. Run by the python of the venv that has it.
usage: read_critical.py FILE ANNOTATION INSTANCE"""
import json
import logging
import os
import sys
import warnings
from collections import Counter

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
os.environ["CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE"] = "1"
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

from hta.analyzers.critical_path_analysis import CPGraph  # noqa: E402
from hta.common.trace_file import create_rank_to_trace_dict  # noqa: E402
from hta.trace_analysis import TraceAnalysis  # noqa: E402

# Releases up to 0.5.0 count an asynchronous copy's call as a wait of no weight; what came after them, and the rule we follow, does not.
if "cudaMemcpyAsync" in CPGraph.BLOCKING_SYNC_CALLS:
    CPGraph.BLOCKING_SYNC_CALLS.remove("cudaMemcpyAsync")


def main(path, annotation, instance):
    _, ranks = create_rank_to_trace_dict([path])
    ta = TraceAnalysis(trace_files=ranks)
    graph, ok = ta.critical_path_analysis(rank=next(iter(ranks)), annotation=annotation, instance_id=int(instance))
    parts = graph.get_critical_path_breakdown().groupby("bound_by").duration.sum()
    json.dump({
        "ok": bool(ok),
        "nodes": len(graph.critical_path_nodes),
        "links": len(graph.critical_path_edges_set),
        "events": len(graph.critical_path_events_set),
        "length_us": sum(float(graph.edges[u, v]["weight"]) for u, v in zip(graph.critical_path_nodes, graph.critical_path_nodes[1:])),
        "parts_us": {k: float(v) for k, v in parts.items()},
        "graph": Counter(graph.edges[e]["object"].type.name for e in graph.edges),
    }, sys.stdout)


main(*sys.argv[1:])
