# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A control group with a CPU quota, in whatever hierarchy this machine has."""
import contextlib
import os
import time

QUOTA_US, PERIOD_US = 40000, 100000
V1 = ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct")
V2 = "/sys/fs/cgroup"


def _root():
    """(version, folder) of the hierarchy that has the CPU controller."""
    for folder in V1:
        if os.path.exists(os.path.join(folder, "cpu.cfs_period_us")):
            return 1, folder
    try:
        with open(os.path.join(V2, "cgroup.subtree_control"), encoding="ascii") as f:
            return (2, V2) if "cpu" in f.read().split() else (0, None)
    except OSError:
        return 0, None


def why_not():
    version, folder = _root()
    if not version:
        return "no control group hierarchy with a CPU controller here"
    return None if os.access(folder, os.W_OK) else f"{folder} is read-only here"


def _write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="ascii") as f:
        f.write(text)


def _move(folder, pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            _write(folder, "cgroup.procs", str(pid))


def _home():
    """The group that this process is in."""
    version, root = _root()
    with open("/proc/self/cgroup", encoding="ascii") as f:
        rows = [line.strip().split(":", 2) for line in f]
    path = next((path for _, names, path in rows if ("cpu" in names.split(",") if version == 1 else not names)), "/")
    folder = os.path.join(root, path.lstrip("/"))
    return folder if os.path.isdir(folder) else root


@contextlib.contextmanager
def limited(side, pids, quota_us):
    """The same for processes that run already, and not for longer than this."""
    with quota(side, quota_us) as folder:
        _move(folder or _home(), pids)
        try:
            yield
        finally:
            _move(_home(), pids)


@contextlib.contextmanager
def quota(side, quota_us=QUOTA_US):
    """For the side with the cause. Its path is in HB_CGROUP for processes that are started meanwhile, which join it."""
    if side != "cause":
        yield None
        return
    version, root = _root()
    folder = os.path.join(root, f"herschel-scenario-{os.getpid()}")
    os.mkdir(folder)
    try:
        if version == 1:
            _write(folder, "cpu.cfs_period_us", str(PERIOD_US))
            _write(folder, "cpu.cfs_quota_us", str(quota_us))
            _write(folder, "cpu.shares", "262144")  # what else runs on the machine is not part of the scenario
        else:
            _write(folder, "cpu.max", f"{quota_us} {PERIOD_US}")
            _write(folder, "cpu.weight", "10000")
        os.environ["HB_CGROUP"] = folder
        yield folder
    finally:
        os.environ.pop("HB_CGROUP", None)
        for _ in range(50):  # the kernel needs a moment after the last process
            try:
                os.rmdir(folder)
                break
            except OSError:
                time.sleep(0.1)
