# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A window around something that a test does."""
import os

from .processes import wait_for
from .tool import OK


def begin(tool, *args, duration="60s", name="w.hbw", **more):
    """Starts `trace` and returns (Running, path) when the window is open: whatever happens from now on is in it."""
    path = os.path.join(tool.folder, name)
    run = tool.start("trace", *args, "-d", duration, "-o", path, **more)

    def size():
        assert run.popen.poll() is None, run.wait()
        return os.path.exists(path + ".part") and os.path.getsize(path + ".part")

    # The file is made before the targets are armed; what it flushes once a second comes after.
    first = wait_for(size, timeout=60, what="the first bytes of the window")
    wait_for(lambda: size() > first, timeout=60, what="the window's first flush")
    return run, path


def around(tool, act, *args, code=OK, **more):
    """(path, Result, what act() returned) of a window that was open while act() ran."""
    run, path = begin(tool, *args, **more)
    value = act()
    if run.popen.poll() is None:
        run.interrupt()
    result = run.wait()
    assert result.code == code, result
    return path, result, value
