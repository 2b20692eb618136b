# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What a scenario is about while it runs, and small programs of our own as that."""
import collections
import contextlib
import os
import sys

from lib import paths
from lib.processes import Process

from . import favour

WORK = paths.source("tests", "scenarios", "work")
COSTS = "kernel layer_1ms 1000000\nkernel layer_100us 100000\nkernel tiny_2us 2000\n"  # device time by the kernel's name

# process: what is traced, with all that descend from it. When it is over, folders of notes, and that of the device's log.
Target = collections.namedtuple("Target", "process notes device")


def command(scenario, side):
    program, *args = scenario.program
    args = [*args, *getattr(scenario, side)]
    if program.endswith(".py"):
        return [sys.executable, "-u", os.path.join(WORK, program), *args]
    return [paths.built("scenarios", program), *args]


def environment(scenario, notes, device):
    env = {"HB_PLANTED": notes, "HB_SIM_TRUTH": device, "HB_SIM_LIB": paths.built("sim"), "HB_SIM_SEED": "1",
           "PYTHONDONTWRITEBYTECODE": "1", "LD_LIBRARY_PATH": paths.built("sim")}
    env["HB_SIM_COSTS"] = os.path.join(notes, "costs")
    with open(env["HB_SIM_COSTS"], "w", encoding="ascii") as f:
        f.write(scenario.costs + COSTS)
    return {**env, **scenario.env}


@contextlib.contextmanager
def running(scenario, side, folder):
    notes, device = os.path.join(folder, "notes"), os.path.join(folder, "device")
    os.mkdir(notes)
    os.mkdir(device)
    process = Process(command(scenario, side), ready="ready", env=environment(scenario, notes, device), cwd=folder,
                      preexec_fn=favour.nice if side in scenario.fair else favour.first)
    try:
        yield Target(process, [notes], device)
    finally:
        process.stop()
