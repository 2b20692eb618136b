# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""A target that sleeps and wakes a thousand times a second, or as often as the machine lets it, and says how often it did."""
import mmap
import os
import struct
import sys

from .processes import wait_for

CODE = """
import mmap, struct, sys, time
with open(sys.argv[1], "r+b") as f:
    said = mmap.mmap(f.fileno(), 16)
print("ready", flush=True)
n = 0
while True:
    time.sleep(0.001)
    n += 1
    said[:16] = struct.pack("qq", n, time.monotonic_ns())
"""


class Ticker:
    def __init__(self, start, folder, name="ticks"):
        path = os.path.join(str(folder), name)
        with open(path, "w+b") as f:
            f.truncate(16)
            self._said = mmap.mmap(f.fileno(), 16)
        self.process = start([sys.executable, "-c", CODE, path], ready="ready")
        self.pid, self.running, self.kill = self.process.pid, self.process.running, self.process.kill

    def count(self):
        """Sleeps that it has come back from."""
        return struct.unpack("qq", self._said[:16])[0]

    def last_ns(self):
        """When it came back from the last one, CLOCK_MONOTONIC."""
        return struct.unpack("qq", self._said[:16])[1]

    def more(self, n):
        """Waits until it has come back from n further ones, however long that takes here."""
        until = self.count() + n
        wait_for(lambda: self.count() >= until, timeout=120, what=f"{n} sleeps")
