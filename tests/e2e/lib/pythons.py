# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""CPythons that are not this machine's: roots of scripts/pythons, each with its own C library, entered by chroot."""
import functools
import os
import shutil
import subprocess
import tempfile

import pytest

from . import paths

SIMULATED = ("libcudart.so.13", "libcuda.so.1")


@functools.lru_cache(maxsize=None)
def _row(name):
    try:
        done = subprocess.run([paths.source("scripts", "pythons"), name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=240)
    except subprocess.TimeoutExpired:
        return "could not be fetched within 240 s; run scripts/pythons"
    last = (done.stdout.strip().splitlines() or ["no output"])[-1]
    return last.split() if last.startswith(f"{name} ") else last


class Other:
    """One of them, with a folder of this test's inside of it that goes away with close()."""

    def __init__(self, name):
        row = _row(name)
        if isinstance(row, str):
            pytest.skip(row)
        if os.geteuid():
            pytest.skip("chroot needs root")
        self.name, self.root, self.program = row
        self.folder = tempfile.mkdtemp(prefix="hb-test-", dir=os.path.join(self.root, "tmp"))

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def put(self, path, name=None):
        """Copies a file; its path as programs in there see it."""
        inside = os.path.join(self.folder, name or os.path.basename(path))
        shutil.copy(path, inside)
        return inside[len(self.root):]

    def simulated(self):
        """The simulated accelerator's runtime, and the driver that it loads."""
        return [self.put(paths.built("sim", f)) for f in SIMULATED][0]

    def command(self, *args):
        return ["chroot", self.root, self.program, *args]
