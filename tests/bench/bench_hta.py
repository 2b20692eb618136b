# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Import and analysis of a trace against Holistic Trace Analysis on the same file, in pairs. bench_hta.py [COPIES [TRACE.json[.gz]]]:
so many copies of the trace one after the other, as a reference trace is over in a few ms of either; without one the largest of them."""
import glob
import gzip
import json
import os
import subprocess
import sys
import time

from benchlib import HB, ROOT, Values, folder, host, ratio, target

sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
from lib import oracles  # noqa: E402

PAIRS = 5


def seconds(*command):
    t = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - t


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
    read, analysed, imported, analyses, failed = Values(), Values(), Values(), Values(), {}
    with folder() as tmp:
        window, trace = os.path.join(tmp, "w.hbw"), os.path.join(tmp, "trace.json")
        rows = grown(path, copies, trace)
        print(f"# analysis against HTA: {host()}, {copies} times {os.path.basename(path)}, {rows} rows, "
              f"{os.path.getsize(trace) >> 20} MiB")
        for _ in range(PAIRS):
            imported.add(seconds(HB, "import", trace, "-o", window, "--force"))
            analysed.add(seconds(HB, "analyze", "--json", window))
            hta = theirs(python, trace)
            read.add(hta["read"])
            analyses.add(hta["analyses"])
            failed = hta["failed"]
    for name, why in failed.items():
        print(f"HTA gives up, not counted: {name}: {why}")
    whole = Values(a + b for a, b in zip(read.values, analyses.values))
    print(f"from the trace to the numbers, HTA: {whole.text(1, '%.2f')} s, of which it reads {read.text(1, '%.2f')} s")
    print(f"import: {imported.text(1e-3)} ms, once; analyze: {analysed.text(1e-3)} ms, process, window and all patterns included")
    print(f"HTA takes {ratio(analysed, whole).text()} times as long as analyze, its analyses alone {ratio(analysed, analyses).text()} times")
    target("50 times as fast as HTA", ratio(analysed, whole).median >= 50)


main()
