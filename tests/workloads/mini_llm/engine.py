# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Scheduler process: continuous batching over a fixed number of KV blocks; drives the workers step by step."""
import argparse
import collections
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading

from .base import Inbox, StepLog, become, now, pack, python, token_of
from .channel import Channel
from .kv import Client

BLOCK = 16  # tokens of a KV block
MAX_BATCH = 64
MAX_PREFILL_TOKENS = 4096
STEP_SECONDS = 60
KV_EVERY = 10  # steps


class Request:
    __slots__ = ("id", "prompt", "max_tokens", "done", "blocks")

    def __init__(self, ident, prompt, max_tokens):
        self.id, self.prompt, self.max_tokens = ident, prompt, max_tokens
        self.done = 0  # tokens made
        self.blocks = 0

    def needs(self, extra=0):
        return (self.prompt + self.done + extra + BLOCK - 1) // BLOCK


class Scheduler:
    def __init__(self, blocks):
        self.free = blocks
        self.waiting = collections.deque()
        self.running = []
        self.preempted = 0

    def take(self, request, blocks):
        self.free -= blocks - request.blocks
        request.blocks = blocks

    def release(self, request):
        self.free += request.blocks
        request.blocks = 0

    def admit(self):
        """Waiting requests that fit now; they prefill in this step."""
        admitted, tokens = [], 0
        while self.waiting and len(self.running) + len(admitted) < MAX_BATCH:
            r = self.waiting[0]
            length = r.prompt + r.done
            if r.needs(1) > self.free or (admitted and tokens + length > MAX_PREFILL_TOKENS):
                break
            self.waiting.popleft()
            self.take(r, r.needs(1))
            admitted.append(r)
            tokens += length
        return admitted

    def grow(self):
        """A block for each running request that starts one; the youngest gives way when there is none."""
        for r in list(self.running):
            while r in self.running and r.needs(1) > r.blocks:
                if self.free:
                    self.take(r, r.blocks + 1)
                    continue
                victim = self.running.pop()
                self.release(victim)
                self.waiting.appendleft(victim)
                self.preempted += 1

    def finish(self, request):
        self.release(request)
        self.running.remove(request)


class Engine:
    def __init__(self, connection, channel, workers, scheduler, log, kv=None):
        self.connection, self.channel, self.workers, self.log, self.kv = connection, channel, workers, log, kv
        self.scheduler = scheduler
        self.lock = threading.Condition()
        self.arrived = []
        self.stopping = False
        self.step = 0

    def receive(self):
        """Thread: messages of the front end."""
        inbox = Inbox()
        while True:
            data = self.connection.recv(65536)
            messages = inbox.feed(data) if data else [{"op": "stop"}]
            with self.lock:
                for m in messages:
                    if m["op"] == "add":
                        self.arrived.append(Request(m["id"], m["prompt"], m["max_tokens"]))
                    else:
                        self.stopping = True
                self.lock.notify()
            if self.stopping:
                return

    def wait_for_work(self):
        with self.lock:
            while not (self.arrived or self.scheduler.waiting or self.scheduler.running or self.stopping):
                self.lock.wait(5)
            self.scheduler.waiting.extend(self.arrived)
            self.arrived = []
            return not self.stopping

    def execute(self, admitted):
        plan = {"step": self.step,
                "prefill": [(r.prompt + r.done, token_of(r.id, r.done)) for r in admitted],
                "decode": [token_of(r.id, r.done) for r in self.scheduler.running]}
        self.channel.send_plan(plan)
        results = [self.channel.next_result(w, STEP_SECONDS) for w in range(self.workers)]
        if any(r is None for r in results):
            raise RuntimeError("a worker did not answer in %d s" % STEP_SECONDS)
        return results[0]

    def emit(self, request, token, out):
        expected = token_of(request.id, request.done)
        if token != expected:
            raise RuntimeError("request %d: token %d came back, %d was sent" % (request.id, token, expected))
        request.done += 1
        last = request.done >= request.max_tokens
        out.append({"id": request.id, "token": token, "last": last})
        return last

    def one_step(self):
        s = self.scheduler
        s.grow()
        admitted = s.admit()
        if not admitted and not s.running:
            raise RuntimeError("a request needs more KV blocks than there are")
        t0 = now()
        if self.kv and self.step % KV_EVERY == 0:
            self.kv.allocate(BLOCK)
        result = self.execute(admitted)
        out = []
        decoded = list(s.running)
        s.running.extend(admitted)
        for request, token in list(zip(admitted, result["first"])) + list(zip(decoded, result["more"])):
            if self.emit(request, token, out):
                s.finish(request)
        self.connection.sendall(pack({"tokens": out}))
        self.log.write(step=self.step, t0=t0, t1=now(), prefill=len(admitted), decode=len(decoded),
                       waiting=len(s.waiting), free_blocks=s.free, preempted=s.preempted)
        self.step += 1

    def run(self):
        threading.Thread(target=self.receive, daemon=True, name="receive").start()
        while self.wait_for_work():
            self.one_step()
        self.channel.send_plan({"stop": True})


def start_workers(a, path):
    """Rank processes; the communicator's id is random bytes, as ncclGetUniqueId would give."""
    ident = (secrets.token_bytes(16) + bytes(112)).hex()
    out = []
    for rank in range(a.workers):
        out.append(subprocess.Popen(python(
            "worker", "--rank", rank, "--workers", a.workers, "--parent", os.getpid(), "--channel", path, "--lib", a.lib,
            "--id", ident, "--layers", a.layers, "--storm", a.storm, "--truth", a.truth), stdin=subprocess.DEVNULL))
    return out


def start_kv(evict_ms):
    """(process, client) of a KV service; its answers take so long."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    process = subprocess.Popen(python("kv", "--fd", theirs.fileno(), "--parent", os.getpid(), "--evict-ms", evict_ms),
                               pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
    theirs.close()
    return process, Client(ours)


def wait_until_up(channel, workers):
    deadline = now() + 60 * 10**9
    for rank, process in enumerate(workers):
        while channel.next_result(rank, 0.2) is None:
            if any(w.poll() is not None for w in workers) or now() > deadline:
                raise RuntimeError("worker %d did not come up" % rank)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--fd", type=int, required=True)
    p.add_argument("--parent", type=int, required=True)
    p.add_argument("--rundir", required=True)
    p.add_argument("--lib", required=True)
    p.add_argument("--workers", type=int, required=True)
    p.add_argument("--layers", type=int, required=True)
    p.add_argument("--blocks", type=int, required=True)
    p.add_argument("--storm", type=int, default=0)
    p.add_argument("--kv-evict-ms", type=float, default=0)
    p.add_argument("--truth", default="")
    a = p.parse_args()
    become("llm-engine", a.parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the front end tells us
    connection = socket.socket(fileno=a.fd)
    path = os.path.join(a.rundir, "channel")
    channel = Channel(path, a.workers, create=True)
    workers = start_workers(a, path)
    service, kv = start_kv(a.kv_evict_ms) if a.kv_evict_ms else (None, None)
    wait_until_up(channel, workers)
    connection.sendall(pack({"ready": True, "workers": [w.pid for w in workers], "kv": service and service.pid}))
    Engine(connection, channel, a.workers, Scheduler(a.blocks), StepLog(a.truth, "engine"), kv).run()
    if service:
        service.kill()
    for w in workers + [service] * bool(service):
        try:
            w.wait(10)
        except subprocess.TimeoutExpired:
            w.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
