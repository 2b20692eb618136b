# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Breaks the chain of its own frames while it sleeps, each time in another way, and mends it before it goes on.

usage: hostile.py LIBRARY, which has nap_with(address, value, microseconds): the word at the address is the value meanwhile
"""
import ctypes
import sys
import time

lib = ctypes.PyDLL(sys.argv[1])  # with the GIL: nobody else may see the frames
lib.nap_with.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint]
NAP_US = 12000


def frame_address(frame):
    """Of what the interpreter follows: the frame object itself, or from 3.11 on the frame that it stands for."""
    return id(frame) if sys.version_info < (3, 11) else ctypes.c_uint64.from_address(id(frame) + 24).value


# Offsets of the caller's frame and of the code object in a frame.
BACK, CODE = {8: (24, 32), 9: (24, 32), 10: (24, 32), 11: (48, 32)}.get(sys.version_info[1], (8, 0))
noise = ctypes.create_string_buffer(b"\xa5" * 4096)


def whole():
    time.sleep(NAP_US / 1e6)


def broken_caller(value):
    at = frame_address(sys._getframe())
    lib.nap_with(at + BACK, at if value == "itself" else value, NAP_US)


def broken_code(value):
    lib.nap_with(frame_address(sys._getframe()) + CODE, value, NAP_US)


def caller():
    for value in ("itself", 0x10, 0xffff888000000000, 0x7fffffffffff, ctypes.addressof(noise), 1, 2**64 - 1):
        broken_caller(value)
        whole()
    for value in (0x10, ctypes.addressof(noise), 0xffff888000000000, id(noise), 2**63 + 7):
        broken_code(value)
        whole()


def main():
    caller()
    print("ready", flush=True)
    while True:
        caller()


main()
