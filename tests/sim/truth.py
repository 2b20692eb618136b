# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reader of the simulated accelerator's truth log (format: tests/sim/core/truth.h).

    log = truth.read(DIR_or_file)            # all processes of a run
    log.counts(t0, t1)                       # {(layer, function): calls entered in [t0, t1)}
    log.pid(1234).calls(function="cudaMalloc")

As a program: python3 tests/sim/truth.py DIR [--from NS] [--to NS] prints the counts as JSON.
"""
import argparse
import collections
import glob
import json
import os
import struct
import sys

LAYERS = {1: "driver", 2: "runtime", 3: "library"}
HEADER = struct.Struct("<8sIIIIQQQQ")
RECORD = struct.Struct("<QQQQiIHBBI")
NAMES = 4096
RECORDS = 1 << 20

Call = collections.namedtuple("Call", "enter exit stream bytes result tid function layer depth pid")


class Log:
    """Calls of one or more processes, in the order of entry."""

    def __init__(self, calls, dropped=0):
        self._calls = calls
        self.dropped = dropped  # calls that found no room in the file

    def __len__(self):
        return len(self._calls)

    def __iter__(self):
        return iter(self._calls)

    def _keep(self, test):
        return Log([c for c in self._calls if test(c)], self.dropped)

    def between(self, t0=None, t1=None):
        """Calls entered in [t0, t1), CLOCK_MONOTONIC ns."""
        return self._keep(lambda c: (t0 is None or c.enter >= t0) and (t1 is None or c.enter < t1))

    def pid(self, *pids):
        return self._keep(lambda c: c.pid in pids)

    def layer(self, layer):
        return self._keep(lambda c: c.layer == layer)

    def calls(self, function=None, layer=None, depth=None):
        return [c for c in self._calls
                if (function is None or c.function == function) and (layer is None or c.layer == layer)
                and (depth is None or c.depth == depth)]

    def counts(self, t0=None, t1=None):
        """{(layer, function): number of calls}"""
        return dict(collections.Counter((c.layer, c.function) for c in self.between(t0, t1)))

    def pids(self):
        return sorted({c.pid for c in self._calls})


def _names(data):
    out = {}
    for line in data[NAMES:RECORDS].split(b"\0", 1)[0].decode().splitlines():
        number, _, name = line.split(" ", 2)
        out[int(number)] = name
    return out


def _read_file(path):
    with open(path, "rb") as f:
        data = f.read(RECORDS)
        magic, size, block, pid, _, _, blocks, dropped, _ = HEADER.unpack_from(data)
        if magic != b"HBTRUTH1" or size != RECORD.size:
            raise ValueError("%s is no truth log" % path)
        data += f.read(blocks * block * size)
    names = _names(data)
    calls = []
    for enter, exit_, stream, nbytes, result, tid, fn, layer, depth, _ in RECORD.iter_unpack(
            data[RECORDS:RECORDS + (len(data) - RECORDS) // size * size]):
        if enter:
            calls.append(Call(enter, exit_, stream, nbytes, result, tid, names[fn], LAYERS[layer], depth, pid))
    return calls, dropped


def read(path):
    """A file, or all *.truth of a directory."""
    files = sorted(glob.glob(os.path.join(path, "*.truth"))) if os.path.isdir(path) else [path]
    calls, dropped = [], 0
    for f in files:
        c, d = _read_file(f)
        calls += c
        dropped += d
    calls.sort(key=lambda c: c.enter)
    return Log(calls, dropped)


def main():
    p = argparse.ArgumentParser(description="counts of a truth log, simulated accelerator")
    p.add_argument("path")
    p.add_argument("--from", dest="t0", type=int)
    p.add_argument("--to", dest="t1", type=int)
    p.add_argument("--pid", type=int, action="append")
    a = p.parse_args()
    log = read(a.path)
    if a.pid:
        log = log.pid(*a.pid)
    rows = [{"layer": k[0], "function": k[1], "calls": n} for k, n in sorted(log.counts(a.t0, a.t1).items())]
    json.dump({"dropped": log.dropped, "pids": log.pids(), "counts": rows}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
