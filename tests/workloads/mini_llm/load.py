# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Closed-loop load client: python3 -m mini_llm.load --port P --concurrency N (--duration S | --count N)

A JSON line a request: {"start_ns", "ttft_ns", "tpot_ns", "tokens", "prompt_tokens"}; the last line is the summary.
"""
import argparse
import json
import random
import socket
import sys
import threading
import time

now = time.monotonic_ns


class Load:
    def __init__(self, a):
        self.a = a
        self.lock = threading.Lock()
        self.started = 0
        self.results, self.errors = [], []
        self.deadline = now() + int(a.duration * 1e9) if a.duration else None

    def take(self):
        with self.lock:
            if self.a.count and self.started >= self.a.count:
                return None
            if self.deadline and now() >= self.deadline:
                return None
            self.started += 1
            return self.started

    def one(self, number):
        a = self.a
        rng = random.Random(a.seed * 1000003 + number)
        prompt = rng.randint(*a.prompt)
        tokens = rng.randint(*a.tokens)
        body = json.dumps({"prompt_tokens": prompt, "max_tokens": tokens, "stream": True}).encode()
        with socket.create_connection((a.host, a.port), timeout=a.timeout) as s:
            start = now()
            s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" %
                      len(body) + body)
            stamps, done = self.read(s.makefile("rb"))
        if len(stamps) != tokens or not done:
            raise RuntimeError("%d of %d tokens came" % (len(stamps), tokens))
        tpot = (stamps[-1] - stamps[0]) // (tokens - 1) if tokens > 1 else 0
        return {"start_ns": start, "ttft_ns": stamps[0] - start, "tpot_ns": tpot, "tokens": tokens, "prompt_tokens": prompt}

    @staticmethod
    def read(f):
        stamps = []
        for line in f:
            if line.startswith(b"data: [DONE]"):
                return stamps, True
            if line.startswith(b"data: "):
                stamps.append(now())
        return stamps, False

    def loop(self):
        while True:
            number = self.take()
            if number is None:
                return
            try:
                result = self.one(number)
            except (OSError, RuntimeError, ValueError) as e:
                with self.lock:
                    self.errors.append(str(e))
                    if len(self.errors) > 10:
                        return
                continue
            with self.lock:
                self.results.append(result)
                if not self.a.quiet:
                    print(json.dumps(result), flush=True)

    def run(self):
        start = now()
        threads = [threading.Thread(target=self.loop) for _ in range(self.a.concurrency)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return now() - start


def quantiles(values):
    v = sorted(values)
    at = lambda q: v[min(len(v) - 1, int(q * len(v)))] if v else 0
    return {"p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "max": v[-1] if v else 0}


def span(text):
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def main():
    p = argparse.ArgumentParser(description="load client of mini_llm")
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, required=True)
    p.add_argument("--concurrency", type=int, default=4)
    p.add_argument("--duration", type=float, default=0)
    p.add_argument("--count", type=int, default=0)
    p.add_argument("--prompt", type=span, default=(32, 512), help="prompt tokens, N or LOW-HIGH")
    p.add_argument("--tokens", type=span, default=(16, 128), help="output tokens, N or LOW-HIGH")
    p.add_argument("--timeout", type=float, default=60)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--quiet", action="store_true", help="summary only")
    a = p.parse_args()
    if not a.duration and not a.count:
        p.error("say --duration or --count")
    load = Load(a)
    elapsed = load.run()
    tokens = sum(r["tokens"] for r in load.results)
    print(json.dumps({"summary": True, "requests": len(load.results), "errors": len(load.errors),
                      "first_error": load.errors[0] if load.errors else None, "elapsed_ns": elapsed, "tokens": tokens,
                      "tokens_per_s": round(tokens * 1e9 / elapsed, 1),
                      "ttft_ns": quantiles([r["ttft_ns"] for r in load.results]),
                      "tpot_ns": quantiles([r["tpot_ns"] for r in load.results if r["tokens"] > 1])}), flush=True)
    return 1 if load.errors else 0


if __name__ == "__main__":
    sys.exit(main())
