# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The tool under pressure: too little memory, too few descriptors, closed standard streams, stopped in the middle; and
targets whose names are meant for the operator's terminal."""
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from lib import loss, tracing
from lib.processes import alive, wait_for
from lib.ticker import Ticker
from lib.tool import FAILED, KERNEL, OK

pytestmark = pytest.mark.beside

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")

# Renames itself, its threads and its files again and again, to what a terminal would obey.
EVIL = r"""
import ctypes, os, sys, threading, time
libc = ctypes.CDLL(None)
names = [b"\x1b[2J", b"a\nb", b"\x07\x9b31m", b"\xff\xfe", b"x\x7fy\r"]
def reader(path):
    libc.prctl(15, names[1], 0, 0, 0)
    os.read(os.open(path, os.O_RDWR), 1)
folder = sys.argv[1]
path = os.path.join(folder, "fifo\x1b]0;owned\x07\n\x9b")
os.mkfifo(path)
os.mkfifo(path + "2")
threading.Thread(target=reader, args=(path + "2",), daemon=True).start()
fd = os.open(path, os.O_RDWR)
print("ready", flush=True)
while True:
    for n in names:
        libc.prctl(15, n, 0, 0, 0)
        os.write(fd, b"x")
        os.read(fd, 1)
        time.sleep(0.005)
"""


@pytest.fixture
def tick(start, tmp_path):
    return Ticker(start, tmp_path)


def strings(value):
    """Every string inside parsed JSON, keys included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [s for k, v in value.items() for s in strings(k) + strings(v)]
    return [s for v in value for s in strings(v)] if isinstance(value, list) else []


def test_names_that_change_and_are_hostile(hb, start, tmp_path):
    target = start([sys.executable, "-c", EVIL, tmp_path], ready="ready")
    path, summary, _ = tracing.around(hb, lambda: time.sleep(1), "-p", target.pid, "--syscalls", "all")
    w = hb.window(path)
    renames = {r["name"] for r in w.of("rename", pid=target.pid)}
    assert len(renames) >= 4, renames
    named = [r for r in w.of("syscall", name="write", pid=target.pid) if "fifo" in r["args"][0]]
    assert named, "the file is not named at all: nothing is tested"
    for s in strings([w.head, w.rows, w.loss]):
        assert not CONTROL.search(s) and "\n" not in s, repr(s)
    for result in (summary, hb.run("report", path, "--rows", "0", code=OK), hb.run("ps", code=OK)):
        assert not CONTROL.search(result.out + result.err.replace("\r", "")), repr(result)
    document = hb.run("report", path, "--json", code=OK).out
    assert not any(CONTROL.search(s) or "\n" in s for s in strings(json.loads(document)))
    for name in ("folded", "kineto"):
        out = os.path.join(hb.folder, name)
        hb.run("export", path, "--format", name, "-o", out, code=OK)
        text = open(out, encoding="utf-8").read()
        assert not CONTROL.search(text) and not re.search(r"\\u00(0[0-8bcef]|1.|7f|8.|9.)", text), name


# ---- limits of the tool itself ---------------------------------------------------------------------------------


def limited(option):
    return ["prlimit", option, "--"]


@pytest.mark.parametrize("limit", [f"--as={m << 20}" for m in (48, 96, 160, 256, 400)], ids=lambda l: l[2:])
def test_little_memory(hb, tick, limit):
    """An address space that is too small: a window, or one sentence. Nothing else, at no size."""
    result = hb.run("trace", "-p", tick.pid, "-d", "1s", "-o", "w.hbw", prefix=limited(limit))
    assert result.code in (OK, FAILED, KERNEL), result
    if result.code != OK:
        assert len(result.sentences()) == 1, result
    assert tick.running()


@pytest.mark.parametrize("limit, fine", [("--nofile=16:16", False), ("--nofile=40:40", False), ("--memlock=65536", True),
                                         ("--nofile=64:4096", True), ("--core=0", True)])
def test_other_limits(hb, tick, limit, fine):
    result = hb.run("trace", "-p", tick.pid, "-d", "1s", "-o", "w.hbw", prefix=limited(limit))
    assert result.code == OK or (not fine and result.code in (FAILED, KERNEL) and len(result.sentences()) == 1), result
    assert tick.running()


def test_file_size_limit(hb, start):
    """RLIMIT_FSIZE kills with a signal whoever writes on: here it is an error like a full disk."""
    target = start([sys.executable, "-c", "import os\na, b = os.pipe()\nprint('ready', flush=True)\n"
                    "while True: os.write(b, b'x'); os.read(a, 1)"], ready="ready")
    result = hb.run("trace", "-p", target.pid, "-d", "60s", "-o", "w.hbw", "--syscalls", "all",
                    prefix=limited(f"--fsize={256 << 10}"), timeout=100)
    assert result.code == FAILED and len(result.sentences()) == 1 and "w.hbw" in result.sentences()[0], result
    left = os.path.join(hb.folder, "w.hbw.part")
    assert os.path.getsize(left) <= 256 << 10
    assert hb.window(left).of("syscall")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams(hb, tick, closed):
    """A daemon may start it without any of them: no file of ours may land on their numbers."""
    path = os.path.join(hb.folder, "w.hbw")
    done = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", hb.path, "trace", "-p", str(tick.pid), "-d", "1s", "-o", path],
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == (FAILED if ">&-" in closed.replace("2>&-", "") else OK), done
    assert hb.window(path).of("offcpu")


def test_on_a_terminal(hb, tick):
    """Progress is drawn on one line; without a terminal none of it appears."""
    leader, follower = os.openpty()
    seen = []

    def drain():
        try:
            while True:
                seen.append(os.read(leader, 65536))
        except OSError:
            pass

    reader = threading.Thread(target=drain)
    reader.start()
    command = [hb.path, "trace", "-p", str(tick.pid), "-d", "2s", "-o"]
    done = subprocess.run([*command, os.path.join(hb.folder, "w.hbw")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=follower, timeout=60, check=False)
    os.close(follower)
    reader.join(10)
    os.close(leader)
    text = b"".join(seen).decode()
    assert done.returncode == OK and re.search(r"\r\x1b\[K *\d+\.\ds of 2\.0s .* events .* lost ", text), repr(text)
    assert text.count("\n") <= 4, "progress is drawn over itself, not line after line"
    result = hb.run(*command[1:], os.path.join(hb.folder, "x.hbw"), code=OK)
    assert "\r" not in result.err and "\x1b" not in result.err and len(result.err.splitlines()) == 2, result
    quiet = hb.run(*command[1:], os.path.join(hb.folder, "y.hbw"), "-q", code=OK)
    assert quiet.err == "" and quiet.out


# ---- things that happen to it ----------------------------------------------------------------------------------


def test_stopped_in_the_middle(hb, tick):
    """Somebody stops the tool for a while: what does not fit into the rings is counted, the window ends as it should."""
    run, path = tracing.begin(hb, "-p", tick.pid, "--buffer", "64KiB")
    first = tick.count()
    run.popen.send_signal(signal.SIGSTOP)
    # a record of a sleep takes about a hundred bytes: in the rings of this CPU and the next there is no room for so many of them
    tick.more(2000)
    run.popen.send_signal(signal.SIGCONT)
    tick.more(600)
    slept = tick.count() - first
    run.interrupt()
    assert run.wait().code == OK
    w = hb.window(path)
    assert w.head["complete"]
    seen, lost = len(w.of("offcpu")), loss.records(w, "offcpu")
    assert seen > 500 and lost["ring_full"] > 0
    assert seen + sum(lost.values()) >= slept, (seen, lost, slept)


def test_two_tools_on_two_targets(hb, start, tmp_path):
    """Each sees its own target and nothing of the other's."""
    first, second = (Ticker(start, tmp_path, name) for name in ("first", "second"))
    a, path_a = tracing.begin(hb, "-p", first.pid, name="a.hbw")
    b, path_b = tracing.begin(hb, "-p", second.pid, name="b.hbw")
    first.more(300)
    second.more(300)
    a.interrupt()
    b.interrupt()
    assert a.wait().code == OK and b.wait().code == OK
    for path, mine, other in ((path_a, first.pid, second.pid), (path_b, second.pid, first.pid)):
        w = hb.window(path)
        assert len(w.of("offcpu", pid=mine)) > 200 and not w.of("offcpu", pid=other)
        assert {p["pid"] for p in w.head["processes"]} == {mine}


def test_it_may_not_trace_itself_to_death(hb):
    """Its own parent as target, which makes it a descendant of the target: it is left out, or the window ends."""
    result = hb.run("trace", "-p", os.getpid(), "-d", "1s", "-o", "w.hbw")
    assert result.code == OK, result
    pids = {p["pid"]: p["cmdline"] for p in hb.window(os.path.join(hb.folder, "w.hbw")).head["processes"]}
    assert os.getpid() in pids
    assert not any("herschel-bpf trace" in c for c in pids.values()), "an observer that watches itself never comes to rest"


@pytest.mark.parametrize("length", ["1ms", "50ms"])
def test_very_short_windows(hb, tick, length):
    path, _ = hb.trace("-p", tick.pid, duration=length)
    w = hb.window(path)
    span = w.head["end_ns"] - w.head["start_ns"]
    assert span >= int(length[:-2]) * 1_000_000 and w.head["complete"]


def test_again_and_again(hb, tick):
    """Windows one right after the other: each works, and the target does not mind."""
    for _ in range(6):
        hb.run("trace", "-p", tick.pid, "-d", "50ms", "-o", "w.hbw", "--force", "-F", "0", code=OK)
    wait_for(lambda: alive(tick.pid), what="the target")
