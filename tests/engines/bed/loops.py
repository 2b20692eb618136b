# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the engines without a server share: they print "ready", then read lines from standard input; a number runs the loop for
so many seconds and is answered by a line {"done": ..}. End of input ends the program."""
import json
import sys
import time


def serve(step, log):
    """step(): one unit of work, returns its row; rows go to the file `log`."""
    with open(log, "a", buffering=1, encoding="utf-8") as rows:
        print(json.dumps({"ready": True}), flush=True)
        for line in sys.stdin:
            end = time.monotonic() + float(line)
            done = 0
            while time.monotonic() < end:
                begin = time.monotonic_ns()
                row = {"start_ns": begin, **step(), "end_ns": time.monotonic_ns()}
                rows.write(json.dumps(row) + "\n")
                done += 1
            print(json.dumps({"done": done}), flush=True)
