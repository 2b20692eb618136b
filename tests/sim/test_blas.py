# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Simulated cuBLAS and cuBLASLt: handles, products as kernels through the driver, descriptors, codes, ABI."""
import glob
import os
import re
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import simlib  # noqa: E402
import truth  # noqa: E402
from test_sim import HERE, built, first_instructions  # noqa: E402,F401

LIBRARIES = ["libcublas.so.12", "libcublas.so.13", "libcublasLt.so.12", "libcublasLt.so.13"]
WHEELS = "/var/cache/herschel-bpf-tests/*/venv/lib/python3*/site-packages/nvidia"
CUDA = os.environ.get("CUDA_HOME", "/usr/local/cuda")

BLAS = """
lt = C.CDLL(LIB + "/libcublasLt.so.13", mode=C.RTLD_GLOBAL)
blas = C.CDLL(LIB + "/libcublas.so.13", mode=C.RTLD_GLOBAL)
F32, F64, F16, I8, C64, BF16, E4M3 = 0, 1, 2, 3, 4, 14, 28
C16, C32, CD, CI, FAST = 64, 68, 70, 72, 77
one, d = C.c_float(1), P(1 << 20)
one_p = C.byref(one)
def gemm_ex(h, m, n, k, t=BF16, out=None, compute=C32, ta=1, tb=0, lda=None, ldb=None, ldc=None):
    return blas.cublasGemmEx(h, ta, tb, m, n, k, one_p, d, t, lda or (k if ta else m), d, t, ldb or (n if tb else k), one_p, d,
                             t if out is None else out, ldc or m, compute, -1)
def handle():
    return out(blas.cublasCreate_v2)
"""


def run(code, **env):
    return simlib.run(BLAS + code, **env)


def kernels(tmp_path, code, **env):
    """Kernels of the program: operations in the order of their launches."""
    run(code, HB_SIM_TRUTH=tmp_path, **env)
    log = truth.read(str(tmp_path))
    return sorted(log.operations(kind="kernel"), key=lambda o: o.queued), log


# ---- shape ----

@pytest.mark.parametrize("library", LIBRARIES)
def test_names_carry_the_version_of_the_library_and_functions_begin_with_push(library):
    path = os.path.join(simlib.LIB, library)
    text = subprocess.run(["nm", "-D", "--defined-only", path], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout
    names = re.findall(r" T (cublas\w+)@@(\S+)$", text, re.M)
    assert len(names) > (500 if "Lt" not in library else 35)
    assert {v for _, v in names} == {library}
    begins = first_instructions(library, 1)
    assert not [n for n, _ in names if begins.get(n) != ["push"] and n != "cublasXerbla"]


def real(library):
    found = glob.glob(WHEELS + "/cublas/lib/" + library) + glob.glob(WHEELS + "/cublas/lib/" + library + ".real") \
        + glob.glob(CUDA + "/lib64/" + library)
    for path in found:
        text = subprocess.run(["nm", "-D", "--defined-only", path], check=True, stdout=subprocess.PIPE,
                              universal_newlines=True).stdout
        if "hb_simulated_accelerator" not in text:
            return set(re.findall(r" T (cublas\w+)@", text))
    pytest.skip("no %s of NVIDIA's here" % library)


@pytest.mark.parametrize("library", LIBRARIES)
def test_no_function_that_the_real_library_has_not(library):
    theirs = real(library)
    text = subprocess.run(["nm", "-D", "--defined-only", os.path.join(simlib.LIB, library)], check=True,
                          stdout=subprocess.PIPE, universal_newlines=True).stdout
    assert set(re.findall(r" T (cublas\w+)@", text)) <= theirs


@pytest.mark.parametrize("front", ["cublas", "cublaslt", "nccl"])
@pytest.mark.parametrize("version", [12, 13])
def test_abi_agrees_with_the_real_headers(front, version):
    if version == 13:
        folders = [os.path.join(CUDA, "include")]
    else:
        folders = [f for p in ("cublas", "cuda_runtime", "nccl") for f in glob.glob(WHEELS + "/%s/include" % p)]
    if not any(os.path.exists(f + "/cublasLt.h") for f in folders):
        pytest.skip("no headers of cuBLAS %d here" % version)
    r = subprocess.run(["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-DHB_SIM_REAL_HEADERS", "-DHB_CUDART=%d" % version,
                        "-DHB_CUBLAS_MAJOR=%d" % version, "-w", "-fsyntax-only"] + ["-I" + f for f in folders] +
                       [os.path.join(HERE, "fronts", front + ".c")], stderr=subprocess.PIPE, universal_newlines=True)
    assert r.returncode == 0, r.stderr


# ---- handles ----

def test_handles_remember_their_settings():
    run("""
h, s = handle(), stream()
v, m, p = C.c_int(), C.c_int(), P()
assert blas.cublasGetVersion_v2(h, C.byref(v)) == 0 and v.value // 10000 == 13
assert blas.cublasSetStream_v2(h, s) == 0 and blas.cublasGetStream_v2(h, C.byref(p)) == 0 and p.value == s.value
assert blas.cublasGetMathMode(h, C.byref(m)) == 0 and m.value == 0
assert blas.cublasSetMathMode(h, 3) == 0 and blas.cublasGetMathMode(h, C.byref(m)) == 0 and m.value == 3
assert blas.cublasSetPointerMode_v2(h, 1) == 0 and blas.cublasGetPointerMode_v2(h, C.byref(m)) == 0 and m.value == 1
assert blas.cublasSetPointerMode_v2(h, 9) == 7 and blas.cublasSetMathMode(h, 99) == 7
assert blas.cublasSetWorkspace_v2(h, P(4096), S(1 << 20)) == 0 and blas.cublasSetWorkspace_v2(h, P(4097), S(1)) == 7
assert blas.cublasGetStream_v2(h, None) == 7
assert blas.cublasDestroy_v2(h) == 0 and blas.cublasDestroy_v2(h) == 1
""")


def test_bad_handles_give_codes_and_many_fit():
    run("""
h = handle()
for bad in (None, P(0x77), P(h.value + 8), P(0xffffffffffffff00), out(rt.cudaEventCreate)):
    assert gemm_ex(bad, 8, 8, 8) == 1 and blas.cublasSetStream_v2(bad, None) == 1 and blas.cublasDestroy_v2(bad) == 1
    assert blas.cublasSaxpy_v2(bad, 4, one_p, d, 1, d, 1) == 1
hs = [handle() for i in range(500)]
assert len({x.value for x in hs}) == 500
assert all(blas.cublasDestroy_v2(x) == 0 for x in hs) and blas.cublasDestroy_v2(hs[7]) == 1
assert blas.cublasCreate_v2(None) == 7
""")


def test_a_handle_of_one_library_serves_the_other_but_not_back():
    run("""
h, l = handle(), out(lt.cublasLtCreate)
assert lt.cublasLtDestroy(h) == 1                    # it is not cublasLt's to destroy
ids, n = (C.c_int * 4)(), C.c_int()
assert lt.cublasLtMatmulAlgoGetIds(h, C32, F32, F32, F32, F32, F32, 4, ids, C.byref(n)) == 0 and n.value == 1
assert gemm_ex(l, 8, 8, 8) == 1
assert lt.cublasLtDestroy(l) == 0 and lt.cublasLtDestroy(l) == 1
""")


def test_creating_is_refused_without_memory_for_the_workspace():
    run("""
d = out(rt.cudaMalloc, S(48 << 20))
p = P()
assert blas.cublasCreate_v2(C.byref(p)) == 3 and not p.value
assert rt.cudaFree(d) == 0 and blas.cublasCreate_v2(C.byref(p)) == 0
""", HB_SIM_COSTS="memory=%d" % (64 << 20))


# ---- products ----

def test_one_kernel_a_product_through_the_exported_driver(tmp_path):
    ops, log = kernels(tmp_path, """
h, s = handle(), stream()
blas.cublasSetStream_v2(h, s)
for i in range(40):
    assert gemm_ex(h, 4096, 8, 4096) == 0
for i in range(10):
    assert blas.cublasSgemm_v2(h, 1, 0, 64, 64, 64, one_p, d, 64, d, 64, one_p, d, 64) == 0
rt.cudaStreamSynchronize(s)
""")
    assert [o.name.split("_")[0] for o in ops] == ["nvjet"] * 40 + ["sm80"] * 10
    counts = log.counts()
    assert counts[("library", "cublasGemmEx")] == 40 and counts[("library", "cublasSgemm_v2")] == 10
    launches = log.calls("cuLaunchKernelEx") + log.calls("cuLaunchKernel")
    assert len(launches) == 50 and all(c.depth == 1 for c in launches)
    assert {o.stream for o in ops} == {launches[0].stream} and launches[0].stream
    # each launch lies within a call of the library
    outer = [(c.enter, c.exit) for c in log.layer("library").calls() if "emm" in c.function]
    assert all(any(a <= c.enter and c.exit <= b for a, b in outer) for c in launches)


@pytest.mark.parametrize("call,name", [
    ("gemm_ex(h, 4096, 4096, 4096)", r"nvjet_tst_\d+x\d+_64x4_.*_TNT$"),
    ("gemm_ex(h, 4096, 4096, 4096, F16)", r"nvjet_hsh_"),
    ("gemm_ex(h, 4096, 4096, 4096, F16, compute=C16)", r"nvjet_hsh_"),
    ("gemm_ex(h, 4096, 4096, 4096, E4M3, BF16)", r"nvjet_qqtst_"),
    ("gemm_ex(h, 4096, 1, 4096)", r".*gemv"),
    ("gemm_ex(h, 99, 98, 97)", r"_ZN7cutlass7Kernel2.*s16816gemm_bf16"),
    ("gemm_ex(h, 64, 64, 64, F32)", r"sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_.*ffma"),
    ("gemm_ex(h, 64, 64, 64, F32, compute=FAST)", r"sm80_xmma_gemm_f32f32_tf32f32"),
    ("gemm_ex(h, 64, 64, 64, F64, compute=CD)", r".*d884gemm"),
    ("gemm_ex(h, 64, 64, 64, C64)", r".*cgemm"),
    ("gemm_ex(h, 64, 64, 64, I8, 10, CI)", r"sm90_xmma_gemm_i8i32"),
    ("(blas.cublasSetMathMode(h, 3), gemm_ex(h, 64, 64, 64, F32, ta=0, tb=1))[1]", r"sm80_xmma_gemm_f32f32_tf32f32_f32_nt_"),
])
def test_kernels_have_the_names_of_their_types(tmp_path, call, name):
    ops, _ = kernels(tmp_path, "h = handle()\nassert %s == 0\nrt.cudaDeviceSynchronize()" % call)
    assert len(ops) == 1 and re.match(name, ops[0].name), ops


def test_a_product_costs_what_it_computes_and_moves(tmp_path):
    ops, _ = kernels(tmp_path, """
h = handle()
for m, n, k in ((8192, 8192, 8192), (4096, 8, 4096), (16, 16, 16)):
    assert gemm_ex(h, m, n, k) == 0
assert blas.cublasGemmStridedBatchedEx(h, 1, 0, 64, 64, 64, one_p, d, BF16, 64, C.c_longlong(4096), d, BF16, 64, C.c_longlong(4096),
                                       one_p, d, BF16, 64, C.c_longlong(4096), 32, C32, -1) == 0
rt.cudaDeviceSynchronize()
""")
    big, narrow, tiny, batched = (o.end - o.start for o in ops)
    assert 1.1e12 / 989e12 * 1e9 <= big <= 4e6     # flops of an H100 at most
    assert 33.5e6 / 3.35e12 * 1e9 <= narrow <= 40e3  # its weights from memory
    assert 2000 <= tiny <= 6000
    assert [o.bytes for o in ops][1:] == [2 * (4096 * 4096 + 8 * 4096 + 8 * 4096), 2 * 3 * 256, 2 * 32 * 3 * 4096]


def test_a_long_k_with_few_tiles_is_split_and_reduced(tmp_path):
    ops, _ = kernels(tmp_path, "h = handle()\nassert gemm_ex(h, 1024, 8, 16384) == 0\nrt.cudaDeviceSynchronize()")
    assert len(ops) == 2 and "splitK" in ops[0].name and "splitKreduce" in ops[1].name


def test_products_are_captured(tmp_path):
    ops, _ = kernels(tmp_path, """
h, s = handle(), stream()
blas.cublasSetStream_v2(h, s)
assert gemm_ex(h, 64, 64, 64) == 0
rt.cudaStreamSynchronize(s)
assert rt.cudaStreamBeginCapture(s, 0) == 0
for i in range(7):
    assert gemm_ex(h, 512, 64, 64) == 0
g = out(lambda p: rt.cudaStreamEndCapture(s, p))
n = S()
assert rt.cudaGraphGetNodes(g, None, C.byref(n)) == 0 and n.value == 7
x = out(rt.cudaGraphInstantiate, g, C.c_ulonglong(0))
for i in range(3):
    assert rt.cudaGraphLaunch(x, s) == 0
rt.cudaStreamSynchronize(s)
""")
    assert len(ops) == 1 + 3 * 7 and sum(1 for o in ops if o.exec) == 21


def test_wrong_arguments_of_products(tmp_path):
    ops, _ = kernels(tmp_path, """
h = handle()
assert gemm_ex(h, -1, 8, 8) == 7 and gemm_ex(h, 8, 8, -8) == 7
assert gemm_ex(h, 64, 64, 64, lda=63) == 7 and gemm_ex(h, 64, 64, 64, ldc=63) == 7 and gemm_ex(h, 64, 64, 64, ta=7) == 7
assert gemm_ex(h, 64, 64, 64, BF16, compute=CD) == 15 and gemm_ex(h, 64, 64, 64, 99) == 15
assert gemm_ex(h, 64, 64, 64, E4M3, BF16, ta=0) == 15     # fp8 is for rows by columns
assert blas.cublasSgemm_v2(h, 0, 0, 8, 8, 8, None, d, 8, d, 8, None, d, 8) == 7
assert gemm_ex(h, 0, 8, 8, ldc=8) == 0 and gemm_ex(h, 8, 0, 8) == 0     # nothing to do
blas.cublasSetStream_v2(h, P(0x77))
assert gemm_ex(h, 8, 8, 8) == 13
""")
    assert ops == []


def test_64_bit_sizes_and_batches(tmp_path):
    ops, _ = kernels(tmp_path, """
h, q = handle(), C.c_longlong
assert blas.cublasSgemm_v2_64(h, 1, 0, q(64), q(64), q(64), one_p, d, q(64), d, q(64), one_p, d, q(64)) == 0
assert blas.cublasSgemm_v2_64(h, 1, 0, q(-1 << 40), q(64), q(64), one_p, d, q(64), d, q(64), one_p, d, q(64)) == 7
assert blas.cublasSgemmBatched(h, 1, 0, 64, 64, 64, one_p, d, 64, d, 64, one_p, d, 64, 16) == 0
assert blas.cublasSgemmStridedBatched(h, 1, 0, 64, 64, 64, one_p, d, 64, q(1), d, 64, q(1), one_p, d, 64, q(1), 16) == 0
rt.cudaDeviceSynchronize()
""")
    assert [o.grid[2] for o in ops] == [1, 16, 16]


def test_a_thread_without_a_context_gets_one():
    run("""
h, r = handle(), []
t = threading.Thread(target=lambda: r.append(gemm_ex(h, 64, 64, 64)))
t.start(); t.join()
assert r == [0]
""")


# ---- other functions ----

def test_other_functions_are_a_kernel_named_after_them(tmp_path):
    ops, _ = kernels(tmp_path, """
h, q = handle(), C.c_longlong
assert blas.cublasSaxpy_v2(h, 1000, one_p, d, 1, d, 1) == 0
assert blas.cublasZscal_v2_64(h, q(1000), one_p, d, q(1)) == 0
assert blas.cublasDgemv_v2(h, 0, 64, 64, one_p, d, 64, d, 1, one_p, d, 1) == 0
assert blas.cublasStrsm_v2(h, 0, 0, 0, 0, 64, 64, one_p, d, 64, d, 64) == 0
assert blas.cublasSgetrfBatched(h, 8, d, 8, d, d, 4) == 0
info = C.c_int(5)
assert blas.cublasSgetrsBatched(h, 0, 8, 8, d, 8, d, d, 8, C.byref(info), 4) == 0 and info.value == 0
assert blas.cublasSaxpy_v2(h, -1, one_p, d, 1, d, 1) == 7 and blas.cublasSaxpy_v2(h, 0, one_p, d, 1, d, 1) == 0
rt.cudaDeviceSynchronize()
""")
    assert [o.name for o in ops] == ["saxpy_kernel", "zscal_kernel", "dgemv_kernel", "strsm_kernel", "sgetrfBatched_kernel",
                                     "sgetrsBatched_kernel"]


def test_results_on_the_host_are_waited_for():
    run("""
h, s = handle(), stream()
blas.cublasSetStream_v2(h, s)
f, i = C.c_float(7), C.c_int(7)
t = time.monotonic_ns()
assert blas.cublasSdot_v2(h, 100, d, 1, d, 1, C.byref(f)) == 0 and f.value == 0
assert time.monotonic_ns() - t >= 30000000 and rt.cudaStreamQuery(s) == 0
assert blas.cublasIsamax_v2(h, 100, d, 1, C.byref(i)) == 0 and i.value == 1
assert blas.cublasSnrm2_v2(h, 100, d, 1, None) == 7
blas.cublasSetPointerMode_v2(h, 1)
t = time.monotonic_ns()
assert blas.cublasSdot_v2(h, 100, d, 1, d, 1, d) == 0 and rt.cudaStreamQuery(s) == 600
""", HB_SIM_COSTS="kernel_ns=40000000")


def test_vectors_and_matrices_are_copied():
    run("""
h, g = C.create_string_buffer(bytes(range(64)), 64), out(rt.cudaMalloc, S(256))
o = C.create_string_buffer(64)
assert blas.cublasSetVector(16, 4, h, 1, g, 1) == 0 and blas.cublasGetVector(16, 4, g, 1, o, 1) == 0 and o.raw == h.raw
o = C.create_string_buffer(64)
assert blas.cublasGetMatrix(2, 3, 4, g, 4, o, 2) == 0
assert o.raw[:24] == h.raw[0:8] + h.raw[16:24] + h.raw[32:40]
assert blas.cublasSetVector(16, 4, h, 0, g, 1) == 7 and blas.cublasSetMatrix(-1, 3, 4, g, 4, o, 2) == 7
""")


# ---- cublasLt ----

LT = """
def layout(t, rows, cols, ld=None):
    return out(lt.cublasLtMatrixLayoutCreate, t, C.c_uint64(rows), C.c_uint64(cols), C.c_int64(ld or rows))
def put(kind, obj, attr, value):
    return lt["cublasLt%sSetAttribute" % kind](obj, attr, C.byref(value), S(C.sizeof(value)))
class Result(C.Structure):
    _fields_ = [("algo", C.c_uint64 * 8), ("workspace", S), ("state", C.c_int), ("waves", C.c_float), ("r", C.c_int * 4)]
def problem(m, n, k, t=BF16, o=None, ta=1):
    desc = out(lt.cublasLtMatmulDescCreate, C32, F32)
    assert put("MatmulDesc", desc, 3, C.c_int(ta)) == 0
    return desc, layout(t, k if ta else m, m if ta else k), layout(t, k, n), layout(t if o is None else o, m, n)
def heuristic(h, p, pref, n=1):
    r, found = (Result * n)(), C.c_int(9)
    return lt.cublasLtMatmulAlgoGetHeuristic(h, p[0], p[1], p[2], p[3], p[3], pref, n, r, C.byref(found)), r[0], found.value
def matmul(h, p, algo, s, ws=None, size=0):
    return lt.cublasLtMatmul(h, p[0], one_p, d, p[1], d, p[2], one_p, d, p[3], d, p[3], algo, ws, S(size), s)
"""


def test_lt_products(tmp_path):
    ops, log = kernels(tmp_path, LT + """
h, s = handle(), stream()
pref = out(lt.cublasLtMatmulPreferenceCreate)
for t, o in ((BF16, None), (F16, None), (F32, None), (E4M3, BF16)):
    p = problem(4096, 64, 4096, t, o)
    r, res, n = heuristic(h, p, pref, 4)
    assert (r, n, res.state, res.workspace) == (0, 1, 0, 0) and res.waves > 0
    assert matmul(h, p, C.byref(res), s) == 0
assert matmul(h, p, None, s) == 0
assert rt.cudaStreamSynchronize(s) == 0
""")
    assert [o.name.split("_")[:2] for o in ops] == [["nvjet", "tst"], ["nvjet", "hsh"], ["sm80", "xmma"], ["nvjet", "qqtst"],
                                                    ["nvjet", "qqtst"]]
    assert log.counts()[("library", "cublasLtMatmul")] == 5


def test_lt_splits_only_with_workspace(tmp_path):
    ops, _ = kernels(tmp_path, LT + """
h, s, pref = handle(), stream(), out(lt.cublasLtMatmulPreferenceCreate)
p = problem(1024, 8, 16384)
r, res, n = heuristic(h, p, pref)
assert res.workspace == 0 and matmul(h, p, C.byref(res), s) == 0
assert put("MatmulPreference", pref, 1, C.c_uint64(32 << 20)) == 0
r, res, n = heuristic(h, p, pref)
assert 0 < res.workspace <= 32 << 20 and matmul(h, p, C.byref(res), s, P(4096), res.workspace) == 0
rt.cudaStreamSynchronize(s)
""")
    assert ["splitK" in o.name for o in ops] == [False, True, True]


def test_lt_descriptors_fit_the_callers_memory_and_keep_their_attributes():
    run(LT + """
for kind, size, init in (("MatmulDesc", 256, (C32, F32)), ("MatrixLayout", 64, (BF16, C.c_uint64(8), C.c_uint64(9), C.c_int64(8))),
                         ("MatmulPreference", 64, ()), ("MatrixTransformDesc", 64, (F32,))):
    b = C.create_string_buffer(b"x" * (size + 64), size + 64)
    f = lt["cublasLt%sInit_internal" % kind]
    assert f(b, S(size - 1), *init) == 7 and f(b, S(size), *init) == 0
    assert b.raw[size:] == b"x" * 64
w, v = S(), C.c_uint64()
l = layout(BF16, 8, 9)
get = lt.cublasLtMatrixLayoutGetAttribute
assert get(l, 2, None, S(0), C.byref(w)) == 0 and w.value == 8
assert get(l, 2, C.byref(v), S(8), C.byref(w)) == 0 and v.value == 8 and get(l, 3, C.byref(v), S(8), None) == 0 and v.value == 9
assert get(l, 2, C.byref(v), S(4), C.byref(w)) == 7 and get(l, 77, C.byref(v), S(8), C.byref(w)) == 7
assert put("MatrixLayout", l, 5, C.c_int(4)) == 0 and put("MatrixLayout", l, 5, C.c_int64(4)) == 7
desc = out(lt.cublasLtMatmulDescCreate, C32, F32)
for attr, value in ((7, C.c_uint32(4)), (8, C.c_uint64(1 << 20)), (17, C.c_uint64(5)), (25, C.c_int8(1)), (26, C.c_int(BF16)), (31, C.c_int(1))):
    got = type(value)()
    assert put("MatmulDesc", desc, attr, value) == 0
    assert lt.cublasLtMatmulDescGetAttribute(desc, attr, C.byref(got), S(C.sizeof(got)), None) == 0 and got.value == value.value
assert lt.cublasLtMatmulDescDestroy(desc) == 0 and lt.cublasLtMatrixLayoutDestroy(l) == 0
assert lt.cublasLtMatmulDescCreate(None, C32, F32) == 7
""")


def test_lt_wrong_problems():
    run(LT + """
h, s, pref = handle(), stream(), out(lt.cublasLtMatmulPreferenceCreate)
p = problem(64, 64, 64)
assert heuristic(None, p, pref)[0] == 1 and matmul(None, p, None, s) == 1 and matmul(P(8), p, None, s) == 1
assert heuristic(h, (p[0], p[1], p[2], layout(BF16, 64, 65)), pref)[0] == 7
assert heuristic(h, problem(64, 64, 64, E4M3, BF16, ta=0), pref)[0] == 15
assert matmul(h, (p[0], None, p[2], p[3]), None, s) == 7
r, res, n = heuristic(h, p, pref)
v = C.c_int()
assert lt.cublasLtMatmulAlgoConfigGetAttribute(C.byref(res), 2, C.byref(v), S(4), None) == 0 and v.value == 1
assert lt.cublasLtMatmulAlgoConfigSetAttribute(C.byref(res), 0, C.byref(v), S(4)) == 7
assert lt.cublasLtMatmulAlgoCapGetAttribute(C.byref(res), 0, C.byref(v), S(4), None) == 0 and v.value == 1
check = Result()
assert lt.cublasLtMatmulAlgoCheck(h, p[0], p[1], p[2], p[3], p[3], C.byref(res), C.byref(check)) == 0 and check.state == 0
""")


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("ready", [False, True])
def test_no_function_dies_of_empty_arguments(library, ready):
    text = subprocess.run(["nm", "-D", "--defined-only", os.path.join(simlib.LIB, library)], check=True,
                          stdout=subprocess.PIPE, universal_newlines=True).stdout
    names = re.findall(r" T (cublas\w+)@", text)
    printed = simlib.run("""
if %r:
    assert rt.cudaFree(None) == 0
lib = C.CDLL(LIB + "/%s")
for name in %r:
    print(name, lib[name](*[P(0)] * 24))
""" % (ready, library, names))
    assert len(printed.splitlines()) >= len(names)


def test_without_a_driver_there_is_no_handle(tmp_path):
    r = subprocess.run([sys.executable, "-c", """
import ctypes as C
lt, blas = C.CDLL("%s/libcublasLt.so.13", mode=C.RTLD_GLOBAL), C.CDLL("%s/libcublas.so.13")
print(blas.cublasCreate_v2(C.byref(C.c_void_p())), lt.cublasLtCreate(C.byref(C.c_void_p())))
""" % (copy_of("libcublasLt.so.13", tmp_path), copy_of("libcublas.so.13", tmp_path))], env=simlib.environment(LD_LIBRARY_PATH=""),
                       stdout=subprocess.PIPE, check=True)
    if r.stdout.split() == [b"0", b"0"]:
        pytest.skip("this machine has a driver")
    assert r.stdout.split() == [b"1", b"1"]


def copy_of(library, folder):
    """A copy apart from libcuda.so.1, which the libraries look for beside themselves; the folder."""
    with open(os.path.join(simlib.LIB, library), "rb") as f, open(str(folder / library), "wb") as to:
        to.write(f.read())
    return str(folder)
