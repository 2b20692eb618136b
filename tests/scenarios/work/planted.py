# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the workloads of the scenarios share: they keep the truth of what they did, and a device to work on.

A workload runs until SIGTERM and then leaves what it knows in HB_PLANTED, one JSON object a line. Nothing is written while it
runs, so that keeping the truth costs no system call."""
import contextlib
import ctypes  # noqa: F401 (for workloads)
import json
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "workloads"))
from mini_llm.base import PR_SET_NAME, libc  # noqa: E402
from mini_llm.gpu import D2H, H2D, Gpu  # noqa: E402,F401

now = time.monotonic_ns
_rows, _children, _stop = [], [], []  # the last: signals that came; a lock is nothing for their handler
_live = []  # the file that rows go to at once


def running():
    return not _stop


def begin():
    """To be called first, by the main thread of each process."""
    signal.signal(signal.SIGTERM, lambda *_: _stop.append(True))


def ready():
    print("ready", flush=True)


def live():
    """For what is a part of another program, which does not end with its scenario: rows are written as they come."""
    _live.append(open(os.path.join(os.environ["HB_PLANTED"], "%d.jsonl" % os.getpid()), "a", buffering=1, encoding="utf-8"))


def keep(row):
    if _live:
        _live[0].write(json.dumps(row) + "\n")
    else:
        _rows.append(row)


def child(function, *args):
    """A process of the engine, which begins and leaves by itself; the signal to end comes to all of them."""
    pid = os.fork()
    if pid == 0:
        _children.clear()
        begin()
        function(*args)
        leave()
        os._exit(0)
    _children.append(pid)


def leave():
    """Writes the truth of this process and waits for its children; to be called last."""
    with open(os.path.join(os.environ["HB_PLANTED"], "%d.jsonl" % os.getpid()), "w", encoding="utf-8") as f:
        for row in _rows:
            f.write(json.dumps(row) + "\n")
    for pid in _children:
        os.waitpid(pid, 0)


def thread(role):
    """Names the calling thread, for the kernel and in the truth."""
    libc.prctl(PR_SET_NAME, role.encode()[:15], 0, 0, 0)
    keep({"thread": role, "pid": os.getpid(), "tid": threading.get_native_id()})


def note(kind, begin_ns, end_ns, **more):
    """Something that the calling thread did, from begin to end."""
    keep({"span": kind, "tid": threading.get_native_id(), "begin": begin_ns, "end": end_ns, **more})


@contextlib.contextmanager
def span(kind, **more):
    t, ran = now(), time.thread_time_ns()
    try:
        yield
    finally:
        note(kind, t, now(), cpu=time.thread_time_ns() - ran, **more)


def work(seconds):
    """Python code that needs so much CPU time."""
    end, x = time.thread_time() + seconds, 0
    while time.thread_time() < end:
        for i in range(200):
            x += i
    return x


class Device:
    """One stream of the simulated accelerator, with kernels whose time HB_SIM_COSTS knows by name."""

    def __init__(self, rank=0):
        self.gpu = Gpu(os.environ["HB_SIM_LIB"])
        self.gpu.cudaSetDevice(rank)
        self.stream = self.gpu.out(self.gpu.cudaStreamCreateWithFlags, 1)
        self.kernels, self.events = {}, []

    def launch(self, name, times=1):
        kernel = self.kernels.get(name) or self.kernels.setdefault(name, self.gpu.register(name))
        for _ in range(times):
            self.gpu.launch(kernel, 132, 256, self.stream)

    def wait(self):
        """For all that was launched."""
        self.gpu.cudaStreamSynchronize(self.stream)

    def mark(self):
        """The end of a step that somebody will wait for."""
        event = self.gpu.out(self.gpu.cudaEventCreateWithFlags, 2)
        self.gpu.cudaEventRecord(event, self.stream)
        self.events.append(event)

    def wait_for_marks(self, left=0):
        """For the oldest marks, until so many are left: an engine that runs `left` steps ahead."""
        while len(self.events) > left:
            event = self.events.pop(0)
            self.gpu.cudaEventSynchronize(event)
            self.gpu.cudaEventDestroy(event)
