# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the benchmarks share: medians with spread, the tool as a context manager, the verdict on a target."""
import contextlib
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("HB_BUILD") or os.path.join(ROOT, "build"))
HB = os.path.join(BUILD, "herschel-bpf")
SIM = os.path.join(BUILD, "sim")


def built(*parts):
    return os.path.join(BUILD, *parts)


class Values:
    """Measured values of one thing: median and the middle half."""

    def __init__(self, values=()):
        self.values = list(values)

    def add(self, value):
        self.values.append(value)

    @property
    def median(self):
        return statistics.median(self.values)

    def at(self, share):
        v = sorted(self.values)
        return v[min(len(v) - 1, int(share * len(v)))]

    def text(self, scale=1.0, form="%.1f"):
        return f"{form} [{form}..{form}]" % (self.median / scale, self.at(0.25) / scale, self.at(0.75) / scale)


def ratio(a, b):
    """Values of b over those of a, pair by pair."""
    return Values(y / x for x, y in zip(a.values, b.values))


def target(what, met, why=""):
    print(f"target {what}: {'met' if met else 'missed'}{' (' + why + ')' if why else ''}")


def host():
    with open("/proc/loadavg", encoding="utf-8") as f:
        load = f.read().split()[0]
    return f"{os.cpu_count()} CPUs, kernel {os.uname().release}, load {load} at the start"


def bystander(rounds=5):
    out = subprocess.run([built("tests", "bench", "bench_bystander"), str(rounds)], stdout=subprocess.PIPE, check=True)
    return json.loads(out.stdout)


@contextlib.contextmanager
def folder():
    path = tempfile.mkdtemp(prefix="hb-bench-")
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


class Trace:
    """`herschel-bpf trace` running on a pid. stop() ends the window and returns its JSON report."""

    def __init__(self, path, pid, *more, duration="120s"):
        self.path = path
        self.popen = subprocess.Popen([HB, "trace", "-p", str(pid), "-d", duration, "-o", path, "--force", "--quiet", *more],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 30
        while not os.path.exists(path + ".part") and self.popen.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)  # the file is there before all probes are

    def stop(self):
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGINT)
        return self.end()

    def end(self):
        _, err = self.popen.communicate(timeout=120)
        if self.popen.returncode != 0:
            raise RuntimeError(f"trace failed: {err.strip()}")
        done = subprocess.run([HB, "report", "--json", self.path], stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout)


@contextlib.contextmanager
def idle():
    """A process that does nothing."""
    p = subprocess.Popen(["sleep", "1000"])
    try:
        yield p.pid
    finally:
        p.kill()
        p.wait()


def meta(report, key):
    return int(report["window"]["meta"][key])


def need_root():
    if os.geteuid() != 0:
        print("not measured: tracing needs root")
        sys.exit(0)
