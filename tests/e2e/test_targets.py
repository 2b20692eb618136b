# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Which processes are traced: by pid, name and cgroup, with their children, and in namespaces of their own where the
library is visible to nobody else. Counts are compared exactly with what the targets did."""
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from lib import exact, tracing
from lib.processes import children, wait_for
from lib.tool import OK, TARGET

pytestmark = pytest.mark.beside

CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f]")

# A library with the driver's names and four of its functions: enough to be found by the tables.
DRIVER_C = r"""
int cuInit(unsigned f) { __asm__ volatile(""); return 0; }
int cuMemAlloc_v2(unsigned long *p, unsigned long n) { __asm__ volatile(""); *p = 4096; return n > 1000000 ? 2 : 0; }
int cuStreamSynchronize(void *s) { __asm__ volatile(""); return 0; }
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shm,
		   void *stream, void **p, void **x)
{
	__asm__ volatile("");
	return 0;
}
"""

# argv: library, rounds. Waits for SIGUSR1, then makes `rounds` rounds of 5 launches, 2 allocations (the second fails) and
# one synchronisation, prints "done" and waits. "fork" as third argument: a child does the rounds.
CALLER_C = r"""
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	void *h = dlopen(argv[1], RTLD_NOW);
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
	int (*alloc)(unsigned long *, unsigned long), (*sync)(void *);
	sigset_t set;
	unsigned long p;
	int sig;
	if (!h) {
		puts(dlerror());
		return 1;
	}
	launch = dlsym(h, "cuLaunchKernel");
	alloc = dlsym(h, "cuMemAlloc_v2");
	sync = dlsym(h, "cuStreamSynchronize");
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	prctl(PR_SET_NAME, "caller\033[31m\n");
	puts("ready");
	fflush(stdout);
	sigwait(&set, &sig);
	if (argc > 3 && fork())
		for (;;)
			pause();
	if (argc > 3) /* the tool has to see the child and attach to it */
		sleep(2);
	for (int i = 0; i < atoi(argv[2]); i++) {
		for (int k = 0; k < 5; k++)
			launch((void *)0x1234, 7, 1, 1, 32, 1, 1, 0, (void *)0x10, NULL, NULL);
		alloc(&p, 4096);
		alloc(&p, 2000000);
		sync((void *)0x10);
	}
	puts("done");
	fflush(stdout);
	for (;;)
		pause();
}
"""


@pytest.fixture(scope="module")
def driver(compile_c):
    return compile_c("libcuda.so.1", DRIVER_C, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1")


@pytest.fixture(scope="module")
def caller(compile_c):
    return compile_c("caller", CALLER_C, "-ldl")


def expected(rounds):
    return {"cuLaunchKernel": 5 * rounds, "cuMemAlloc": 2 * rounds, "cuStreamSynchronize": rounds}


def trace_while(hb, selector, act, *targets):
    """Opens a window, acts, and reads it once all of these targets are done."""
    def until_done():
        act()
        for t in targets:
            wait_for(lambda t=t: "done" in t.output(), timeout=60, what="the end of the rounds")

    path, result, _ = tracing.around(hb, until_done, *selector)
    return hb.window(path), result


def go(pid):
    os.kill(pid, signal.SIGUSR1)


def find(pid, name):
    """The descendant of `pid` whose program is `name`."""
    def look():
        for p in children(pid):
            try:
                if os.path.basename(os.readlink(f"/proc/{p}/exe")) == name:
                    return p
            except OSError:
                pass
        return None
    return wait_for(look, what=f"a process {name}")


def test_by_pid(hb, start, driver, caller):
    target = start([caller, driver, "100"], ready="ready")
    window, _ = trace_while(hb, ["-p", str(target.pid)], lambda: go(target.pid), target)
    assert not exact.losses(window) and dict(window.calls(pid=target.pid)) == expected(100)
    first = window.of("accel", name="cuLaunchKernel")[0]
    assert first["grid"] == [7, 1, 1] and first["block"] == [32, 1, 1] and first["api"] == "cuda-driver"
    assert {r["ret"] for r in window.of("accel", name="cuMemAlloc")} == {0, 2}
    assert not CONTROL.search(first["comm"])


def test_two_pids(hb, start, driver, caller):
    a, b, other = (start([caller, driver, n], ready="ready") for n in ("10", "20", "30"))

    def act():
        for p in (a, b, other):
            go(p.pid)

    window, _ = trace_while(hb, ["-p", f"{b.pid},{a.pid}"], act, a, b, other)
    assert dict(window.calls(pid=a.pid)) == expected(10)
    assert dict(window.calls(pid=b.pid)) == expected(20)
    assert not window.calls(pid=other.pid), "a process that nobody named was recorded"


def test_child_forked_in_the_window(hb, start, driver, caller):
    target = start([caller, driver, "50", "fork"], ready="ready")
    window, _ = trace_while(hb, ["-p", str(target.pid)], lambda: go(target.pid), target)
    child = next(p for p in children(target.pid) if p != target.pid)
    assert dict(window.calls(pid=child)) == expected(50)


def test_no_children(hb, start, driver, caller):
    target = start([caller, driver, "50", "fork"], ready="ready")
    window, _ = trace_while(hb, ["-p", str(target.pid), "--no-children"], lambda: go(target.pid), target)
    assert not window.calls()


def test_by_name_takes_descendants_along(hb, start, driver, caller, tmp_path):
    shell = tmp_path / "hb-odd-name"
    os.symlink("/bin/sh", shell)
    target = start([shell, "-c", f'"{caller}" "{driver}" 30; true'], ready="ready")
    pid = find(target.pid, "caller")
    window, _ = trace_while(hb, ["--name", "hb-odd-n*"], lambda: go(pid), target)
    assert dict(window.calls(pid=pid)) == expected(30)


def cgroup_folder():
    """A group of our own below the first hierarchy that lets us, or None."""
    for top in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/pids"):
        path = f"{top}/hb_e2e_{os.getpid()}"
        if os.path.exists(f"{top}/cgroup.procs"):
            try:
                os.makedirs(path + "/inner")
                return path
            except OSError:
                pass
    return None


@pytest.fixture
def cgroup():
    path = cgroup_folder()
    if not path:
        pytest.skip("no cgroup hierarchy lets us make a group")
    yield path

    def gone(folder):
        try:
            os.rmdir(folder)
        except FileNotFoundError:
            pass
        except OSError:
            return False
        return True

    for folder in (path + "/inner", path):
        wait_for(lambda f=folder: gone(f), what="the end of the group")


def test_by_cgroup(hb, start, driver, caller, cgroup):
    target, other = start([caller, driver, "40"], ready="ready"), start([caller, driver, "1"], ready="ready")
    with open(cgroup + "/inner/cgroup.procs", "w", encoding="utf-8") as f:
        f.write(str(target.pid))

    def act():
        go(target.pid)
        go(other.pid)

    window, _ = trace_while(hb, ["--cgroup", os.path.basename(cgroup)], act, target, other)
    assert dict(window.calls()) == expected(40)
    target.kill()
    result = hb.run("trace", "--cgroup", cgroup, "-d", "1s", code=TARGET)
    assert len(result.err.splitlines()) == 1 and cgroup in result.err, result


def test_a_killed_tool_leaves_no_lock(hb, start, driver, caller):
    target = start([caller, driver, "10"], ready="ready")
    first = hb.start("trace", "-p", target.pid, "-d", "60s", "-o", "first.hbw")
    wait_for(lambda: os.path.exists(os.path.join(hb.folder, "first.hbw.part")), what="the first window")
    time.sleep(1)
    first.kill()
    first.wait()
    window, _ = trace_while(hb, ["-p", str(target.pid)], lambda: go(target.pid), target)
    assert dict(window.calls(pid=target.pid)) == expected(10)


# ---- namespaces -------------------------------------------------------------------------------------------------


def in_namespaces(start, driver, caller, secret, rounds, keep=True):
    """A process in mount, pid and network namespaces of its own; its library lies on a tmpfs that only it has mounted.
    keep=False: the file is deleted once it is mapped. Returns (process, pid)."""
    os.makedirs(secret)
    script = (f'mount -t tmpfs none "{secret}" && cp "{driver}" "{secret}/libcuda.so.1" && '
              + ('' if keep else f'{{ (sleep 1; rm "{secret}/libcuda.so.1") & }} && ')
              + f'exec "{caller}" "{secret}/libcuda.so.1" {rounds}')
    target = start(["unshare", "--mount", "--pid", "--net", "--fork", "--mount-proc", "--propagation", "private",
                    "sh", "-c", script], ready="ready")
    return target, find(target.pid, "caller")


def test_library_in_another_mount_namespace(hb, start, driver, caller, tmp_path):
    secret = str(tmp_path / "only there")
    target, pid = in_namespaces(start, driver, caller, secret, 60)
    assert not os.path.exists(secret + "/libcuda.so.1")
    window, _ = trace_while(hb, ["-p", str(pid)], lambda: go(pid), target)
    assert not exact.losses(window) and dict(window.calls(pid=pid)) == expected(60)
    proc = next(p for p in window.head["processes"] if p["pid"] == pid)
    assert proc["nspid"] == 1, proc


def test_library_deleted_after_it_was_loaded(hb, start, driver, caller, tmp_path):
    """As after an upgrade of a package under a running service: only /proc/PID/map_files leads to the file."""
    secret = str(tmp_path / "gone")
    target, pid = in_namespaces(start, driver, caller, secret, 20, keep=False)
    wait_for(lambda: "(deleted)" in open(f"/proc/{pid}/maps", encoding="utf-8").read(), what="the deletion")
    window, _ = trace_while(hb, ["-p", str(pid)], lambda: go(pid), target)
    assert dict(window.calls(pid=pid)) == expected(20)


# ---- ps ---------------------------------------------------------------------------------------------------------


def listed(tool, pid):
    doc = json.loads(tool.run("ps", "--json", code=OK).out)
    return next((p for p in doc["processes"] if p["pid"] == pid), None)


def test_ps_lists_a_hidden_accelerator_process(hb, start, driver, caller, tmp_path):
    secret = str(tmp_path / "only there")
    _, pid = in_namespaces(start, driver, caller, secret, 1)
    row = listed(hb, pid)
    assert row["nspid"] == 1 and row["threads"] == 1 and row["user"] == "root" and row["inspected"]
    assert [(l["api"], l["visible"], l["path"]) for l in row["libraries"]] == [
        ("cuda-driver", True, secret + "/libcuda.so.1")]
    assert row["libraries"][0]["probes"] >= 3
    text = hb.run("ps", code=OK).out
    assert not CONTROL.search(text) and "caller?[31m" in text and secret in text


def test_ps_lists_python_and_only_that(hb, start):
    python = start([sys.executable, "-c", "print('up', flush=True); import time; time.sleep(60)"], ready="up")
    sleeper = start(["sleep", "60"])
    assert listed(hb, python.pid)["python"] == f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert listed(hb, sleeper.pid) is None


def test_ps_without_root(hb, start, driver, caller):
    """Says how many it could not see, and still exits with 0."""
    target = start([caller, driver, "1"], ready="ready")
    folder = f"/tmp/hb-ps-{os.getpid()}"
    os.mkdir(folder, 0o755)
    try:
        copy = os.path.join(folder, "herschel-bpf")
        subprocess.run(["install", "-m", "755", hb.path, copy], check=True, timeout=60)
        done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", copy, "ps"],
                              capture_output=True, text=True, timeout=60, cwd="/")
    finally:
        subprocess.run(["rm", "-r", folder], check=True, timeout=60)
    assert done.returncode == OK and "may not be inspected" in done.stderr and "root" in done.stderr, done
    assert str(target.pid) not in done.stdout
