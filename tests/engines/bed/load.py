#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Closed-loop load on an OpenAI-style completions endpoint: each client sends its next request when the last one is answered.
Prints one JSON line a request (start_ns by CLOCK_MONOTONIC, ttft_ns, tpot_ns, tokens, error) and last a line
{"summary": ..}. Exit status 1 when a request was not answered in full. SIGINT ends it in order. Prompts differ, so that no prefix cache answers them."""
import argparse
import http.client
import json
import random
import signal
import sys
import threading
import time

WORDS = "import json self return for in if else def class not None True len range print list dict set str int os sys path".split()


def span(text):
    low, _, high = text.partition("-")
    return int(low), int(high or low)


def parser():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--port", type=int, required=True)
    p.add_argument("--model", default="tiny")
    p.add_argument("--seconds", type=float, help="send requests for so long")
    p.add_argument("--requests", type=int, help="send so many (default 20, unless --seconds is given)")
    p.add_argument("--concurrency", type=int, default=4)
    p.add_argument("--prompt", type=span, default=(16, 96), metavar="LO-HI", help="words of a prompt")
    p.add_argument("--tokens", type=span, default=(16, 64), metavar="LO-HI", help="tokens of an answer")
    p.add_argument("--sampled", type=float, default=0.25, help="share of requests with temperature 0.8")
    p.add_argument("--logprobs", type=float, default=0.1, help="share of requests that ask for logprobs")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--timeout", type=float, default=120)
    return p


class Load:
    def __init__(self, options):
        self.o = options
        self.lock = threading.Lock()
        self.random = random.Random(options.seed)
        self.left = options.requests if options.requests or options.seconds else 20
        self.until = time.monotonic() + options.seconds if options.seconds else None
        self.rows = []

    def next(self):
        """The body of the next request; None: no more."""
        with self.lock:
            if self.left is not None and self.left <= len(self.rows) or self.until and time.monotonic() >= self.until:
                return None
            r, row = self.random, {}
            self.rows.append(row)
            body = {"model": self.o.model, "prompt": " ".join(r.choices(WORDS, k=r.randint(*self.o.prompt))),
                    "max_tokens": r.randint(*self.o.tokens), "ignore_eos": True, "stream": True,
                    "stream_options": {"include_usage": True}, "temperature": 0.8 if r.random() < self.o.sampled else 0}
            if r.random() < self.o.logprobs:
                body["logprobs"] = 2
            return row, body

    def ask(self, row, body):
        """Fills the row; raises when the request was not answered."""
        conn = http.client.HTTPConnection("127.0.0.1", self.o.port, timeout=self.o.timeout)
        row.update(start_ns=time.monotonic_ns(), asked=body["max_tokens"], sampled=body["temperature"] > 0,
                   logprobs="logprobs" in body)
        conn.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        response = conn.getresponse()
        if response.status != 200:
            raise ValueError(f"HTTP {response.status}: {response.read(300).decode(errors='replace')}")
        first = last = usage = None
        for line in response:
            if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                continue
            event = json.loads(line[6:])
            if "error" in event:
                raise ValueError(str(event["error"])[:300])
            usage = event.get("usage") or usage
            if event.get("choices"):
                last = time.monotonic_ns()
                first = first or last
        conn.close()
        if not usage or first is None:
            raise ValueError("the answer ended early")
        row.update(tokens=usage["completion_tokens"], prompt_tokens=usage["prompt_tokens"], ttft_ns=first - row["start_ns"],
                   tpot_ns=(last - first) // max(usage["completion_tokens"] - 1, 1), end_ns=last)
        if row["tokens"] != row["asked"]:
            raise ValueError(f"{row['tokens']} tokens instead of {row['asked']}")

    def stop(self, *_):
        """No further requests; those under way are waited for."""
        self.until = time.monotonic()

    def client(self):
        while True:
            work = self.next()
            if not work:
                return
            row = work[0]
            try:
                self.ask(*work)
            except (OSError, http.client.HTTPException, ValueError, KeyError) as e:
                row["error"] = f"{type(e).__name__}: {e}"
            with self.lock:
                print(json.dumps(row), flush=True)
            if "error" in row:
                time.sleep(0.2)  # a server that is gone is not asked a thousand times a second

    def run(self):
        begin = time.monotonic()
        threads = [threading.Thread(target=self.client) for _ in range(self.o.concurrency)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return summary(self.rows, time.monotonic() - begin)


def summary(rows, seconds):
    good = [r for r in rows if "error" not in r]

    def middle(key):
        values = sorted(r[key] for r in good if key in r)
        return round(values[len(values) // 2] / 1e6, 3) if values else None

    return {"requests": len(rows), "errors": len(rows) - len(good), "seconds": round(seconds, 3),
            "tokens": sum(r.get("tokens", 0) for r in good), "ttft_ms": middle("ttft_ns"), "tpot_ms": middle("tpot_ns")}


def main():
    load = Load(parser().parse_args())
    signal.signal(signal.SIGINT, load.stop)
    s = load.run()
    print(json.dumps({"summary": s}), flush=True)
    return 1 if s["errors"] or not s["requests"] else 0


if __name__ == "__main__":
    sys.exit(main())
