# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What people add to vLLM by its own interfaces, and what slows it: a middleware, a logits processor, a KV connector.

Each does its work in a harmless way until the file HB_SWITCH names its cause. It is looked at every 50 ms at most."""
import os
import queue
import socket
import subprocess
import sys
import threading
import time

from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1, KVConnectorMetadata, KVConnectorRole
from vllm.v1.sample.logits_processor import LogitsProcessor

WORK = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(WORK)  # last: names there are plain words
import planted  # noqa: E402

planted.live()
TOKENIZE_S, ENTRY, JOURNAL_S, UNEVEN_S = 0.150, bytes(1 << 20), 0.030, 0.020


class Switch:
    def __init__(self):
        self.path, self.looked, self.cause = os.environ["HB_SWITCH"], 0, ""

    def on(self, cause):
        now = time.monotonic_ns()
        if now - self.looked > 50_000_000:
            self.looked = now
            with open(self.path, encoding="ascii") as f:
                self.cause = f.read().strip()
        return self.cause == cause


switch = Switch()


# ---- P19: a middleware that counts the prompt's tokens for the bill, on the event loop ----

def count_tokens():
    with planted.span("cause"):
        planted.work(TOKENIZE_S)


async def bill(request, call_next):
    if switch.on("bill"):
        count_tokens()
    return await call_next(request)


# ---- P27: a logits processor that keeps a journal of the batches, and waits until it is on the disk ----

class Journal(LogitsProcessor):
    EVERY = 8  # steps

    def __init__(self, vllm_config, device, is_pin_memory):
        self.steps, self.fd = 0, os.open("journal.log", os.O_CREAT | os.O_WRONLY)
        self.entries = queue.Queue(1)
        threading.Thread(target=self.write_aside, daemon=True).start()

    def append(self, kind):
        with planted.span(kind):
            end = time.monotonic() + JOURNAL_S  # whatever the disk
            while time.monotonic() < end:
                os.pwrite(self.fd, ENTRY, 0)
                os.fsync(self.fd)

    def write_aside(self):
        while True:
            self.entries.get()
            self.append("aside")

    def update_state(self, batch_update):
        self.steps += 1
        if self.steps % self.EVERY:
            return
        if switch.on("journal"):
            self.append("cause")
        elif not self.entries.full():
            self.entries.put(None)

    def apply(self, logits):
        return logits

    def is_argmax_invariant(self):
        return True


# ---- P33: a logits processor that one of two ranks takes its time for ----

class Uneven(LogitsProcessor):
    def __init__(self, vllm_config, device, is_pin_memory):
        self.slow = device.index == 1

    def look_at_the_batch(self):
        with planted.span("cause"):
            planted.work(UNEVEN_S)

    def update_state(self, batch_update):
        if self.slow and switch.on("uneven"):
            self.look_at_the_batch()

    def apply(self, logits):
        return logits

    def is_argmax_invariant(self):
        return True


# ---- P14: a KV connector whose scheduler asks a service for each new request ----

class Metadata(KVConnectorMetadata):
    pass


class Service:
    """A process of its own (kv_service.py) at the other end of a socket."""

    def __init__(self):
        self.connection, theirs = socket.socketpair(socket.AF_UNIX)
        subprocess.Popen([sys.executable, os.path.join(WORK, "plugins", "kv_server.py"), str(theirs.fileno())],
                         pass_fds=[theirs.fileno()])
        theirs.close()

    def lookup(self, kind):
        with planted.span(kind):
            self.connection.send(b"blocks?")
            return self.connection.recv(64)


class Connector(KVConnectorBase_V1):
    """The service never has any blocks; what matters is who waits for it."""

    def __init__(self, vllm_config, role, kv_cache_config=None):
        super().__init__(vllm_config=vllm_config, role=role, kv_cache_config=kv_cache_config)
        if role == KVConnectorRole.SCHEDULER:
            self.service, self.asked = Service(), queue.Queue(4)
            threading.Thread(target=self.look_up_aside, daemon=True).start()

    def look_up_aside(self):
        while True:
            self.asked.get()
            self.service.lookup("aside")

    def get_num_new_matched_tokens(self, request, num_computed_tokens):
        if switch.on("kv"):
            self.service.lookup("cause")
        elif not self.asked.full():
            self.asked.put(None)
        return 0, False

    def update_state_after_alloc(self, request, blocks, num_external_tokens):
        pass

    def build_connector_meta(self, scheduler_output):
        return Metadata()

    def start_load_kv(self, forward_context, **kwargs):
        pass

    def wait_for_layer_load(self, layer_name):
        pass

    def save_kv_layer(self, layer_name, kv_layer, attn_metadata, **kwargs):
        pass

    def wait_for_save(self):
        pass
