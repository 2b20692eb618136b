# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Python stacks where something is odd: frames that are broken on purpose, functions that vanish, children, other places of the
thread state; and the switches."""
import collections
import json
import re
import subprocess

import pytest

from lib import paths
from lib.tool import OK, USAGE
from test_python import CUDART, PROGRAM, PYTHONS, assert_same, each_python, python_frames, sleeps, truth_of

pytestmark = pytest.mark.beside

def version_key(name):
    return [int(n) for n in re.findall(r"\d+", name)]


ORDERED = [PYTHONS[name] for name in sorted(PYTHONS, key=version_key)] or ["python3"]
OLDEST, NEWEST = ORDERED[0], ORDERED[-1]


def workload(name):
    return paths.source("tests", "workloads", "python", name)


NAP_WITH = """#include <stdint.h>
#include <unistd.h>
void nap_with(uint64_t at, uint64_t value, unsigned us)
{
	volatile uint64_t *word = (void *)at;
	uint64_t kept = *word;
	*word = value;
	usleep(us);
	*word = kept;
}"""


@each_python
def test_broken_frames(hb, start, compile_c, python):
    """Loops, addresses of nothing and of the kernel: a bounded stack, counted, and both go on."""
    target = start([python, workload("hostile.py"), compile_c("nap.so", NAP_WITH, "-shared", "-fPIC")], ready="ready")
    path, _ = hb.trace("-p", target.pid, duration="2s")
    assert target.running()
    window = hb.window(path)
    naps = [r for r in window.of("offcpu") if r["state"] == "S" and r["dur"] > 10_000_000 and not r.get("before")]
    assert len(naps) > 24
    # The inner frames are right in all of them where the frame itself was not broken.
    inner = collections.Counter(python_frames(r)[-1][0] for r in naps if python_frames(r))
    assert inner["broken_caller"] > len(naps) // 5 and inner["whole"] > len(naps) // 3, inner
    assert all([f for f, _, _ in python_frames(r)] == ["<module>", "main", "caller", "whole"] for r in naps
               if python_frames(r)[-1:] and python_frames(r)[-1][0] == "whole")
    assert window.loss["python_truncated"] > 0 and window.loss["python_unreadable"] > 0
    assert all(len(r["stack"]) <= 254 for r in naps if "stack" in r)
    assert {r.get("stack_state") for r in naps} >= {"truncated", "broken"}


@each_python
def test_functions_that_vanish(hb, start, python):
    """Each is called by its own name, though many lay at one address."""
    target = start([python, workload("short_lived.py")], ready="ready")
    path, _ = hb.trace("-p", target.pid, duration="2s")
    window = hb.window(path)
    naps = sleeps(window)
    names = [python_frames(r)[-1][:2] for r in naps if python_frames(r)]
    assert len(names) > 50
    named = [n for n in names if re.match(r"made_\d{6}$", n[0])]
    # Function and file of one another, none twice, in order.
    assert [int(f[5:]) for f, _ in named] == [int(re.sub(r"\D", "", file)) for _, file in named]
    numbers = [int(f[5:]) for f, _ in named]
    assert len(set(numbers)) == len(numbers) and numbers == sorted(numbers)
    # Those that were gone before they were read are counted, not called by the name of another.
    missing = len(names) - len(named)
    assert not missing or window.loss["python_unresolved"] > 0
    print(f"{len(named)} of {len(names)} named")


@each_python
def test_outer_functions_that_vanish(hb, start, python):
    """Far out on the stack another function is not seen to lie where one was, until one of them is found to be gone: from then
    on each has its own name, and what may be wrong before is counted."""
    target = start([python, workload("short_lived_outer.py")], ready="ready")
    path, _ = hb.trace("-p", target.pid, duration="3s")
    window = hb.window(path)
    naps = [(r["ts"], [f for f, _, _ in python_frames(r)]) for r in sleeps(window) if python_frames(r)]
    names = [next((f for f in frames if f.startswith("made_")), None) for _, frames in naps]
    assert len(names) > 100 and all(frames[-3:] == ["middle", "inner", "nap"] for _, frames in naps)
    seen, wrong, unnamed = set(), 0, 0
    for name in names:  # each is called once: a name that came before is an earlier one's
        if name is None:
            unnamed += 1
            continue
        wrong += name in seen
        seen.add(name)
    assert wrong <= len(names) // 5
    assert not wrong or window.loss["python_replaced"] > 0
    assert not unnamed or window.loss["python_unresolved"] > 0
    late = [name for name in names[len(names) // 2:] if name]
    assert len(late) > len(names) // 4 and len(set(late)) == len(late) and late == sorted(late)
    print(f"{wrong} of {len(names)} under an earlier name, {unnamed} without")


@each_python
def test_constructors(hb, start, python):
    constructors(hb, start([python, workload("constructors.py")], ready="ready"))


def constructors(hb, target):
    """Specialised code that calls __init__ puts a frame of its own around it, which Python's tracebacks hide. Code without a
    file's name is somebody's code all the same."""
    path, _ = hb.trace("-p", target.pid, duration="2s")
    naps = [r for r in hb.window(path).of("offcpu") if r["dur"] >= 5_000_000 and r["tid"] == target.pid and not r.get("before")]
    assert len(naps) > 20
    seen = {tuple((f.split(".")[-1], bool(file)) for f, file, _ in python_frames(r)) for r in naps}
    assert seen == {(("<module>", True), ("build", True), ("__init__", True)), (("<module>", True), ("nameless", False))}


@each_python
def test_callers_lines(hb, start, python):
    """From one sleep to the next only a caller's line may have changed, next to it or far out: each sleep has its own."""
    target = start([python, workload("two_lines.py")], ready="ready")
    path, _ = hb.trace("-p", target.pid, duration="2s")
    truth = json.loads(target.output().splitlines()[0])
    naps = [r for r in hb.window(path).of("offcpu", syscall="read") if r["dur"] >= 1_000_000 and r["tid"] == target.pid and
            not r.get("before")]
    assert {str(r["fd"]) for r in naps} == set(truth)
    for r in naps:
        assert [[f, line] for f, _, line in python_frames(r) if f in ("near", "far")] == [truth[str(r["fd"])]], r


MANY = """
import ctypes, sys, time
call = ctypes.CDLL(sys.argv[1]).cudaDeviceSynchronize
made = {"call": call}
exec("".join(f"def made_{k}():\\n    call()\\n" for k in range(3000)), made)
functions = [made[f"made_{k}"] for k in range(3000)]
print("ready", flush=True)
while True:
    for f in functions:
        f()
    time.sleep(0.2)
"""


def test_max_functions(hb, start):
    """Functions beyond the limit are counted, as such."""
    target = start([NEWEST, "-c", MANY, CUDART], ready="ready")
    named = {}
    for more in ([], ["--max-functions", "1024"]):
        path, _ = hb.trace("-p", target.pid, *more, duration="2s")
        window = hb.window(path)
        frames = {f for r in window.of("accel") for f, _, _ in python_frames(r)}
        named[bool(more)] = len({f for f in frames if f.startswith("made_")}), window.loss["python_functions"]
    assert named[False] == (3000, 0)
    assert 900 < named[True][0] <= 1024 and named[True][1] >= 3000 - 1024, named
    for bad in ("1023", "many", "16777217", "-1"):
        done = hb.run("trace", "-p", target.pid, "--max-functions", bad, code=USAGE)
        assert "--max-functions" in done.err and bad in done.err


def test_children(hb, start):
    """Forked ones have their parent's interpreter from the begin, those that exec the new one's."""
    target = start([NEWEST, workload("family.py"), OLDEST], ready="ready")
    path, _ = hb.trace("-p", target.pid, duration="3s")
    window = hb.window(path)
    by_function = {}
    for r in sleeps(window):
        if python_frames(r):
            by_function.setdefault(python_frames(r)[-1][0], set()).add(r["pid"])
    assert {"in_child", "in_short_child", "in_other"} <= set(by_function), by_function
    assert len(by_function["in_child"]) >= 2 and target.pid not in by_function["in_child"]


def test_thread_state_behind_a_pointer(hb, start, compile_c, tmp_path):
    """A program that has used up the first keys of the C library: the thread state lies behind a pointer."""
    lib = compile_c("keys.so", "#include <pthread.h>\n__attribute__((constructor)) static void all(void)"
                    "{ pthread_key_t k; for (int i = 0; i < 40; i++) pthread_key_create(&k, 0); }", "-shared", "-fPIC")
    target = start([NEWEST, PROGRAM, CUDART], env={"LD_PRELOAD": lib}, ready="ready")
    told = hb.run("probes", "check", "-p", target.pid, code=OK).out
    assert re.search(r"Python 3\.\d+.*stacks work.*thread state at \+0x[0-9a-f]+, then \+0x", told), told
    path, _ = hb.trace("-p", target.pid, duration="3s")
    assert_same({python_frames(r) for r in sleeps(hb.window(path))}, truth_of(target, "sleep"))


@each_python
def test_blocked_since_before_the_window(hb, start, python):
    """A thread that waits all the time, the one an operator looks for, has its Python stack."""
    code = ("import threading, time\ndef forever():\n    waits()\ndef waits():\n    lock.acquire()\nlock = threading.Lock()\n"
            "lock.acquire()\nthreading.Thread(target=forever, daemon=True).start()\ntime.sleep(0.5)\nprint('ready', flush=True)\n"
            "def main(): time.sleep(60)\nmain()\n")
    target = start([python, "-c", code], ready="ready")
    path, _ = hb.trace("-p", target.pid, duration="1s")
    inner = {python_frames(r)[-3:] for r in hb.window(path).of("offcpu") if r.get("before")}
    names = {tuple((f.split(".")[-1], line) for f, _, line in s) for s in inner}
    assert (("run", names_line(names, "run")), ("forever", 3), ("waits", 5)) in names, names
    assert any(s[-1] == ("main", 11) for s in names), names


def names_line(stacks, function):
    return next((line for s in stacks for f, line in s if f == function), None)


def test_started_within_the_window(hb, start):
    """An interpreter that is not up when its program begins is looked at again."""
    target = start(["sh", "-c", f"sleep 1; exec {NEWEST} -c 'import time\ndef late(): time.sleep(0.05)\nwhile 1: late()'"])
    path, _ = hb.trace("-p", target.pid, duration="3s")
    assert any(python_frames(r)[-1:] and python_frames(r)[-1][0] == "late" for r in sleeps(hb.window(path)))


def test_off_and_thinned(hb, start):
    target = start([NEWEST, PROGRAM, CUDART], ready="ready")
    path, _ = hb.trace("-p", target.pid, "--python", "off", duration="1s")
    window = hb.window(path)
    assert not any(python_frames(r) for r in window.rows) and window.of("accel")
    path, _ = hb.trace("-p", target.pid, "--stacks-every", "sync=4", duration="2s")
    calls = hb.window(path).of("accel", name="cudaDeviceSynchronize")
    share = sum(bool(python_frames(r)) for r in calls) / len(calls)
    assert 0.15 < share < 0.35
    path, _ = hb.trace("-p", target.pid, "--stacks-every", "all=0", duration="1s")
    window = hb.window(path)
    assert not any(python_frames(r) for r in window.of("accel")) and any(python_frames(r) for r in window.of("offcpu"))


@pytest.mark.parametrize("args, says", [(["--python", "x"], "off, stacks"),
                                        (["--stacks-every", "launch"], "launch=10"), (["--stacks-every", "x=1"], "launch=10"),
                                        (["--stacks-every", "copy=-1"], "launch=10")])
def test_switches_that_are_refused(tool, args, says):
    result = tool.run("trace", "-p", "1", *args, code=USAGE)
    assert len(result.sentences()) == 1 and says in result.sentences()[0]


@each_python
def test_probes_check_tells_the_version(hb, start, python):
    target = start([python, PROGRAM, CUDART], ready="ready")
    version = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], stdout=subprocess.PIPE,
                             text=True, timeout=20, check=True).stdout.strip()
    told = hb.run("probes", "check", "-p", target.pid, code=OK).out
    assert re.search(rf"Python {re.escape(version)}\S* in /.*: stacks work, also without the GIL", told), told


def test_subinterpreters(hb, start):
    """Threads of other interpreters of the process."""
    code = ("import threading, time\ntry:\n import _interpreters as sub\nexcept ImportError:\n import _xxsubinterpreters as sub\n"
            "src = 'import time\\ndef in_sub(): time.sleep(0.03)\\nwhile True: in_sub()'\n"
            "def run():\n i = sub.create()\n (getattr(sub, 'exec', None) or sub.run_string)(i, src)\n"
            "threading.Thread(target=run, daemon=True).start()\ntime.sleep(0.5)\nprint('ready', flush=True)\ntime.sleep(60)\n")
    target = start([NEWEST, "-c", code], ready="ready")
    path, _ = hb.trace("-p", target.pid, duration="1s")
    assert any(python_frames(r)[-1:] and python_frames(r)[-1][0] == "in_sub" for r in sleeps(hb.window(path)))
