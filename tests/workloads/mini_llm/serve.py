# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""HTTP front end, loopback only: python3 -m mini_llm.serve --port 0 --workers 2 [--truth DIR]

POST /v1/completions {"prompt": "..." or "prompt_tokens": N, "max_tokens": N, "stream": true}; GET /health
Prints one JSON line when ready: {"port", "pid", "pids": {"front", "engine", "workers"}, "accelerator"}.
"""
import argparse
import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from .base import Inbox, become, pack, python

MAX_BODY = 1 << 20
MAX_MODEL_LEN = 4096
COSTS = """# device time of kernels, ns, by name: decode and prefill by tokens in the pass
kernel gemm_lm_head 120000
kernel gemm_*_decode 25000
kernel flash_attn_decode 15000
kernel *_decode 4000
kernel gemm_*_t64 30000
kernel gemm_*_t256 60000
kernel gemm_*_t1024 200000
kernel gemm_*_t4096 700000
kernel *_t4096 60000
kernel *_t1024 20000
kernel *_t64 5000
kernel *_t256 8000
"""


class Front:
    def __init__(self, connection):
        self.connection = connection
        self.next_id = 1
        self.queues = {}
        self.engine_gone = asyncio.Event()

    async def attach(self):
        self.reader, self.writer = await asyncio.open_connection(sock=self.connection)
        self.inbox = Inbox()
        self.pending = []

    async def message(self):
        while not self.pending:
            data = await self.reader.read(65536)
            if not data:
                raise EOFError
            self.pending = self.inbox.feed(data)
        return self.pending.pop(0)

    async def receive(self):
        try:
            while True:
                for t in (await self.message())["tokens"]:
                    queue = self.queues.get(t["id"])
                    if queue:
                        queue.put_nowait(t)
        except (EOFError, OSError):
            self.engine_gone.set()
            for queue in self.queues.values():
                queue.put_nowait(None)

    def submit(self, prompt, max_tokens):
        ident = self.next_id
        self.next_id += 1
        self.queues[ident] = asyncio.Queue()
        self.writer.write(pack({"op": "add", "id": ident, "prompt": prompt, "max_tokens": max_tokens}))
        return ident

    # ---- HTTP ----

    async def handle(self, reader, writer):
        try:
            while await self.one_request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass
        finally:
            writer.close()

    async def one_request(self, reader, writer):
        line = (await reader.readline()).decode("latin-1").split()
        if len(line) != 3:
            return False
        headers = {}
        while True:
            h = (await reader.readline()).decode("latin-1").strip()
            if not h:
                break
            name, _, value = h.partition(":")
            headers[name.lower()] = value.strip()
        size = int(headers.get("content-length", "0"))
        if not 0 <= size <= MAX_BODY:
            await self.reply(writer, 413, {"error": "body too large"})
            return False
        body = await reader.readexactly(size)
        await self.route(writer, line[0], line[1], body)
        return headers.get("connection", "").lower() != "close"

    async def route(self, writer, method, path, body):
        if (method, path) == ("GET", "/health"):
            gone = self.engine_gone.is_set()
            await self.reply(writer, 503 if gone else 200, {"status": "engine gone" if gone else "ok"})
        elif (method, path) == ("POST", "/v1/completions"):
            await self.completion(writer, body)
        else:
            await self.reply(writer, 404, {"error": "no such path"})

    async def reply(self, writer, status, message):
        data = json.dumps(message).encode()
        writer.write(b"HTTP/1.1 %d x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" %
                     (status, len(data)) + data)
        await writer.drain()

    async def completion(self, writer, body):
        try:
            q = json.loads(body.decode())
            prompt = int(q["prompt_tokens"]) if "prompt_tokens" in q else max(1, len(q["prompt"].split()))
            max_tokens = int(q.get("max_tokens", 16))
        except (ValueError, KeyError, AttributeError, TypeError):
            prompt = max_tokens = 0
        if not (prompt > 0 and max_tokens > 0 and prompt + max_tokens <= MAX_MODEL_LEN):
            await self.reply(writer, 400, {"error": "prompt and max_tokens must be 1..%d together" % MAX_MODEL_LEN})
            return
        ident = self.submit(prompt, max_tokens)
        try:
            await (self.stream if q.get("stream") else self.whole)(writer, ident)
        finally:
            del self.queues[ident]

    async def tokens(self, ident):
        while True:
            t = await self.queues[ident].get()
            if t is None:
                raise ConnectionError("engine gone")
            yield t["token"]
            if t["last"]:
                return

    async def whole(self, writer, ident):
        tokens = [t async for t in self.tokens(ident)]
        await self.reply(writer, 200, {"tokens": tokens, "text": " ".join("w%d" % t for t in tokens)})

    async def stream(self, writer, ident):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        async for token in self.tokens(ident):
            self.chunk(writer, json.dumps({"token": token, "text": "w%d " % token}))
            await writer.drain()
        self.chunk(writer, "[DONE]")
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    @staticmethod
    def chunk(writer, text):
        data = ("data: %s\n\n" % text).encode()
        writer.write(b"%x\r\n%s\r\n" % (len(data), data))


def environment(a, rundir):
    env = dict(os.environ)
    env["PYTHONPATH"] = os.pathsep.join([os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
                                         env.get("PYTHONPATH", "")])
    if a.truth:
        env["HB_SIM_TRUTH"] = a.truth
    env["HB_SIM_RESULTS"] = "memory"  # workers read back what they uploaded
    if not env.get("HB_SIM_COSTS"):
        path = os.path.join(rundir, "costs")
        with open(path, "w") as f:
            f.write(COSTS)
        env["HB_SIM_COSTS"] = path
    return env


def start_engine(a, rundir):
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    engine = subprocess.Popen(
        python("engine", "--fd", theirs.fileno(), "--parent", os.getpid(), "--rundir", rundir, "--lib", a.lib,
               "--workers", a.workers, "--layers", a.layers, "--blocks", a.blocks, "--storm", a.storm,
               "--kv-evict-ms", a.kv_evict_ms, "--truth", a.truth),
        pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, env=environment(a, rundir))
    theirs.close()
    ours.setblocking(False)
    return engine, ours


async def first_message(front, stop):
    """The engine's "ready", or None when it died, took too long, or we were told to stop."""
    message, stopped = asyncio.ensure_future(front.message()), asyncio.ensure_future(stop.wait())
    await asyncio.wait([message, stopped], timeout=90, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if message.done() and not message.exception():
        return message.result()
    message.cancel()
    print("mini_llm: the engine did not come up", file=sys.stderr)
    return None


async def serve(a, rundir):
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for s in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(s, stop.set)
    engine, connection = start_engine(a, rundir)
    front = Front(connection)
    await front.attach()
    ready = await first_message(front, stop)
    if not ready:
        engine.kill()
        engine.wait()
        return 0 if stop.is_set() else 1
    receiver = loop.create_task(front.receive())
    server = await asyncio.start_server(front.handle, "127.0.0.1", a.port)
    print(json.dumps({"port": server.sockets[0].getsockname()[1], "pid": os.getpid(),
                      "pids": {"front": os.getpid(), "engine": engine.pid, "workers": ready["workers"], "kv": ready["kv"]},
                      "accelerator": "simulated accelerator"}), flush=True)
    waits = [loop.create_task(stop.wait()), loop.create_task(front.engine_gone.wait())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    failed = front.engine_gone.is_set()
    server.close()
    if not failed:
        front.writer.write(pack({"op": "stop"}))
        await front.writer.drain()
    for task in waits + [receiver]:
        task.cancel()
    try:
        code = engine.wait(20)
    except subprocess.TimeoutExpired:
        engine.kill()
        code = 1
    return 1 if failed or code else 0


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser(description="mini_llm on the simulated accelerator")
    p.add_argument("--port", type=int, default=0)
    p.add_argument("--workers", type=int, default=2)
    p.add_argument("--layers", type=int, default=24)
    p.add_argument("--blocks", type=int, default=4096, help="KV blocks of 16 tokens")
    p.add_argument("--storm", type=int, default=0, help="extra eager launches in each decode step")
    p.add_argument("--kv-evict-ms", type=float, default=0,
                   help="a planted fault: in every 10th step the engine waits so long for a KV service that evicts blocks (0: none)")
    p.add_argument("--truth", default="", help="folder for truth logs")
    p.add_argument("--lib", default=os.path.join(here, "../../../build/sim"), help="folder of the simulated libraries")
    a = p.parse_args()
    if not 1 <= a.workers <= 16:
        p.error("--workers must be 1..16")
    a.lib = os.path.abspath(a.lib)
    if not os.path.exists(os.path.join(a.lib, "libcudart.so.13")):
        p.error("no simulated accelerator in %s: run `make sim` first" % a.lib)
    if a.truth:
        a.truth = os.path.abspath(a.truth)
        os.makedirs(a.truth, exist_ok=True)
    become("llm-front")
    rundir = tempfile.mkdtemp(prefix="mini_llm-")
    try:
        return asyncio.run(serve(a, rundir))
    finally:
        shutil.rmtree(rundir, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
