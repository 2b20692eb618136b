# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What Python stacks take: a walk of 6 and of 64 frames (run times that the kernel keeps of BPF programs, in pairs with the walk
off), reading 100,000 functions, and how many stacks of mini_llm are whole. bench_python.py [walk] [resolve] [whole] [--python P]"""
import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import time

from benchlib import HB, ROOT, SIM, Trace, Values, folder, host, need_root, target

LIB = os.path.join(SIM, "libcudart.so.13")
DEPTH = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
call = lib.cudaDeviceSynchronize
def down(n):
    if n > 1:
        down(n - 1)
    while True:
        call()
print("ready", flush=True)
down(int(sys.argv[2]) - 1)  # the module itself is one
"""
MANY = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
call = lib.cudaDeviceSynchronize
n, calls = int(sys.argv[2]), int(sys.argv[3])
call()  # loads the driver, whose coming is none of this
made = {"call": call}
for i in range(0, n, 1000):
    exec("".join(f"def made_{k}():\\n    {f'made_{k + 1}' if (k + 1) % 8 else 'call'}()\\n" for k in range(i, i + 1000)), made)
functions = [made[f"made_{k}"] for k in range(0, n, 8)]  # eight in a stack, as the kernel keeps 32,768 stacks of a window
print("ready", flush=True)
sys.stdin.readline()
for i in range(calls):
    functions[i % len(functions)]()
print("done", flush=True)
sys.stdin.readline()
"""


@contextlib.contextmanager
def running(python, code, *args):
    p = subprocess.Popen([python, "-c", code, LIB, *map(str, args)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        p.stdout.readline()
        yield p
    finally:
        p.kill()
        p.wait()


@contextlib.contextmanager
def run_times():
    """The kernel keeps the run times of BPF programs meanwhile."""
    path = "/proc/sys/kernel/bpf_stats_enabled"
    with open(path, encoding="utf-8") as f:
        before = f.read()
    try:
        with open(path, "w", encoding="utf-8") as f:
            f.write("1")
        yield
    finally:
        with open(path, "w", encoding="utf-8") as f:
            f.write(before)


def programs(pid):
    """{id: (runs, ns)} of the uprobe programs that a process holds."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="utf-8") as f:
                info = dict(re.findall(r"^(\w+):\s*(\S+)", f.read(), re.M))
        except OSError:
            continue
        if info.get("prog_type") == "2":
            found[info["prog_id"]] = (int(info["run_cnt"]), int(info["run_time_ns"]))
    return found


def per_call(tmp, pid, *more, seconds=2.0):
    """ns in uprobe programs for each call of the target."""
    t = Trace(os.path.join(tmp, "walk.hbw"), pid, "--frequency", "0", *more)
    try:
        a = programs(t.popen.pid)
        time.sleep(seconds)
        b = programs(t.popen.pid)
    finally:
        t.stop()
    ran = [(b[k][0] - a[k][0], b[k][1] - a[k][1]) for k in b if k in a]
    return sum(ns for _, ns in ran) / max(n for n, _ in ran)


def walk(tmp, python, pairs=5):
    with run_times():
        for depth, limit in ((6, 1000), (64, 3000)):
            cost = Values()
            with running(python, DEPTH, depth) as p:
                for _ in range(pairs):
                    off = per_call(tmp, p.pid, "--python", "off")
                    cost.add(per_call(tmp, p.pid) - off)
            print(f"walk of {depth} frames: {cost.text(1, '%.0f')} ns, best {min(cost.values):.0f}, {pairs} pairs")
            target(f"walk of {depth} frames in {limit / 1000:g} us", min(cost.values) <= limit)


def cpu_of(pid):
    """Seconds that a process has used."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def collector(tmp, python, functions, calls):
    """(seconds of the tool's CPU while so many functions make so many calls, its report)"""
    with running(python, MANY, functions, calls) as p:
        t = Trace(os.path.join(tmp, "many.hbw"), p.pid, "--frequency", "0")
        time.sleep(2)  # until all probes are there
        before = cpu_of(t.popen.pid)
        p.stdin.write("\n")
        p.stdin.flush()
        p.stdout.readline()
        time.sleep(1.5)
        used = cpu_of(t.popen.pid) - before
        return used, t.stop()


def resolve(tmp, python, n=100000):
    one, _ = collector(tmp, python, 1000, n // 8)
    many, report = collector(tmp, python, n, n // 8)
    seen = sum(p["operations"] for p in report["processes"])
    lost = {k: v for k, v in report["loss"].items() if v and isinstance(v, int)}
    print(f"{n} functions, {seen} calls seen: {many:.2f} s of the tool's CPU, with 1,000 functions {one:.2f} s; loss {lost}")
    target(f"{n} functions read in 1 s", seen >= n // 8 and not report["loss"]["stack_full"] + report["loss"]["python_unresolved"] and many - one <= 1.0)


def whole(tmp, python):
    env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "tests", "workloads"))
    engine = subprocess.Popen([python, "-m", "mini_llm.serve", "--workers", "2", "--lib", SIM], stdout=subprocess.PIPE, text=True, env=env)
    try:
        up = json.loads(engine.stdout.readline())
        t = Trace(os.path.join(tmp, "whole.hbw"), up["pid"])
        subprocess.run([python, "-m", "mini_llm.load", "--port", str(up["port"]), "--concurrency", "4", "--count", "24"],
                       stdout=subprocess.DEVNULL, env=env, check=True, timeout=120)
        t.stop()
    finally:
        engine.terminate()
        engine.wait(30)
    done = subprocess.run([HB, "export", t.path, "--format", "ndjson", "-o", "-"], stdout=subprocess.PIPE, text=True, check=True)
    n = good = 0
    for r in map(json.loads, done.stdout.splitlines()):
        if r["type"] != "accel":
            continue
        frames = [f["f"] for f in r.get("stack", ()) if f["lang"] == "py"]
        n += 1
        good += bool(frames) and "stack_state" not in r and "[python]" not in frames
    print(f"mini_llm: {good} of {n} stacks of accelerator calls are whole ({100 * good / max(1, n):.2f} %)")
    target("98 % of the stacks whole", n > 0 and good >= 0.98 * n)


SECTIONS = {"walk": walk, "resolve": resolve, "whole": whole}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("sections", nargs="*", metavar="SECTION", help=f"{list(SECTIONS)}, all without")
    p.add_argument("--python", default=sys.executable, help="the CPython that is traced")
    o = p.parse_args()
    need_root()
    print(f"# Python stacks: {host()}, {o.python}")
    with folder() as tmp:
        for name in o.sections or SECTIONS:
            SECTIONS[name](tmp, o.python)


main()
