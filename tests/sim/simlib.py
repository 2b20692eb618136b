# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""For tests: where the simulated libraries are, and short programs that run on them in a process of their own."""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("HB_BUILD", os.path.join(ROOT, "build")))
LIB = os.path.join(BUILD, "sim")
WORKLOADS = os.path.join(BUILD, "workloads")

PREAMBLE = """
import ctypes as C, json, os, signal, sys, threading, time
LIB = %r
cu = C.CDLL(LIB + "/libcuda.so.1", mode=C.RTLD_GLOBAL)
rt = C.CDLL(LIB + "/libcudart.so.13", mode=C.RTLD_GLOBAL)
P, S = C.c_void_p, C.c_size_t
class Dim3(C.Structure):
    _fields_ = [("x", C.c_uint), ("y", C.c_uint), ("z", C.c_uint)]
ONE = Dim3(1, 1, 1)
def out(f, *a):
    p = P()
    r = f(C.byref(p), *a)
    assert r == 0, (f.__name__, r)
    return P(p.value)
def register(host, name, lib=None):
    lib = lib or rt
    fat = lib["__cudaRegisterFatBinary"]
    fat.restype = P
    lib["__cudaRegisterFunction"](P(fat(None)), P(host), name, name, -1, None, None, None, None, None)
def launch(stream=None, host=0x1000, lib=None):
    return (lib or rt).cudaLaunchKernel(P(host), ONE, ONE, None, S(0), stream)
def stream():
    return out(rt.cudaStreamCreateWithFlags, 1)
""" % LIB


def command(code):
    return [sys.executable, "-c", PREAMBLE + code]


def environment(**env):
    e = {k: v for k, v in os.environ.items() if not k.startswith("HB_SIM_")}
    e.update({k: str(v) for k, v in env.items()})
    return e


def run(code, **env):
    """Runs the code; returns what it printed."""
    r = subprocess.run(command(code), env=environment(**env), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       universal_newlines=True, timeout=120)
    assert r.returncode == 0, "exit %d: %s" % (r.returncode, r.stderr[-2000:])
    return r.stdout
