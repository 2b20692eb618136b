# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The program under test."""
import json
import os
import signal
import subprocess

from . import paths
from .processes import wait_for
from .window import Window

# Exit codes of every command.
OK, FAILED, USAGE, TARGET, KERNEL, LOSS = 0, 1, 2, 3, 4, 5


class Result:
    """What a run of the tool said."""

    def __init__(self, args, code, out, err):
        self.args, self.code, self.out, self.err = args, code, out, err

    def sentences(self):
        """Error lines: what the tool gave as the reason of a failure, without warnings and notes."""
        return [l for l in self.err.splitlines() if l.startswith("herschel-bpf: ") and
                not l.startswith(("herschel-bpf: warning: ", "herschel-bpf: note: "))]

    def __repr__(self):
        return f"$ {' '.join(map(str, self.args))}\nexit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


class Running:
    """A tool that runs beside the test."""

    def __init__(self, args, popen):
        self.args, self.popen, self.pid = args, popen, popen.pid

    def interrupt(self):
        self.popen.send_signal(signal.SIGINT)

    def kill(self):
        self.popen.kill()

    def wait(self, timeout=60):
        """Its Result; the tool is killed when it does not end in time."""
        try:
            out, err = self.popen.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            out, err = self.popen.communicate()
            raise AssertionError(f"{self.args} did not end within {timeout} s:\n{out}\n{err}") from None
        return Result(self.args, self.popen.returncode, out, err)


class Tool:
    """Runs build/herschel-bpf in a folder of the test's own, so that default file names land there."""

    def __init__(self, folder):
        self.path, self.folder, self._running = paths.TOOL, str(folder), []

    def start(self, *args, env=None, cwd=None, prefix=(), **more):
        """Starts it and returns at once."""
        command = [*map(str, prefix), self.path, *map(str, args)]
        full = None if env is None else dict(os.environ, **env)
        popen = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, errors="replace", env=full, cwd=cwd or self.folder, **more)
        running = Running(command, popen)
        self._running.append(running)
        return running

    def run(self, *args, timeout=60, code=None, **more):
        """Runs it to its end. `code`: the exit status that is demanded."""
        result = self.start(*args, **more).wait(timeout)
        if code is not None:
            assert result.code == code, result
        return result

    def trace(self, *args, duration="2s", timeout=90, **more):
        """A window of a target: (path, Result). Fails the test unless the tool ends with 0."""
        path = os.path.join(self.folder, f"window-{len(self._running)}.hbw")
        result = self.run("trace", *args, "-d", duration, "-o", path, timeout=timeout, code=OK, **more)
        return path, result

    def open(self, *args, **more):
        """Starts a trace and waits until its window is open: (path, Running)."""
        path = os.path.join(self.folder, f"window-{len(self._running)}.hbw")
        running = self.start("trace", *args, "-o", path, **more)
        wait_for(lambda: os.path.exists(path + ".part") or running.popen.poll() is not None, timeout=60,
                 what="the window's begin")
        return path, running

    def read(self, path, running, timeout=90):
        """The window of a trace that was opened, at its end."""
        result = running.wait(timeout)
        assert result.code == OK, result
        return self.window(path)

    def window(self, path, timeout=300):
        """Reads a window file through ndjson."""
        out = path + ".ndjson"
        self.run("export", path, "--format", "ndjson", "-o", out, "--force", timeout=timeout, code=OK)
        with open(out, encoding="utf-8") as f:
            return Window(f)

    def json(self, path, timeout=120):
        """`report --json` of a window file."""
        return json.loads(self.run("report", path, "--json", timeout=timeout, code=OK).out)

    def close(self):
        for r in self._running:
            if r.popen.poll() is None:
                r.popen.kill()
                r.popen.communicate()
