# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""`probes show` and `check`: what would be probed in a process, said and tried."""
import os
import re
import subprocess

import pytest

from lib.tool import OK, TARGET, USAGE

pytestmark = pytest.mark.beside

LIBRARY = """
int mcWait(void *stream, long n) { __asm__ volatile(""); return n; }
int mcSend(void *stream, long n) { __asm__ volatile(""); return n + 1; }
static int (*pick(void))(void *, long) { return mcSend; }
int mcPicked(void *stream, long n) __attribute__((ifunc("pick")));
"""
PROGRAM = """
#include <stdio.h>
#include <unistd.h>
int mcWait(void *stream, long n);
int main(void) { printf("%d\\n", mcWait(0, 1)); fflush(stdout); for (;;) pause(); }
"""
TABLE = """api my-chip
libmychip.so*  mcWait    sync  runtime  return  nothrow  stream=a0 bytes=a1
libmychip.so*  mcSend    copy  runtime  entry   nothrow  bytes=a1
libmychip.so*  mcPicked  copy  runtime  entry   nothrow
libmychip.so*  mcGone    copy  runtime  entry   nothrow
"""


@pytest.fixture
def chip(compile_c, start, tmp_path):
    """(process, table): a process with a library that only the table knows."""
    lib = compile_c("libmychip.so.1", LIBRARY, "-x", "c", "-shared", "-fPIC", "-Wl,-soname,libmychip.so.1")
    exe = compile_c("chip", PROGRAM, f"-Wl,-rpath,{os.path.dirname(lib)}", lib)
    table = tmp_path / "chip.tbl"
    table.write_text(TABLE)
    return start([exe], ready="1"), table


def test_show_says_what_would_be_probed(tool, chip):
    process, table = chip
    shown = tool.run("probes", "show", "-p", process.pid, "--probes", table)
    assert shown.code == OK, shown.err
    assert re.search(r"sync +runtime +return +mcWait +\+0x[0-9a-f]+ +stream=a0 bytes=a1", shown.out)
    assert re.search(r"copy +runtime +entry +mcSend +\+0x", shown.out)
    assert re.search(r"refused: mcPicked in .*libmychip.so.1: .+", shown.out)
    assert "mcGone" not in shown.out


@pytest.mark.parametrize("links", [[], ["--single-uprobes"]])
def test_check_attaches_and_leaves_nothing(hb, chip, links):
    process, table = chip
    done = hb.run("probes", "check", "-p", process.pid, "--probes", table, *links)
    assert done.code == OK, done.err
    assert "2 of 2 functions attach" in done.out
    assert "not in this version of libmychip.so.1: mcGone" in done.out
    assert process.running()


def test_nothing_to_probe(tool, start):
    sleeper = start(["sleep", "600"])
    shown = tool.run("probes", "show", "-p", sleeper.pid)
    assert shown.code == OK, shown.err
    assert "nothing to probe" in shown.out


def test_wrong_questions(tool):
    assert tool.run("probes", "show").code == USAGE
    assert tool.run("probes", "show", "-p", 1, "--layers", "all").code == USAGE
    assert tool.run("probes", "check", "-p", 2 ** 22 - 1).code == TARGET


# ---- exceptions -----------------------------------------------------------------------------------------------------

THROWING_LIBRARY = """
extern "C" int mcWait(void *stream, long n);
int mcWait(void *stream, long n) { if (n % 8 == 0) throw n; return (int)n; }
"""
CATCHING_PROGRAM = """
#include <stdio.h>
#include <unistd.h>
extern "C" int mcWait(void *stream, long n);
int main() {
	puts("1");
	fflush(stdout);
	for (long n = 0;; n++) {
		try { mcWait(0, n); } catch (long) { }
		usleep(1000);
	}
}
"""


@pytest.fixture
def throwing(start, tmp_path):
    """(process, table): a library that throws, and a table that says it does not."""
    lib, exe, table = tmp_path / "libmychip.so.1", tmp_path / "catching", tmp_path / "chip.tbl"
    for out, text, flags in ((lib, THROWING_LIBRARY, ["-shared", "-fPIC", "-Wl,-soname,libmychip.so.1"]),
                             (exe, CATCHING_PROGRAM, [f"-Wl,-rpath,{tmp_path}", lib])):
        source = out.with_suffix(".cc")
        source.write_text(text)
        subprocess.run(["g++", "-O1", "-o", out, source, *flags], check=True)
    table.write_text(TABLE)
    return start([exe], ready="1"), table


def test_a_false_nothrow_does_not_kill(hb, throwing):
    process, table = throwing
    shown = hb.run("probes", "check", "-p", process.pid, "--probes", table)
    assert shown.code == OK, shown.err
    assert re.search(r"1 functions of .*libmychip.so.1 may throw", shown.out)
    path, _ = hb.trace("-p", process.pid, "--probes", table, duration="300ms")
    assert process.running()
    calls = [r for r in hb.window(path).of("accel") if r["name"] == "mcWait"]
    assert calls and all("dur" not in r and "ret" not in r for r in calls)
