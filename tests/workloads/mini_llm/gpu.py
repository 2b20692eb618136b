# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""ctypes over libcudart, libcuda and libnccl; every call is counted under its name."""
import collections
import ctypes as c
import os

P = c.c_void_p
SIZE = c.c_size_t
U = c.c_uint


class Dim3(c.Structure):
    _fields_ = [("x", U), ("y", U), ("z", U)]


class UniqueId(c.Structure):
    _fields_ = [("data", c.c_char * 128)]


class GpuError(Exception):
    pass


RUNTIME = {
    "cudaSetDevice": [c.c_int],
    "cudaGetDeviceCount": [P],
    "cudaMalloc": [P, SIZE],
    "cudaFree": [P],
    "cudaHostAlloc": [P, SIZE, U],
    "cudaFreeHost": [P],
    "cudaStreamCreateWithFlags": [P, U],
    "cudaStreamDestroy": [P],
    "cudaStreamSynchronize": [P],
    "cudaStreamQuery": [P],
    "cudaStreamWaitEvent": [P, P, U],
    "cudaStreamBeginCapture": [P, c.c_int],
    "cudaStreamEndCapture": [P, P],
    "cudaEventCreateWithFlags": [P, U],
    "cudaEventDestroy": [P],
    "cudaEventRecord": [P, P],
    "cudaEventQuery": [P],
    "cudaEventSynchronize": [P],
    "cudaGraphInstantiate": [P, P, c.c_ulonglong],
    "cudaGraphLaunch": [P, P],
    "cudaGraphDestroy": [P],
    "cudaGraphExecDestroy": [P],
    "cudaLaunchKernel": [P, Dim3, Dim3, P, SIZE, P],
    "cudaMemcpyAsync": [P, P, SIZE, c.c_int, P],
    "cudaMemsetAsync": [P, c.c_int, SIZE, P],
    "cudaDeviceSynchronize": [],
}
DRIVER = {
    "cuModuleLoadData": [P, c.c_char_p],
    "cuModuleGetFunction": [P, P, c.c_char_p],
    "cuLaunchKernel": [P, U, U, U, U, U, U, U, P, P, P],
}
LIBRARY = {
    "ncclGetUniqueId": [P],
    "ncclCommInitRank": [P, c.c_int, UniqueId, c.c_int],
    "ncclCommDestroy": [P],
    "ncclAllReduce": [P, P, SIZE, c.c_int, c.c_int, P, P],
    "ncclAllGather": [P, P, SIZE, c.c_int, P, P],
    "ncclGroupStart": [],
    "ncclGroupEnd": [],
}
H2D, D2H = 1, 2
BF16 = 9


class Gpu:
    def __init__(self, directory):
        load = lambda name: c.CDLL(os.path.join(directory, name), mode=c.RTLD_GLOBAL)
        self.counts = collections.Counter()  # since the last take_counts()
        self.total = collections.Counter()
        self._bind(load("libcuda.so.1"), DRIVER)
        runtime = load("libcudart.so.13")
        self._bind(runtime, RUNTIME)
        self._bind(load("libnccl.so.2"), LIBRARY)
        self._register = runtime["__cudaRegisterFunction"]
        self._register.restype = None
        self._register.argtypes = [P, P, c.c_char_p, c.c_char_p, c.c_int] + [P] * 5
        fat = runtime["__cudaRegisterFatBinary"]
        fat.restype = P
        fat.argtypes = [P]
        self._fat = fat(None)
        self._next_host = 0x1000

    def _bind(self, library, table):
        for name, types in table.items():
            function = getattr(library, name)
            function.argtypes = types
            function.restype = c.c_int
            setattr(self, name, self._counted(name, function))

    def _counted(self, name, function):
        def call(*args):
            self.counts[name] += 1
            result = function(*args)
            if result:
                raise GpuError("%s returned %d" % (name, result))
        return call

    def take_counts(self):
        taken = dict(self.counts)
        self.total.update(taken)
        self.counts.clear()
        return taken

    # ---- conveniences over the calls above ----

    def out(self, call, *args):
        """The handle or address that a call returns through its first parameter."""
        p = P()
        call(c.byref(p), *args)
        return p.value

    def register(self, name):
        """A kernel of the runtime API: the host address that stands for it."""
        host = self._next_host
        self._next_host += 16
        self._register(self._fat, host, name.encode(), name.encode(), -1, None, None, None, None, None)
        return host

    def launch(self, kernel, grid, block, stream):
        self.cudaLaunchKernel(kernel, Dim3(grid, 1, 1), Dim3(block, 1, 1), None, 0, stream)

    def launch_driver(self, function, grid, block, stream):
        self.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, None, None)
