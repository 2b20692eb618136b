# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Calls of Python functions in all the ways there are. `calls.py truth` prints what sys.setprofile saw of one round as
{qualified name: [ends, yields]}; `calls.py run` does a round for each line that it reads, after one to warm up."""
import dis
import inspect
import json
import sys

N = 200
GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class Thing:
    def __init__(self, v):
        self.v = v

    def method(self):
        return self.v

    @property
    def prop(self):
        return self.v

    def __getitem__(self, i):
        return i

    def __add__(self, other):
        return self.v

    def __call__(self):
        return self.v


def mapped(x):
    return x


def key(x):
    return -x


def many(*args, **named):
    return args


def three():
    for i in range(3):
        yield i


async def leaf():
    return 1


class Later:
    def __await__(self):
        yield self


async def tree():
    await Later()
    return await leaf()


def raises():
    raise ValueError("no")


def through():
    raises()


def run_coroutine():
    c = tree()
    c.send(None)
    try:
        c.send(None)
    except StopIteration:
        pass


def round_():
    fib(10)
    thing = Thing(0)
    for i in range(N):
        Thing(i)
        thing.method()
        thing.prop
        thing[i]
        thing + thing
        thing()
        many(i, 2, *(3, 4), **{"x": 1})
        list(three())
        run_coroutine()
        try:
            through()
        except ValueError:
            pass
    list(map(mapped, range(N)))
    sorted(range(N), key=key)


def truth():
    seen = {}

    def profile(frame, event, arg):
        code = frame.f_code
        if event != "return" or code.co_filename != __file__:
            return
        name = getattr(code, "co_qualname", code.co_name)
        at = code.co_code[frame.f_lasti] if frame.f_lasti >= 0 else 0
        yields = arg is not None and code.co_flags & GENERATORS and not dis.opname[at].startswith("RETURN")
        seen.setdefault(name, [0, 0])[bool(yields)] += 1

    round_()
    sys.setprofile(profile)
    round_()
    sys.setprofile(None)
    print(json.dumps(seen), flush=True)


def main():
    if sys.argv[1] == "truth":
        truth()
        return
    round_()
    print("ready", flush=True)
    while sys.stdin.readline():
        round_()
        print("done", flush=True)


main()
