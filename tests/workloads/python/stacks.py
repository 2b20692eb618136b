# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calls of all kinds at known places, for CPython 3.8 and later: an accelerator call and a sleep without the GIL
at each. Before the first line of output it has walked its own stack at each of them, which is the truth that windows are compared
with: {"sleep": [[function, file, line], ..outermost first], ..} by kind; then "ready".

usage: stacks.py LIBCUDART [burn]
"""
import asyncio
import ctypes
import itertools
import json
import sys
import threading
import time

truth = {"sleep": [], "call": []}
telling = True
lib = ctypes.CDLL(sys.argv[1])
NAP = 0.012  # seconds: longer than any sleep that is not ours


def tell(kind):
    if not telling:
        return
    stack, frame = [], sys._getframe(1)
    while frame:
        code = frame.f_code
        stack.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    if stack[::-1] not in truth[kind]:
        truth[kind].append(stack[::-1])


def sleep_here():
    tell("sleep"); time.sleep(NAP)  # noqa: E702  (one line: the truth's and the call's)


def call_here():
    tell("call"); lib.cudaDeviceSynchronize()  # noqa: E702


def everything():
    sleep_here()
    call_here()


class Engine:
    """Methods, recursion, properties."""

    def step(self, depth):
        if depth:
            return self.step(depth - 1)
        return self.output

    @property
    def output(self):
        everything()
        return 1

    def __getitem__(self, i):
        sleep_here()
        return i

    def __lt__(self, other):
        everything()
        return True


def generator(n):
    for i in range(n):
        everything()
        yield i


def through_c():
    """Python called from C called from Python."""
    sorted([Engine(), Engine()])
    list(map(lambda x: everything(), [1]))
    sum(generator(2))
    Engine()[3]


async def leaf():
    sleep_here()
    call_here()


async def branch():
    await leaf()
    await asyncio.gather(leaf(), leaf())


def größe():  # Latin-1
    everything()


made = {}
exec(compile("def 関数():\n\n    everything()\n", "<生成 🚀>", "exec"), globals(), made)  # UCS-2 and UCS-4
long_name = "f" + "o" * 300  # longer than what is read of an object at first
exec(compile(f"def {long_name}():\n    everything()\n", "<" + "/long" * 60 + ">", "exec"), globals(), made)
exec(compile("def gap(f):\n f()\n" + "\n" * 700 + " f()\n", "<gap>", "exec"), globals(), made)  # beyond one step of a line table


def many_lines():
    x = [
        1,

        sleep_here(),
        2]
    if x:
        call_here()


def in_thread():
    largs = {"key": 1}

    def closure(key=0):
        everything()
    closure(**largs)


def round():
    Engine().step(3)
    through_c()
    asyncio.run(branch())
    größe()
    made["関数"]()
    made[long_name]()
    many_lines()
    made["gap"](everything)
    t = threading.Thread(target=in_thread)
    t.start()
    t.join()


class Spinner:
    @staticmethod
    def spin(depth):
        if depth:
            return Spinner.spin(depth - 1)
        for i in itertools.count(): i or tell("burn")  # noqa: E701  (one line, where every sample is)


def main():
    global telling
    if "burn" in sys.argv:
        truth["burn"] = []
        threading.Timer(0.3, lambda: print(json.dumps(truth), "ready", sep="\n", flush=True)).start()
        Spinner.spin(3)
    for i in itertools.count():
        if i == 2:
            telling = False
            print(json.dumps(truth), "ready", sep="\n", flush=True)
        round()


main()
