# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What tracing takes: attaching, memory, CPU of its own, bystanders, the rate end to end. One section each:
bench_trace.py [attach] [self] [bystanders] [storm]"""
import glob
import json
import os
import subprocess
import sys
import time

from benchlib import BUILD, SIM, Trace, Values, bystander, built, folder, host, idle, meta, need_root, ratio, target

HOLD = "import ctypes, sys, time; [ctypes.CDLL(p) for p in sys.argv[1:]]; print('ready', flush=True); time.sleep(1000)"


def real_runtime():
    for pattern in ("/usr/local/cuda*/lib64/libcudart.so.1[0-9]", "/usr/local/lib/libcudart.so.1[0-9]"):
        found = sorted(glob.glob(pattern))
        if found:
            return found[-1]
    return None


def attach_once(tmp, pid, way, took):
    r = Trace(os.path.join(tmp, "attach.hbw"), pid, *(("--single-uprobes",) if way == "single" else ())).stop()
    for key in took[way]:
        took[way][key].add(meta(r, key))
    return r["processes"][0]["probes"]


def attach(tmp, rounds=12, single_rounds=3):
    """One process with the real CUDA runtime. Single links are few windows with pauses: what is not closed after 0.3 s
    is closed behind the tool's back, and would make the next window wait."""
    lib = real_runtime()
    if not lib:
        print("attach: not measured, no libcudart.so under /usr/local")
        return
    p = subprocess.Popen([sys.executable, "-c", HOLD, lib], stdout=subprocess.PIPE, text=True)
    p.stdout.readline()
    took = {way: {"attach_ns": Values(), "detach_ns": Values()} for way in ("uprobe_multi", "single")}
    try:
        for n in range(rounds):
            probes = attach_once(tmp, p.pid, "uprobe_multi", took)
            if n % (rounds // single_rounds) == 0:
                attach_once(tmp, p.pid, "single", took)
                time.sleep(12)
    finally:
        p.kill()
        p.wait()
    print(f"attach: {probes} probes in {lib}; ms, median [middle half] and largest")
    for way, v in took.items():
        a, d = v["attach_ns"], v["detach_ns"]
        print(f"  {way:13} {len(a.values):2} windows: attach with reading and planning {a.text(1e6)} {a.at(1) / 1e6:.1f},"
              f" detach of everything {d.text(1e6)} {d.at(1) / 1e6:.1f}")
    target("attach of about 60 probes in 100 ms with uprobe_multi", took["uprobe_multi"]["attach_ns"].at(1) <= 100e6,
           f"{probes} probes")


def own(tmp, rounds=5):
    """CPU and memory of the tool on a process that does nothing, for 5 s."""
    cpu, rss = Values(), Values()
    with idle() as pid:
        for _ in range(rounds):
            r = Trace(os.path.join(tmp, "idle.hbw"), pid, duration="5s").end()
            cpu.add(meta(r, "self_cpu_ns"))
            rss.add(meta(r, "self_rss"))
    print(f"itself: an idle process for 5 s, {rounds} times: CPU {cpu.text(1e6)} ms, peak RSS {rss.text(1 << 20)} MiB")
    target("RSS of the collector at most 200 MB at default buffers", rss.at(1) <= 200e6, "idle target")


def bystanders(tmp, rounds=8):
    """Two processes that are not traced, while another one is."""
    states = {"untraced": None, "untraced again": None, "trace": (), "trace --syscalls all": ("--syscalls", "all")}
    call, turn = ({s: Values() for s in states} for _ in range(2))
    with idle() as pid:
        for _ in range(rounds):
            for state, more in states.items():
                t = None if more is None else Trace(os.path.join(tmp, "by.hbw"), pid, *more)
                b = bystander()
                if t:
                    t.stop()
                call[state].add(b["getppid_ns"])
                turn[state].add(b["turn_ns"])
    unit = call["untraced"].median
    print(f"bystanders: {rounds} rounds in turn; unit: a bare getppid, {unit:.0f} ns; ratios pair by pair to the first row")
    for s in states:
        c, t = ratio(call["untraced"], call[s]), ratio(turn["untraced"], turn[s])
        extra = (turn[s].median - turn["untraced"].median) / unit
        print(f"  {s:21} getppid x{c.text(1, '%.3f'):24} turn of a pipe {turn[s].text(1e3, '%.2f'):22} us"
              f" x{t.text(1, '%.3f'):24} {extra:+6.1f} units")


def storm_once(tmp, rate, ms=2000):
    p = subprocess.Popen([built("workloads", "storm"), "--lib", os.path.join(SIM, "libcuda.so.1"), "--mix", "--wait",
                          "--ms", str(ms), "--rate", str(rate)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    p.stdout.readline()
    t = Trace(os.path.join(tmp, "storm.hbw"), p.pid, "--syscalls", "none")
    p.stdin.write("\n")
    p.stdin.flush()
    said = json.loads(p.stdout.readline())
    time.sleep(0.2)
    r = t.stop()
    p.communicate("\n", timeout=20)
    return said, r


def storm(tmp, rounds=3):
    """End to end: threads that call the (simulated) driver as fast as they can, every call probed at its `cmp`."""
    print(f"storm: 2 threads on the simulated driver, {rounds} rounds; recorded = calls of probed functions")
    print(f"  {'asked/s':>9} {'calls/s':>9} {'recorded/s':>11} {'lost':>7} {'our CPU':>9}  largest price of a hit")
    for rate in (20000, 50000, 0):
        calls, recorded, lost, cpu, price = (Values() for _ in range(5))
        for _ in range(rounds):
            said, r = storm_once(tmp, rate)
            s = said["elapsed_ns"] / 1e9
            calls.add(said["calls"] / s)
            recorded.add(sum(c["count"] for c in r["calls"]) / s)
            lost.add(r["loss"]["ring_full"] + r["loss"]["unfinished"])
            cpu.add(meta(r, "self_cpu_ns") / s / 1e9)
            price.add(max(h["price_ns"] for h in r["receipt"]["hooks"]))
        print(f"  {rate or 'unpaced':>9} {calls.median:9.0f} {recorded.median:11.0f} {lost.at(1):7.0f} {cpu.median:8.1%}"
              f"  {price.median / 1e3:.1f} us")


SECTIONS = {"attach": attach, "self": own, "bystanders": bystanders, "storm": storm}


def main():
    need_root()
    print(f"-- tracing, {BUILD}: {host()}")
    with folder() as tmp:
        for name in sys.argv[1:] or SECTIONS:
            SECTIONS[name](tmp)


if __name__ == "__main__":
    main()
