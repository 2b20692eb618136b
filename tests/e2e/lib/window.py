# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A window file, read the way a user's script would: through `export --format ndjson`."""
import collections
import json


class Window:
    """Records of one window as dictionaries; see docs/ndjson.md for their fields."""

    def __init__(self, lines):
        rows = [json.loads(line) for line in lines if line.strip()]
        assert rows and rows[0]["type"] == "window", "the first line is not the window's"
        assert rows[-1]["type"] == "loss", "the last line is not the loss"
        self.head, self.loss, self.rows = rows[0], rows[-1], rows[1:-1]

    def of(self, kind, **fields):
        """Records of one type whose fields have these values."""
        return [r for r in self.rows if r["type"] == kind and all(r.get(k) == v for k, v in fields.items())]

    def calls(self, **fields):
        """Accelerator calls by name: Counter."""
        return collections.Counter(r["name"] for r in self.of("accel", **fields))

    def by(self, *fields):
        """Accelerator calls by some of their fields: Counter of tuples."""
        return collections.Counter(tuple(r[f] for f in fields) for r in self.of("accel"))

    def pids(self):
        return {r["pid"] for r in self.rows if r.get("pid")}

    def lost(self):
        """Sum over all causes."""
        return sum(v for v in self.loss.values() if isinstance(v, int))
