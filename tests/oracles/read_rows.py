# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Loads a Kineto trace with Holistic Trace Analysis and says in JSON how many rows of each category and name it has. Run by the
python of the venv that has it (tests/e2e/lib/oracles.py). usage: read_rows.py FILE"""
import collections
import json
import os
import sys
import warnings

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
warnings.simplefilter("ignore")

from hta.common.trace_file import create_rank_to_trace_dict  # noqa: E402
from hta.trace_analysis import TraceAnalysis  # noqa: E402

ok, ranks = create_rank_to_trace_dict([sys.argv[1]])
assert ok and list(ranks) == [0], ranks
trace = TraceAnalysis(trace_files=ranks).t
names = trace.symbol_table.get_sym_table()
df = trace.get_trace(0)
json.dump(collections.Counter(f"{names[cat]} {names[name]}" for cat, name in zip(df["cat"], df["name"])), sys.stdout)
