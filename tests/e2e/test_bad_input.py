# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What an operator can get wrong, and what a machine can lack. Each: one sentence, the documented exit code, nothing
left in the kernel (the fixture `hb` looks), and nothing half-written left on the disk."""
import json
import os
import random
import re
import signal
import struct
import subprocess
import sys
import time
import zlib

import pytest

from lib import kernel, paths, processes
from lib.tool import FAILED, KERNEL, OK, TARGET, USAGE

pytestmark = pytest.mark.beside

# What a terminal would obey: C0, DEL, C1 (as UTF-8), apart from line ends and tabs.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")

BUSY_C = r"""
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
/* argv[1]: thread name. One thread sleeps and wakes often, one computes. */
static void *sleeper(void *name)
{
	prctl(PR_SET_NAME, name);
	for (;;)
		poll(NULL, 0, 1);
}
int main(int argc, char **argv)
{
	pthread_t t;
	volatile unsigned long x = 0;
	pthread_create(&t, NULL, sleeper, argc > 1 ? argv[1] : "sleeper");
	printf("ready\n");
	fflush(stdout);
	for (;;)
		for (int i = 0; i < 50000000; i++)
			x += i;
}
"""

# Two threads hand a byte back and forth: as many switches and wake-ups as the machine gives.
PINGPONG_C = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int a[2], b[2];
static void *echo(void *arg)
{
	char c;
	while (read(a[0], &c, 1) == 1 && write(b[1], &c, 1) == 1)
		;
	return arg;
}
int main(void)
{
	pthread_t t;
	char c = 'x';
	if (pipe(a) || pipe(b) || pthread_create(&t, NULL, echo, NULL))
		return 1;
	printf("ready\n");
	fflush(stdout);
	while (write(a[1], &c, 1) == 1 && read(b[0], &c, 1) == 1)
		;
}
"""


@pytest.fixture(scope="module")
def busy_program(compile_c):
    return compile_c("busy", BUSY_C, "-pthread")


@pytest.fixture
def busy(start, busy_program):
    """A harmless live target."""
    return start([busy_program], ready="ready")


@pytest.fixture(scope="module")
def sample(tmp_path_factory, compile_c):
    """A whole window file made once; tests copy and damage it."""
    why = kernel.why_not()
    if why:
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("sample")
    target = processes.Process([compile_c("pingpong", PINGPONG_C, "-pthread")], ready="ready")
    try:
        done = subprocess.run([paths.TOOL, "trace", "-p", str(target.pid), "-d", "2s", "-o", str(folder / "s.hbw")],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        assert done.returncode == OK, done.stderr
    finally:
        target.kill()
    return (folder / "s.hbw").read_bytes()


def refused(result, code, *words):
    """Exactly one line on stderr, the code, nothing on stdout, and the words that make the sentence useful."""
    lines = result.err.splitlines()
    assert result.code == code, result
    assert len(lines) == 1 and lines[0].startswith("herschel-bpf: "), result
    assert result.out == "", result
    for word in words:
        assert word in lines[0], result


def no_files(folder):
    """No window and no .part of a run that was refused."""
    assert [n for n in os.listdir(folder) if ".hbw" in n] == []


# ---- the command line -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["0s", "-1s", "-5", "30", "0", "", "abc", "1.5", "s", "10x", "1s2", "25h", "1e3s",
                                   "99999999999999999999s", "0ms", " "])
def test_duration_must_be_positive_with_a_unit(hb, value):
    result = hb.run("trace", "-p", os.getpid(), "-d", value)
    refused(result, USAGE, "-d", "duration")
    no_files(hb.folder)


@pytest.mark.parametrize("args, words", [
    (["trace", "-p", "1", "--no-such-option"], ["--no-such-option"]),
    (["trace", "-p"], ["-p"]),
    (["trace", "-p", "12x"], ["12x"]),
    (["trace", "-p", "0"], ["0"]),
    (["trace", "-p", "-3"], ["-3"]),
    (["trace", "-p", "1,,2"], []),
    (["trace", "-p", "99999999999"], ["99999999999"]),
    (["trace"], ["-p"]),
    (["trace", "-p", "1", "--cgroup", "/x"], []),
    (["trace", "-p", "1", "stray"], ["stray"]),
    (["trace", "-p", "1", "--strict", "5%"], ["--strict=5%"]),
    (["trace", "-p", "1", "--strict", "stray"], ["stray", "-p PID"]),
    (["trace", "-p", "1", "--layers", "sideways"], ["sideways"]),
    (["trace", "-p", "1", "--syscalls", "some"], ["some"]),
    (["trace", "-p", "1", "--buffer", "lots"], ["lots"]),
    (["trace", "-p", "1", "--max-size", "0"], ["--max-size"]),
    (["trace", "-p", "1", "-F", "-1"], ["-1"]),
    (["no-such-command"], ["no-such-command"]),
    (["report"], []),
    (["report", "--no-such-option", "x"], ["--no-such-option"]),
    (["export"], []),
])
def test_wrong_usage(hb, args, words):
    refused(hb.run(*args), USAGE, *words)
    no_files(hb.folder)


def test_no_command_prints_the_usage(tool):
    result = tool.run()
    assert result.code == USAGE and result.out == "" and "trace" in result.err


def test_control_characters_of_arguments_do_not_reach_the_terminal(tool):
    for args in (["\x1b[2Jx"], ["report", "\x1b]0;owned\x07.hbw"], ["trace", "-p", "1", "-d", "\x1b[31m"],
                 ["export", "x.hbw", "--format", "\x1b[31m"]):
        result = tool.run(*args)
        assert result.code in (FAILED, USAGE) and len(result.err.splitlines()) == 1, result
        assert not CONTROL.search(result.err.rstrip("\n")), repr(result.err)


@pytest.mark.parametrize("row, line", [
    ("libx.so* cuLaunchKernel sideways driver entry", 2),
    ("# comment\n\nlibx.so*", 4),
    ("libx.so* cuLaunchKernel launch driver entry grid=q9", 2),
    ("libx.so* cuLaunchKernel launch driver entry nonsense=a0", 2),
    ("libx.so* cuLaunchKernel launch sideways entry", 2),
    ("libx.so* cuLaunchKernel launch driver sometimes", 2),
    ("libx.so* cuLaunchKernel launch driver entry bytes=*(a0+99999999999)", 2),
])
def test_malformed_table_names_the_place(hb, busy, row, line):
    path = os.path.join(hb.folder, "bad.tbl")
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"api mine\n{row}\n")
    result = hb.run("trace", "-p", busy.pid, "-d", "1s", "--probes", path)
    refused(result, USAGE, "bad.tbl", "expected")
    assert re.search(rf"bad\.tbl:{line}:\d+", result.err), result
    no_files(hb.folder)


def test_missing_table(hb, busy):
    result = hb.run("trace", "-p", busy.pid, "-d", "1s", "--probes", "/nonexistent.tbl")
    assert result.code in (USAGE, FAILED)
    refused(result, result.code, "/nonexistent.tbl")


# ---- targets ----------------------------------------------------------------------------------------------------


def free_pid():
    """A pid that no process has."""
    with open("/proc/sys/kernel/pid_max", encoding="utf-8") as f:
        pid = int(f.read()) - 1
    while os.path.exists(f"/proc/{pid}"):
        pid -= 1
    return pid


def test_no_such_pid(hb):
    pid = free_pid()
    refused(hb.run("trace", "-p", pid, "-d", "1s"), TARGET, str(pid))
    no_files(hb.folder)


def test_one_of_two_pids_is_gone(hb, busy):
    pid = free_pid()
    refused(hb.run("trace", "-p", f"{busy.pid},{pid}", "-d", "1s"), TARGET, str(pid))
    no_files(hb.folder)


def test_kernel_thread(hb):
    comm = "/proc/2/comm"
    if not os.path.exists(comm) or open(comm, encoding="utf-8").read().strip() != "kthreadd":
        pytest.skip("pid 2 is no kernel thread in this pid namespace")
    refused(hb.run("trace", "-p", 2, "-d", "1s"), TARGET, "2")


def test_nothing_matches_a_name(hb):
    refused(hb.run("trace", "--name", "no-such-process-*", "-d", "1s"), TARGET, "no-such-process-*")


def test_cgroup_that_does_not_exist(hb):
    result = hb.run("trace", "--cgroup", "/no/such/cgroup", "-d", "1s")
    assert result.code in (USAGE, TARGET)
    refused(result, result.code, "/no/such/cgroup")


def test_zombie(hb, start):
    parent = start([sys.executable, "-c", "import os, time\npid = os.fork()\nif not pid: os._exit(0)\n"
                    "print('child', pid, 'ready', flush=True)\ntime.sleep(60)"], ready="ready")
    pid = int(parent.output().split()[1])
    processes.wait_for(lambda: not processes.alive(pid), what="the child's end")
    refused(hb.run("trace", "-p", pid, "-d", "1s"), TARGET, str(pid))


def elf32(path):
    """A static 32-bit x86 program that pauses for ever: ELF header, one program header, `mov eax,29; int 0x80; jmp`."""
    code = b"\xb8\x1d\x00\x00\x00\xcd\x80\xeb\xf7"
    base, size = 0x08048000, 52 + 32 + len(code)
    head = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    load = struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 0x1000)
    with open(path, "wb") as f:
        f.write(head + load + code)
    os.chmod(path, 0o755)


def test_32_bit_target(hb, start, tmp_path):
    elf32(tmp_path / "old")
    try:
        target = start([tmp_path / "old"])
    except OSError as e:
        pytest.skip(f"this kernel runs no 32-bit programs ({e.strerror})")
    time.sleep(0.2)
    if not target.running():
        pytest.skip("this kernel runs no 32-bit programs (the program died)")
    refused(hb.run("trace", "-p", target.pid, "-d", "1s"), TARGET, "64-bit")
    assert target.running()
    no_files(hb.folder)


def test_second_tool_on_the_same_target(hb, busy):
    first = hb.start("trace", "-p", busy.pid, "-d", "60s", "-o", "first.hbw")
    processes.wait_for(lambda: os.path.exists(os.path.join(hb.folder, "first.hbw.part")), what="the first window")
    time.sleep(1)
    second = hb.run("trace", "-p", busy.pid, "-d", "1s", "-o", "second.hbw")
    refused(second, TARGET, str(busy.pid), str(first.pid))
    assert not os.path.exists(os.path.join(hb.folder, "second.hbw.part"))
    first.interrupt()
    assert first.wait().code == OK
    # And when the first is gone, the next may.
    assert hb.run("trace", "-p", busy.pid, "-d", "1s", "-o", "third.hbw").code == OK


def test_targets_that_exit_while_being_attached(hb, start):
    """Short-lived processes: whatever the moment, either a window or one sentence."""
    rng, seen = random.Random(1), set()
    for i in range(12):
        target = start(["sleep", f"{rng.uniform(0, 0.25):.3f}"])
        result = hb.run("trace", "-p", target.pid, "-d", "300ms", "-o", f"w{i}.hbw")
        assert result.code in (OK, TARGET), result
        if result.code == TARGET:
            refused(result, TARGET, str(target.pid))
        seen.add(result.code)
        target.kill()
    assert seen


def test_target_that_exits_inside_the_window(hb, start):
    target = start(["sleep", "2"])
    began = time.monotonic()
    result = hb.run("trace", "-p", target.pid, "-d", "50s", "-o", "w.hbw", code=OK)
    assert time.monotonic() - began < 30, "the window went on without its target"
    assert "exit" in result.err + result.out, result
    assert hb.window(os.path.join(hb.folder, "w.hbw")).head["type"] == "window"


# ---- permissions and kernel -------------------------------------------------------------------------------------


@pytest.fixture
def readable_folder(tmp_path_factory):
    """A folder that any user may write: pytest's own are closed to others."""
    folder = f"/tmp/hb-nobody-{os.getpid()}"
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o777)
    yield folder
    for name in os.listdir(folder):
        os.unlink(os.path.join(folder, name))
    os.rmdir(folder)


def copy_tool(folder):
    """The checkout may lie in a home that others cannot enter."""
    path = os.path.join(folder, "herschel-bpf")
    with open(paths.TOOL, "rb") as f, open(path, "wb") as g:
        g.write(f.read())
    os.chmod(path, 0o755)
    return path


def run_as_nobody(command, folder):
    done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *command], cwd=folder,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    from lib.tool import Result
    return Result(command, done.returncode, done.stdout, done.stderr)


def test_not_root(hb, readable_folder):
    target = subprocess.Popen(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "sleep", "60"])
    try:
        time.sleep(0.3)
        result = run_as_nobody([copy_tool(readable_folder), "trace", "-p", str(target.pid), "-d", "1s"], readable_folder)
        refused(result, KERNEL)
        assert "root" in result.err or "CAP_" in result.err, result
        no_files(readable_folder)
    finally:
        target.kill()
        target.wait()


def test_root_without_capabilities(hb, busy):
    result = hb.run("trace", "-p", busy.pid, "-d", "1s",
                    prefix=["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"])
    refused(result, KERNEL, "CAP_")
    no_files(hb.folder)


def hidden(folder):
    """Runs the rest of the command in a mount namespace where `folder` is empty."""
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'mount -t tmpfs none {folder} && exec "$@"', "sh"]


def test_a_small_soft_limit_of_descriptors(hb, busy):
    hb.trace("-p", busy.pid, duration="100ms", prefix=["prlimit", "--nofile=16:4096"])


@pytest.mark.parametrize("limit", [4, 5, 6, 8, 12, 24, 30, 44])
def test_hardly_any_descriptors(hb, busy, limit):
    """Whatever does not get a descriptor, the sentence is about descriptors."""
    few = ["prlimit", f"--nofile={limit}:{limit}"]
    result = hb.run("trace", "-p", busy.pid, "-d", "100ms", prefix=few)
    assert result.code in (FAILED, KERNEL), result
    assert "out of memory" not in result.err and "descriptors" in result.err, result
    no_files(hb.folder)
    doctor = hb.run("doctor", prefix=few)
    assert "out of memory" not in doctor.err + doctor.out, doctor


def test_kernel_without_btf(hb, busy):
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        pytest.skip("this kernel has no BTF anyway; the other tests see that case")
    result = hb.run("trace", "-p", busy.pid, "-d", "1s", prefix=hidden("/sys/kernel/btf"))
    refused(result, KERNEL, "BTF")
    no_files(hb.folder)


def test_kernel_without_uprobes(hb, busy):
    """The single-uprobe way finds its PMU in sysfs; without it and without uprobe_multi there is nothing to attach."""
    table = os.path.join(hb.folder, "libc.tbl")
    with open(table, "w", encoding="utf-8") as f:
        f.write("api libc\nlibc.so*  poll  sync  runtime  entry\n")
    result = hb.run("trace", "-p", busy.pid, "-d", "1s", "--probes", table, "--single-uprobes",
                    prefix=hidden("/sys/bus/event_source/devices"))
    refused(result, KERNEL, "uprobe")


def test_files_are_read_without_any_right(hb, sample, readable_folder):
    """Everything after the window file works from the file alone, as any user."""
    path = os.path.join(readable_folder, "s.hbw")
    with open(path, "wb") as f:
        f.write(sample)
    os.chmod(path, 0o644)
    tool = copy_tool(readable_folder)
    for args in (["report", path], ["export", path, "--format", "ndjson", "-o", os.path.join(readable_folder, "o")]):
        result = run_as_nobody([tool, *args], readable_folder)
        assert result.code == OK and result.err == "", result


# ---- where the window goes --------------------------------------------------------------------------------------


def test_output_directory_is_missing(hb, busy):
    result = hb.run("trace", "-p", busy.pid, "-d", "1s", "-o", "/nonexistent/dir/w.hbw")
    refused(result, FAILED, "/nonexistent/dir")


def test_a_long_path_does_not_hide_the_reason(hb, busy):
    folder = "/nonexistent" + "/" + "/".join(["d" * 200] * 18)
    result = hb.run("trace", "-p", busy.pid, "-d", "1s", "-o", folder + "/w.hbw")
    refused(result, FAILED, "/nonexistent", "…", "No such file or directory", "-o FILE")


def test_existing_file_is_kept_without_force(hb, busy):
    path = os.path.join(hb.folder, "w.hbw")
    with open(path, "w", encoding="utf-8") as f:
        f.write("precious")
    result = hb.run("trace", "-p", busy.pid, "-d", "1s", "-o", path)
    refused(result, FAILED, path, "--force")
    assert open(path, encoding="utf-8").read() == "precious"
    hb.run("trace", "-p", busy.pid, "-d", "1s", "-o", path, "--force", code=OK)
    assert hb.window(path).head["type"] == "window"
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_a_link_in_place_of_the_file_is_not_followed(hb, busy):
    victim = os.path.join(hb.folder, "victim")
    with open(victim, "w", encoding="utf-8") as f:
        f.write("precious")
    os.symlink(victim, os.path.join(hb.folder, "w.hbw.part"))
    result = hb.run("trace", "-p", busy.pid, "-d", "1s", "-o", "w.hbw")
    assert open(victim, encoding="utf-8").read() == "precious"
    assert result.code in (OK, FAILED)
    if result.code == FAILED:
        refused(result, FAILED, "w.hbw.part")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "hb-test", str(folder)], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"cannot mount a small file system here: {done.stderr.strip()}")
    yield str(folder)
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_disk_full_inside_the_window(hb, small_disk, start, compile_c):
    target = start([compile_c("pingpong", PINGPONG_C, "-pthread")], ready="ready")
    result = hb.run("trace", "-p", target.pid, "-d", "60s", "-o", os.path.join(small_disk, "w.hbw"), timeout=100)
    assert result.code == FAILED and len(result.sentences()) == 1, result
    assert "space" in result.sentences()[0] or "full" in result.sentences()[0], result
    files = [n for n in os.listdir(small_disk)]
    assert len(files) == 1, files
    left = os.path.join(small_disk, files[0])
    assert files[0] in result.sentences()[0], "the sentence does not say where the rest lies"
    report = hb.run("report", left, code=OK)
    assert report.out.strip()
    out = os.path.join(hb.folder, "o.ndjson")
    hb.run("export", left, "--format", "ndjson", "-o", out, code=OK)
    rows = [json.loads(line) for line in open(out, encoding="utf-8")]
    assert len(rows) > 100, "what was written is not readable"
    assert target.running()


def test_max_size_ends_the_window_whole(hb, start, compile_c):
    target = start([compile_c("pingpong", PINGPONG_C, "-pthread")], ready="ready")
    result = hb.run("trace", "-p", target.pid, "-d", "60s", "-o", "w.hbw", "--max-size", "200KiB", timeout=100, code=OK)
    path = os.path.join(hb.folder, "w.hbw")
    assert os.path.exists(path), result
    report = hb.run("report", path, code=OK)
    assert "incomplete" not in report.out + report.err


# ---- window files -----------------------------------------------------------------------------------------------


def read_all_ways(tool, path):
    return [tool.run("report", path), tool.run("report", path, "--json"),
            tool.run("export", path, "--format", "ndjson", "-o", path + ".out"),
            tool.run("export", path, "--format", "folded", "-o", path + ".folded")]


@pytest.mark.parametrize("content", [b"", b"\0", b"PK\3\4 not ours", b"\x28\xb5\x2f\xfd" + b"\0" * 40, b"\x50\x2a\x4d\x18" + b"\xff" * 60,
                                     b"x" * 100000], ids=["empty", "one byte", "zip", "zstd", "skippable", "text"])
def test_not_a_window(tool, content):
    path = os.path.join(tool.folder, "x.hbw")
    with open(path, "wb") as f:
        f.write(content)
    for result in read_all_ways(tool, path):
        refused(result, FAILED, "x.hbw")


def test_window_that_is_not_there(tool):
    for result in read_all_ways(tool, os.path.join(tool.folder, "nowhere.hbw")):
        refused(result, FAILED, "nowhere.hbw")
    refused(tool.run("report", tool.folder), FAILED, tool.folder)


def test_unknown_format(tool, sample):
    path = os.path.join(tool.folder, "s.hbw")
    with open(path, "wb") as f:
        f.write(sample)
    result = tool.run("export", path, "--format", "sideways", "-o", "x")
    refused(result, USAGE, "sideways", "ndjson", "perfetto")
    assert not os.path.exists(os.path.join(tool.folder, "x"))


def test_truncated_anywhere(tool, sample):
    """Cut at any byte: opens with what was whole (then it says what is missing), or is refused in one sentence
    because not even the header is there."""
    rng = random.Random(7)
    cuts = sorted({1, 8, 16, 64, len(sample) - 1, len(sample) - 17, *(rng.randrange(len(sample)) for _ in range(40))})
    path, opened = os.path.join(tool.folder, "cut.hbw"), 0
    whole = tool.run("report", path_of(tool, sample), "--json", code=OK)
    for cut in cuts:
        with open(path, "wb") as f:
            f.write(sample[:cut])
        result = tool.run("report", path)
        assert result.code in (OK, FAILED), (cut, result)
        if result.code == FAILED:
            assert cut < 4096, f"a cut at byte {cut} of {len(sample)} lost everything: {result}"
            refused(result, FAILED, "cut.hbw")
        else:
            opened += 1
            assert re.search(r"incomplete|cut|missing|damaged|not finished|lost", result.out + result.err), (cut, result)
            tool.run("export", path, "--format", "ndjson", "-o", path + ".out", "--force", code=OK)
    assert opened >= len(cuts) // 2
    assert whole.out


def path_of(tool, content, name="whole.hbw"):
    path = os.path.join(tool.folder, name)
    with open(path, "wb") as f:
        f.write(content)
    return path


def test_flipped_bits(tool, sample):
    """No flipped byte may crash a reader or pass as sound data: either a sentence and 1, or 0 with the damage named
    (flips in padding or in copies that are not read are allowed to go unnoticed, but then the output is unchanged)."""
    rng = random.Random(11)
    sound = tool.run("report", path_of(tool, sample), "--json", code=OK).out
    path, noticed = os.path.join(tool.folder, "whole.hbw"), 0
    for _ in range(60):
        at, bit = rng.randrange(len(sample)), 1 << rng.randrange(8)
        damaged = bytearray(sample)
        damaged[at] ^= bit
        path_of(tool, bytes(damaged))
        result = tool.run("report", path, "--json")
        assert result.code in (OK, FAILED), (at, bit, result)
        if result.code == FAILED:
            refused(result, FAILED, "whole.hbw")
            noticed += 1
        elif result.out != sound:
            noticed += 1
            said = result.out + result.err + tool.run("report", path).out
            assert re.search(r"incomplete|damaged|missing|checksum|not understood|lost", said), (at, bit, result)
    assert noticed >= 40, f"only {noticed} of 60 flips were noticed"


def with_version(sample, major, minor):
    """The same file with another version in its first frame's head, checksum made right (docs/window-format.md: the
    version is in bytes 14 and 15 of every frame's head, a crc32 of the first 36 bytes follows them)."""
    head = bytearray(sample[:36])
    assert head[8:12] == b"HBWf"
    head[14:16] = bytes([major, minor])
    return bytes(head) + struct.pack("<I", zlib.crc32(bytes(head))) + sample[40:]


def test_newer_versions(tool, sample):
    """A newer major version is refused with its number; a newer minor one is read."""
    assert with_version(sample, sample[14], sample[15]) == sample, "the format differs from what this test knows"
    result = tool.run("report", path_of(tool, with_version(sample, sample[14] + 8, 0), "new.hbw"))
    refused(result, FAILED, "new.hbw", "version", str(sample[14] + 8))
    tool.run("report", path_of(tool, with_version(sample, sample[14], sample[15] + 3), "minor.hbw"), code=OK)


# ---- hostile names ----------------------------------------------------------------------------------------------


def hostile_values(value):
    """Strings inside parsed JSON that hold control characters."""
    if isinstance(value, str):
        return [value] if CONTROL.search(value) or "\n" in value else []
    if isinstance(value, dict):
        return [h for k, v in value.items() for h in hostile_values(k) + hostile_values(v)]
    if isinstance(value, list):
        return [h for v in value for h in hostile_values(v)]
    return []


def test_control_characters_in_names(hb, start, busy_program, compile_c, tmp_path):
    """Thread name, program path and library path try to drive the operator's terminal."""
    evil = tmp_path / "bad\x1b[2J\x07\x9bname\n"
    evil.mkdir()
    program = str(evil / "prog\x1b]0;owned\x07")
    with open(busy_program, "rb") as f, open(program, "wb") as g:
        g.write(f.read())
    os.chmod(program, 0o755)
    target = start([program, "\x1b[31mre\nd\x7f\u009b"], ready="ready")
    path, summary = hb.trace("-p", target.pid, "-F", "99")
    outputs = [summary, hb.run("report", path, code=OK), hb.run("ps", code=OK)]
    for result in outputs:
        assert result.out and not CONTROL.search(result.out), repr(result)
        assert not CONTROL.search(result.err.replace("\r", "")), repr(result.err)
    values = json.loads(hb.run("report", path, "--json", code=OK).out)
    assert not hostile_values(values)
    window = hb.window(path)
    assert window.rows and not hostile_values([window.head, window.rows, window.loss])
    assert any("31mre" in (r.get("comm") or "") for r in window.rows), "the thread is not in the window at all"
    for name in ("folded", "kineto"):
        out = os.path.join(hb.folder, name)
        hb.run("export", path, "--format", name, "-o", out, code=OK)
        text = open(out, encoding="utf-8").read()
        assert not CONTROL.search(text) and not re.search(r"\\u00(0[0-8b-f]|1|7f|8|9)", text), name


# ---- sudden death -----------------------------------------------------------------------------------------------


@pytest.mark.deadline(600)
def test_killed_at_any_moment(hb, start, compile_c):
    """SIGKILL of the tool while it resolves, attaches, collects, writes: the target lives on, the kernel is clean, and
    a window that was begun can be read."""
    target = start([compile_c("pingpong", PINGPONG_C, "-pthread")], ready="ready")
    rng, readable = random.Random(3), 0
    for i in range(10):
        before = kernel.Snapshot()
        name = os.path.join(hb.folder, f"k{i}.hbw")
        run = hb.start("trace", "-p", target.pid, "-d", "30s", "-o", name)
        if i == 9:  # however busy the machine is, once there is something in the window
            processes.wait_for(lambda f=name + ".part": os.path.exists(f) and os.path.getsize(f) > 4096, timeout=60, what="a window")
        else:
            time.sleep(rng.uniform(0, 0.4) if i % 2 else rng.uniform(0.4, 3.0))
        run.kill()
        assert run.wait().code == -signal.SIGKILL
        assert target.running(), "the target died with the tool"
        left = before.wait_clean()
        assert not left, left
        part = name + ".part"
        if os.path.exists(part) and os.path.getsize(part) > 4096:
            hb.run("report", part, code=OK)
            hb.run("export", part, "--format", "ndjson", "-o", part + ".out", code=OK)
            readable += 1
    assert readable, "no kill came late enough to leave a file"


def test_second_interrupt_ends_at_once(hb, busy):
    run = hb.start("trace", "-p", busy.pid, "-d", "60s", "-o", "w.hbw")
    processes.wait_for(lambda: os.path.exists(os.path.join(hb.folder, "w.hbw.part")), what="the window")
    time.sleep(1)
    run.interrupt()
    run.interrupt()
    result = run.wait(30)
    assert result.code == OK, result
    name = next(n for n in os.listdir(hb.folder) if n.startswith("w.hbw"))
    hb.run("report", os.path.join(hb.folder, name), code=OK)
