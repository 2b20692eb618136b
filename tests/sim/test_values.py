# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Values: copies and fills are real; what kernels are said to have written is harmless."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import simlib  # noqa: E402
from test_sim import built  # noqa: E402,F401

VALUES = """
register(0x1000, b"k"); register(0x2000, b"_ZN2at4cuda3cub17nonzero_countEv")
s = stream()
d, h = out(rt.cudaMalloc, S(1 << 20)), out(rt.cudaHostAlloc, S(1 << 20), 0)
def put(n, byte=7, at=0):
    C.memset(h, byte, n); assert rt.cudaMemcpy(P(d.value + at), h, S(n), 1) == 0
def get(n, at=0):
    C.memset(h, 0xee, n); assert rt.cudaMemcpyAsync(h, P(d.value + at), S(n), 2, s) == 0
    rt.cudaStreamSynchronize(s)
    return C.string_at(h, n)
def show(*results):
    print(json.dumps([r.hex() for r in results]))
"""


def values(code, **env):
    return [bytes.fromhex(x) for x in json.loads(simlib.run(VALUES + code, **env))]


STEPS = """
steps = []
for i in range(100):
    for k in range(8): launch(s)
    steps.append(get(16))
show(b"".join(steps))
"""


def test_what_a_kernel_wrote_is_token_ids_that_vary_by_step():
    ids = struct.unpack("<200q", values(STEPS, HB_SIM_VOCAB=100)[0])
    assert all(5 <= i < 100 for i in ids) and len(set(ids)) > 40 and ids[0::2] == ids[1::2]
    words = values(STEPS)[0]
    assert all(0 <= i < 500 for i in struct.unpack("<400i", words))
    assert all(abs(x) < 1e-30 for x in struct.unpack("<400f", words))


def test_what_is_read_of_one_step_belongs_together():
    # sampled ids of three requests, then for each the ids of itself and the two most likely, as int32
    sampled, likely = values("""
for k in range(8): launch(s)
a = get(12)
launch(s)
show(a, get(36))
""")
    for token, row in zip(struct.unpack("<3i", sampled), zip(*[iter(struct.unpack("<9i", likely))] * 3)):
        assert token in row


def test_odd_sizes():
    one, odd, small = values("launch(s); show(get(4), get(13), get(3))")
    assert 5 <= struct.unpack("<i", one)[0] < 500 and odd[8:] == bytes(5) and small == bytes(3)


def test_counts_read_as_zero():
    got, = values("launch(s); launch(s, 0x2000); show(get(64))")
    assert got == bytes(64)


def test_what_was_copied_or_filled_since_reads_back_exactly():
    code = "launch(s); put(100); put(50, 9, 1000); rt.cudaMemset(P(d.value + 4096), 3, S(64)); " \
           "rt.cudaMemcpy(P(d.value + 8192), P(d.value + 1000), S(50), 3); rt.cudaMemcpy(P(d.value + 9000), P(d.value + 70000), S(8), 3)\n" \
           "show(get(100), get(50, 1000), get(64, 4096), get(50, 8192), get(8, 9000), get(8, 60000))"
    a, b, c, e, unknown, other = values(code)
    assert (a, b, c, e) == (b"\7" * 100, b"\11" * 50, b"\3" * 64, b"\11" * 50)
    assert 5 <= struct.unpack("<q", unknown)[0] < 500 and 5 <= struct.unpack("<q", other)[0] < 500


def test_before_any_kernel_and_above_64_kib_memory_is_memory():
    first, large = values("put(1 << 17); a = get(64); launch(s); show(a, get(1 << 17))")
    assert first == b"\7" * 64 and large == b"\7" * (1 << 17)


def test_many_writes_between_kernels_are_all_exact():
    got = values("launch(s)\nfor i in range(400): put(8, i % 251, i * 64)\nshow(*[get(8, i * 64) for i in range(400)])")
    assert got == [bytes([i % 251]) * 8 for i in range(400)]


def test_a_graph_launch_is_kernels_too():
    a, b = values("""
rt.cudaStreamBeginCapture(s, 0); launch(s); g = out(lambda p: rt.cudaStreamEndCapture(s, p))
x = out(rt.cudaGraphInstantiate, g, C.c_ulonglong(0))
put(8); a = get(8); rt.cudaGraphLaunch(x, s); show(a, get(8))
""")
    assert a == b"\7" * 8 and 5 <= struct.unpack("<q", b)[0] < 500


def test_the_seed_decides():
    a, b, c = values(STEPS, HB_SIM_SEED=3)[0], values(STEPS, HB_SIM_SEED=3)[0], values(STEPS, HB_SIM_SEED=4)[0]
    assert a == b != c


def test_narrow_numbers_can_be_asked_for():
    got = struct.unpack("<8i", values("launch(s); show(get(32))", HB_SIM_RESULTS="int32")[0])
    assert 5 <= got[0] < 500 and len(set(got)) == 1


def test_memory_can_be_asked_for():
    got, = values("put(64); launch(s); show(get(64))", HB_SIM_RESULTS="memory")
    assert got == b"\7" * 64
