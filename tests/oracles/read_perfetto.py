# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Reads a Perfetto trace with Perfetto's own protobuf classes and says in JSON what is in it. Run by the python of the
venv that has them (tests/e2e/lib/oracles.py); knows the public rules of the format and nothing of our exporter.
usage: read_perfetto.py FILE"""
import collections
import json
import sys

from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
MONOTONIC, REALTIME, BOOTTIME = 3, 1, 6


def unknown(message):
    """Fields that the published schema does not have, at any depth."""
    count = len(unknown_fields.UnknownFieldSet(message))
    for field, value in message.ListFields():
        if field.message_type:
            for item in value if field.is_repeated else [value]:
                count += unknown(item)
    return count


class Sequence:
    """State of one packet sequence: its clock, defaults and tables."""

    def __init__(self):
        self.tables = collections.defaultdict(dict)
        self.now, self.track, self.clock = None, None, None

    def learn(self, interned):
        for field, rows in interned.ListFields():
            for row in rows:
                assert row.iid and row.iid not in self.tables[field.name], f"{field.name} {row.iid} twice"
                self.tables[field.name][row.iid] = row

    def text(self, table, iid):
        row = self.tables[table][iid]
        return row.name if hasattr(row, "name") else row.str.decode()

    def frames(self, iid):
        out = []
        for f in self.tables["callstacks"][iid].frame_ids:
            frame = self.tables["frames"][f]
            mapping = self.tables["mappings"][frame.mapping_id]
            assert mapping.build_id in self.tables["build_ids"]
            out.append([self.text("function_names", frame.function_name_id),
                        "".join("/" + self.text("mapping_paths", p) for p in mapping.path_string_ids)])
        return out


class Reader:
    def __init__(self):
        self.seqs = collections.defaultdict(Sequence)
        self.tracks, self.processes, self.threads = {}, {}, {}
        self.open = collections.defaultdict(list)  # track -> slices
        self.last = {}  # track -> time of its last event
        self.slices, self.instants, self.samples, self.packets = [], [], [], 0
        self.flows = collections.defaultdict(lambda: [[], []])  # id -> begins, ends
        self.snapshots, self.dropped = [], 0
        self.counters = collections.defaultdict(list)  # "pid name" -> [time, value]

    def time(self, p, s):
        if p.timestamp_clock_id in (MONOTONIC, BOOTTIME):
            return p.timestamp
        assert s.clock == 64, "no clock"
        s.now += p.timestamp
        return s.now

    def packet(self, p):
        s = self.seqs[p.trusted_packet_sequence_id]
        assert p.trusted_packet_sequence_id
        self.packets += 1
        self.dropped += p.previous_packet_dropped
        if p.sequence_flags & 1:
            s.tables.clear()
        if p.HasField("trace_packet_defaults"):
            s.track = p.trace_packet_defaults.track_event_defaults.track_uuid
            s.clock = p.trace_packet_defaults.timestamp_clock_id
        if p.HasField("clock_snapshot"):
            clocks = {c.clock_id: c.timestamp for c in p.clock_snapshot.clocks}
            self.snapshots.append(clocks)
            s.now = clocks.get(64, s.now)
        if p.HasField("interned_data"):
            assert p.sequence_flags & 3
            s.learn(p.interned_data)
        if p.HasField("track_descriptor"):
            self.descriptor(p.track_descriptor)
        if p.HasField("track_event"):
            self.event(p, s)
        if p.HasField("perf_sample"):
            x = p.perf_sample
            self.samples.append({"ts": self.time(p, s), "pid": x.pid, "tid": x.tid,
                                 "stack": s.frames(x.callstack_iid) if x.callstack_iid else []})

    def descriptor(self, d):
        assert d.uuid not in self.tracks, "a track is described twice"
        self.tracks[d.uuid] = d
        if d.HasField("process"):
            self.processes[d.process.pid] = d.process.process_name
        if d.HasField("thread"):
            self.threads[d.thread.tid] = d.thread.thread_name

    def event(self, p, s):
        e, ts = p.track_event, self.time(p, s)
        track = e.track_uuid or s.track
        assert track in self.tracks, "event on a track that was not described"
        assert ts >= self.last.get(track, 0), "time runs backwards on a track"
        self.last[track] = ts
        if e.type == COUNTER:
            d = self.tracks[track]
            assert d.HasField("counter")
            self.counters[f"{self.tracks[d.parent_uuid].process.pid} {d.name}"].append([ts, getattr(e, e.WhichOneof("counter_value_field"))])
            return
        if e.type == END:
            assert self.open[track], "a slice ends that did not begin"
            began = self.open[track].pop()
            began["dur"] = ts - began["ts"]
            self.slices.append(began)
            return
        row = {"ts": ts, "track": track, "depth": len(self.open[track]), "parent": None,
               "name": e.name or s.text("event_names", e.name_iid),
               "cat": list(e.categories) + [s.text("event_categories", c) for c in e.category_iids], "args": {}}
        d = self.tracks[track]
        while d.parent_uuid and not d.HasField("thread"):
            d = self.tracks[d.parent_uuid]
        row["tid"] = d.thread.tid
        if self.open[track]:
            row["parent"] = self.open[track][-1]["name"]
        for a in e.debug_annotations:
            value = a.WhichOneof("value")
            row["args"][s.text("debug_annotation_names", a.name_iid)] = (
                s.text("debug_annotation_string_values", a.string_value_iid) if value == "string_value_iid" else getattr(a, value))
        if e.callstack_iid:
            row["stack"] = s.frames(e.callstack_iid)
        for i in e.flow_ids:
            self.flows[i][0].append(row)
        for i in e.terminating_flow_ids:
            self.flows[i][1].append(row)
        if e.type == BEGIN:
            self.open[track].append(row)
        else:
            assert e.type == INSTANT
            self.instants.append(row)


def main(path):
    trace, r = pb.Trace(), Reader()
    with open(path, "rb") as f:
        trace.ParseFromString(f.read())
    for p in trace.packet:
        r.packet(p)
    bad = {i: [len(b), len(e)] for i, (b, e) in r.flows.items() if len(b) != 1 or len(e) != 1 or b[0]["ts"] > e[0]["ts"]}
    json.dump({
        "packets": r.packets, "unknown": unknown(trace), "unbalanced": sum(map(len, r.open.values())), "dropped": r.dropped,
        "processes": r.processes, "threads": r.threads, "snapshots": r.snapshots[:1],
        "snapshots_differ": len({tuple(sorted((k, v) for k, v in s.items() if k != 64)) for s in r.snapshots}) != 1,
        "tracks": [d.name for d in r.tracks.values()], "slices": r.slices, "instants": r.instants, "counters": r.counters, "samples": r.samples,
        "flows_bad": bad, "flows": [{"from": b[0], "to": e[0]} for i, (b, e) in r.flows.items() if i not in bad],
    }, sys.stdout)


main(sys.argv[1])
