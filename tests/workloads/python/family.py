# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Children of all kinds, made while it is traced: by fork, by fork and exec of another Python (argv[1]), and short-lived ones."""
import os
import sys
import time


def in_child():
    time.sleep(0.03)


def in_short_child():
    time.sleep(0.012)


def family():
    for job in (in_child, in_short_child):
        pid = os.fork()
        if not pid:
            job()
            os._exit(0)
        os.waitpid(pid, 0)
    code = "import time\ndef in_other():\n    time.sleep(0.05)\nwhile time.monotonic() < %r: in_other()\n" % (time.monotonic() + 0.8)
    pid = os.fork()
    if not pid:
        os.execv(sys.argv[1], [sys.argv[1], "-c", code])
    os.waitpid(pid, 0)


print("ready", flush=True)
while True:
    family()
