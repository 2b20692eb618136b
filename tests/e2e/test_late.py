# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What comes up during the window: libraries, children, other programs, threads, a second copy of the runtime. From the moment
that the window names as probed, every call is there (simulated accelerator)."""
import json
import os
import shutil
import subprocess

import pytest

from lib import exact, paths
from lib.exact import truth
from lib.processes import wait_for

pytestmark = pytest.mark.beside

RUNTIME = "libcudart.so.13"


@pytest.fixture
def late(hb, workload, tmp_path):
    """Starts accel_loop at rest, opens a window, lets it go, and reads the window at its end."""
    folder = str(tmp_path / "truth")
    os.mkdir(folder)

    def run(*args):
        target = workload("accel_loop", "--lib", paths.built("sim", RUNTIME), "--wait", "--rate", 1000, *args, ready='"ready"',
                          stdin=subprocess.PIPE,
                          # A copy elsewhere finds the driver as those of wheels do, whichever of the two is asked first.
                          env={"HB_SIM_TRUTH": folder, "LD_LIBRARY_PATH": paths.built("sim")})
        path, running = hb.open("-p", target.pid, "-d", "60s")
        target.popen.stdin.write(b"\n")
        target.popen.stdin.flush()
        wait_for(lambda: '"done"' in target.output() or not target.running(), timeout=60, what="the end of the calls")
        running.interrupt()
        window = hb.read(path, running)
        said = [json.loads(l) for l in target.output().splitlines() if '"counts"' in l]
        assert said and all(s["errors"] == 0 for s in said), target.output()
        return target, window, truth.read(folder)

    return run


def probed_since(window, pid):
    """When the last of a process's libraries was probed, monotonic ns."""
    rows = window.of("probed", pid=pid)
    assert rows, f"nothing says that {pid} was probed"
    return window.head["start_ns"] + max(r["ts"] for r in rows)


def assert_exact_since_probed(window, log, pid, at_least):
    """All calls from then on; and that this was soon enough to be most of them."""
    since = probed_since(window, pid)
    out = exact.compare(window, log, pids=[pid], since=since)
    assert not out.wrong, "\n".join(out.wrong)
    assert out.recorded == out.calls and sum(out.calls.values()) >= at_least, sum(out.calls.values())
    return since


def assert_loss_is_late(window):
    """Each stretch that a library lived unprobed is one loss, and nothing else was lost."""
    loss = exact.losses(window)
    stretches = [r for r in window.of("probed") if r["late_ns"]]
    assert stretches and loss.pop("late", 0) == len(stretches)
    assert not loss, loss


def test_libraries_loaded_in_the_window(late):
    target, window, log = late("--launches", 2000, "--copies", 300, "--syncs", 300, "--driver-launches", 100)
    assert_exact_since_probed(window, log, target.pid, 500)
    assert_loss_is_late(window)
    assert {"libcuda.so.1", RUNTIME} <= {os.path.basename(r["file"]) for r in window.of("probed") if r["late_ns"] > 0}
    mapped = {os.path.basename(r["path"]) for r in window.of("map", pid=target.pid)}
    assert {"libcuda.so.1", RUNTIME} <= mapped
    assert window.calls()["cuLaunchKernel"] and window.calls()["cudaMemcpyAsync"]


def test_children(late):
    target, window, log = late("--fork", 3, "--launches", 1500, "--copies", 200, "--syncs", 200)
    children = [r["pid"] for r in window.of("process", how="forked")]
    assert len(children) == 3 and target.pid not in children
    assert set(log.pids()) >= set(children)
    for pid in children:
        assert_exact_since_probed(window, log, pid, 300)
    assert {r["ppid"] for r in window.of("process", how="forked")} == {target.pid}
    assert_loss_is_late(window)
    exits = [r for r in window.of("exit") if r["pid"] in children and r["last"]]
    assert len(exits) == 3 and all(r["code"] == 0 for r in exits)


def test_exec(late):
    target, window, log = late("--exec", "--launches", 2000, "--copies", 200, "--syncs", 200)
    assert [r["pid"] for r in window.of("exec")] == [target.pid]
    assert_exact_since_probed(window, log, target.pid, 500)
    assert_loss_is_late(window)


def test_threads_that_come_later(late):
    target, window, log = late("--threads", 4, "--stagger-ms", 300, "--launches", 800, "--copies", 100, "--syncs", 100)
    since = assert_exact_since_probed(window, log, target.pid, 1500)
    made = {r["tid"] for r in window.of("thread", how="forked")}
    assert len(made) == 4
    assert made <= {r["tid"] for r in window.of("accel") if r["ts"] + window.head["start_ns"] >= since}


def test_two_copies_of_the_runtime(late, tmp_path):
    """As Python wheels rename it: both are probed, under their own names."""
    copy = str(tmp_path / "libcudart.e8e8b82a.so.12")
    shutil.copy(paths.built("sim", RUNTIME), copy)
    target, window, log = late("--second", copy, "--threads", 2, "--launches", 1500, "--copies", 300, "--syncs", 300)
    assert_exact_since_probed(window, log, target.pid, 1000)
    assert {RUNTIME, os.path.basename(copy)} <= {os.path.basename(r["file"]) for r in window.of("probed")}
    by_thread = window.by("tid", "name")
    calling = {r["tid"] for r in window.of("accel", name="cudaMemcpyAsync")}
    assert len(calling) == 2 and all(by_thread[(t, "cuLaunchKernel")] > 0 for t in calling)
