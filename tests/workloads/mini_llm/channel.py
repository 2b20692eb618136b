# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Engine to workers: plans and results in shared memory, futex-backed semaphores to wake each other."""
import ctypes
import json
import mmap
import os
import struct
import time

from .base import libc

MAX_WORKERS = 16
SEM_BYTES = 64
PLAN, PLAN_BYTES = 4096, 1 << 20
RESULT, RESULT_BYTES = PLAN + PLAN_BYTES, 1 << 16
SIZE = RESULT + MAX_WORKERS * RESULT_BYTES


class _Timespec(ctypes.Structure):
    _fields_ = [("tv_sec", ctypes.c_long), ("tv_nsec", ctypes.c_long)]


class Channel:
    def __init__(self, path, workers, create=False):
        fd = os.open(path, os.O_RDWR | (os.O_CREAT | os.O_EXCL if create else 0), 0o600)
        if create:
            os.ftruncate(fd, SIZE)
        self.map = mmap.mmap(fd, SIZE)
        os.close(fd)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        self.start = [ctypes.c_void_p(base + SEM_BYTES * i) for i in range(workers)]
        self.done = [ctypes.c_void_p(base + SEM_BYTES * (MAX_WORKERS + i)) for i in range(workers)]
        if create:
            for sem in self.start + self.done:
                libc.sem_init(sem, 1, 0)

    @staticmethod
    def _wait(sem, seconds):
        t = time.time() + seconds
        spec = _Timespec(int(t), int(t % 1 * 1e9))
        return libc.sem_timedwait(sem, ctypes.byref(spec)) == 0

    def _put(self, at, message):
        data = json.dumps(message, separators=(",", ":")).encode()
        self.map[at + 4:at + 4 + len(data)] = data
        struct.pack_into("<I", self.map, at, len(data))

    def _get(self, at):
        n = struct.unpack_from("<I", self.map, at)[0]
        return json.loads(self.map[at + 4:at + 4 + n].decode())

    def send_plan(self, plan):
        self._put(PLAN, plan)
        for sem in self.start:
            libc.sem_post(sem)

    def next_plan(self, rank, seconds):
        return self._get(PLAN) if self._wait(self.start[rank], seconds) else None

    def send_result(self, rank, result):
        self._put(RESULT + rank * RESULT_BYTES, result)
        libc.sem_post(self.done[rank])

    def next_result(self, rank, seconds):
        return self._get(RESULT + rank * RESULT_BYTES) if self._wait(self.done[rank], seconds) else None
