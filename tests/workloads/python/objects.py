# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Objects of all the ways in which CPython keeps attributes, for 3.8 and later. Prints for each what is to be found in it from
outside: "ADDRESS PATH KIND VALUE", tab-separated; then "ready", and waits for its input to end.

usage: objects.py
"""
import collections
import enum
import sys


class Plain:
    shared = "of the class"

    def __init__(self, **kwargs):
        for name, value in kwargs.items():
            setattr(self, name, value)

    @property
    def computed(self):
        return 1

    def method(self):
        return 2


class Usual:
    """As most are written: the same attributes in the same order."""

    def __init__(self, n):
        self.name = "usual"
        self.number = n
        self.late = None


class Slots:
    __slots__ = ("a", "b", "unset")

    def __init__(self, a, b):
        self.a, self.b = a, b


class SlotsBelow(Slots):
    __slots__ = ("c",)


class SlotsAndDict(Slots):
    pass


class Sub(Usual):
    def __init__(self):
        super().__init__(5)
        self.more = [1, 2, 3]


class Wide:
    """More attributes than objects of a class share keys for."""

    def __init__(self):
        for i in range(60):
            setattr(self, f"field_{i}", i)


class Number(enum.IntEnum):
    SEVEN = 7


class Text(str):
    pass


class Items(list):
    pass


class Requests(collections.deque):
    def __init__(self, *args):
        super().__init__(*args)
        self.label = "queue"


class FromDict(dict):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.extra = 4


class FromTuple(tuple):
    pass


class FromInt(int):
    """Its size differs from number to number, and so does where its dict is."""


class Failure(Exception):
    def __init__(self):
        super().__init__("x")
        self.code = 12


lines, kept = [], []


def expect(obj, path, kind, value=""):
    kept.append(obj)
    lines.append(f"{id(obj)}\t{path}\t{kind}\t{value}")


def values():
    o = Plain(zero=0, one=1, minus=-1, digit=2**30 - 1, two=2**30, large=2**60 + 7, largest=2**63 - 1, smallest=-(2**63) + 1, big=2**63,
              real=1.5, tiny=-2.5e-300, yes=True, no=False, nothing=None, text="abc", empty="", latin="h\u00e4", greek="\u03b1\u03b2",
              face="\U0001f600!", long="x" * 100, seven=Number.SEVEN, sub_text=Text("sub"), blob=b"12345")
    for name in ("zero", "one", "minus", "digit", "two", "large", "largest", "smallest"):
        expect(o, name, "int", getattr(o, name))
    expect(o, "big", "big")
    expect(o, "real", "float", o.real.hex())
    expect(o, "tiny", "float", o.tiny.hex())
    expect(o, "yes", "bool", 1)
    expect(o, "no", "bool", 0)
    expect(o, "nothing", "none")
    for name in ("text", "empty", "latin", "greek", "face"):
        expect(o, name, "str", getattr(o, name))
    expect(o, "long", "str", "x" * 64)
    expect(o, "long:len", "len", 100)
    expect(o, "seven", "int", 7)
    expect(o, "sub_text", "str", "sub")
    expect(o, "blob", "len", 5)
    expect(o, "shared", "str", "of the class")
    expect(o, "text:int", "object")
    expect(o, "one:float", "int", 1)
    expect(o, "nothing:len", "none")


def containers():
    o = Plain(a=[1, 2], b={"x": 1}, c=(1, 2, 3), d={1, 2}, e=collections.deque([1, 2, 3, 4]), f=Items([1]), g=Requests([1] * 300), h=[],
              i=frozenset([9]), j=collections.OrderedDict(x=1, y=2), k=bytearray(6), l=collections.defaultdict(list), m=FromTuple([1, 2]),
              n=range(3), big=list(range(100000)))
    for name, n in zip("abcdefghijklm", (2, 1, 3, 2, 4, 1, 300, 0, 1, 2, 6, 0, 2)):
        expect(o, name, "len", n)
        expect(o, name + ":len", "len", n)
    expect(o, "n", "object")
    expect(o, "big", "len", 100000)
    o.big.append(1)
    lines[-1] = lines[-1].replace("100000", "100001")
    expect(o, "g.label", "str", "queue")


def storages():
    usual = [Usual(i) for i in range(5)]
    for i, o in enumerate(usual):
        expect(o, "name", "str", "usual")
        expect(o, "number", "int", i)
    touched = Usual(50)
    touched.__dict__["by_dict"] = 51  # noqa: B010
    expect(touched, "number", "int", 50)
    expect(touched, "by_dict", "int", 51)
    deleted = Usual(60)
    del deleted.name
    expect(deleted, "number", "int", 60)
    expect(deleted, "name", "missing")
    expect(Usual(70), "by_dict", "missing")
    replaced = Usual(80)
    replaced.__dict__ = {"number": 81}
    expect(replaced, "number", "int", 81)
    slots = Slots(90, "slot")
    expect(slots, "a", "int", 90)
    expect(slots, "b", "str", "slot")
    expect(slots, "unset", "missing")
    below = SlotsBelow(91, [1])
    below.c = 92
    expect(below, "a", "int", 91)
    expect(below, "c", "int", 92)
    expect(below, "b:len", "len", 1)
    both = SlotsAndDict(93, 94)
    both.other = 95
    expect(both, "b", "int", 94)
    expect(both, "other", "int", 95)
    sub = Sub()
    expect(sub, "number", "int", 5)
    expect(sub, "more:len", "len", 3)
    wide = Wide()
    for i in (0, 29, 30, 31, 59):
        expect(wide, f"field_{i}", "int", i)
    expect(FromDict(x=1), "extra", "int", 4)
    tall = FromTuple(range(7))
    tall.extra = 8
    expect(tall, "extra", "int", 8)
    for n in (3, 2**100):
        number = FromInt(n)
        number.extra = 9
        expect(number, "extra", "int", 9)
    expect(Failure(), "code", "int", 12)
    names = Plain(**{"gr\u00f6\u00dfe": 3, "\u540d": 4})
    expect(names, "gr\u00f6\u00dfe", "int", 3)
    expect(names, "\u540d", "int", 4)
    expect(sys, "maxsize", "int", sys.maxsize)


def ways():
    a = Plain(b=Plain(c=Slots(Plain(d="deep"), 2)))
    expect(a, "b.c.a.d", "str", "deep")
    expect(a, "b.c.b", "int", 2)
    expect(a, "b.c.nope", "missing")
    expect(a, "b.c.a", "object")
    expect(a, "computed", "missing")
    expect(a, "method", "missing")
    expect(3, "real", "missing")


values()
containers()
storages()
ways()
sys.stdout.reconfigure(encoding="utf-8")
print("\n".join(lines))
print("ready", flush=True)
sys.stdin.read()
