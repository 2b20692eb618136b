# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What Holistic Trace Analysis makes of the devices of a trace, as JSON. Run by the python of the venv that has it
(tests/e2e/lib/oracles.py). usage: read_devices.py FILE"""
import json
import os
import sys
import warnings

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
warnings.simplefilter("ignore")

from hta.common.trace_file import create_rank_to_trace_dict  # noqa: E402
from hta.trace_analysis import TraceAnalysis  # noqa: E402


def main(path):
    ok, ranks = create_rank_to_trace_dict([path])
    assert ok and len(ranks) == 1, ranks
    rank = next(iter(ranks))
    ta = TraceAnalysis(trace_files=ranks)
    row = ta.get_temporal_breakdown(visualize=False).iloc[0]
    df, names = ta.t.get_trace(rank), ta.t.symbol_table.get_sym_table()
    json.dump({
        "breakdown": {k: float(row[k]) for k in row.index if "time(us)" in k or k.endswith("pctg")},
        "kernels": sum(names[c] == "kernel" for c in df["cat"]),
        "launches": len(ta.get_cuda_kernel_launch_stats(visualize=False, ranks=[rank])[rank]),
    }, sys.stdout)


main(sys.argv[1])
