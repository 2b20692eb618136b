# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A process in mount, pid and network namespaces of its own, with the whole accelerator on a file system that nobody else has
mounted (simulated accelerator)."""
import os

import pytest

from lib import exact, paths
from lib.exact import truth
from lib.processes import children, wait_for

pytestmark = pytest.mark.beside

CALLS = "--rate 2000 --threads 2 --launches 9999999 --graphs 9999999 --copies 9999999 --syncs 9999999 --driver-launches 9999999"


def program(pid, name):
    try:
        return os.path.basename(os.readlink(f"/proc/{pid}/exe")) == name
    except OSError:
        return False


def as_seen_outside(log, window):
    """The log with the process's ids of its own namespace replaced by the host's, as the window tells them."""
    pids = {p["nspid"]: p["pid"] for p in window.head["processes"]}
    tids = {r["nstid"]: r["tid"] for r in window.of("thread")}
    tids.update(pids)
    return truth.Log([c._replace(pid=pids[c.pid], tid=tids.get(c.tid, 0)) for c in log], log.dropped)


def test_everything_is_visible_only_there(hb, start, tmp_path):
    secret, folder = str(tmp_path / "only there"), str(tmp_path / "truth")
    os.makedirs(secret)
    os.makedirs(folder)
    if not os.path.exists(paths.built("workloads", "accel_loop")):
        pytest.skip("accel_loop is not built")
    script = (f'mount -t tmpfs none "{secret}" && cp "{paths.built("sim")}"/lib* "{paths.built("workloads", "accel_loop")}" '
              f'"{secret}" && exec "{secret}/accel_loop" --lib "{secret}/libcudart.so.13" {CALLS}')
    target = start(["unshare", "--mount", "--pid", "--net", "--fork", "--mount-proc", "--propagation", "private", "sh", "-c",
                    script], env={"HB_SIM_TRUTH": folder})
    pid = wait_for(lambda: next((p for p in children(target.pid) if program(p, "accel_loop")), None), what="the workload")
    wait_for(lambda: exact.calling(folder), what="the first calls")
    assert not os.listdir(secret), "the libraries are visible here"
    for ns in ("mnt", "pid", "net"):
        assert os.readlink(f"/proc/{pid}/ns/{ns}") != os.readlink(f"/proc/self/ns/{ns}")
    path, _ = hb.trace("-p", pid, duration="2s")
    target.kill()
    window = hb.window(path)
    [process] = window.head["processes"]
    assert (process["pid"], process["nspid"]) == (pid, 1) and process["exe"] == f"{secret}/accel_loop"
    seen = exact.assert_exact(window, as_seen_outside(truth.read(folder), window))
    assert seen.calls[(pid, "driver", "cuLaunchKernel")] > 500 and seen.calls[(pid, "runtime", "cudaMemcpyAsync")] > 100
    assert {r["file"] for r in window.of("probed")} >= {f"{secret}/libcuda.so.1", f"{secret}/libcudart.so.13"}
    [row] = hb.json(path)["processes"]
    assert (row["pid"], row["nspid"]) == (pid, 1)
