# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The simulated accelerator as a place for engines: how long vLLM with graphs takes to come up, what an 8B shape needs, and
what the simulator itself costs beyond the launch times it models. bench_startup.py"""
import os
import sys

from benchlib import ROOT, Trace, folder, host, need_root, target

sys.path[:0] = [os.path.join(ROOT, "tests", "engines"), os.path.join(ROOT, "tests", "e2e")]

from bed import engines, expect, venv  # noqa: E402

OURS = ("libcuda.so", "libcudart.so", "libcublas.so", "libcublasLt.so", "libnccl.so", "libnvidia-ml.so")
# Where a launch's modelled host time is spent; what else is in our libraries is their own.
MODELLED = ("hb_costs__spin", "clock_gettime", "hb_now")


def coming_up(name, tmp, label):
    e = engines.start(name, os.path.join(tmp, label), truth=False)
    print(f"{name}, {label}: up in {e.startup:.1f} s")
    return e


def startup(tmp):
    venv.View().forget_compiled()
    cold = coming_up("vllm-graphs", tmp, "nothing compiled")
    cold.stop()
    warm = coming_up("vllm-graphs", tmp, "compiled before")
    target("vLLM with graphs up in at most 60 s", cold.startup <= 60, "nothing compiled")
    return warm


def own_cpu(engine, tmp):
    """Share of the engine core's CPU that is ours and not a modelled launch time, by CPU samples."""
    client = engine.load(seconds=25)
    t = Trace(os.path.join(tmp, "own.hbw"), engine.accelerated()[0], "--no-children", "-F", "999", duration="15s")
    report = t.end()
    assert client.wait(120).ok
    total = sum(f["self_ns"] for f in report["functions"])
    ours = [f for f in report["functions"] if os.path.basename(f["module"]).startswith(OURS)]
    own = sum(f["self_ns"] for f in ours if f["function"] not in MODELLED)
    spin = sum(f["self_ns"] for f in ours) - own
    print(f"engine core under load: {own / total:.1%} of its CPU in the simulator, {spin / total:.1%} in modelled launch times")
    target("simulator's own CPU at most 10 % of the engine's", own <= 0.1 * (total - own - spin))


def memory(tmp):
    e = coming_up("vllm-8b", tmp, "8B shape")
    try:
        assert e.load(seconds=10).wait(120).ok
        most = max(expect.rss(p) for p in e.accelerated())
        print(f"vllm-8b: {most >> 20} MiB resident in the process that holds the model")
        target("an 8B shape in at most 2 GB", most <= 2e9)
    finally:
        e.stop()


def main():
    need_root()
    print(f"-- engines on the simulated accelerator: {host()}")
    with folder() as tmp:
        try:
            warm = startup(tmp)
            try:
                own_cpu(warm, tmp)
            finally:
                warm.stop()
            memory(tmp)
        except venv.Missing as why:
            print(f"not measured: {why}")


if __name__ == "__main__":
    main()
