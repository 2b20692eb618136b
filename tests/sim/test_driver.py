# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The driver's and the runtime's less travelled functions, as PyTorch, Triton and vLLM use them."""
import os
import struct
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import simlib  # noqa: E402
import truth  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))

DRIVER = """
U, I, L = C.c_uint, C.c_int, C.c_ulonglong
rt.cudaFree(None)
def value(kind, f, *a):
    v = kind()
    r = f(C.byref(v), *a)
    assert r == 0, (f.__name__, r)
    return v.value
class Prop(C.Structure):
    _fields_ = [("type", I), ("handles", I), ("where", I), ("id", I), ("win", P), ("flags", L)]
class Access(C.Structure):
    _fields_ = [("where", I), ("id", I), ("flags", I)]
M = 1 << 20
def free_bytes():
    f, t = S(), S()
    assert cu.cuMemGetInfo_v2(C.byref(f), C.byref(t)) == 0
    return f.value
"""


def run(code, **env):
    return simlib.run(DRIVER + code, **env)


# ---- virtual memory, pools ----

def test_virtual_memory():
    run("""
prop, rw = Prop(1, 1, 1, 0), Access(1, 0, 3)
assert value(S, cu.cuMemGetAllocationGranularity, C.byref(prop), 0) == 2 * M
before = free_bytes()
base = value(L, cu.cuMemAddressReserve, S(64 * M), S(0), L(0), L(0))
assert base % (2 * M) == 0 and cu.cuMemAddressReserve(C.byref(L()), S(5), S(0), L(0), L(0)) == 1
assert cu.cuMemsetD8_v2(L(base), 1, S(16)) == 1                       # nothing is mapped there: a code, no crash
a, b = (value(L, cu.cuMemCreate, S(20 * M), C.byref(prop), L(0)) for i in range(2))
assert free_bytes() == before - 40 * M
assert cu.cuMemCreate(C.byref(L()), S(200 << 30), C.byref(prop), L(0)) == 2
assert cu.cuMemCreate(C.byref(L()), S(5), C.byref(prop), L(0)) == 1
assert cu.cuMemCreate(C.byref(L()), S(2 * M), C.byref(Prop(1, 8, 1, 0)), L(0)) == 801
assert cu.cuMemCreate(C.byref(L()), S(2 * M), C.byref(Prop(1, 0, 1, 77)), L(0)) == 101
assert cu.cuMemMap(L(base), S(20 * M), S(0), L(a), L(0)) == 0
assert cu.cuMemMap(L(base + 2 * M), S(20 * M), S(0), L(b), L(0)) == 1  # taken
assert cu.cuMemMap(L(base + 40 * M), S(20 * M), S(0), L(a), L(0)) == 801  # mapped elsewhere already
assert cu.cuMemMap(L(base + 60 * M), S(20 * M), S(0), L(b), L(0)) == 1  # beyond the end
assert cu.cuMemMap(L(base + 20 * M), S(20 * M), S(0), L(b), L(0)) == 0
assert cu.cuMemSetAccess(L(base), S(64 * M), C.byref(rw), S(1)) == 1
assert cu.cuMemSetAccess(L(base), S(40 * M), C.byref(rw), S(1)) == 0
host, back = C.create_string_buffer(b"x" * (4 * M), 4 * M), C.create_string_buffer(4 * M)
assert cu.cuMemcpyHtoD_v2(L(base + 18 * M), host, S(4 * M)) == 0       # across both
assert cu.cuMemcpyDtoH_v2(back, L(base + 18 * M), S(4 * M)) == 0 and back.raw == host.raw
assert cu.cuMemcpyHtoD_v2(L(base + 38 * M), host, S(4 * M)) == 1
assert value(L, cu.cuPointerGetAttribute, 11, L(base + 21 * M)) == base + 20 * M
assert cu.cuMemRetainAllocationHandle(C.byref(L()), P(base)) == 0
assert cu.cuMemExportToShareableHandle(C.byref(I()), L(a), 1, L(0)) == 801
assert cu.cuMemRelease(L(b)) == 0 and free_bytes() == before - 40 * M  # the mapping holds it
assert cu.cuMemUnmap(L(base), S(40 * M)) == 0 and free_bytes() == before - 20 * M
assert cu.cuMemRelease(L(a)) == 0 and cu.cuMemRelease(L(a)) == 0       # created once, retained once
assert cu.cuMemRelease(L(a)) == 400 and free_bytes() == before
assert cu.cuMemUnmap(L(base), S(40 * M)) == 1
assert cu.cuMemAddressFree(L(base), S(M)) == 1 and cu.cuMemAddressFree(L(base), S(64 * M)) == 0
""")


def test_pools():
    run("""
pool = out(cu.cuDeviceGetDefaultMemPool, 0)
assert pool.value == out(rt.cudaDeviceGetMemPool, 0).value
assert cu.cuDeviceGetDefaultMemPool(C.byref(P()), 99) == 101
assert cu.cuMemPoolSetAttribute(pool, 4, C.byref(L(1 << 40))) == 0
got = L(); assert rt.cudaMemPoolGetAttribute(pool, 4, C.byref(got)) == 0 and got.value == 1 << 40
assert cu.cuMemPoolGetAttribute(pool, 99, C.byref(got)) == 1
s = stream()
p = out(rt.cudaMallocFromPoolAsync, S(M), pool, s)
assert rt.cudaFreeAsync(p, s) == 0 and rt.cudaFreeAsync(p, s) == 1
assert cu.cuMemPoolDestroy(pool) == 1 and cu.cuMemPoolTrimTo(s, S(0)) == 400
assert rt.cudaIpcGetMemHandle(C.create_string_buffer(64), out(rt.cudaMalloc, S(8))) == 801
""")


# ---- images, functions, variables ----

def cubin(kernels, variables):
    """A minimal compiled image: sections .text.NAME with registers, .nv.shared.NAME, symbols of variables."""
    names, sections, body = b"\0", [], b""
    strings = b"\0" + b"".join(v.encode() + b"\0" for v in variables)

    def add(name, kind, data, info=0, link=0):
        nonlocal names, body
        sections.append((len(names), kind, 64 + len(body), len(data), link, info))
        names += name.encode() + b"\0"
        body += data
    sections.append((0, 0, 0, 0, 0, 0))
    for name, (regs, shared) in kernels.items():
        add(".text." + name, 1, b"\0" * 16, info=regs << 24)
        add(".nv.shared." + name, 8, b"\0" * shared)
    add(".strtab", 3, strings)
    symbols = b"".join(struct.pack("<IBBHQQ", strings.index(v.encode() + b"\0"), 0x11, 0, 1, 0, size)
                       for v, size in variables.items())
    add(".symtab", 2, symbols, link=len(sections) - 1)
    add(".shstrtab", 3, b"")
    last = list(sections[-1])
    last[2], last[3] = 64 + len(body), len(names)
    sections[-1] = tuple(last)
    body += names
    body += b"\0" * (-len(body) % 8)
    head = struct.pack("<4sBBB9xHHIQQQIHHHHHH", b"\x7fELF", 2, 1, 1, 2, 190, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64,
                       len(sections), len(sections) - 1)
    table = b"".join(struct.pack("<IIQQQQIIQQ", n, kind, 0, 0, at, size, link, info, 8, 0)
                     for n, kind, at, size, link, info in sections)
    return head + body + table


def test_functions_of_a_cubin(tmp_path):
    image = tmp_path / "image.cubin"
    image.write_bytes(cubin({"plus": (72, 1024), "times": (255, 0)}, {"table": 400}))
    run("""
data = open(%r, "rb").read()
m = out(cu.cuModuleLoadData, data)
assert cu.cuModuleGetFunction(C.byref(P()), m, b"minus") == 500
f = out(cu.cuModuleGetFunction, m, b"plus")
assert f.value == out(cu.cuModuleGetFunction, m, b"plus").value
assert [value(I, cu.cuFuncGetAttribute, a, f) for a in (0, 1, 4, 8)] == [1024, 1024, 72, 49152 - 1024]
assert cu.cuFuncGetAttribute(C.byref(I()), 99, f) == 1 and cu.cuFuncSetAttribute(f, 4, 1) == 1
go = lambda shared: cu.cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, shared, None, None, None)
assert go(49152 - 1024) == 0 and go(100000) == 1                     # not without asking for it
assert cu.cuFuncSetAttribute(f, 8, 300000) == 1 and cu.cuFuncSetAttribute(f, 8, 100000) == 0 and go(100000) == 0
fits = lambda threads, shared: value(I, cu.cuOccupancyMaxActiveBlocksPerMultiprocessor, f, threads, S(shared))
assert fits(256, 0) == 3 and fits(32, 0) == 28 and fits(128, 60000) == 3 and fits(2048, 0) == 0
p, n = L(), S()
assert cu.cuModuleGetGlobal_v2(C.byref(p), C.byref(n), m, b"table") == 0 and n.value == 400
assert cu.cuModuleGetGlobal_v2(C.byref(p), C.byref(n), m, b"other") == 500
assert cu.cuModuleLoad(C.byref(P()), %r) == 0 and cu.cuModuleLoad(C.byref(P()), b"/nowhere") == 301
assert cu.cuModuleUnload(m) == 0 and cu.cuModuleGetFunction(C.byref(P()), m, b"plus") == 400
""" % (str(image), str(image).encode()))


def test_other_images():
    run("""
ptx = b"// made by hand\\n.version 8.7\\n.target sm_90\\n.visible .entry plus(\\n.param .u64 a)\\n{ ret; }\\n"
m = out(cu.cuModuleLoadDataEx, ptx, 0, None, None)
assert cu.cuModuleGetFunction(C.byref(P()), m, b"plus") == 0 and cu.cuModuleGetFunction(C.byref(P()), m, b"a") == 500
fat = out(cu.cuLibraryLoadData, (0xba55ed50).to_bytes(4, "little") + bytes(60), None, None, 0, None, None, 0)
assert cu.cuLibraryGetKernel(C.byref(P()), fat, b"whatever_it_is") == 0
for bad in (b"junk, no image at all", b"\\x7fELF" + bytes(60), b""):
    assert cu.cuModuleLoadData(C.byref(P()), C.create_string_buffer(bad, 64)) == 200
""")


def test_variables_of_the_program():
    run("""
fat = rt["__cudaRegisterFatBinary"]; fat.restype = P
h = P(fat(None))
rt["__cudaRegisterVar"](h, P(0x7000), b"table", b"table", 0, S(64), 0, 0)
a, size = out(rt.cudaGetSymbolAddress, P(0x7000)), S()
assert rt.cudaGetSymbolSize(C.byref(size), P(0x7000)) == 0 and size.value == 64
src, dst = C.create_string_buffer(b"q" * 32, 32), C.create_string_buffer(32)
assert rt.cudaMemcpyToSymbol(P(0x7000), src, S(32), S(32), 1) == 0
assert rt.cudaMemcpyFromSymbol(dst, P(0x7000), S(32), S(32), 2) == 0 and dst.raw == src.raw
assert rt.cudaMemcpyToSymbol(P(0x7000), src, S(32), S(48), 1) == 1
assert rt.cudaMemcpyToSymbol(P(0x7008), src, S(32), S(0), 1) == 13
assert launch(None, 0x7000) == 98
""")


@pytest.mark.parametrize("version,size,memory_at,sms_at", [(12, 1032, 288, 388), (13, 1008, 288, 384)])
def test_properties_of_a_device(version, size, memory_at, sms_at):
    """Offsets as in the real structures; with their headers every member is checked (test_sim.py)."""
    out = simlib.run("""
lib = C.CDLL(LIB + "/libcudart.so.%d")
f = lib["cudaGetDeviceProperties" + ("_v2" if %d == 12 else "")]
p = C.create_string_buffer(b"\\xee" * %d, %d)
assert f(p, 0) == 0 and f(p, 64) == 101 and f(None, 0) == 1
assert p.raw[%d:] == b"\\xee" * 64
print(p.raw.hex())
v = C.c_int()
assert lib.cudaRuntimeGetVersion(C.byref(v)) == 0 and v.value == (12080 if %d == 12 else 13000)
""" % (version, version, size + 64, size + 64, size, version))
    raw = bytes.fromhex(out)
    assert b"H100" in raw[:256]
    assert struct.unpack_from("<Q", raw, memory_at)[0] == 80 << 30 and struct.unpack_from("<i", raw, sms_at)[0] == 132
    assert struct.unpack_from("<ii", raw, 360) == (9, 0)


# ---- entry points ----

def test_entry_points_by_version():
    run("""
def address(symbol, version, flags=0):
    p, found = P(), I()
    r = cu.cuGetProcAddress_v2(symbol, C.byref(p), version, L(flags), C.byref(found))
    return p.value if r == 0 else (r, found.value)
exported = lambda name: C.cast(cu[name], P).value
assert address(b"cuMemAlloc", 12080) == exported("cuMemAlloc_v2")
assert address(b"cuStreamGetCaptureInfo", 10010) == exported("cuStreamGetCaptureInfo")
assert address(b"cuStreamGetCaptureInfo", 12000) == exported("cuStreamGetCaptureInfo_v2")
assert address(b"cuStreamGetCaptureInfo", 12080) == exported("cuStreamGetCaptureInfo_v3")
assert address(b"cuEventElapsedTime", 12000) == exported("cuEventElapsedTime")
assert address(b"cuEventElapsedTime", 12080) == exported("cuEventElapsedTime_v2")
assert address(b"cuLaunchKernel", 12080, 2) == exported("cuLaunchKernel_ptsz")
assert address(b"cuNoSuchFunction", 12080) == (500, 1)
p, found = P(), I()
assert rt.cudaGetDriverEntryPointByVersion(b"cuMemCreate", C.byref(p), 12080, L(0), C.byref(found)) == 0 and found.value == 0
assert rt.cudaGetDriverEntryPoint(b"cuNothing", C.byref(p), L(0), C.byref(found)) == 0 and found.value == 1
""")


def test_stubs_are_named_and_counted(tmp_path):
    """What a real library has and ours has not: made up here, so that it needs no real library."""
    header = tmp_path / "cuda.h"
    header.write_text("""
/* CUresult CUDAAPI cuInAComment(void); */
#define cuMadeUp __CUDA_API_PTSZ(cuMadeUp_v2)
CUresult CUDAAPI cuMadeUp(int a, int b);
CUresult CUDAAPI cuMemAlloc_v2(void);
CUresult CUDAAPI cuNeverThere (void);
""")
    gen, out = tmp_path / "stubs", tmp_path / "sim"
    gen.mkdir()
    text = subprocess.run([sys.executable, os.path.join(HERE, "stubs.py"), "cuda", str(header),
                           os.path.join(simlib.LIB, "libcuda.so.1")], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout
    assert "cuInAComment" not in text and "S(cuMemAlloc_v2)" not in text
    (gen / "libcuda.so.1.c").write_text(text)
    subprocess.run(["make", "-s", "-C", simlib.ROOT, "B=" + simlib.BUILD, "SIM=%s" % out, "SIM_STUBS=%s" % gen,
                    str(out / "libcuda.so.1")], check=True)
    logs = tmp_path / "truth"
    logs.mkdir()
    subprocess.run([sys.executable, "-c", """
import ctypes as C
cu = C.CDLL(%r)
assert cu.cuMadeUp_v2(1, 2) == 801 and cu.cuMadeUp_v2(1, 2) == 801 and cu.cuNeverThere() == 801 and cu.cuMadeUp_v2_ptsz
p, found = C.c_void_p(), C.c_int()
assert cu.cuGetProcAddress_v2(b"cuMadeUp", C.byref(p), 12080, C.c_ulonglong(0), C.byref(found)) == 0
assert p.value == C.cast(cu.cuMadeUp_v2, C.c_void_p).value
""" % str(out / "libcuda.so.1")], check=True, env=simlib.environment(HB_SIM_TRUTH=logs))
    assert truth.read(str(logs)).gaps() == {"cuMadeUp_v2": 2, "cuNeverThere": 1}


# ---- copies of rows ----

def test_copies_and_fills_of_rows():
    run("""
d, pitch = P(), S()
assert rt.cudaMallocPitch(C.byref(d), C.byref(pitch), S(100), S(10)) == 0 and pitch.value == 512
host = C.create_string_buffer(bytes(range(200)) * 5, 1000)
back = C.create_string_buffer(1000)
s = stream()
assert rt.cudaMemcpy2DAsync(d, pitch, host, S(100), S(100), S(10), 1, s) == 0
assert rt.cudaMemcpy2D(back, S(100), d, pitch, S(100), S(10), 2) == 0 and back.raw == host.raw
assert rt.cudaMemset2D(P(d.value + 10), pitch, 0, S(5), S(10)) == 0
assert rt.cudaMemcpy2D(back, S(100), d, pitch, S(100), S(10), 4) == 0
want = b"".join(host.raw[i * 100:i * 100 + 10] + bytes(5) + host.raw[i * 100 + 15:i * 100 + 100] for i in range(10))
assert back.raw == want
assert rt.cudaMemcpy2D(back, S(50), d, pitch, S(100), S(10), 2) == 12
assert rt.cudaMemcpy2D(d, pitch, host, S(100), S(100), S(100000), 1) == 1
assert cu.cuMemsetD32_v2(L(d.value + 2), 1, S(1)) == 1                # not aligned
assert rt.cudaMemcpyPeer(d, 0, P(d.value + 1024), 1, S(8)) == 0 and rt.cudaDeviceEnablePeerAccess(1, 0) == 217
""")


# ---- graphs ----

GRAPH = """
register(0x1000, b"k"); register(0x2000, b"other")
class Node(C.Structure):
    _fields_ = [("func", P), ("grid", Dim3), ("block", Dim3), ("shared", U), ("params", P), ("extra", P)]
def nodes_of(g, f=rt.cudaGraphGetNodes):
    n = S()
    assert f(g, None, C.byref(n)) == 0
    a = (P * max(n.value, 1))()
    assert f(g, a, C.byref(n)) == 0
    return [P(x) for x in a[:n.value]]
kind = lambda node: value(I, lambda p: rt.cudaGraphNodeGetType(node, p))
def deps(node):
    a, n = (P * 16)(), S(16)
    assert cu.cuGraphNodeGetDependencies(node, a, C.byref(n)) == 0
    return [x for x in a[:n.value]]
"""


def test_graphs_node_by_node(tmp_path):
    run(GRAPH + """
g = out(rt.cudaGraphCreate, 0)
p = Node(0x1000, ONE, Dim3(64, 1, 1), 0)
a = out(rt.cudaGraphAddKernelNode, g, None, S(0), C.byref(p))
b = out(rt.cudaGraphAddKernelNode, g, (P * 1)(a), S(1), C.byref(p))
d = out(rt.cudaMalloc, S(64))
c = out(rt.cudaGraphAddMemcpyNode1D, g, (P * 1)(a), S(1), d, P(d.value + 32), S(32), 3)
e = out(rt.cudaGraphAddEmptyNode, g, (P * 2)(b, c), S(2))
assert [kind(x) for x in (a, b, c, e)] == [0, 0, 1, 5]
assert [x.value for x in nodes_of(g)] == [x.value for x in (a, b, c, e)] and len(nodes_of(g, rt.cudaGraphGetRootNodes)) == 1
assert deps(e) == [b.value, c.value] and deps(a) == []
got = Node()
assert rt.cudaGraphKernelNodeGetParams(b, C.byref(got)) == 0 and (got.block.x, got.grid.x) == (64, 1)
assert rt.cudaGraphKernelNodeGetParams(c, C.byref(got)) == 1
assert rt.cudaGraphAddKernelNode(C.byref(P()), g, (P * 1)(P(5)), S(1), C.byref(p)) == 1
assert rt.cudaGraphAddKernelNode(C.byref(P()), g, None, S(0), C.byref(Node(0x1000, Dim3(0, 0, 0), ONE))) == 1
assert cu.cuGraphAddDependencies(g, (P * 1)(b), (P * 1)(c), S(1)) == 0 and deps(c) == [a.value, b.value]
assert cu.cuGraphAddDependencies(g, (P * 1)(e), (P * 1)(a), S(1)) == 801 and cu.cuGraphAddDependencies(g, (P * 1)(a), (P * 1)(a), S(1)) == 1
clone = out(rt.cudaGraphClone, g)
x, s = out(rt.cudaGraphInstantiate, clone, L(0)), stream()
child = out(rt.cudaGraphCreate, 0)
out(rt.cudaGraphAddKernelNode, child, None, S(0), C.byref(p))
k = out(rt.cudaGraphAddChildGraphNode, g, (P * 1)(e), S(1), child)
assert kind(k) == 4
y = out(rt.cudaGraphInstantiate, g, L(0))
q = Node(0x2000, Dim3(3, 1, 1), Dim3(64, 1, 1), 0)
assert rt.cudaGraphExecKernelNodeSetParams(y, b, C.byref(q)) == 0 and rt.cudaGraphExecKernelNodeSetParams(y, c, C.byref(q)) == 1
swap = out(rt.cudaGraphCreate, 0)
out(rt.cudaGraphAddKernelNode, swap, None, S(0), C.byref(q))
assert rt.cudaGraphExecChildGraphNodeSetParams(y, k, swap) == 0
out(rt.cudaGraphAddEmptyNode, swap, None, S(0)); out(rt.cudaGraphAddEmptyNode, swap, None, S(0))
assert rt.cudaGraphExecChildGraphNodeSetParams(y, k, swap) == 910 and rt.cudaGraphExecChildGraphNodeSetParams(y, a, swap) == 1
assert rt.cudaGraphDebugDotPrint(g, %r, 0) == 0 and "->" in open(%r).read()
assert rt.cudaGraphDestroy(g) == 0 and cu.cuGraphNodeGetType(a, C.byref(I())) == 1    # nodes die with it
assert rt.cudaGraphLaunch(y, s) == 0 and rt.cudaStreamSynchronize(s) == 0
""" % (str(tmp_path / "g.dot").encode(), str(tmp_path / "g.dot")), HB_SIM_TRUTH=tmp_path)
    names = [(o.name, o.grid) for o in truth.read(str(tmp_path)).operations(kind="kernel")]
    assert [n for n, _ in names] == ["k", "other", "other"]


def test_capture_misuse_has_its_codes():
    run(GRAPH + """
s, t, e = stream(), stream(), out(rt.cudaEventCreate)
rt.cudaStreamBeginCapture(s, 0); launch(s); rt.cudaEventRecord(e, s); rt.cudaStreamWaitEvent(t, e, 0); launch(t)
assert rt.cudaStreamEndCapture(s, C.byref(P())) == 904                # the second stream never came back
assert rt.cudaStreamBeginCapture(s, 0) == 0 and launch(s) == 0
p = P()
assert rt.cudaMalloc(C.byref(p), S(8)) == 900 and launch(s) == 901    # unsafe, and the capture is spoiled
assert rt.cudaStreamEndCapture(s, C.byref(P())) == 901
mode = I(2)
assert rt.cudaThreadExchangeStreamCaptureMode(C.byref(mode)) == 0 and mode.value == 0
rt.cudaStreamBeginCapture(s, 0)
assert rt.cudaMalloc(C.byref(p), S(8)) == 0                           # this thread said it knows
assert rt.cudaThreadExchangeStreamCaptureMode(C.byref(mode)) == 0 and mode.value == 2
codes = []
w = threading.Thread(target=lambda: codes.append(rt.cudaMalloc(C.byref(P()), S(8)))); w.start(); w.join()
assert codes == [900] and rt.cudaStreamEndCapture(s, C.byref(P())) == 901
rt.cudaStreamBeginCapture(s, 1)                                        # local to the thread: others may
w = threading.Thread(target=lambda: codes.append(rt.cudaMalloc(C.byref(P()), S(8)))); w.start(); w.join()
assert codes == [900, 0] and launch(s) == 0 and rt.cudaStreamEndCapture(s, C.byref(P())) == 0
""")


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_a_capture_in_another_thread(mode):
    run(GRAPH + """
mode = %d
s, p = stream(), P()
def elsewhere(f):
    codes = []
    w = threading.Thread(target=lambda: codes.append(f())); w.start(); w.join()
    return codes[0]
assert rt.cudaStreamBeginCapture(s, mode) == 0 and elsewhere(lambda: launch(s)) == 0
assert elsewhere(lambda: rt.cudaStreamEndCapture(s, C.byref(p))) == (0 if mode == 2 else 908)
assert mode == 2 or rt.cudaStreamEndCapture(s, C.byref(p)) == 0
assert rt.cudaMalloc(C.byref(p), S(8)) == 0 and elsewhere(lambda: rt.cudaMalloc(C.byref(p), S(8))) == 0
# A stream that goes while it captures takes the capture along.
assert rt.cudaStreamBeginCapture(s, mode) == 0 and launch(s) == 0 and rt.cudaStreamDestroy(s) == 0
assert rt.cudaMalloc(C.byref(p), S(8)) == 0 and elsewhere(lambda: rt.cudaMalloc(C.byref(p), S(8))) == 0
# The legacy stream would have to wait for a stream that captures, unless that is a non-blocking one.
b = out(rt.cudaStreamCreateWithFlags, 0); s = stream()
assert rt.cudaStreamBeginCapture(s, mode) == 0 and launch(None) == 0 and rt.cudaStreamEndCapture(s, C.byref(p)) == 0
for use in (launch, rt.cudaStreamQuery, rt.cudaStreamSynchronize):
    assert rt.cudaStreamBeginCapture(b, mode) == 0 and use(None) == 906 and rt.cudaStreamEndCapture(b, C.byref(p)) == 901
""" % mode)


def test_objects_destroyed_while_other_threads_use_them():
    run(GRAPH + """
streams = [stream() for i in range(4)]
stop, bad = [], set()
def use(i):
    while not stop:
        bad.add(launch(streams[i])); bad.add(rt.cudaStreamSynchronize(streams[i])); bad.add(rt.cudaStreamQuery(streams[i]))
def churn(i):
    while not stop:
        old, streams[i] = streams[i], stream()
        bad.add(rt.cudaStreamDestroy(old))
threads = [threading.Thread(target=f, args=(i,)) for i in range(4) for f in (use, churn)]
for t in threads: t.start()
time.sleep(1); stop.append(1)
for t in threads: t.join()
assert bad <= {0, 400, 600}, bad
""", HB_SIM_COSTS="launch_ns=0,kernel_ns=0")


def test_what_a_capture_waits_for():
    run(GRAPH + """
lib = C.CDLL(LIB + "/libcudart.so.12")
s, status, id, g, d, n = stream(), I(), L(), P(), C.POINTER(P)(), S()
info = lambda: lib.cudaStreamGetCaptureInfo_v2(s, C.byref(status), C.byref(id), C.byref(g), C.byref(d), C.byref(n))
assert info() == 0 and (status.value, n.value) == (0, 0)
rt.cudaStreamBeginCapture(s, 0)
assert info() == 0 and (status.value, n.value) == (1, 0)
launch(s)
assert info() == 0 and n.value == 1 and id.value and d[0] == nodes_of(g)[0].value
first = d[0]
extra = out(rt.cudaGraphAddEmptyNode, g, None, S(0))
assert lib.cudaStreamUpdateCaptureDependencies(s, (P * 1)(extra), S(1), 0) == 0
edges = P()
assert rt.cudaStreamGetCaptureInfo(s, C.byref(status), C.byref(id), C.byref(g), C.byref(d), C.byref(edges), C.byref(n)) == 0
assert n.value == 2 and edges.value
assert lib.cudaStreamUpdateCaptureDependencies(s, (P * 1)(P(9)), S(1), 1) == 1
launch(s)
assert deps(nodes_of(g)[-1]) == [first, extra.value]
out_g = P()
assert rt.cudaStreamEndCapture(s, C.byref(out_g)) == 0 and len(nodes_of(out_g)) == 3
assert lib.cudaStreamUpdateCaptureDependencies(s, None, S(0), 0) == 401
assert rt.cudaStreamBeginCaptureToGraph(s, out_g, (P * 1)(nodes_of(out_g)[0]), None, S(1), 0) == 0
launch(s)
assert rt.cudaStreamEndCapture(s, C.byref(g)) == 0 and g.value == out_g.value and len(nodes_of(g)) == 4
""")


def test_graphs_keep_objects_of_the_application():
    run(GRAPH + """
gone = []
F = C.CFUNCTYPE(None, P)
destroy = F(lambda p: gone.append(p))
o, g = out(rt.cudaUserObjectCreate, P(77), destroy, 1, 1), out(rt.cudaGraphCreate, 0)
assert rt.cudaGraphRetainUserObject(g, o, 1, 1) == 0                  # the reference moves
assert rt.cudaGraphDestroy(g) == 0 and gone == [77]
assert rt.cudaUserObjectRelease(o, 1) == 400
o, g = out(rt.cudaUserObjectCreate, P(78), destroy, 1, 1), out(rt.cudaGraphCreate, 0)
assert rt.cudaGraphRetainUserObject(g, o, 1, 0) == 0 and rt.cudaUserObjectRelease(o, 1) == 0 and gone == [77]
assert rt.cudaGraphReleaseUserObject(g, o, 1) == 0 and gone == [77, 78]
assert rt.cudaUserObjectCreate(C.byref(P()), None, destroy, 0, 1) == 1
o, g = out(rt.cudaUserObjectCreate, P(79), destroy, 1, 1), out(rt.cudaGraphCreate, 0)
assert rt.cudaGraphRetainUserObject(g, o, 1, 1) == 0
x, c = out(rt.cudaGraphInstantiate, g, L(0)), out(rt.cudaGraphClone, g)
assert rt.cudaGraphDestroy(g) == 0 and rt.cudaGraphDestroy(c) == 0 and gone == [77, 78]
assert rt.cudaGraphExecDestroy(x) == 0 and gone == [77, 78, 79]        # the executable graph kept it
""")


def test_tensor_maps():
    run("""
d = out(rt.cudaMalloc, S(M))
raw = C.create_string_buffer(256)
m = P((C.addressof(raw) + 63) // 64 * 64)
def encode(at=d.value, box=64, rank=2):
    return cu.cuTensorMapEncodeTiled(m, 9, rank, P(at), (L * 2)(128, 128), (L * 1)(256), (U * 2)(box, 64), (U * 2)(1, 1), 0, 3, 2, 0)
assert encode() == 0 and encode(at=d.value + 8) == 1 and encode(box=300) == 1 and encode(rank=6) == 1
""")


def test_per_thread_default_streams_of_the_runtime():
    run("""
register(0x1000, b"k")
def per_thread():
    assert rt.cudaLaunchKernel_ptsz(P(0x1000), ONE, ONE, None, S(0), None) == 0
    return rt.cudaStreamQuery_ptsz(None)
free = stream()
assert per_thread() == 600                            # busy
codes = []
t = threading.Thread(target=lambda: codes.append(rt.cudaStreamQuery_ptsz(None))); t.start(); t.join()
assert codes == [0]                                   # another thread has another stream
assert rt.cudaStreamQuery(None) == 600                # the legacy stream waits for it
assert rt.cudaStreamQuery(free) == 0
assert rt.cudaStreamSynchronize_ptsz(None) == 0 and rt.cudaStreamQuery(None) == 0
""", HB_SIM_COSTS="kernel_ns=300000000")


def test_laying_that_was_interrupted_between_its_two_names_is_undone(tmp_path):
    lib = tmp_path / "a venv" / "lib" / "python3.11" / "site-packages" / "nvidia" / "cuda_runtime" / "lib"
    lib.mkdir(parents=True)
    (tmp_path / "a venv" / "pyvenv.cfg").write_text("")
    (lib / "libcudart.so.12").write_bytes(b"the wheel's")
    os.link(lib / "libcudart.so.12", lib / "libcudart.so.12.real")
    subprocess.run([sys.executable, os.path.join(simlib.ROOT, "tests", "sim", "lay"), str(tmp_path / "a venv"), "--undo"], check=True)
    assert os.listdir(lib) == ["libcudart.so.12"] and (lib / "libcudart.so.12").read_bytes() == b"the wheel's"
