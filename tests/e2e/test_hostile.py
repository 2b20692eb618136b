# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Targets and files that do what no well-behaved one does. The target must live on as if nobody had looked, what is
counted must be exact, and no reader may crash."""
import ctypes
import os
import random
import shutil
import signal
import struct
import subprocess
import threading
import time
import zlib

import pytest

from lib import exact, processes
from lib.tool import FAILED, KERNEL, OK

pytestmark = pytest.mark.beside

LIB_C = r"""
#include <pthread.h>
#include <setjmp.h>
#include <unistd.h>
jmp_buf out;
#define FN __attribute__((noinline)) int
FN h_ok(int x) { __asm__ volatile("" ::: "memory"); return x; }
FN h_jump(int x) { longjmp(out, 1); return x; }
FN h_exit(int x) { pthread_exit((void *)1L); return x; }
FN h_sleep(int ms) { usleep(ms * 1000); return 0; }
FN h_deep(int n) { int r = n > 0 ? h_deep(n - 1) : -1; __asm__ volatile("" ::: "memory"); return r + 1; }
"""

TABLE = """api hostile
libhostile.so*  h_ok     copy   driver  return  nothrow  bytes=a0
libhostile.so*  h_jump   sync   driver  return  nothrow
libhostile.so*  h_exit   sync   driver  return  nothrow
libhostile.so*  h_sleep  sync   driver  return  nothrow
libhostile.so*  h_deep   other  driver  return  nothrow
"""

# argv[1] names what it does in each round; it prints the number of rounds done, and WRONG for whatever went wrong.
TARGET_C = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static jmp_buf *out;
static int (*ok)(int), (*jump)(int), (*leave)(int), (*nap)(int), (*deep)(int);
static char stack[1 << 16];
static void *lib;
static void load(const char *path)
{
	lib = dlopen(path, RTLD_NOW);
	if (!lib)
		exit(9);
	ok = (int (*)(int))dlsym(lib, "h_ok");
	jump = (int (*)(int))dlsym(lib, "h_jump");
	leave = (int (*)(int))dlsym(lib, "h_exit");
	nap = (int (*)(int))dlsym(lib, "h_sleep");
	deep = (int (*)(int))dlsym(lib, "h_deep");
	out = (jmp_buf *)dlsym(lib, "out");
}
static void *leaver(void *p) { leave(1); return p; }
static void *sleeper(void *p) { for (;;) nap(1000); return p; }
static int calls(void *p) { for (int i = 0; i < 10; i++) ok(i); return 0; }
static void child_ended(pid_t pid)
{
	int st = -1;
	if (waitpid(pid, &st, 0) != pid || st)
		printf("WRONG child %x\n", st);
}
static void kill_filter(void)
{
#define ALLOW(n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, n, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
	struct sock_filter f[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
				  ALLOW(SYS_write), ALLOW(SYS_exit_group), ALLOW(SYS_clock_nanosleep),
				  BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
	struct sock_fprog p = {sizeof(f) / sizeof(*f), f};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p);
}
static void a_round(const char *what, const char *path)
{
	pthread_t t;
	void *r;
	pid_t pid;
	char *argv[] = {"true", NULL};
	if (!strcmp(what, "longjmp") && !setjmp(*out))
		jump(1);
	if (!strcmp(what, "exit") && !pthread_create(&t, NULL, leaver, NULL) && (pthread_join(t, &r), r != (void *)1L))
		puts("WRONG exit");
	if (!strcmp(what, "cancel") && !pthread_create(&t, NULL, sleeper, NULL)) {
		usleep(2000);
		pthread_cancel(t);
		pthread_join(t, NULL);
	}
	if (!strcmp(what, "vfork") && (pid = vfork()) >= 0) {
		if (!pid) {
			calls(NULL);
			_exit(0);
		}
		child_ended(pid);
	}
	if (!strcmp(what, "clone"))
		child_ended(clone(calls, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL));
	if (!strcmp(what, "spawn") && !posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ))
		child_ended(pid);
	if (!strcmp(what, "deep") && deep(100) != 100)
		puts("WRONG depth");
	if (!strcmp(what, "reload")) {
		dlclose(lib);
		load(path);
	}
	for (int i = 0; i < 10; i++)
		if (ok(i) != i)
			puts("WRONG result");
}
int main(int argc, char **argv)
{
	long n = argc > 3 ? atol(argv[3]) : 0;
	char line[64];
	load(argv[2]);
	puts("ready");
	fflush(stdout);
	if (n) { /* a known number of calls after a line of input */
		fgets(line, sizeof(line), stdin);
		while (n--)
			ok(1);
		puts("done");
		fflush(stdout);
		pause();
	}
	if (!strcmp(argv[1], "strict"))
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	if (!strcmp(argv[1], "filter"))
		kill_filter();
	for (long i = 1;; i++) {
		a_round(argv[1], argv[2]);
		if (strcmp(argv[1], "strict"))
			usleep(1000);
		if (i % 100 == 0)
			(void)!write(1, "round\n", 6);
	}
}
"""

MODES = pytest.mark.parametrize("mode", [[], ["--single-uprobes"]], ids=["multi", "single"])


@pytest.fixture(scope="module")
def program(compile_c):
    return compile_c("hostile", TARGET_C, "-pthread", "-ldl", "-w")


@pytest.fixture(scope="module")
def library(compile_c):
    path = compile_c("libhostile", LIB_C, "-shared", "-fPIC", "-pthread", "-w")
    named = path + ".so.1"
    shutil.copy(path, named)
    return named


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "hostile.tbl"
    path.write_text(TABLE)
    return str(path)


@MODES
@pytest.mark.parametrize("what", ["longjmp", "exit", "cancel", "vfork", "clone", "spawn", "deep", "strict", "filter"])
def test_the_target_lives_on(hb, start, program, library, table, what, mode):
    """Timed calls that are left by longjmp, by the end of their thread, nested beyond measure; children that share the
    memory; processes that the kernel kills at the first system call they did not announce."""
    target = start([program, what, library], ready="ready")
    path, _ = hb.trace("-p", target.pid, "--probes", table, *mode)
    rounds = target.output().count("round")
    processes.wait_for(lambda: target.output().count("round") > rounds + 1, timeout=30, what="another round")
    assert target.running() and "WRONG" not in target.output(), target.output()
    w = hb.window(path)
    assert w.calls(pid=target.pid)["h_ok"] > 100, w.calls()
    if what in ("longjmp", "exit", "cancel"):
        assert w.loss["unfinished"] > 0, "calls that never returned are not counted"


@MODES
def test_library_closed_and_opened_again(hb, start, program, library, table, mode):
    """Probes stay while it is closed: no call is missed, nothing is said to be late, nobody is told a thousand times. That
    it is closed while we attach leaves no entries without their returns."""
    target = start([program, "reload", library], ready="ready")
    path, result = hb.trace("-p", target.pid, "--probes", table, *mode)
    w = hb.window(path)
    assert w.calls()["h_ok"] > 1000, w.calls()
    # One: it may have been closed at the very moment we first looked.
    assert w.loss["late"] <= 1 and w.loss["unfinished"] <= 1, w.loss
    assert len(result.err.splitlines()) < 10, result
    assert target.running()


@MODES
def test_a_stopped_tool_loses_and_counts(hb, start, program, library, table, mode):
    """What was recorded and what was lost add up to what the target did, to the call."""
    n = 100000
    target = start([program, "none", library, n], ready="ready", stdin=subprocess.PIPE)
    path = os.path.join(hb.folder, "w.hbw")
    run = hb.start("trace", "-p", target.pid, "-d", "60s", "-o", path, "--buffer", "64KiB", "--probes", table, *mode)
    processes.wait_for(lambda: os.path.exists(path + ".part"), timeout=30, what="the window")
    time.sleep(1)
    run.popen.send_signal(signal.SIGSTOP)
    target.popen.stdin.write(b"go\n")
    target.popen.stdin.flush()
    processes.wait_for(lambda: "done" in target.output(), timeout=60, what="the end of the calls")
    run.popen.send_signal(signal.SIGCONT)
    time.sleep(1)
    run.interrupt()
    assert run.wait().code == OK
    w = hb.window(path)
    lost = exact.lost(w, "ring_full")
    assert lost > 0 and w.calls()["h_ok"] + lost == n, (w.calls(), w.loss)


# ---- libraries that change under our hands ----------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 4096, 9000])
def test_library_cut_short(hb, start, program, library, table, tmp_path, size):
    """Reading what is gone would be a SIGBUS."""
    copy = str(tmp_path / "libhostile.so.1")
    shutil.copy(library, copy)
    target = start([program, "none", copy], ready="ready")
    target.signal(signal.SIGSTOP)
    os.truncate(copy, size)
    result = hb.run("trace", "-p", target.pid, "-d", "300ms", "-o", "w.hbw", "--probes", table)
    assert result.code in (OK, KERNEL), result
    assert target.running()


@pytest.mark.deadline(400)
def test_library_cut_again_and_again(hb, start, program, library, table, tmp_path):
    copy = str(tmp_path / "libhostile.so.1")
    shutil.copy(library, copy)
    with open(library, "rb") as f:
        whole = f.read()
    target = start([program, "none", copy], ready="ready")
    target.signal(signal.SIGSTOP)
    stop = threading.Event()

    def flap():
        while not stop.is_set():
            os.truncate(copy, 100)
            with open(copy, "r+b") as g:
                g.write(whole)

    thread = threading.Thread(target=flap)
    thread.start()
    try:
        for i in range(8):
            for args in (["trace", "-d", "100ms", "-o", f"w{i}.hbw"], ["probes", "show"], ["probes", "check"]):
                result = hb.run(*args, "-p", target.pid, "--probes", table)
                assert result.code in (OK, FAILED, KERNEL), result
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("instead", ["fifo", "other", "folder"])
def test_something_else_lies_at_the_path(hb, start, program, library, table, tmp_path, instead):
    """The mapped file is probed, not what has its name by now."""
    copy = str(tmp_path / "libhostile.so.1")
    shutil.copy(library, copy)
    target = start([program, "none", copy], ready="ready")
    os.unlink(copy)
    if instead == "fifo":
        os.mkfifo(copy)
    elif instead == "folder":
        os.mkdir(copy)
    else:
        shutil.copy("/bin/true", copy)
    path, _ = hb.trace("-p", target.pid, "--probes", table, duration="500ms")
    assert hb.window(path).calls()["h_ok"] > 100


# ---- window files made by an enemy: mutated, with all checksums made right ----------------------------------------

NASTY = [0, 1, 0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 20, 1 << 24, 0x7fffffffffffffff, 0xffffffffffffffff]


class Zstd:
    def __init__(self):
        self.lib = ctypes.CDLL("libzstd.so.1")
        self.lib.ZSTD_compress.restype = self.lib.ZSTD_decompress.restype = ctypes.c_size_t

    def unpack(self, data, size):
        out = ctypes.create_string_buffer(size + 1)
        n = self.lib.ZSTD_decompress(out, ctypes.c_size_t(size), data, ctypes.c_size_t(len(data)))
        return out.raw[:n] if n <= size else None

    def pack(self, data):
        out = ctypes.create_string_buffer(len(data) + 1024)
        n = self.lib.ZSTD_compress(out, ctypes.c_size_t(len(out)), data, ctypes.c_size_t(len(data)), 1)
        return out.raw[:n]


class Frame:
    """One frame of a window (docs/window-format.md): 40 bytes of head, a body, and for data what follows."""

    def __init__(self, data, at):
        (_, size, tag, self.kind, self.flags, self.major, self.minor, self.seq, self.raw, follow) = \
            struct.unpack_from("<IIIBBBBIII", data, at)
        assert tag == 0x66574248
        self.body = data[at + 40:at + 8 + size]
        self.follow = data[at + 8 + size:at + 8 + size + follow]
        self.end = at + 8 + size + follow

    def sealed(self):
        head = struct.pack("<IIIBBBBIIIII", 0x184D2A50, 32 + len(self.body), 0x66574248, self.kind, self.flags, self.major,
                           self.minor, self.seq, self.raw & 0xffffffff, len(self.follow), zlib.crc32(self.body),
                           zlib.crc32(self.follow))
        return head + struct.pack("<I", zlib.crc32(head)) + self.body + self.follow

    def mutate(self, rng, zstd):
        packed = self.follow if self.kind == 4 and rng.random() < 0.5 else self.body
        plain = zstd.unpack(packed, self.raw) if packed is self.follow or self.flags & 1 else packed
        plain = scramble(rng, plain or packed)
        if packed is self.follow:
            self.follow, self.raw = zstd.pack(plain), len(plain)
        elif self.flags & 1:
            self.body, self.raw = zstd.pack(plain), len(plain)
        else:
            self.body = plain


def frames(data):
    found, at = [], 0
    while at + 40 <= len(data):
        found.append(Frame(data, at))
        at = found[-1].end
    return found


def scramble(rng, data):
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 5, 30])):
        if not data:
            break
        width = rng.choice([1, 2, 4, 8])
        at = rng.randrange(len(data)) // width * width
        if rng.random() < 0.1:
            del data[at:at + rng.choice([1, 4, 8, 100])]
        else:
            value = rng.choice([rng.choice(NASTY), rng.getrandbits(64)]) & ((1 << 8 * width) - 1)
            data[at:at + width] = value.to_bytes(width, "little")[:len(data) - at]
    return bytes(data)


@pytest.mark.deadline(600)
def test_windows_with_right_checksums_and_wrong_content(hb, start, program, library, table):
    """Every reader survives in bounded memory and time: prints something, or refuses in one sentence."""
    target = start([program, "cancel", library], ready="ready")
    path, _ = hb.trace("-p", target.pid, "--probes", table, "-F", "499", "--syscalls", "all", duration="500ms")
    with open(path, "rb") as f:
        sound = f.read()
    assert b"".join(f.sealed() for f in frames(sound)) == sound, "the format differs from what this test knows"
    rng, zstd, mutant = random.Random(5), Zstd(), os.path.join(hb.folder, "mutant.hbw")
    readers = [["report"], ["report", "--json"]] + \
        [["export", "-q", "--force", "-f", f, "-o", os.path.join(hb.folder, "out")]
         for f in ("ndjson", "folded", "kineto", "perfetto")]
    for i in range(50):
        parts = frames(sound)
        for _ in range(rng.choice([1, 2, 4])):
            parts[rng.randrange(len(parts))].mutate(rng, zstd)
        if rng.random() < 0.2:
            parts.insert(rng.randrange(len(parts)), rng.choice(parts))
        with open(mutant, "wb") as f:
            f.write(b"".join(p.sealed() for p in parts))
        for reader in readers:
            result = hb.run(*reader, mutant, prefix=["prlimit", f"--as={1 << 30}"], timeout=60)
            assert result.code in (OK, FAILED), (i, result)
            assert result.code == OK or len(result.sentences()) == 1, (i, result)


# ---- a machine that lacks things ----------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [["ps"], ["trace", "-p", "1", "-d", "1s"], ["trace", "--name", "x", "-d", "1s"],
                                  ["probes", "show", "-p", "1"], ["doctor", "-p", "1"]], ids=" ".join)
def test_no_proc(hb, args):
    """Not "no such process": nothing can be seen at all."""
    result = hb.run(*args, prefix=["unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$0" "$@"'])
    assert result.code == KERNEL and "/proc" in result.err and len(result.sentences()) == 1, result
