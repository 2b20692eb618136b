# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`analyze`: how fast the work could have been, held against the figures that TraceLens asserts for the same traces (and
that were derived again by hand), and what it says where there is no model."""
import json
import subprocess
import sys

import pytest

from lib import paths, tracing
from lib.tool import OK, USAGE
from test_import import imported, trace_file

pytestmark = pytest.mark.beside

QWEN3_8B = {  # its config.json, as far as it is looked at
    "model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
    "sliding_window": None, "use_sliding_window": False, "torch_dtype": "bfloat16"}
MIB = 1 << 20


def analysis(tool, window, *args):
    return json.loads(tool.run("analyze", "--json", *args, window, code=OK).out)


def rows(doc, **want):
    return [r for r in doc["roofline"] if all(r[k] == v for k, v in want.items())]


def row(doc, **want):
    found = rows(doc, **want)
    assert len(found) == 1, (want, found)
    return found[0]


@pytest.fixture
def window(tool):
    return lambda name: imported(tool, trace_file(name))[1]


@pytest.fixture
def config(tmp_path):
    """A model's configuration as a file, with changes."""
    def write(**changes):
        path = str(tmp_path / "config.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({**QWEN3_8B, **changes}, f)
        return path
    return write


# ---- operators ----

def test_products_of_bert_have_the_figures_of_tracelens(tool, window):
    doc = analysis(tool, window("T1"))
    r = row(doc, name="aten::addmm", shape="141x512x512")
    assert (r["model"], r["basis"], r["count"], r["types"]["in"]) == ("gemm", "operator", 17, "bf16")
    assert r["flops"] / 1e9 == pytest.approx(0.0739968, abs=5e-8)
    assert r["bytes"] / MIB == pytest.approx(0.776367, abs=5e-7)
    assert r["mean_ns"] == pytest.approx(5806.94, abs=0.01)
    # 3.35 TB/s and 989.4 TFLOP/s: 814,080 bytes take longer than the arithmetic
    assert r["bound"] == "memory" and r["light_ns"] == pytest.approx(814080 / 3350, abs=0.1)
    assert r["of_light"] == pytest.approx(814080 / 3350 / r["mean_ns"], abs=1e-4)
    assert doc["roofline_devices"][0]["name"] == "NVIDIA H100 80GB HBM3"


def test_prefill_of_qwen_has_the_figures_of_tracelens(tool, window):
    doc = analysis(tool, window("T2"))
    r = row(doc, name="aten::mm", shape="8944x2816x1024")
    assert r["count"] == 48
    assert r["flops"] / 1e9 == pytest.approx(51.5816, abs=5e-5)
    assert r["tflops_per_s"] == pytest.approx(610.666, abs=5e-4)
    assert r["bound"] == "compute" and r["of_light"] == pytest.approx(51581.550592 / 989.4 / (r["mean_ns"] / 1e3), abs=1e-4)
    r = row(doc, model="attention")
    assert r["size"] == {"q": 8944, "kv": 8944, "pairs": 16 * 559 * 559, "self": 16 * 559 * 559, "heads": 16, "kv_heads": 16,
                         "d_k": 64, "d_v": 64}
    assert r["flops"] / 1e9 == pytest.approx(10.2394, abs=5e-5)
    assert r["tflops_per_s"] == pytest.approx(90.289, abs=5e-4)


def test_every_kernel_has_a_row_or_a_reason(tool, window):
    for name in ("T1", "T2", "T3", "T7", "T9", "T10"):
        doc = analysis(tool, window(name))
        counts = doc["roofline_counts"]
        left = doc["roofline_no_model"]
        assert counts["kernels"] == sum(d["kernels"] for d in doc["devices"])
        assert counts["modelled"] + sum(r["count"] for r in left) == counts["kernels"], name
        assert counts["modelled_ns"] + sum(r["total_ns"] for r in left) == counts["kernels_ns"], name
        assert all(r["reason"] for r in left)
        assert not [r for r in doc["roofline"] if r["model_error"]], name


def test_without_shapes_there_is_no_number(tool, window):
    """T11 was recorded without shapes."""
    doc = analysis(tool, window("T11"))
    assert doc["roofline"] == [] and doc["roofline_counts"]["modelled"] == 0
    text = tool.run("analyze", window("T11"), code=OK).out
    assert "no model: " in text and "TFLOP/s" not in text


# ---- a model's configuration ----

def test_decode_in_a_graph_has_the_figures_of_tracelens(tool, window, config):
    doc = analysis(tool, window("T7"), "--model", config())
    r = row(doc, name="gate_up", shape="32x24576x4096")
    assert (r["basis"], r["count"]) == ("model", 36)
    assert r["bytes"] == 193.75 * MIB
    assert r["mean_ns"] == pytest.approx(67157, abs=0.5)
    r = row(doc, name="attention")
    assert r["count"] == 36 and r["size"]["kv"] == 32785
    assert r["bytes"] / MIB == pytest.approx(128.566, abs=5e-4)
    assert r["tb_per_s"] == pytest.approx(2.283, abs=5e-4)
    assert {n["name"]: n["count"] for n in rows(doc, basis="model")} == {
        "qkv": 36, "attention": 36, "o": 36, "gate_up": 36, "down": 36, "head": 1}
    assert doc["roofline_counts"]["steps_as_the_model"] == 1


@pytest.mark.parametrize("wrong", [{"num_hidden_layers": 35}, {"num_hidden_layers": 18},
                                   {"num_experts": 8, "num_experts_per_tok": 2}])
def test_another_model_gets_no_numbers(tool, window, config, wrong):
    doc = analysis(tool, window("T7"), "--model", config(**wrong))
    assert rows(doc, basis="model") == []
    assert doc["roofline_counts"]["steps_as_the_model"] == 0 and doc["roofline_counts"]["steps_otherwise"] == 1
    assert "other kernels than --model" in tool.run("analyze", "--model", config(**wrong), window("T7"), code=OK).out


def test_without_a_model_graphs_stay_without_numbers(tool, window):
    doc = analysis(tool, window("T7"))
    assert rows(doc, basis="model") == []
    assert sum(r["count"] for r in doc["roofline_no_model"] if "graph" in r["reason"]) == 544


def test_tensor_parallel_divides_the_products(tool, window, config):
    doc = analysis(tool, window("T7"), "--model", config(), "--tp", 4)
    assert row(doc, name="gate_up")["shape"] == "32x6144x4096"
    assert row(doc, name="down")["shape"] == "32x4096x3072"
    assert row(doc, name="attention")["size"]["kv_heads"] == 2


# ---- peaks ----

def test_peaks_of_a_file_come_first(tool, window, tmp_path):
    peaks = tmp_path / "my.tbl"
    peaks.write_text('device "NVIDIA H100*" peak bf16=100 fp32=10 hbm=1 link=0.1\n'
                     'device "NVIDIA H100*" ceiling bf16=50 hbm=0.5\n')
    doc = analysis(tool, window("T2"), "--peaks", peaks)
    r = row(doc, name="aten::mm", shape="8944x2816x1024")
    assert r["light_ns"] == pytest.approx(51581550.592 / 100, rel=1e-6)
    assert r["model_error"] and r["of_light"] > 1.1  # 610 TFLOP/s of 100 is no truth
    assert r["of_ceiling"] == pytest.approx(2 * r["of_light"], rel=1e-3)
    assert doc["roofline_devices"][0]["peaks"] == "my.tbl"
    text = tool.run("analyze", "--peaks", peaks, window("T2"), code=OK).out
    assert " % !" in text and "beyond 110 %" in text


def test_an_unknown_device_gets_rates_and_no_light(tool, window):
    doc = analysis(tool, window("T1"), "--gpu", "Colossus Mark 2")
    r = row(doc, name="aten::addmm", shape="141x512x512")
    assert r["light_ns"] is None and r["of_light"] is None and r["bound"] is None and r["tflops_per_s"] > 12
    assert "no peaks for Colossus Mark 2" in tool.run("analyze", "--gpu", "Colossus Mark 2", window("T1"), code=OK).out
    assert row(analysis(tool, window("T1"), "--gpu", "H200"), name="aten::addmm",
               shape="141x512x512")["light_ns"] == pytest.approx(814080 / 4800, abs=0.1)


@pytest.mark.parametrize("option,content,words", [
    ("--peaks", "device *H100* peak bf16=fast\n", ":1: expected KEY=NUMBER"),
    ("--peaks", "# fine\ndevice *H100* top bf16=1\n", ":2: expected 'peak' or 'ceiling', found 'top'"),
    ("--peaks", "device *H100* peak\n", "expected KEY=NUMBER"),
    ("--peaks", 'device "H100 peak bf16=1\n', "a closing quote"),
    ("--model", "[1]", "is no JSON object"),
    ("--model", "{", "is no JSON object"),
    ("--model", "{}", "it has no num_hidden_layers"),
    ("--model", json.dumps({**QWEN3_8B, "num_hidden_layers": 5000}), "num_hidden_layers is 5000"),
])
def test_what_cannot_be_read_is_one_sentence(tool, window, tmp_path, option, content, words):
    path = tmp_path / "given"
    path.write_text(content)
    result = tool.run("analyze", option, path, window("T1"), code=USAGE)
    assert len(result.sentences()) == 1 and words in result.sentences()[0], result
    assert result.out == ""


@pytest.mark.parametrize("args", [("--peaks", "/nowhere"), ("--model", "/tmp"), ("--tp", "0"), ("--tp", "x")])
def test_options_that_make_no_sense(tool, window, args):
    assert len(tool.run("analyze", *args, window("T1"), code=USAGE).sentences()) == 1


# ---- calls whose arguments are sizes ----

def test_arguments_of_cublas_are_sizes(hb, tmp_path, workload_code):
    """What the rows of cublas.tbl read: m, n, k, how many, and the type. (Device records, which a row of the roofline needs
    too, come with a burst.)"""
    table = tmp_path / "blas.tbl"
    built_in = open(paths.source("user", "capture", "probes", "tables", "cublas.tbl"), encoding="utf-8").read()
    table.write_text(built_in.replace("  off  ", "  "))
    target, go = workload_code
    path, _, _ = tracing.around(hb, go, "-p", target.pid, "--probes", table)
    calls = {r["name"]: r for r in hb.window(path).of("accel") if r["api"] == "cublas"}
    assert calls["cublasGemmEx"]["grid"] == [256, 32, 128] and calls["cublasGemmEx"]["kind"] == 14
    many = calls["cublasGemmStridedBatchedEx"]
    assert many["grid"] == [64, 16, 128] and many["kind"] == 2 and many["block"][0] == 5


CODE = """
lt = C.CDLL(LIB + "/libcublasLt.so.13", mode=C.RTLD_GLOBAL)
blas = C.CDLL(LIB + "/libcublas.so.13", mode=C.RTLD_GLOBAL)
one, d = C.c_float(1), P(1 << 20)
p = C.byref(one)
h = out(blas.cublasCreate_v2)
print("ready", flush=True)
sys.stdin.readline()
for i in range(20):
    r = blas.cublasGemmEx(h, 1, 0, 256, 32, 128, p, d, 14, 128, d, 14, 128, p, d, 14, 256, 68, -1)
    assert r == 0, r
    r = blas.cublasGemmStridedBatchedEx(h, 1, 0, 64, 16, 128, p, d, 2, 128, C.c_longlong(64 * 128), d, 2, 128,
                                        C.c_longlong(16 * 128), p, d, 2, 64, C.c_longlong(64 * 16), 5, 68, -1)
    assert r == 0, r
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def workload_code(request):
    """A process that calls cuBLAS when it is told to, and lives on: (it, function that tells it)."""
    sys.path.insert(0, paths.source("tests", "sim"))
    import simlib
    run = subprocess.Popen(simlib.command(CODE), env=simlib.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           text=True)
    request.addfinalizer(run.kill)
    assert run.stdout.readline() == "ready\n"

    def go():
        run.stdin.write("\n")
        run.stdin.flush()
        assert run.stdout.readline() == "done\n"
    return run, go


# ---- windows and experts ----

GPT_OSS = {"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880, "num_hidden_layers": 24,
           "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 64, "vocab_size": 201088,
           "num_local_experts": 32, "num_experts_per_tok": 4, "sliding_window": 128,
           "layer_types": ["sliding_attention", "full_attention"] * 12, "torch_dtype": "bfloat16",
           "quantization_config": {"quant_method": "mxfp4"}}


def test_layers_with_a_window_read_no_more_than_that(tool, window, tmp_path):
    """Without it T9 would have an attention at 8.41 TB/s, on a device that has 5.3."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GPT_OSS))
    doc = analysis(tool, window("T9"), "--model", path, "--gpu", "AMD Instinct MI300X")
    narrow, wide = row(doc, name="attention_window"), row(doc, name="attention")
    assert narrow["count"] == wide["count"] == 12
    assert wide["size"]["kv"] == 55086 and narrow["size"]["kv"] == 32 * 128
    assert narrow["tb_per_s"] < 5.3 and 55086 / 4096 * narrow["tb_per_s"] > 8
    assert not [r for r in doc["roofline"] if r["model_error"]]
    assert row(doc, name="experts_down")["types"]["weight"] == "fp4"

    doc = analysis(tool, window("T10"), "--model", path, "--gpu", "AMD Instinct MI300X")
    by_keys = {r["size"]["kv"]: r["count"] for r in rows(doc, name="vllm::unified_attention_with_output")}
    assert by_keys == {8430 + 34489: 12, 8430 + 37 * 128: 12}  # context sequences have fewer keys than their windows hold


# ---- the pattern that asks for it ----

def test_attention_of_the_prefill_is_a_finding_where_the_device_is_busy(tool, window):
    found = {f["id"]: f for f in analysis(tool, window("T2"))["findings"]}
    f = found["P40a"]
    assert f["count"] == 24 and f["text"].startswith("aten::_flash_attention_forward on device 0")
    # 24 times 113.4 us, of which light needs 21.9 us
    assert f["device_ns"] == pytest.approx(24 * (113446 - 69.875 * MIB / 3350), rel=1e-3)
    # 4 % of light, but the device is idle for 92 % of the time: that is not what costs
    assert "P40a" not in {f["id"] for f in analysis(tool, window("T1"))["findings"]}
