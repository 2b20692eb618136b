# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An engine that asks a KV service for blocks in every 10th step and waits for the answer, one step of device work queued.

The service needs 20 ms of CPU and waits 330 ms for its own lock, which a thread that evicts blocks holds.
    --queued    the same call while 400 ms of device work are queued: nobody waits for it"""
import socket
import sys
import threading
import time

import planted
from planted import Device

STEP, KERNELS, EVERY = "layer_1ms", 30, 10
EVICTION_S, WORK_S, QUEUED_MS = 0.330, 0.020, 400


class Pool:
    """Blocks behind one lock."""

    def __init__(self, eviction_s=EVICTION_S):
        self.lock, self.eviction_s = threading.Lock(), eviction_s
        self.wanted, self.taken = threading.Semaphore(0), threading.Semaphore(0)
        threading.Thread(target=self.evict, daemon=True).start()

    def evict(self):
        planted.thread("kv-evictor")
        while True:
            self.wanted.acquire()
            with self.lock:
                self.taken.release()
                with planted.span("evict"):
                    time.sleep(self.eviction_s)  # evicted blocks go to a slow disk

    def take(self):
        planted.work(WORK_S)
        self.wanted.release()
        self.taken.acquire()  # the evictor has the lock now
        with planted.span("lock"):
            self.lock.acquire()
        self.lock.release()


def serve(connection, pool=None):
    planted.thread("kv-server")
    pool = pool or Pool()
    while connection.recv(64):
        pool.take()
        connection.send(b"blocks")


class KvClient:
    def __init__(self, connection):
        self.connection = connection

    def allocate(self, blocks):
        with planted.span("cause"):
            self.connection.send(b"%d" % blocks)
            return self.connection.recv(64)


def engine(kv, queued):
    planted.thread("dispatch")
    device = Device()
    planted.ready()
    step = 0
    while planted.running():
        step += 1
        if step % EVERY == 0:
            if queued:
                device.launch(STEP, QUEUED_MS)
            kv.allocate(16)
        device.launch(STEP, KERNELS)
        device.mark()
        device.wait_for_marks(left=1)
    device.wait()


def serve_alone(ours, theirs):
    ours.close()
    serve(theirs)


def main():
    planted.begin()
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    planted.child(serve_alone, ours, theirs)
    theirs.close()
    engine(KvClient(ours), "--queued" in sys.argv)
    ours.close()
    planted.leave()


if __name__ == "__main__":
    main()
