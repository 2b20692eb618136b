# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reader of the simulated accelerator's truth log (format: tests/sim/core/truth.h).

    log = truth.read(DIR_or_file)            # all processes of a run
    log.counts(t0, t1)                       # {(layer, function): calls entered in [t0, t1)}
    log.pid(1234).calls(function="cudaMalloc")
    log.operations(kind="kernel")            # what the devices did, and when
    log.gaps()                               # {function: calls} of stubs that were called
    log.faults()                             # planted faults as they were switched

Files are read when asked: narrowing a log (between, pid, layer) costs nothing, and counts, gaps and len() make no object per
call, so that logs of millions of calls can be handled.

As a program: python3 tests/sim/truth.py DIR [--from NS] [--to NS] [--pid PID] [--operations] prints the counts as JSON.
"""
import argparse
import collections
import glob
import json
import os
import struct
import sys


class _Known(dict):
    """Numbers that a file may hold: another one means that it is damaged."""

    def __missing__(self, key):
        raise ValueError("damaged truth log: %r is none of %s" % (key, ", ".join(self.values())))


LAYERS = _Known({1: "driver", 2: "runtime", 3: "library", 4: "device", 5: "fault"})
KINDS = _Known({1: "kernel", 2: "h2d", 3: "d2h", 4: "d2d", 5: "memset", 6: "collective", 7: "event", 8: "host", 9: "fault"})
COPIES = ("h2d", "d2h", "d2d")
FAULTS = ("slow_rank", "clock_throttled", "pageable_copies", "blocking_d2h", "copy_contention", "slow_kernel", "launch_stall",
          "lost_event")
UNRESOLVED, PLANTED, BROKEN, ON = 1, 2, 4, 8
DEVICE = 4

HEADER = struct.Struct("<8sIIIIQQQQQQQ%dQ" % len(FAULTS))
RECORD = struct.Struct("<QQQQiIHBBI")
BRIEF = struct.Struct("<Q32xHBx4x")  # enter, function and layer
OPERATION = struct.Struct("<QQQQIIHBBIIIII3I3IQ")
LAYER_AT = 42  # in a slot
NAMES = 4096
RECORDS = 4 << 20
BLOCK = 1024  # slots

Call = collections.namedtuple("Call", "enter exit stream bytes result tid function layer depth pid correlation",
                              defaults=(0,))
# start, end: device time, which is CLOCK_MONOTONIC; exec, node: of a graph launch, else 0; correlation: of the call that
# enqueued it; unresolved: it waited for ranks that never came or had not come yet; planted: made by a planted fault
Operation = collections.namedtuple("Operation", "start end kind name device stream correlation exec node bytes grid block shared "
                                   "queued tid pid unresolved planted broken")
Fault = collections.namedtuple("Fault", "time on line pid")


class _File:
    """One process image."""

    def __init__(self, path):
        # Read, not mapped: a live file may shrink, and a hole of a full tmpfs cannot be mapped.
        self._path = path
        with open(path, "rb") as f:
            head = f.read(HEADER.size)
            if len(head) < HEADER.size or head[:8] != b"HBTRUTH2":
                raise ValueError("%s is no truth log" % path)
            f.seek(NAMES)
            names = f.read(RECORDS - NAMES).split(b"\0", 1)[0]
        (_, size, block, self.pid, op_size, self.start, self.blocks, self.dropped, _, self.skipped,
         self.dropped_operations, self.unnamed), applied = HEADER.unpack(head)[:12], HEADER.unpack(head)[12:]
        if size != RECORD.size or op_size != OPERATION.size or block != BLOCK:
            raise ValueError("%s is a truth log of another format" % path)
        self.applied = dict(zip(FAULTS, applied))
        self._block = block * size
        self.names, self.stubs = {0: "?"}, set()
        for line in names.decode(errors="replace").split("\n")[:-1]:
            number, layer, name = (line.split(" ", 2) + ["", ""])[:3]
            if not (number.isdecimal() and layer.isdecimal()):
                raise ValueError("%s is damaged among its names: %.80r" % (path, line))
            if name.endswith(" stub"):
                name = name[:-5]
                self.stubs.add(int(number))
            self.names[int(number)] = name

    def _of(self, device):
        with open(self._path, "rb") as f:
            f.seek(RECORDS)
            for _ in range(self.blocks):
                block = f.read(self._block)
                if len(block) < self._block:
                    if not self.dropped and not self.dropped_operations:  # what was dropped has a number, but no place
                        raise ValueError("%s is cut off" % self._path)
                    return
                if (block[LAYER_AT] == DEVICE) == device:
                    yield block

    def calls(self):
        return self._of(False)

    def operations(self):
        return self._of(True)


class Log:
    """Calls of one or more processes, in the order of entry, and the device's operations."""

    def __init__(self, calls=None, dropped=0, files=(), t0=0, t1=1 << 64, pids=None, layers=None):
        self._calls = calls  # given, or read from the files when needed
        self.dropped = dropped  # calls that found no room in the file
        self._files = [f for f in files if pids is None or f.pid in pids]
        self._t0, self._t1, self._pids, self._layers = t0, t1, pids, layers

    # ---- calls ----

    def _made(self):
        """{(layer, name, stub): calls}, without an object per call."""
        out = collections.Counter()
        t0, t1 = self._t0, self._t1
        for f in self._files:
            ids = collections.Counter()
            for block in f.calls():
                ids.update([(layer, fn) for enter, fn, layer in BRIEF.iter_unpack(block) if enter and t0 <= enter < t1])
            for (layer, fn), n in ids.items():
                if self._layers is None or LAYERS[layer] in self._layers:
                    out[(LAYERS[layer], f.names.get(fn, "?"), fn in f.stubs)] += n
        return out

    def _read(self, function=None):
        """Call objects of the files, of one function if given."""
        out = []
        t0, t1, layers, make = self._t0, self._t1, self._layers, Call._make
        for f in self._files:
            wanted = None if function is None else {i for i, name in f.names.items() if name == function}
            names, pid = f.names, f.pid
            for block in f.calls():
                for enter, exit_, stream, nbytes, result, tid, fn, layer, depth, correlation in RECORD.iter_unpack(block):
                    if enter and t0 <= enter < t1 and (wanted is None or fn in wanted) \
                            and (layers is None or LAYERS[layer] in layers):
                        out.append(make((enter, exit_, stream, nbytes, result, tid, names.get(fn, "?"), LAYERS[layer], depth, pid,
                                         correlation)))
        out.sort(key=lambda c: c.enter)
        return out

    def _all(self):
        if self._calls is None:
            self._calls = self._read()
        return self._calls

    def __len__(self):
        return len(self._calls) if self._calls is not None else sum(self._made().values())

    def __iter__(self):
        return iter(self._all())

    def _narrow(self, test, **changes):
        state = {"t0": self._t0, "t1": self._t1, "pids": self._pids, "layers": self._layers}
        state.update(changes)
        calls = None if self._calls is None else [c for c in self._calls if test(c)]
        return Log(calls, self.dropped, self._files, **state)

    def between(self, t0=None, t1=None):
        """Calls entered, and operations started, in [t0, t1), CLOCK_MONOTONIC ns."""
        t0, t1 = max(self._t0, t0 or 0), min(self._t1, 1 << 64 if t1 is None else t1)
        return self._narrow(lambda c: t0 <= c.enter < t1, t0=t0, t1=t1)

    def pid(self, *pids):
        return self._narrow(lambda c: c.pid in pids, pids=pids)

    def layer(self, layer):
        return self._narrow(lambda c: c.layer == layer, layers=(layer,))

    def calls(self, function=None, layer=None, depth=None):
        found = self._all() if self._calls is not None or function is None else self._read(function)
        return [c for c in found
                if (function is None or c.function == function) and (layer is None or c.layer == layer)
                and (depth is None or c.depth == depth)]

    def counts(self, t0=None, t1=None):
        """{(layer, function): number of calls}"""
        log = self if t0 is None and t1 is None else self.between(t0, t1)
        if log._calls is not None:
            return dict(collections.Counter((c.layer, c.function) for c in log._calls))
        out = collections.Counter()
        for (layer, name, _), n in log._made().items():
            out[(layer, name)] += n
        return dict(out)

    def gaps(self):
        """{function: calls} of stubs: functions that an application called and the simulator does not have."""
        out = collections.Counter()
        for (_, name, stub), n in self._made().items():
            if stub:
                out[name] += n
        return dict(out)

    def pids(self):
        if self._calls is not None:
            return sorted({c.pid for c in self._calls})
        return sorted({f.pid for f in self._files for block in f.calls()
                       if any(r[0] and self._t0 <= r[0] < self._t1 for r in BRIEF.iter_unpack(block))})

    # ---- the device ----

    def _device(self, faults):
        for f in self._files:
            for block in f.operations():
                for row in OPERATION.iter_unpack(block):
                    if row[0] and self._t0 <= row[0] < self._t1 and (KINDS[row[8]] == "fault") == faults:
                        yield f, row

    def operations(self, kind=None, stream=None, correlation=None, name=None, device=None):
        """What the devices did in the order of its start; kind: see KINDS, or "copy" for all three directions."""
        kinds = None if kind is None else COPIES if kind == "copy" else (kind,)
        out = []
        for f, (start, end, strm, nbytes, flags, tid, number, _, k, corr, exec_, node, dev, shared, gx, gy, gz, bx, by, bz,
                queued) in self._device(False):
            if (kinds and KINDS[k] not in kinds) or (stream is not None and strm != stream) \
                    or (correlation is not None and corr != correlation) or (device is not None and dev != device):
                continue
            called = f.names.get(number, "?") if number else ""
            if name is None or called == name:
                out.append(Operation(start, end, KINDS[k], called, dev, strm, corr, exec_, node, nbytes, (gx, gy, gz),
                                     (bx, by, bz), shared, queued, tid, f.pid, bool(flags & UNRESOLVED), bool(flags & PLANTED),
                                     bool(flags & BROKEN)))
        out.sort(key=lambda o: o.start)
        return out

    def faults(self):
        """Planted faults as they were switched on and off."""
        return sorted(Fault(row[0], bool(row[4] & ON), f.names.get(row[6], "?"), f.pid) for f, row in self._device(True))

    def applied(self):
        """{fault: how often it took effect}, of those that did."""
        out = collections.Counter()
        for f in self._files:
            out.update(f.applied)
        return {k: n for k, n in out.items() if n}

    @property
    def skipped(self):
        """Calls left out because HB_SIM_TRUTH_SKIP named their function."""
        return sum(f.skipped for f in self._files)

    @property
    def dropped_operations(self):
        return sum(f.dropped_operations for f in self._files)


def _begun(path):
    """False: its process died as it opened the file."""
    with open(path, "rb") as f:
        return f.read(HEADER.size).strip(b"\0") != b""


def read(path):
    """A file, or all *.truth of a directory. ValueError for what is damaged, as far as that shows."""
    paths = [p for p in sorted(glob.glob(os.path.join(path, "*.truth"))) if _begun(p)] if os.path.isdir(path) else [path]
    files = [_File(p) for p in paths]
    return Log(None, sum(f.dropped for f in files), files)


def summary(a):
    log = read(a.path)
    if a.pid:
        log = log.pid(*a.pid)
    log = log.between(a.t0, a.t1)
    out = {"dropped": log.dropped, "dropped_operations": log.dropped_operations, "skipped": log.skipped, "pids": log.pids(),
           "gaps": log.gaps(), "faults": log.applied(),
           "counts": [{"layer": k[0], "function": k[1], "calls": n} for k, n in sorted(log.counts().items())]}
    if a.operations:
        total, busy = collections.Counter(), collections.Counter()
        for o in log.operations():
            total[(o.kind, o.name)] += 1
            busy[(o.kind, o.name)] += o.end - o.start
        out["operations"] = [{"kind": k[0], "name": k[1], "count": n, "ns": busy[k]} for k, n in sorted(total.items())]
    return out


def main():
    p = argparse.ArgumentParser(description="counts of a truth log, simulated accelerator")
    p.add_argument("path", metavar="DIR", help="folder of a truth log, or one file of it")
    p.add_argument("--from", dest="t0", metavar="NS", type=int, help="only what began at this or later (CLOCK_MONOTONIC)")
    p.add_argument("--to", dest="t1", metavar="NS", type=int, help="only what began before this")
    p.add_argument("--pid", type=int, action="append")
    p.add_argument("--operations", action="store_true", help="also what the devices did, by kind and name")
    a = p.parse_args()
    if os.path.isdir(a.path) and not glob.glob(os.path.join(a.path, "*.truth")):
        sys.exit("truth.py: %s holds no truth log (*.truth); a program leaves one there when HB_SIM_TRUTH names it." % a.path)
    try:
        out = summary(a)
    except (ValueError, OSError) as e:
        sys.exit("truth.py: %s" % e)
    json.dump(out, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
