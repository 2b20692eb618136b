# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The engines, started and loaded in one way whatever they are: start(NAME, FOLDER) -> an engine with pid, load(), stop()."""
import collections
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time

from lib.processes import NotReady, Process, children, wait_for

from . import load as client
from . import venv

Kind = collections.namedtuple("Kind", "about view shape options", defaults=((),))
SERVERS = {
    "vllm-cpu": Kind("vLLM on the CPU, no accelerator calls", "cpu", "tiny", ("--dtype", "bfloat16", "--enforce-eager")),
    "vllm-eager": Kind("vLLM without compilation and graphs", "gpu", "tiny", ("--enforce-eager",)),
    "vllm-graphs": Kind("vLLM as it comes: torch.compile and CUDA graphs", "gpu", "tiny"),
    "vllm-tp2": Kind("vLLM, two tensor-parallel workers", "gpu", "tiny", ("--tensor-parallel-size", "2")),
    "vllm-moe": Kind("vLLM, a small mixture of experts (Qwen3-MoE)", "gpu", "moe"),
    "vllm-8b": Kind("vLLM, a Llama of 8B shape", "gpu", "8b"),
    "sglang": Kind("SGLang on CUDA 13 (not installed by default)", "sglang", "tiny"),
}
LOOPS = {
    "train": Kind("a PyTorch training loop", "gpu", None),
    "generate": Kind("generate() of Hugging Face transformers", "gpu", "tiny"),
}
NAMES = {**SERVERS, **LOOPS}
VOCABULARY = {"8b": 128256}
# What engines ask thousands of times a step, and what no test looks at: counted in the truth log, not recorded.
CHATTER = ("cudaGetDevice,cudaGetLastError,cudaPeekAtLastError,cudaStreamIsCapturing,cudaThreadExchangeStreamCaptureMode,"
           "__cudaPushCallConfiguration,__cudaPopCallConfiguration,cudaSetDevice,cuDevicePrimaryCtxGetState,cuCtxGetCurrent,"
           "cuCtxSetCurrent,cuCtxGetDevice,cuTensorMapEncodeTiled,cudaFuncGetAttributes,cuFuncGetAttribute,"
           "cudaPointerGetAttributes,cuPointerGetAttribute,cublasSetMathMode,cublasGetMathMode,cublasSetStream_v2,"
           "__cudaRegisterFunction,__cudaRegisterVar,cudaStreamGetCaptureInfo_v2,cuStreamGetCaptureInfo_v2,"
           "cuStreamIsCapturing,cuThreadExchangeStreamCaptureMode")
VIEWS = {"cpu": venv.Plain, "gpu": venv.View, "sglang": venv.View}

# Titles that servers give their processes.
ROLES = (("core", "VLLM::EngineCore"), ("workers", "VLLM::Worker"), ("core", "sglang::scheduler"))

# Nothing is downloaded, nobody is told, and two cores are not spent on spinning helpers.
QUIET = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1",
         "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "PYTHONUNBUFFERED": "1"}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Answers:
    """What a load client found: rows, one a request (of the training loop: one a step), and their summary."""

    def __init__(self, rows, summary):
        self.rows, self.summary = rows, summary

    @property
    def ok(self):
        return self.summary["requests"] > 0 and self.summary["errors"] == 0

    def __repr__(self):
        return f"{self.summary} {[r['error'] for r in self.rows if 'error' in r][:3]}"


class Engine:
    """A running engine. pid: its first process, from which all others descend."""

    def __init__(self, name, folder, truth=True, env=None, timeout=420):
        self.name, self.kind, self.folder = name, NAMES[name], str(folder)
        os.makedirs(self.folder, exist_ok=True)
        self.truth = os.path.join(self.folder, "truth") if truth is True else truth
        self.steps = os.path.join(self.folder, "steps.jsonl")
        self.view = VIEWS[self.kind.view](self.kind.view)
        self.env = {**QUIET, **self.view.environment(), "HB_STEPS": self.steps,
                    "HB_SIM_VOCAB": VOCABULARY.get(self.kind.shape, 512)}
        if self.truth and self.simulated:
            os.makedirs(self.truth, exist_ok=True)
            self.env.update(HB_SIM_TRUTH=self.truth, HB_SIM_TRUTH_SKIP=CHATTER)
        self.env.update(env or {})
        self.clients, self.process = [], None
        begin = time.monotonic()
        try:
            self._start(timeout)
            self.pid, self.startup = self.process.pid, time.monotonic() - begin
            self._warm()
        except BaseException:
            self.kill()
            raise

    def _warm(self):
        pass

    @property
    def simulated(self):
        """On the simulated accelerator."""
        return self.kind.view != "cpu"

    def pids(self):
        return children(self.pid)

    def log(self):
        """What it printed so far."""
        return self.process.output()

    def step_rows(self):
        if not os.path.exists(self.steps):
            return []
        with open(self.steps, encoding="utf-8") as f:
            return [json.loads(line) for line in f if line.endswith("\n")]

    def stop(self, timeout=30):
        """Ends it in order, then by force; its exit status."""
        for c in self.clients:
            c.kill()
        return self.process.stop(timeout)

    def kill(self):
        if self.process:
            self.process.kill()


class ClientLoad:
    """A load client beside the test."""

    def __init__(self, process):
        self.process, self.running = process, process.running

    def answered(self):
        """Requests answered so far."""
        return self.process.output().count("ttft_ns")

    def finish(self, timeout=60):
        """No further requests: the Answers so far."""
        self.process.signal(signal.SIGINT)
        return self.wait(timeout)

    def wait(self, timeout):
        self.process.wait(timeout)
        rows = [json.loads(line) for line in self.process.output().splitlines() if line.startswith("{")]
        if not rows or "summary" not in rows[-1]:
            raise AssertionError(f"the load client ended early:\n{self.process.output()[-2000:]}")
        return Answers(rows[:-1], rows[-1]["summary"])


class Server(Engine):
    """vLLM behind its own HTTP front end."""

    def __init__(self, name, folder, port=None, options=(), **more):
        self.port, self.options = port or free_port(), options
        super().__init__(name, folder, **more)

    def _command(self):
        k = self.kind
        self.env["PYTHONPATH"] = ":".join(p for p in (os.path.join(venv.BED, "steps"), self.env.get("PYTHONPATH")) if p)
        return [venv.python(self.view.venv), "-m", "vllm.entrypoints.cli.main", "serve", venv.model(k.view, k.shape),
                "--served-model-name", "tiny", "--load-format", "dummy", "--host", "127.0.0.1", "--port", self.port,
                "--max-model-len", "1024", "--max-num-seqs", "16", *k.options, *self.options]

    def _start(self, timeout):
        self.process = Process(self._command(), env=self.env, cwd=self.folder)
        wait_for(lambda: self.healthy() or not self.process.running(), timeout, f"the start of {self.name}", every=0.25)
        if not self.process.running():
            raise NotReady(f"{self.name} ended at its start:\n{self.log()[-6000:]}")

    def _warm(self):
        # The first requests compile what start-up did not.
        answers = self.load(requests=8, logprobs=0.5, sampled=0.5).wait(120)
        assert answers.ok, f"{self.name} does not answer: {answers}\n{self.log()[-4000:]}"

    def healthy(self):
        try:
            conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
            conn.request("GET", "/health")
            return conn.getresponse().status == 200
        except OSError:
            return False

    def load(self, seconds=None, **options):
        """Starts the load client: a ClientLoad."""
        words = ["--port", self.port, *(["--seconds", seconds] if seconds else [])]
        for key, value in options.items():
            words += ["--" + key, value]
        self.clients.append(Process([sys.executable, client.__file__, *words]))
        return ClientLoad(self.clients[-1])

    def roles(self):
        """{role: pids}: api, core and workers, by the titles that vLLM gives its processes."""
        found = collections.defaultdict(list)
        for pid in self.pids():
            title = title_of(pid)
            for role, start in ROLES:
                if title.startswith(start):
                    found[role].append(pid)
        return {"api": [self.pid], **found}

    def accelerated(self):
        """The processes that call the accelerator under load."""
        roles = self.roles()
        return roles.get("workers") or roles["core"]


class Sglang(Server):
    """Its kernels that embed NVIDIA's runtime (CuTe DSL) do not run on the simulated driver: norms are compiled instead (by
    nvcc, minutes the first time), attention and sampling are those of the other back ends."""

    def __init__(self, *words, timeout=900, **more):
        super().__init__(*words, timeout=timeout, **more)

    def _command(self):
        cuda = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
        self.env.update(FLASHINFER_USE_CUDA_NORM="1", CUDA_HOME=cuda, MAX_JOBS="2",
                        PATH=":".join([os.path.join(self.view.venv, "bin"), os.path.join(cuda, "bin"), os.environ["PATH"]]))
        return [venv.python(self.view.venv), "-m", "sglang.launch_server", "--model-path", venv.model("sglang", "tiny"),
                "--served-model-name", "tiny", "--load-format", "dummy", "--host", "127.0.0.1", "--port", self.port,
                "--context-length", "1024", "--max-running-requests", "16", "--mem-fraction-static", "0.5",
                "--attention-backend", "fa3", "--sampling-backend", "pytorch", *self.options]


def title_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            return f.read().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


class LoopLoad:
    def __init__(self, engine, seconds):
        self.engine, self.seconds = engine, seconds
        self.before, self.rows_before = engine.log().count('"done"'), len(engine.step_rows())
        self.begin = time.monotonic()
        engine.process.popen.stdin.write(f"{seconds}\n".encode())
        engine.process.popen.stdin.flush()

    def running(self):
        return self.engine.process.running() and self.engine.log().count('"done"') == self.before

    def answered(self):
        return len(self.engine.step_rows()) - self.rows_before

    def wait(self, timeout):
        wait_for(lambda: not self.running(), timeout, f"the end of {self.seconds} s of {self.engine.name}", every=0.1)
        if not self.engine.process.running():
            raise AssertionError(f"{self.engine.name} ended under load:\n{self.engine.log()[-4000:]}")
        rows = self.engine.step_rows()[self.rows_before:]
        return Answers(rows, client.summary(rows, time.monotonic() - self.begin))


class Loop(Engine):
    """A program that is its own load: a number on its standard input makes it work for so many seconds."""

    port = None

    def _start(self, timeout):
        model = [venv.model(self.kind.view, self.kind.shape)] if self.kind.shape else []
        command = [venv.python(self.view.venv), os.path.join(venv.BED, self.name + ".py"), *model, self.steps]
        self.process = Process(command, env=self.env, cwd=self.folder, stdin=subprocess.PIPE, ready='"ready"', timeout=timeout)

    def load(self, seconds):
        return LoopLoad(self, seconds)

    def accelerated(self):
        return [self.pid]


def start(name, folder, **options):
    made = Sglang if name == "sglang" else Server if name in SERVERS else Loop
    return made(name, folder, **options)
