#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Writes stubs for what a real library exports and ours does not (how they behave: fronts/stub.h).

    stubs.py KIND REAL OURS > FILE.c

REAL is the real library, or for libraries that nobody has installed the header that declares its functions
(cuda.h, nvml.h), or a binding in Python that names them (pynvml.py). OURS is our library built without stubs.
KIND is a row of KINDS. Lists of names are taken at build time and never kept in the repository.
"""
import os
import re
import subprocess
import sys

# kind: layer, code of "not supported", what the functions of its header look like, names that are no functions of it
KINDS = {
    "cuda": ("HB_DRIVER", 801, r"\bCUDAAPI\s+(cu[A-Z]\w*)\s*\("),
    "cudart": ("HB_RUNTIME", 801, None),
    "cublas": ("HB_LIBRARY", 15, None),
    "cublaslt": ("HB_LIBRARY", 15, None),
    "nccl": ("HB_LIBRARY", 5, None),
    "nvml": ("HB_LIBRARY", 3, r"\bnvmlReturn_t\s+DECLDIR\s+(nvml[A-Z]\w*)\s*\("),
}
EXTERNAL = re.compile(r"^[A-Za-z_]\w*$")


def of_library(path):
    """Exported functions of a shared library."""
    text = subprocess.run(["nm", "-D", "--defined-only", path], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout
    rows = (line.split() for line in text.splitlines())
    return {r[-1].split("@")[0] for r in rows if len(r) == 3 and r[1] in "TtWwiVv" and EXTERNAL.match(r[-1].split("@")[0])}


def of_header(path, pattern):
    """Functions a header declares, and those its macros rename them to (cuX -> cuX_v2, cuX_ptsz)."""
    with open(path, errors="replace") as f:
        text = re.sub(r"/\*.*?\*/", " ", f.read(), flags=re.S)
    names = set(re.findall(pattern, text))
    for old, suffix, new in re.findall(r"^\s*#\s*define\s+(\w+)\s+(__CUDA_API_PT[SD][SZ])?\(?(\w+)\)?\s*$", text, re.M):
        if old in names or new in names:
            names.add(new)
            if suffix:
                names.add(new + ("_ptsz" if suffix.endswith("SZ") else "_ptds"))
    return {n for n in names if EXTERNAL.match(n) and not n.startswith("__CUDA")}


def functions(kind, path):
    pattern = KINDS[kind][2]
    if path.endswith(".py"):
        with open(path, errors="replace") as f:
            return set(re.findall(r"_nvmlGetFunctionPointer\(\"(nvml[A-Z]\w*)\"\)", f.read()))
    if pattern and path.endswith(".h"):
        return of_header(path, pattern)
    return of_library(path)


def source(kind, real, ours):
    layer, code, _ = KINDS[kind]
    names = sorted(functions(kind, real) - of_library(ours))
    if not names:
        return "/* Nothing is missing of %s. */\n" % os.path.basename(real)
    out = ["/* Written by stubs.py from %s: do not keep. */" % os.path.basename(real), "#define HB_STUB_LAYER %s" % layer,
           "#define HB_STUB_RESULT %d" % code]
    if kind == "cuda":
        out += ["#define HB_STUB_OF_DRIVER", '#include "entry.h"']
    out += ["#define HB_STUBS(S) \\"] + ["\tS(%s) \\" % n for n in names] + ["", '#include "stub.h"', ""]
    return "\n".join(out)


def main(argv):
    if len(argv) != 4 or argv[1] not in KINDS:
        sys.exit(__doc__)
    sys.stdout.write(source(*argv[1:]))


if __name__ == "__main__":
    main(sys.argv)
