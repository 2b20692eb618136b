# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Other people's programs that judge ours: Python packages of the index, in a venv of HB_CACHE, never in the system."""
import fcntl
import hashlib
import os
import subprocess
import sys

from . import paths

# What a test asks for -> what pip installs, pinned: an oracle that changes by itself is none.
SETS = {
    "perfetto": ["perfetto==0.16.0", "protobuf"],
    "samplers": ["py-spy==0.4.3", "austin-dist==3.7.0"],
    "hta": ["HolisticTraceAnalysis==0.5.0", "pandas==2.3.3"],
}


class Missing(Exception):
    """Why an oracle is not here."""


def python(name, timeout=900):
    """The python of the venv that holds the set `name`; installs it the first time. Raises Missing with the reason."""
    packages = SETS[name]
    key = hashlib.sha256(" ".join([sys.version.split()[0], *packages]).encode()).hexdigest()[:10]
    venv = os.path.join(paths.CACHE, f"oracle-{name}-{key}")
    binary, ready = os.path.join(venv, "bin", "python"), os.path.join(venv, "ready")
    if os.path.exists(ready):
        return binary
    try:
        os.makedirs(paths.CACHE, exist_ok=True)
        lock = open(os.path.join(paths.CACHE, f"oracle-{name}.lock"), "w", encoding="utf-8")
    except OSError as e:
        raise Missing(f"{paths.CACHE} cannot be written ({e.strerror}); set HB_CACHE") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(ready):
            return binary
        for command in ([sys.executable, "-m", "venv", "--clear", venv],
                        [binary, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]):
            try:
                done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True, timeout=timeout)
            except subprocess.TimeoutExpired:
                raise Missing(f"installing {packages} took more than {timeout} s") from None
            if done.returncode != 0:
                last = (done.stdout.strip().splitlines() or ["no output"])[-1]
                raise Missing(f"{packages} could not be installed: {last[:200]}")
        with open(ready, "w", encoding="utf-8"):
            pass
    return binary
