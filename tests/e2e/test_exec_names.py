# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a process is called after it became another program."""
import subprocess

import pytest

from lib import tracing
from lib.processes import wait_for

pytestmark = pytest.mark.beside

# Children that start on one CPU and exec on another: fork and exec of one arrive by different rings.
SHELL = """
echo ready
read go
i=0
while [ $i -lt 40 ]; do
	dd if=/dev/zero of=/dev/null bs=1 count=50 2>/dev/null
	i=$((i + 1))
done
echo done
read end
"""


def test_child_has_the_name_of_its_program(hb, start):
    target = start(["sh", "-c", SHELL], ready="ready", stdin=subprocess.PIPE)

    def act():
        target.popen.stdin.write(b"go\n")
        target.popen.stdin.flush()
        wait_for(lambda: "done" in target.output(), timeout=60, what="the last child")

    path, _, _ = tracing.around(hb, act, "-p", target.pid)
    w = hb.window(path)
    execs = w.of("exec", name="dd")
    assert len(execs) == 40
    assert {r["comm"] for r in execs} == {"dd"}
    assert {r["comm"] for r in w.of("exit") if r["pid"] != target.pid} == {"dd"}
