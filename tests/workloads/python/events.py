# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Python's exceptions, GIL and garbage collections, with what the program itself knows of them.

    events.py [LIBRARY]     prints "ready"; for each line of stdin "WORK [N]" does that work and prints "done JSON"

Works: raise (exceptions of several classes and depths), tasks (asyncio), gil (threads that contend), gc, subs (interpreters with a
GIL of their own), throw (C++ exceptions of LIBRARY), idle."""
import asyncio
import collections
import ctypes
import gc
import json
import sys
import threading
import time

libc = ctypes.CDLL(None)	 # gives the GIL away around a call
held = ctypes.PyDLL(None)	 # keeps it


class Odd(ValueError):
    pass


# ---- exceptions ----

def fall(cls, depth, *args):
    if not depth:
        raise cls(*args)
    fall(cls, depth - 1, *args)


def one(counts, act, *args):
    """Runs it, and notes class, function and line of the raise, and how many frames it went through."""
    try:
        act(*args)
    except Exception as e:
        frames, tb = 0, e.__traceback__.tb_next
        while tb.tb_next:
            tb, frames = tb.tb_next, frames + 1
        entry = counts.setdefault("%s %s:%d" % (type(e).__name__, tb.tb_frame.f_code.co_name, tb.tb_lineno), [0, 0])
        entry[0] += 1
        entry[1] += frames + 1  # and one() itself has not handled it in its callee


def convert():
    int("not a number")


def look_up():
    {}["missing"]


def open_nothing():
    open("/nonexistent/file")


def quiet():
    """What ends iterations is none."""
    for _ in (x for x in range(3)):
        pass
    list(map(str, range(2)))
    it = iter([1])
    next(it)
    next(it, None)
    hasattr(it, "nothing")


def raising(n):
    counts = {}
    for _ in range(n):
        one(counts, fall, Odd, 4, "request 7 failed")
        one(counts, fall, RuntimeError, 0, "größer")
        one(counts, convert)
        one(counts, look_up)
        quiet()
    one(counts, open_nothing)
    return counts


async def wait_and_fail(n):
    await asyncio.sleep(0.01)
    raise KeyError(n)


async def request(n, roots):
    roots.append(hex(id(asyncio.current_task().get_coro())))
    for _ in range(3):
        try:
            await wait_and_fail(n)
        except KeyError:
            pass
        time.sleep(0.001)


async def serve(roots):
    await asyncio.gather(*[request(n, roots) for n in range(3)])


def tasks(_):
    roots = []
    asyncio.run(serve(roots))
    return roots


# ---- GIL ----

class Timespec(ctypes.Structure):
    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]


def burn(until):
    x = 0
    while time.monotonic() < until:
        for i in range(500):
            x += i
    return x


def measure(until, out):
    """The clock is read without the GIL at the end of one call, and with it at the begin of the next: between is the wait."""
    a, b = Timespec(), Timespec()
    free, own, pa, pb = libc.clock_gettime, held.clock_gettime, ctypes.byref(a), ctypes.byref(b)
    spans = []
    while time.monotonic() < until:
        free(1, pa)
        own(1, pb)
        spans.append((a.s * 1000000000 + a.ns, b.s * 1000000000 + b.ns))
    out.append(threading.get_native_id())
    out.append([s for s in spans if s[1] - s[0] > 200000])


def contend(seconds):
    until, out = time.monotonic() + seconds, []
    threads = [threading.Thread(target=burn, args=(until,)) for _ in range(2)]
    threads.append(threading.Thread(target=measure, args=(until, out)))
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return {"tid": out[0], "waits": out[1]}


SUB = """
import threading, time
def burn(until):
    x = 0
    while time.monotonic() < until:
        for i in range(500):
            x += i
until = time.monotonic() + %f
threads = [threading.Thread(target=burn, args=(until,)) for _ in range(2)]
for t in threads: t.start()
for t in threads: t.join()
"""


def subs(seconds):
    """Two threads of this interpreter contend, and two of another one with a GIL of its own."""
    try:
        import _interpreters as interpreters
        other = interpreters.create("isolated")
    except ImportError:
        import _xxsubinterpreters as interpreters
        other = interpreters.create(isolated=True)
    threads = [threading.Thread(target=burn, args=(time.monotonic() + 1.5 + seconds,)) for _ in range(2)]
    for t in threads:
        t.start()
    interpreters.run_string(other, "import time; time.sleep(1.5)\n" + SUB % seconds)
    for t in threads:
        t.join()
    return [t.native_id for t in threads]


# ---- GC ----

spans = collections.Counter()


def on_gc(phase, info):
    if phase == "stop":
        spans[info["generation"]] += 1


class Knot:
    def __init__(self):
        self.me = self


def collect(n):
    gc.callbacks.append(on_gc)
    spans.clear()
    for _ in range(n):
        for _ in range(3000):
            Knot()
    automatic = dict(spans)
    for g in (0, 1, 2, 2):
        gc.collect(g)
    gc.callbacks.remove(on_gc)
    return {"all": dict(spans), "automatic": automatic}


def throw(n):
    library = ctypes.CDLL(sys.argv[1])
    for _ in range(n):
        library.fails()
    return n


WORKS = {"raise": raising, "tasks": tasks, "gil": contend, "subs": subs, "gc": collect, "throw": throw, "idle": time.sleep}


def main():
    print("ready", flush=True)
    for line in sys.stdin:
        work, _, n = line.partition(" ")
        result = WORKS[work.strip()](int(n or 1))
        print("done", json.dumps(result), flush=True)


main()
