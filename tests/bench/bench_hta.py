# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Import and analysis of a trace against Holistic Trace Analysis on the same file, in pairs, by CPU time (user and system).
bench_hta.py [COPIES [TRACE.json[.gz]]]: so many copies of the trace one after the other, as a reference trace is over in a few ms of
either; without one the largest of them. Both find the critical path of all of the trace, too."""
import glob
import gzip
import json
import os
import resource
import subprocess
import sys

from benchlib import HB, ROOT, Values, folder, host, ratio, target

sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from lib import oracles  # noqa: E402

PAIRS = 5


def cpu():
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


def seconds(*command):
    t = cpu()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return cpu() - t


def theirs(python, path):
    done = subprocess.run([python, os.path.join(ROOT, "tests", "oracles", "time_hta.py"), path], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    return json.loads(done.stdout[done.stdout.index("{"):])


def grown(path, copies, to):
    """The trace `copies` times in a row, with correlations of their own."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as f:
        trace = json.load(f)
    rows = trace["traceEvents"]
    timed = [r for r in rows if "ts" in r and r.get("ph") == "X"]
    step = max(float(r["ts"]) + float(r["dur"]) for r in timed) - min(float(r["ts"]) for r in timed) + 1000
    ids = 1 + max(r["args"][k] for r in timed for k in ("correlation", "External id") if isinstance(r.get("args", {}).get(k), int))
    out = [r for r in rows if r.get("ph") == "M"]
    for i in range(copies):
        for r in timed:
            args = {k: v + i * ids if k in ("correlation", "External id") and isinstance(v, int) and v else v
                    for k, v in r.get("args", {}).items()}
            out.append({**r, "ts": round(float(r["ts"]) + i * step, 3), "args": args})
    trace["traceEvents"] = out
    with open(to, "w", encoding="utf-8") as f:
        json.dump(trace, f)
    return len(timed) * copies


def main():
    copies = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    traces = sorted(glob.glob(os.path.join(ROOT, "..", "shared", "traces", "*.json.gz")), key=os.path.getsize)
    path = sys.argv[2] if len(sys.argv) > 2 else traces[-1] if traces else sys.exit("no trace: name one")
    try:
        python = oracles.python("hta")
    except oracles.Missing as e:
        sys.exit(str(e))
    read, imported, plain, analysed, analyses, each, failed = Values(), Values(), Values(), Values(), Values(), {}, {}
    with folder() as tmp:
        window, trace = os.path.join(tmp, "w.hbw"), os.path.join(tmp, "trace.json")
        rows = grown(path, copies, trace)
        print(f"# analysis against HTA: {host()}, {copies} times {os.path.basename(path)}, {rows} rows, "
              f"{os.path.getsize(trace) >> 20} MiB; CPU times")
        for _ in range(PAIRS):
            imported.add(seconds(HB, "import", trace, "-o", window, "--force"))
            plain.add(seconds(HB, "analyze", "--rows", "0", window))
            analysed.add(seconds(HB, "analyze", "--rows", "0", "--critical-path", window))
            hta = theirs(python, trace)
            read.add(hta["read"])
            analyses.add(sum(hta["analyses"].values()))
            failed = hta["failed"]
            for name, value in hta["analyses"].items():
                each.setdefault(name, Values()).add(value)
    for name, why in failed.items():
        print(f"HTA gives up, not counted: {name}: {why}")
    for name, values in each.items():
        print(f"HTA: {name}: {values.text(1, '%.2f')} s")
    whole = Values(a + b for a, b in zip(read.values, analyses.values))
    ours = Values(a + b for a, b in zip(imported.values, analysed.values))
    path_alone = each.pop("critical_path_analysis", None)
    others = Values(a - b for a, b in zip(analyses.values, path_alone.values)) if path_alone else analyses
    print(f"HTA: reads the trace in {read.text(1, '%.2f')} s, analyses it in {analyses.text(1, '%.2f')} s, without the critical path in "
          f"{others.text(1, '%.2f')} s")
    print(f"import: {imported.text(1e-3)} ms; analyze: {plain.text(1e-3)} ms, with --critical-path {analysed.text(1e-3)} ms; process, "
          "window and all patterns included")
    print(f"analyses alone: HTA takes {ratio(analysed, analyses).text()} times as long; without the critical path on either side "
          f"{ratio(plain, others).text()} times")
    print(f"from the trace to the numbers, reading and importing included: {ratio(ours, whole).text()} times")
    target("50 times as fast as HTA's equivalent analyses", ratio(analysed, analyses).median >= 50)


main()
