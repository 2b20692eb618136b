# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""An asyncio front end that tokenizes each prompt on its event loop, 60 ms of Python; behind it an engine that decodes.

    --short    prompts of which most is known already: 0.5 ms

front end (event loop) -- unix socket -- engine (a child); two clients, which are no children of it, ask again some time
after each answer."""
import asyncio
import os
import select
import socket
import sys

import planted
from planted import Device

PORT_FILE, CLIENTS, STEPS = "port", 2, 8
THINK_S = 0.060


def decode(connection):
    """The engine: each number that comes is a request; after its steps the number goes back."""
    planted.thread("dispatch")
    device = Device()
    left = {}
    while planted.running():
        if select.select([connection], [], [], 0 if left else 0.05)[0]:
            left.update(dict.fromkeys(connection.recv(256), STEPS))
        if not left:
            continue
        device.launch("layer_1ms", 4)
        device.wait()
        left = {n: k - 1 for n, k in left.items()}
        done = bytes(n for n, k in left.items() if not k)
        left = {n: k for n, k in left.items() if k}
        if done:
            connection.send(done)


class Front:
    def __init__(self, engine, seconds):
        self.engine, self.seconds, self.waiting = engine, seconds, {}

    def tokenize(self, prompt):
        with planted.span("cause"):
            return planted.work(self.seconds)

    def from_engine(self):
        for number in self.engine.recv(256):
            self.waiting[number].set_result(None)

    async def serve(self, reader, writer):
        while True:
            line = await reader.readline()
            if not line:
                break
            number = int(line)
            self.tokenize(line)
            self.waiting[number] = asyncio.get_running_loop().create_future()
            self.engine.send(bytes([number]))
            await self.waiting[number]
            writer.write(line)
        writer.close()

    async def watch(self):
        """How late the loop is, as a timer of 10 ms sees it."""
        while planted.running():
            t = planted.now()
            await asyncio.sleep(0.01)
            planted.note("lag", t + 10_000_000, planted.now())

    async def run(self):
        asyncio.get_running_loop().add_reader(self.engine, self.from_engine)
        server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        with open(PORT_FILE + ".new", "w", encoding="ascii") as f:
            f.write(str(server.sockets[0].getsockname()[1]))
        os.rename(PORT_FILE + ".new", PORT_FILE)
        planted.ready()
        await self.watch()


def ask(number, think):
    """A client: sends its number and waits until it comes back."""
    while not os.path.exists(PORT_FILE):
        planted.time.sleep(0.01)
    with open(PORT_FILE, encoding="ascii") as f:
        s = socket.create_connection(("127.0.0.1", int(f.read())))
    while s.send(b"%d\n" % number) and s.recv(64):
        planted.time.sleep(think)


def detached(function, *args):
    """In a process that is no descendant of this one."""
    pid = os.fork()
    if pid == 0:
        if os.fork() == 0:
            function(*args)
        os._exit(0)
    os.waitpid(pid, 0)


def main():
    for number in range(CLIENTS):
        detached(ask, number + 1, 0 if "--short" in sys.argv else THINK_S)
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    planted.begin()
    planted.child(decode, theirs)
    ours.setblocking(False)
    planted.thread("event-loop")
    asyncio.run(Front(ours, 0.0005 if "--short" in sys.argv else 0.060).run())
    planted.leave()


if __name__ == "__main__":
    main()
