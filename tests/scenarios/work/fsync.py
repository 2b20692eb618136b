# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The thread that launches writes a journal and waits until it is on the disk, in each step.

    --aside    a thread of its own does, from a queue"""
import os
import queue
import sys
import threading

import planted
from planted import Device

KERNELS, ENTRY = 4, bytes(4 << 20)


class Journal:
    def __init__(self, kind):
        self.kind = kind
        self.fd = os.open("journal.log", os.O_CREAT | os.O_WRONLY)

    def append(self, entry):
        os.pwrite(self.fd, entry, 0)
        with planted.span(self.kind):
            os.fsync(self.fd)


def write_aside(journal, entries):
    planted.thread("journal")
    while planted.running():
        try:
            journal.append(entries.get(timeout=0.1))
        except queue.Empty:
            pass


def main():
    planted.begin()
    planted.thread("dispatch")
    device, journal, aside = Device(), Journal("aside" if "--aside" in sys.argv else "cause"), "--aside" in sys.argv
    entries = queue.Queue(4)
    if aside:
        threading.Thread(target=write_aside, args=(journal, entries), daemon=True).start()
    planted.ready()
    number = 0
    while planted.running():
        number += 1
        device.launch("layer_1ms", KERNELS)
        device.wait()
        if not aside:
            journal.append(ENTRY)
        elif not entries.full():
            entries.put(ENTRY)
    planted.leave()


if __name__ == "__main__":
    main()
