# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Debian's PyTorch, a stripped CPython 3.13 and a C++ library that others built, at inference on the CPU: samples, sleeps and calls
of its functions."""
import os
import stat

import pytest

from lib.pythons import Other
from test_python import python_frames

PROGRAM = """
import time
import torch

LAYERS = 4
model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), LAYERS).eval()

def step(tokens):
    with torch.inference_mode():
        return model(tokens)

def pause():
    time.sleep(0.003)

batch = torch.randn(2, 16, 64)
step(batch)
print("ready", flush=True)
while True:
    step(batch)
    print("step", time.monotonic_ns(), flush=True)
    pause()
"""
LIBRARIES = "/usr/lib/x86_64-linux-gnu/blas:/usr/lib/x86_64-linux-gnu/lapack"  # what its alternatives would point to
LAYERS = 4
pytestmark = pytest.mark.third(1)  # it is fetched, a GB


@pytest.fixture
def inference(start):
    other = Other("torch")
    random = os.path.join(other.root, "dev", "urandom")
    if not os.path.exists(random):
        os.makedirs(os.path.dirname(random), exist_ok=True)
        os.mknod(random, 0o444 | stat.S_IFCHR, os.makedev(1, 9))
    code = os.path.join(other.folder, "inference.py")
    with open(code, "w", encoding="utf-8") as f:
        f.write(PROGRAM)
    target = start(other.command(code[len(other.root):]), ready="ready",
                   env=dict(os.environ, LD_LIBRARY_PATH=LIBRARIES, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1"))
    yield target
    target.stop()
    other.close()


def share_whole(records):
    frames = [python_frames(r) for r in records]
    whole = [f for f, r in zip(frames, records) if f and f[0][0] == "<module>" and "stack_state" not in r]
    return len(whole) / max(1, len(records))


def test_inference(hb, inference):
    path, _ = hb.trace("-p", inference.pid, "--calls", "*:TransformerEncoderLayer.forward", "-F", "999", duration="4s")
    assert inference.running()
    window = hb.window(path)
    samples = [r for r in window.of("sample") if r["tid"] == inference.pid]
    assert len(samples) > 200 and share_whole(samples) >= 0.98
    inner = [[f for f, _, _ in python_frames(r)] for r in samples]
    assert sum("TransformerEncoderLayer.forward" in f for f in inner) > len(samples) // 4
    assert all(f[1] in ("step", "pause") for f in inner if len(f) > 1), inner[0]
    naps = [r for r in window.of("offcpu") if r.get("syscall") == "clock_nanosleep" and r["state"] == "S" and not r.get("before")]
    assert len(naps) > 50 and all([f for f, _, _ in python_frames(r)] == ["<module>", "pause"] for r in naps)
    # Each step calls each layer once; the steps at the window's edges may be there in part.
    begin, end = window.head["start_ns"], window.head["end_ns"]
    steps = [int(line.split()[1]) for line in inference.output().splitlines() if line.startswith("step ")]
    steps = sum(begin < t < end for t in steps)
    calls = len(window.of("py.call"))
    assert steps > 50 and abs(calls - LAYERS * steps) <= LAYERS, (calls, steps)
    assert window.loss["python_unreadable"] == window.loss["python_replaced"] == 0
