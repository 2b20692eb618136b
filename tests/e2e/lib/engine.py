# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""mini_llm on the simulated accelerator, with its load client and its truth log."""
import glob
import json
import os
import sys
import urllib.request

from . import paths
from .exact import truth

FOLDER = paths.source("tests", "workloads")


class Engine:
    """A running engine. pid: its front end, from which everything else descends."""

    def __init__(self, start, folder, workers=2, env=None, **options):
        self._start, self.truth = start, os.path.join(str(folder), "truth")
        more = [str(x) for k, v in options.items() for x in ("--" + k, v)]
        self.process = start([sys.executable, "-u", "-m", "mini_llm.serve", "--lib", paths.built("sim"), "--truth", self.truth,
                              "--workers", workers, *more], cwd=FOLDER, env=env, ready='"port"', timeout=90)
        up = json.loads(next(l for l in self.process.output().splitlines() if '"port"' in l))
        self.port, self.pid, self.workers = up["port"], up["pid"], up["pids"]["workers"]
        self.pids = [self.pid, up["pids"]["engine"], *self.workers]

    def load(self, seconds, concurrency=4, prompt="32-256", tokens="8-32"):
        """A load client beside the test: a Process; read its end with `answered`."""
        return self._start([sys.executable, "-m", "mini_llm.load", "--port", self.port, "--concurrency", concurrency,
                            "--duration", seconds, "--prompt", prompt, "--tokens", tokens], cwd=FOLDER)

    def one(self):
        """One request; the tokens that came back."""
        body = json.dumps({"prompt_tokens": 8, "max_tokens": 4}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/completions", body, timeout=30) as r:
            return json.loads(r.read())["tokens"]

    def log(self):
        return truth.read(self.truth)

    def step_logs(self):
        """Files that the engine and its workers write a line a step to: NAME.PID.steps.jsonl."""
        return glob.glob(os.path.join(self.truth, "*.steps.jsonl"))

    def calls(self):
        """Calls made so far, over all processes."""
        return len(self.log())

    def stop(self):
        """Ends it in order; its exit status."""
        return self.process.stop(20)


def answered(client, timeout=60):
    """Waits for a load client and returns its summary; every request must have been answered."""
    code = client.wait(timeout)
    summary = json.loads(client.output().splitlines()[-1])
    assert code == 0 and summary["errors"] == 0 and summary["requests"] > 0, summary
    return summary
