# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What all processes of the engine share: names and fate of processes, messages, the log of steps."""
import ctypes
import json
import os
import signal
import struct
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG, PR_SET_NAME = 1, 15
VOCABULARY = 32000


def thread_name(name):
    libc.prctl(PR_SET_NAME, name.encode()[:15], 0, 0, 0)


def become(name, parent=None):
    """Names the process; with a parent, dies with it."""
    thread_name(name)
    if parent:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked
            os._exit(1)


def python(module, *args):
    """Command line of another process of the engine."""
    return [sys.executable, "-u", "-m", "mini_llm." + module] + [str(a) for a in args]


def token_of(request, position):
    """The token a request yields at a position: known to whoever checks, different for all."""
    x = (request * 0x9E3779B97F4A7C15 + position * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    return (x ^ (x >> 31)) % VOCABULARY


def pack(message):
    data = json.dumps(message, separators=(",", ":")).encode()
    return struct.pack("<I", len(data)) + data


class Inbox:
    """Cuts a byte stream into messages."""

    def __init__(self):
        self.data = b""

    def feed(self, data):
        self.data += data
        out = []
        while len(self.data) >= 4:
            n = struct.unpack_from("<I", self.data)[0]
            if len(self.data) < 4 + n:
                break
            out.append(json.loads(self.data[4:4 + n].decode()))
            self.data = self.data[4 + n:]
        return out


class StepLog:
    """One JSON line a step, with the calls it made: DIR/NAME.PID.steps.jsonl. Nothing without DIR."""

    def __init__(self, directory, name):
        self.file = None
        if directory:
            path = os.path.join(directory, "%s.%d.steps.jsonl" % (name, os.getpid()))
            self.file = open(path, "a", buffering=1)

    def write(self, **fields):
        if self.file:
            self.file.write(json.dumps(fields, separators=(",", ":")) + "\n")


now = time.monotonic_ns
