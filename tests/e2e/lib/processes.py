# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes that a test starts and that must be gone when it ends."""
import os
import signal
import subprocess
import tempfile
import time


class NotReady(AssertionError):
    """A target did not come up; the text holds what it printed."""


def wait_for(condition, timeout=10.0, what="the condition", every=0.02):
    """Polls until `condition()` is true and returns its value; AssertionError after `timeout` seconds."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen within {timeout:g} s")
        time.sleep(every)


def alive(pid):
    """True while the process runs (a zombie does not)."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def children(pid):
    """All descendants of a process, itself included, parents first."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as f:
                    parents.setdefault(int(f.read().rsplit(")", 1)[1].split()[1]), []).append(int(name))
            except (OSError, IndexError):
                pass  # it ended while we looked
    found = [pid]
    for p in found:
        found += parents.get(p, [])
    return found


class Process:
    """A process in a session of its own, with its output in a file (a pipe nobody reads would stop it)."""

    def __init__(self, command, ready=None, timeout=30.0, env=None, cwd=None, stdin=subprocess.DEVNULL, **more):
        """`ready`: a text that appears in its output, or a function of no arguments; None: started is enough."""
        self.command = [str(c) for c in command]
        self._out = tempfile.TemporaryFile(mode="w+b")
        full = None if env is None else dict(os.environ, **{k: str(v) for k, v in env.items()})
        self.popen = subprocess.Popen(self.command, stdin=stdin, stdout=self._out, stderr=subprocess.STDOUT, env=full,
                                      cwd=cwd, start_new_session=True, **more)
        self.pid = self.popen.pid
        if ready is not None:
            self._await(ready, timeout)

    def _await(self, ready, timeout):
        check = ready if callable(ready) else (lambda: ready in self.output())
        end = time.monotonic() + timeout
        while not check():
            if self.popen.poll() is not None and not check():
                raise NotReady(f"{self.command} ended with {self.popen.returncode}:\n{self.output()}")
            if time.monotonic() > end:
                text = self.output()
                self.kill()
                raise NotReady(f"{self.command} was not ready within {timeout:g} s:\n{text}")
            time.sleep(0.02)

    def output(self):
        """Everything it printed so far."""
        # pread: the child shares the file position with us, so it must not be moved.
        size = os.fstat(self._out.fileno()).st_size
        return os.pread(self._out.fileno(), size, 0).decode(errors="replace")

    def running(self):
        return self.popen.poll() is None

    def signal(self, number):
        self.popen.send_signal(number)

    def wait(self, timeout=60.0):
        """Exit status (negative: signal)."""
        return self.popen.wait(timeout)

    def stop(self, timeout=10.0):
        """SIGTERM, then SIGKILL, to the whole session; returns the exit status."""
        if self.running():
            self._all(signal.SIGTERM)
            try:
                self.popen.wait(timeout)
            except subprocess.TimeoutExpired:
                pass
        return self.kill()

    def kill(self):
        """SIGKILL to the process and every descendant; returns the exit status."""
        self._all(signal.SIGKILL)
        return self.popen.wait(20)

    def _all(self, number):
        pids = children(self.pid) if self.running() else []
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass
        for pid in pids:  # those that left the session
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
