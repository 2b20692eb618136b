# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`probes list`: the tables as an operator sees them, alone and with a table of their own."""
import json

import pytest

from lib.tool import FAILED, OK, USAGE

pytestmark = pytest.mark.beside

MINE = """api my-chip
libmychip.so*  mcWait       sync   driver  return  nothrow  stream=a0
libcuda.so*    cuMemAlloc   alloc  driver  entry   off      bytes=a1
"""


def rows(tool, *args):
    result = tool.run("probes", "list", "--json", *args)
    assert result.code == OK, result.err
    return json.loads(result.out)


def test_all_apis_are_there(tool):
    listed = rows(tool)
    assert {r["api"] for r in listed} == {"cuda-driver", "cuda-runtime", "nccl", "cublas", "hip", "opencl",
                                          "level-zero", "ascend"}
    assert all(r["nothrow"] for r in listed if r["return"])
    assert not any(r["on"] for r in listed if r["api"] == "cublas")


def test_a_glob_or_a_symbol_chooses(tool):
    assert {r["function"] for r in rows(tool, "cuGraph*")} >= {"cuGraphLaunch", "cuGraphUpload"}
    (row,) = rows(tool, "cuMemcpyHtoDAsync_v2_ptsz")
    assert (row["function"], row["arguments"]) == ("cuMemcpyHtoDAsync", "stream=a3 bytes=a2 kind=1")
    text = tool.run("probes", "list", "cudaLaunchKernel").out
    assert "grid=a1,a1>>32,a2 block=a3,a3>>32,a4" in text


def test_a_glob_that_fits_nothing_says_so(tool):
    for json_too in ([], ["--json"]):
        result = tool.run("probes", "list", *json_too, "no_such_function")
        assert result.code == FAILED and "no_such_function" in result.err and len(result.err.splitlines()) == 1
        assert result.out == "" or json.loads(result.out) == []


def test_a_table_of_ones_own_comes_first(tool, tmp_path):
    table = tmp_path / "mine.tbl"
    table.write_text(MINE)
    listed = rows(tool, "--probes", table)
    assert [r["function"] for r in listed[:2]] == ["mcWait", "cuMemAlloc"]
    mine, builtin = rows(tool, "--probes", table, "cuMemAlloc")
    assert (mine["on"], mine["line"], builtin["on"]) == (False, 3, True)


def test_a_malformed_table_is_one_sentence(tool, tmp_path):
    table = tmp_path / "bad.tbl"
    table.write_text(MINE + "libx.so  f\033[31m  lunch driver entry\n")
    result = tool.run("probes", "list", "--probes", table)
    assert result.code == USAGE
    assert result.out == ""
    assert f"{table}:4:11: expected a function's name" in result.err
    assert "\033" not in result.err
    assert len(result.err.splitlines()) == 1
