# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""How long attaching and detaching takes, with all probes of the simulated driver, runtime and NCCL in each process:
bench_attach.py [PROCESSES ..] (default 1 20). Nothing is asserted: figures depend on the machine."""
import os
import subprocess
import sys
import time

from benchlib import SIM, Trace, Values, folder, host, meta, need_root

HOLD = "import ctypes, sys, time; [ctypes.CDLL(p) for p in sys.argv[1:]]; print('ready', flush=True); time.sleep(1000)"
LIBS = [os.path.join(SIM, n) for n in ("libcuda.so.1", "libcudart.so.13", "libnccl.so.2")]


def held(n):
    """`n` processes with the libraries mapped."""
    processes = [subprocess.Popen([sys.executable, "-c", HOLD, *LIBS], stdout=subprocess.PIPE, text=True) for _ in range(n)]
    for p in processes:
        p.stdout.readline()
    return processes


def measure(tmp, n, way, rounds):
    """Values of attach and detach in ns, and how many probes there were."""
    took, probes = {"attach_ns": Values(), "detach_ns": Values()}, 0
    processes = held(n)
    try:
        for _ in range(rounds):
            more = ("--single-uprobes",) if way == "single" else ()
            r = Trace(os.path.join(tmp, "attach.hbw"), ",".join(str(p.pid) for p in processes), *more).stop()
            probes = sum(p["probes"] for p in r["processes"])
            for key, values in took.items():
                values.add(meta(r, key))
            if way == "single":
                time.sleep(12)  # what is not closed after 0.3 s is closed behind the tool's back
    finally:
        for p in processes:
            p.kill()
            p.wait()
    return took, probes


def main():
    need_root()
    print(host())
    counts = [int(a) for a in sys.argv[1:]] or [1, 20]
    print("ms, median [middle half] and largest")
    with folder() as tmp:
        for n in counts:
            for way, rounds in (("uprobe_multi", 8), ("single", 2)):
                took, probes = measure(tmp, n, way, rounds)
                a, d = took["attach_ns"], took["detach_ns"]
                print(f"{n:3} processes, {probes:5} probes, {way:12} {rounds} windows: attach {a.text(1e6)} {a.at(1) / 1e6:.1f}, "
                      f"detach {d.text(1e6)} {d.at(1) / 1e6:.1f}", flush=True)


if __name__ == "__main__":
    main()
