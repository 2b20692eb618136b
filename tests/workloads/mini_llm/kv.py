# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""KV service process, only where one is asked for: hands out blocks over a unix socket. Its lock is held by a thread that evicts
blocks to a slow place whenever it is asked, so an engine that waits for the answer waits for that thread: a fault planted for
tests and the demo."""
import argparse
import socket
import sys
import threading
import time

from .base import Inbox, become, pack, thread_name


class Pool:
    def __init__(self, evict_seconds):
        self.seconds = evict_seconds
        self.lock = threading.Lock()
        self.wanted, self.taken = threading.Semaphore(0), threading.Semaphore(0)
        threading.Thread(target=self.evict, daemon=True).start()

    def evict(self):
        thread_name("kv-evict")
        while True:
            self.wanted.acquire()
            with self.lock:
                self.taken.release()
                time.sleep(self.seconds)  # to the slow place

    def allocate(self):
        self.wanted.release()
        self.taken.acquire()  # the evicting thread has the lock now
        with self.lock:
            pass


def serve(connection, pool):
    inbox = Inbox()
    while True:
        data = connection.recv(65536)
        if not data:
            return
        for m in inbox.feed(data):
            pool.allocate()
            connection.sendall(pack({"blocks": m["blocks"]}))


class Client:
    """The engine's end."""

    def __init__(self, connection):
        self.connection, self.inbox = connection, Inbox()

    def allocate(self, blocks):
        """Waits until the service has so many blocks."""
        self.connection.sendall(pack({"blocks": blocks}))
        while not self.inbox.feed(self.connection.recv(65536)):
            pass


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--fd", type=int, required=True)
    p.add_argument("--parent", type=int, required=True)
    p.add_argument("--evict-ms", type=float, required=True)
    a = p.parse_args()
    become("kv-service", a.parent)
    serve(socket.socket(fileno=a.fd), Pool(a.evict_ms / 1000))
    return 0


if __name__ == "__main__":
    sys.exit(main())
