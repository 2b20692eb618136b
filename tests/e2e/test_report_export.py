# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`report` and `export` on a window of two real processes that wake each other through a unix socket."""
import json
import os
import re
import subprocess
import sys
import time

import pytest
from lib.tool import FAILED, OK, USAGE

pytestmark = pytest.mark.beside

PAIR = r"""
import os, socket, sys
a, b = socket.socketpair()
if os.fork() == 0:
    a.close()
    while b.recv(1):
        sum(range(30000))
        b.send(b"x")
    os._exit(0)
b.close()
print("ready", flush=True)
while True:
    a.send(b"x")
    a.recv(1)
"""


@pytest.fixture
def window(hb, start):
    """(path, pid of the parent, summary)"""
    target = start([sys.executable, "-c", PAIR], ready="ready")
    path, summary = hb.trace("-p", target.pid, "-F", "199", duration="3s")
    return path, target.pid, summary


def test_two_processes_are_linked(hb, window):
    """Who waits in which call, who ends the wait, through what: in the summary, the tables, JSON and ndjson alike."""
    path, parent, summary = window
    values = json.loads(hb.run("report", path, "--json", code=OK).out)
    pids = {p["pid"] for p in values["processes"]}
    assert parent in pids and len(pids) == 2, values["processes"]
    child = (pids - {parent}).pop()
    edges = [(e["from"]["pid"], e["to"]["pid"]) for e in values["wakeups"]
             if e["chan_kind"] == "unix" and e["waker_syscall"] == "sendto" and e["syscall"] == "recvfrom"]
    assert (parent, child) in edges and (child, parent) in edges, values["wakeups"]
    rows = hb.window(path).of("offcpu", pid=parent, syscall="recvfrom", chan_kind="unix")
    waits = [b for b in values["blocking"] if b["pid"] == parent and b["syscall"] == "recvfrom"]
    assert len(waits) == 1 and waits[0]["count"] == len(rows) > 100
    assert waits[0]["total_ns"] == sum(r["dur"] for r in rows)
    assert waits[0]["max_ns"] == max(r["dur"] for r in rows)
    exact = sorted(r["dur"] for r in rows)[-(-len(rows) // 2) - 1]
    assert abs(waits[0]["p50_ns"] - exact) <= 0.01 * exact
    text = hb.run("report", path, code=OK).out
    for part in ("Wake-ups between traced processes", "recvfrom", f"{parent} python"):
        assert part in text and (part[0] == "W" or part in summary.out), part
    assert len(summary.out.splitlines()) <= 40


def test_samples_agree_in_all_outputs(hb, window):
    """The CPU time of the samples is the same in ndjson, folded stacks and the report."""
    path, _, _ = window
    weight = sum(r["weight_ns"] for r in hb.window(path).of("sample"))
    values = json.loads(hb.run("report", path, "--json", code=OK).out)
    folded = hb.run("export", path, "--format", "folded", "-o", "-", code=OK).out.splitlines()
    assert weight > 0 and folded
    assert sum(f["self_ns"] for f in values["functions"]) == weight
    assert sum(p["cpu_ns"] for p in values["processes"]) == weight
    assert all(re.fullmatch(r"[^;]+(;[^;]+)+ [0-9]+", line) for line in folded), folded
    assert abs(sum(int(line.rsplit(" ", 1)[1]) for line in folded) * 1000 - weight) <= 1000 * len(folded)


def test_offsets_of_the_clocks_have_a_sign(hb, window):
    """What a reader adds to a time to get wall-clock or boot time; that of boot time is about 0 on a machine that never slept."""
    meta = json.loads(hb.run("report", window[0], "--json", code=OK).out)["window"]["meta"]
    boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    real = time.clock_gettime_ns(time.CLOCK_REALTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    assert abs(int(meta["boottime_offset_ns"]) - boot) < 10**10
    assert abs(int(meta["realtime_offset_ns"]) - real) < 600 * 10**9  # somebody may set the clock


def test_lines_are_stable(hb, window):
    """The promise of docs/ndjson.md: first, last, and what every line has."""
    path, _, _ = window
    w = hb.window(path)
    assert {"version", "start_ns", "end_ns", "host", "kernel", "profile", "simulated", "processes"} <= set(w.head)
    assert {"ring_full", "stack_full", "late", "unfinished", "damaged"} <= set(w.loss)
    for row in w.rows:
        assert isinstance(row["ts"], int) and isinstance(row["tid"], int) and row["comm"], row
        assert row["type"] not in ("offcpu", "syscall") or row["dur"] >= 0, row
    span = w.head["end_ns"] - w.head["start_ns"]
    # probes are detached after the end, so a few records come later
    assert all(row["ts"] + row.get("dur", 0) <= span + 10**9 for row in w.rows)


def test_an_export_is_whole_or_absent(hb, window):
    path, _, _ = window
    out = os.path.join(hb.folder, "out")
    hb.run("export", path, "--format", "ndjson", "-o", out, code=OK)
    whole = open(out, encoding="utf-8").read()
    again = hb.run("export", path, "--format", "folded", "-o", out, code=FAILED)
    assert "--force" in again.err and open(out, encoding="utf-8").read() == whole
    hb.run("export", path, "--format", "folded", "-o", out, "--force", code=OK)
    assert open(out, encoding="utf-8").read() != whole
    before = sorted(os.listdir(hb.folder))
    hb.run("export", path, "--format", "ndjson", "-o", "/no/such/folder/x", code=FAILED)
    hb.run("export", path, "--format", "ndjson", code=USAGE)
    assert sorted(os.listdir(hb.folder)) == before


def test_what_folded_has_no_place_for_is_said(hb, window):
    """Damage is said on the standard error beside folded stacks, and nowhere else when the format has a place for it."""
    path, _, _ = window
    cut = os.path.join(hb.folder, "cut.hbw")
    with open(path, "rb") as whole, open(cut, "wb") as part:
        part.write(whole.read()[:os.path.getsize(path) * 2 // 3])
    damage = json.loads(hb.run("report", cut, "--json", code=OK).out)["window"]["damage"]
    folded = hb.run("export", cut, "--format", "folded", "-o", "-", code=OK)
    assert damage in folded.err and damage not in folded.out, folded.err
    assert hb.run("export", cut, "--format", "folded", "-q", "-o", "-", code=OK).err == ""
    assert damage not in hb.run("export", path, "--format", "folded", "-o", "-", code=OK).err
    ndjson = hb.run("export", cut, "--format", "ndjson", "-o", "-", code=OK)
    assert ndjson.err == "" and damage in ndjson.out


def test_a_reader_that_leaves_is_no_failure(hb, window):
    """export | head: ends by SIGPIPE (or normally), without a sentence, without a crash."""
    path, _, _ = window
    for args in (["export", path, "--format", "ndjson", "-o", "-"], ["report", path, "--rows", "0"]):
        writer = subprocess.Popen([hb.path, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert writer.stdout.readline()
        writer.stdout.close()
        err = writer.stderr.read()
        assert writer.wait(30) in (OK, -13) and err == "", (writer.returncode, err)


NO_FRAMES = r"""
#include <stdio.h>
#include <time.h>
__attribute__((noinline)) void work(void)
{
	/* As code without frame pointers leaves it: rbp leads into data that looks like frames. */
	unsigned long data[6] = {(unsigned long)&data[2], (unsigned long)&work + 1, (unsigned long)&data[4],
				 END, 0, (unsigned long)&work + 2};

	for (volatile long i = 0; i < 2000000; i++)
		__asm__ volatile("push %%rbp; mov %0, %%rbp\n .rept 64\n imul %%rax, %%rax\n .endr\n pop %%rbp" ::"r"(data) : "rax", "memory");
}
int main(void) { puts("ready"); fflush(stdout); for (;;) work(); }
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="written for x86-64")
@pytest.mark.parametrize("end", ["0x206b6effffffffff", "0", "4095"])
def test_a_stack_ends_where_it_stops_being_one(hb, start, compile_c, end):
    """What lies at the end of a walk through code without frame pointers is no frame, and the stack says so."""
    exe = compile_c("noframe", NO_FRAMES, f"-DEND={end}UL", "-mno-red-zone", "-fomit-frame-pointer")
    path, _ = hb.trace("-p", start([exe], ready="ready").pid, "-F", "997", duration="1s")
    stacks = [r for r in hb.window(path).of("sample") if any(f.get("f") == "work" for f in r.get("stack", []))]
    broken = [r for r in stacks if r.get("stack_state") == "broken"]
    assert broken, stacks[:3]
    shapes = {tuple(f["f"] for f in r["stack"] if f.get("lang") == "native") for r in broken}
    assert shapes == {("work", "work")}, shapes
    assert "206b6e" not in hb.run("export", path, "--format", "folded", "-o", "-", code=OK).out


def test_a_window_is_not_exported_over_itself(hb, start):
    target = start(["sleep", "60"])
    path, _ = hb.trace("-p", target.pid, duration="300ms")
    size = os.path.getsize(path)
    result = hb.run("export", path, "--format", "folded", "-o", path, "--force", code=2)
    assert "the window itself" in result.err and os.path.getsize(path) == size
