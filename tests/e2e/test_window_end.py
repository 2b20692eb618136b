# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How a window ends, and what is left of it: by signals, by its targets, by the size or the disk, with loss."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest
from lib import tracing
from lib.processes import alive, wait_for
from lib.ticker import Ticker
from lib.tool import FAILED, LOSS, OK, TARGET

pytestmark = pytest.mark.beside

# Two threads hand a byte back and forth: as many switches and wake-ups as the machine gives.
PINGPONG_C = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int a[2], b[2];
static void *echo(void *arg)
{
	char c;
	while (read(a[0], &c, 1) == 1 && write(b[1], &c, 1) == 1)
		;
	return arg;
}
int main(void)
{
	pthread_t t;
	char c = 'x';
	if (pipe(a) || pipe(b) || pthread_create(&t, NULL, echo, NULL))
		return 1;
	printf("ready\n");
	fflush(stdout);
	while (write(a[1], &c, 1) == 1 && read(b[0], &c, 1) == 1)
		;
}
"""


@pytest.fixture
def pingpong(start, compile_c):
    return start([compile_c("pingpong", PINGPONG_C, "-pthread")], ready="ready")


@pytest.fixture
def tick(start, tmp_path):
    return Ticker(start, tmp_path)


def whole(hb, path):
    """The window of a file that was finished."""
    assert os.path.exists(path) and not os.path.exists(path + ".part")
    w = hb.window(path)
    assert w.head["complete"] and "damage" not in w.head and "known" not in w.loss
    return w


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda s: s.name)
def test_a_signal_ends_it_normally(hb, tick, number):
    """All three mean: enough. What was recorded until then is kept whole."""
    run, path = tracing.begin(hb, "-p", tick.pid)
    tick.more(600)
    late = tick.last_ns()
    tick.more(2)
    run.popen.send_signal(number)
    result = run.wait()
    assert result.code == OK and "interrupted" in result.err, result
    w = whole(hb, path)
    ends = [r["ts"] + r["dur"] for r in w.of("offcpu", pid=tick.pid)]
    assert w.head["end_ns"] - w.head["start_ns"] < 60e9
    # what was made just before the signal is there too
    assert len(ends) > 500 and max(ends) + w.head["start_ns"] >= late
    assert f"{tick.pid}" in result.out and tick.running()


def test_a_second_signal_leaves_a_readable_file(hb, pingpong):
    run, path = tracing.begin(hb, "-p", pingpong.pid)
    run.interrupt()
    run.interrupt()
    run.interrupt()
    result = run.wait()
    assert result.code == OK, result
    assert hb.window(path if os.path.exists(path) else path + ".part").of("offcpu")


def test_what_a_killed_window_left_is_not_thrown_away(hb, tick):
    """The next trace into the same name refuses before it touches anything; --force replaces the leftover."""
    run, path = tracing.begin(hb, "-p", tick.pid)
    part = path + ".part"
    wait_for(lambda: os.path.getsize(part) > 20_000, timeout=60, what="something in the window")
    run.kill()
    run.wait()
    with open(part, "rb") as f:
        left = f.read()
    # the recorder counts loss last: of a killed one nobody knows it
    out = hb.run("report", part, code=OK).out
    assert "loss: none" not in out and "not known, the window was not finished" in out and "host ?" not in out, out
    assert json.loads(hb.run("report", part, "--json", code=OK).out)["loss"]["known"] is False
    assert hb.window(part).loss["known"] is False
    result = hb.run("trace", "-p", tick.pid, "-d", "1s", "-o", path, code=FAILED)
    assert len(result.sentences()) == 1 and part in result.sentences()[0] and "--force" in result.err, result
    with open(part, "rb") as f:
        assert f.read() == left
    assert not os.path.exists(path)
    hb.run("trace", "-p", tick.pid, "-d", "1s", "-o", path, "--force", code=OK)
    assert whole(hb, path).of("offcpu", pid=tick.pid)


def test_the_last_target_ends_it(hb, start, tmp_path):
    """With two targets the window goes on when the first is gone."""
    first, second = (Ticker(start, tmp_path, name) for name in ("first", "second"))

    def act():
        first.kill()
        time.sleep(1)
        second.more(150)
        second.kill()
        wait_for(lambda: run.popen.poll() is not None, timeout=30, what="the window's end")

    run, path = tracing.begin(hb, "-p", f"{first.pid},{second.pid}")
    act()
    result = run.wait()
    assert result.code == OK and "exited" in result.err, result
    w = whole(hb, path)
    ends = {r["pid"]: r for r in w.of("exit") if r.get("last")}
    assert ends[first.pid]["code"] & 0x7f == signal.SIGKILL and ends[second.pid]["code"] & 0x7f == signal.SIGKILL
    between = ends[second.pid]["ts"] - ends[first.pid]["ts"]
    assert between > 900_000_000
    after = [r for r in w.of("offcpu", pid=second.pid) if r["ts"] > ends[first.pid]["ts"]]
    assert len(after) > 100, "the second was not followed any more"


def test_a_target_that_says_why_it_exits(hb, start):
    target = start(["sh", "-c", "read line; exit 3"], stdin=subprocess.PIPE)

    def act():
        target.popen.stdin.write(b"\n")
        target.popen.stdin.flush()
        target.wait()
        wait_for(lambda: run.popen.poll() is not None, timeout=30, what="the window's end")

    run, path = tracing.begin(hb, "-p", target.pid)
    act()
    assert run.wait().code == OK
    assert [r["code"] for r in whole(hb, path).of("exit", pid=target.pid) if r.get("last")] == [3 << 8]


@pytest.mark.parametrize("limit", ["64KiB", "300KiB", "1MiB"])
def test_max_size(hb, pingpong, limit):
    """Ends early, is whole, is not larger than was allowed, and lacks nothing of what was before its end."""
    path = os.path.join(hb.folder, "w.hbw")
    result = hb.run("trace", "-p", pingpong.pid, "-d", "120s", "-o", path, "--max-size", limit, "--syscalls", "all",
                    timeout=150, code=OK)
    assert "--max-size" in result.err, result
    w = whole(hb, path)
    factor = {"K": 1 << 10, "M": 1 << 20}[limit[-3]]
    allowed = int(limit[:-3]) * factor
    assert os.path.getsize(path) <= allowed
    span = w.head["end_ns"] - w.head["start_ns"]
    assert len(w.of("offcpu")) > 500 and span < 120e9
    assert w.loss["disk"] == 0, w.loss
    inside = [r for r in w.of("offcpu") if r["ts"] + r["dur"] <= span]
    assert len(inside) > 250, "the window ends before most of what it holds"
    assert json.loads(hb.run("report", path, "--json", code=OK).out)["receipt"]["hooks"], "no prices"


def test_the_disk_fills_up_by_another_hand(hb, pingpong, tmp_path):
    """Not we, somebody else takes the last byte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "hb-test", disk], check=False).returncode:
        pytest.skip("cannot mount a small file system here")
    try:
        path = str(disk / "w.hbw")
        run = hb.start("trace", "-p", pingpong.pid, "-d", "120s", "-o", path)
        wait_for(lambda: os.path.exists(path + ".part") and os.path.getsize(path + ".part") > 100_000, timeout=60,
                 what="100 kB of window")
        try:
            with open(disk / "hog", "wb") as f:
                while True:
                    f.write(bytes(65536))
                    f.flush()
        except OSError:
            pass
        result = run.wait(100)
        assert result.code == FAILED and len(result.sentences()) == 1, result
        assert "w.hbw" in result.sentences()[0] and re.search("space|full", result.sentences()[0]), result
        left = path + ".part" if os.path.exists(path + ".part") else path
        shutil.copy(left, os.path.join(hb.folder, "left.hbw"))
        assert len(hb.window(os.path.join(hb.folder, "left.hbw")).of("offcpu")) > 100
        assert pingpong.running()
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_the_folder_vanishes(hb, tick, tmp_path):
    folder = tmp_path / "gone"
    folder.mkdir()
    run = hb.start("trace", "-p", tick.pid, "-d", "3s", "-o", folder / "w.hbw")
    wait_for(lambda: os.path.exists(folder / "w.hbw.part"), timeout=60, what="the window")
    shutil.rmtree(folder)
    result = run.wait()
    assert result.code == FAILED and len(result.sentences()) == 1 and "w.hbw" in result.sentences()[0], result


def test_the_name_is_taken_meanwhile(hb, tick, tmp_path):
    """Somebody else makes the file while we record: theirs stays, ours too, and we say where."""
    path = str(tmp_path / "w.hbw")
    run, _ = tracing.begin(hb, "-p", tick.pid)
    assert _ == path
    with open(path, "w", encoding="utf-8") as f:
        f.write("theirs")
    run.interrupt()
    result = run.wait()
    assert result.code == FAILED and len(result.sentences()) == 1, result
    assert open(path, encoding="utf-8").read() == "theirs"
    assert path + ".part" in result.sentences()[0], result
    assert hb.window(path + ".part").of("offcpu")


# ---- loss ------------------------------------------------------------------------------------------------------


def test_strict_is_content_without_loss(hb, tick):
    # some kernels keep programs out of a switch now and then (cause `missed`): a share that is no failure of the rings
    hb.run("trace", "-p", tick.pid, "-d", "1s", "-o", "w.hbw", "--strict=5%", code=OK)


def test_strict_with_loss(hb, pingpong):
    """A ring of one page cannot hold what comes between two looks: recorded, kept, counted, and exit 5."""
    result = hb.run("trace", "-p", pingpong.pid, "-d", "2s", "-o", "w.hbw", "--buffer", "4KiB", "--strict", "--syscalls", "all",
                    timeout=90)
    assert result.code == LOSS and len(result.sentences()) == 1, result
    path = os.path.join(hb.folder, "w.hbw")
    w = whole(hb, path)
    said = re.search(r"(\d+) of (\d+) records", result.sentences()[0])
    lost, total = int(said[1]), int(said[2])
    # a tick that did not come is no record that was lost
    ticks = sum(r["count"] for r in w.loss["rows"] if r["cause"] == "missed" and r.get("of") == "sample")
    assert w.loss["ring_full"] > 0 and lost == w.lost() - ticks and total > lost
    report = hb.run("report", path, code=OK)
    assert "ring_full" in report.out and "ring_full" in result.out
    assert sum(r["count"] for r in w.loss["rows"] if r["cause"] == "ring_full") == w.loss["ring_full"]
    # one hundred percent may be lost: content
    hb.run("trace", "-p", pingpong.pid, "-d", "1s", "-o", "x.hbw", "--buffer", "4KiB", "--strict=100%", "--syscalls", "all", code=OK)


def unfinished(window):
    return sum(r["count"] for r in window.loss["rows"] if r["cause"] == "unfinished" and r.get("of") == "syscall")


def test_calls_that_do_not_return_are_counted(hb, start):
    """--syscalls all: a call that began before the window or goes on after it has no record; its half is announced."""
    asleep = start(["sleep", "600"])
    path, _, _ = tracing.around(hb, lambda: time.sleep(0.2), "-p", asleep.pid, "--syscalls", "all")
    w = hb.window(path)
    assert not w.of("syscall", pid=asleep.pid) and unfinished(w) == 0, "in all of the window it did nothing"
    waiting = start([sys.executable, "-c", "import sys, time\nprint('ready', flush=True)\nsys.stdin.readline()\ntime.sleep(600)"],
                    ready="ready", stdin=subprocess.PIPE)

    def act():
        waiting.popen.stdin.write(b"\n")
        waiting.popen.stdin.flush()
        time.sleep(0.5)

    path, _, _ = tracing.around(hb, act, "-p", waiting.pid, "--syscalls", "all", name="waiting.hbw")
    w = hb.window(path)
    # the read that was going on at the begin, and the sleep that goes on at the end
    assert unfinished(w) == 2 and not w.of("syscall", pid=waiting.pid, name="clock_nanosleep"), w.loss


# ---- where the file goes ---------------------------------------------------------------------------------------


def in_read_only_folder(command_env_tmp):
    script = 'mount -t tmpfs none /mnt && mount -o remount,ro /mnt && cd /mnt && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", "env", f"TMPDIR={command_env_tmp}", "sh", "-c", script, "sh"]


def test_default_name_in_a_folder_that_cannot_be_written(hb, tick, tmp_path):
    """HOST-PID-TIME.hbw in the current folder, else in the temporary one."""
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    result = hb.run("trace", "-p", tick.pid, "-d", "1s", prefix=in_read_only_folder(tmp), code=OK)
    files = os.listdir(tmp)
    assert len(files) == 1 and re.fullmatch(rf".+-{tick.pid}-\d{{8}}T\d{{6}}\.hbw", files[0]), files
    assert str(tmp / files[0]) in result.err, result
    assert whole(hb, str(tmp / files[0])).of("offcpu")


def test_default_name_in_the_current_folder(hb, tick):
    hb.run("trace", "-p", tick.pid, "-d", "1s", code=OK)
    files = [f for f in os.listdir(hb.folder) if f.endswith(".hbw")]
    assert len(files) == 1 and re.fullmatch(rf".+-{tick.pid}-\d{{8}}T\d{{6}}\.hbw", files[0]), files
    assert os.stat(os.path.join(hb.folder, files[0])).st_mode & 0o777 == 0o600


def test_nowhere_to_write(hb, tick):
    result = hb.run("trace", "-p", tick.pid, "-d", "1s", "-o", "/mnt/w.hbw", prefix=in_read_only_folder("/mnt"))
    assert result.code == FAILED and len(result.err.splitlines()) == 1 and "/mnt" in result.err, result
    assert alive(tick.pid)


# ---- summary ---------------------------------------------------------------------------------------------------


def test_standard_output_is_full(hb, tick):
    """The summary cannot be printed: said, with the name of the window, which is kept."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        run = subprocess.run([hb.path, "trace", "-p", str(tick.pid), "-d", "1s", "-o", os.path.join(hb.folder, "w.hbw")],
                             stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    lines = [l for l in run.stderr.splitlines() if l.startswith("herschel-bpf: ")]
    assert run.returncode == FAILED and len(lines) == 1 and "w.hbw" in lines[0], run
    assert whole(hb, os.path.join(hb.folder, "w.hbw")).of("offcpu")


def test_a_target_that_is_gone_before(hb, start):
    target = start(["true"])
    target.wait()
    result = hb.run("trace", "-p", target.pid, "-d", "1s")
    assert result.code == TARGET and len(result.err.splitlines()) == 1, result
    assert json.dumps(os.listdir(hb.folder)) == "[]"
