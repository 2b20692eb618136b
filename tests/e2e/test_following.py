# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Processes and threads that come and go while the window is open: storms of them, exec, stops, daemons."""
import json
import os
import signal
import sys
import time

import pytest
from lib import exact, tracing
from lib.processes import alive, wait_for
from lib.tool import OK

pytestmark = pytest.mark.beside

# A library under the driver's name, with one function of it.
DRIVER_C = r"""
int cuInit(unsigned f) { __asm__ volatile(""); return 0; }
int cuStreamSynchronize(void *s) { __asm__ volatile(""); return 0; }
"""

# argv: library, mode, number, calls of each. Waits for SIGUSR1, does its thing, prints one line of truth, waits for the
# end.
#   fork     `number` children, 5 ms apart; each makes its calls and exits
#   threads  `number` threads, 5 ms apart; each makes its calls and ends
#   many     `number` threads that exist at once and make their calls when told
#   exec     replaces itself by itself (mode `calls`) `number` times
#   daemon   a grandchild that left the session and whose parent is gone makes the calls
#   calls    makes its calls
STORM_C = r"""
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static int (*sync_stream)(void *);
static long calls;
static sem_t go_on, done;
static void work(void)
{
	for (long i = 0; i < calls; i++)
		sync_stream((void *)i);
}
static void *thread(void *arg) { work(); return arg; }
static void *waiting(void *arg)
{
	sem_wait(&go_on);
	work();
	sem_post(&done);
	for (;;)
		pause();
	return arg;
}
static int fork_storm(long n)
{
	int ok = 0, status;
	for (long i = 0; i < n; i++) {
		pid_t p = fork();
		if (!p) {
			work();
			_exit(7);
		}
		usleep(5000);
		while (waitpid(-1, &status, WNOHANG) > 0)
			ok += WIFEXITED(status) && WEXITSTATUS(status) == 7;
	}
	while (wait(&status) > 0)
		ok += WIFEXITED(status) && WEXITSTATUS(status) == 7;
	return ok;
}
static int thread_storm(long n)
{
	pthread_t t[64];
	int ok = 0;
	for (long i = 0; i < n; i++) {
		if (i >= 64 && pthread_join(t[i % 64], NULL) == 0)
			ok++;
		if (pthread_create(&t[i % 64], NULL, thread, NULL))
			return -1;
		usleep(5000);
	}
	for (long i = 0; i < n && i < 64; i++)
		ok += pthread_join(t[i % 64], NULL) == 0;
	return ok;
}
static int daemonise(void)
{
	if (fork() == 0) {
		setsid();
		if (fork())
			_exit(0);
		sleep(2); /* the tool has to see it and attach */
		work();
		printf("daemon %d\n", getpid());
		fflush(stdout);
		for (;;)
			pause();
	}
	wait(NULL);
	return 1;
}
int main(int argc, char **argv)
{
	void *h = dlopen(argv[1], RTLD_NOW);
	long n = atol(argv[3]);
	const char *mode = argv[2];
	sigset_t set;
	pthread_t t;
	int sig, ok = 0;
	sync_stream = dlsym(h, "cuStreamSynchronize");
	calls = atol(argv[4]);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (!strcmp(mode, "many"))
		for (long i = 0; i < n; i++)
			if (pthread_create(&t, NULL, waiting, NULL))
				return 1;
	if (strcmp(mode, "calls")) {
		printf("ready\n");
		fflush(stdout);
		sigwait(&set, &sig);
	}
	if (!strcmp(mode, "fork"))
		ok = fork_storm(n);
	else if (!strcmp(mode, "threads"))
		ok = thread_storm(n);
	else if (!strcmp(mode, "exec") || (!strcmp(mode, "calls") && n > 1)) {
		char left[16];
		if (!strcmp(mode, "calls"))
			work();
		snprintf(left, sizeof(left), "%ld", strcmp(mode, "exec") ? n - 1 : n);
		execl("/proc/self/exe", "again", argv[1], "calls", left, argv[4], NULL);
		return errno;
	} else if (!strcmp(mode, "daemon"))
		ok = daemonise();
	else if (!strcmp(mode, "many")) {
		for (long i = 0; i < n; i++)
			sem_post(&go_on);
		for (long i = 0; i < n; i++)
			ok += sem_wait(&done) == 0;
	} else
		work();
	printf("truth %d\n", ok);
	fflush(stdout);
	for (;;)
		pause();
}
"""


@pytest.fixture(scope="module")
def driver(compile_c):
    return compile_c("libcuda.so.1", DRIVER_C, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1")


@pytest.fixture(scope="module")
def program(compile_c):
    return compile_c("comer", STORM_C, "-pthread", "-ldl")


@pytest.fixture
def storm(start, program, driver):
    """storm(mode, number, calls) -> (Process, act): act() lets it go and returns what it says of itself at the end."""

    def begin(mode, number, calls):
        p = start([program, driver, mode, number, calls], ready="ready")

        def act():
            p.signal(signal.SIGUSR1)
            line = wait_for(lambda: [l for l in p.output().splitlines() if l.startswith("truth")], timeout=60,
                            what=f"the end of {mode}")
            return int(line[0].split()[1])

        return p, act

    return begin


def loss_of(window, *causes):
    return {c: window.loss[c] for c in causes if window.loss[c]}


def test_fork_storm(hb, storm):
    """200 children a second, dead before anyone can attach to them: each birth and each death is there, what they called
    unseen is announced as late, and none of them died of our probes."""
    target, act = storm("fork", 500, 3)
    path, result, survived = tracing.around(hb, act, "-p", target.pid)
    assert survived == 500, "children did not end as they would have"
    w = hb.window(path)
    assert not loss_of(w, "ring_full", "tasks", "disk"), w.loss
    born = [r for r in w.of("process", how="forked") if r["ppid"] == target.pid]
    ended = {r["pid"]: r for r in w.of("exit") if r.get("last")}
    assert len({r["pid"] for r in born}) == 500
    assert all(ended[r["pid"]]["code"] == 7 << 8 for r in born)
    seen = w.calls()["cuStreamSynchronize"]
    # A child that was attached to in time shows all of its calls or the later ones; those that were not are counted.
    assert seen <= 1500 and (seen == 1500 or w.loss["late"] + w.loss["unfinished"] > 0), (seen, w.loss)
    assert target.running() and "exited" not in result.err


def test_thread_storm(hb, storm):
    """Threads are probed with their process: nothing of them is late."""
    target, act = storm("threads", 400, 5)
    path, _, joined = tracing.around(hb, act, "-p", target.pid)
    assert joined == 400
    w = hb.window(path)
    assert not exact.losses(w), w.loss
    started = w.of("thread", pid=target.pid, how="forked")
    assert len({r["tid"] for r in started}) == 400 and {r["parent"] for r in started} == {target.pid}
    assert len([r for r in w.of("exit", pid=target.pid) if not r.get("last")]) == 400
    assert w.calls(pid=target.pid) == {"cuStreamSynchronize": 2000}
    by_thread = {}
    for r in w.of("accel"):
        by_thread[r["tid"]] = by_thread.get(r["tid"], 0) + 1
    assert set(by_thread.values()) == {5} and set(by_thread) == {r["tid"] for r in started}


def test_many_threads(hb, storm):
    target, act = storm("many", 300, 20)
    path, _, did = tracing.around(hb, act, "-p", target.pid)
    assert did == 300
    w = hb.window(path)
    assert not exact.losses(w), w.loss
    assert len(w.of("thread", pid=target.pid, how="present")) == 300
    assert w.calls() == {"cuStreamSynchronize": 6000} and len({r["tid"] for r in w.of("accel")}) == 300
    values = json.loads(hb.run("report", path, "--json", code=OK).out)
    assert sum(t["operations"] for t in values["threads"] if t["pid"] == target.pid) == 6000


def test_exec_in_the_window(hb, storm):
    """The same process with another image, twice. The kernel puts the probes of a process into whatever maps the library
    in it: not one call of the new images is missed."""
    target, act = storm("exec", 2, 30)
    path, _, _ = tracing.around(hb, act, "-p", target.pid)
    w = hb.window(path)
    assert [r["name"] for r in w.of("exec", pid=target.pid)] == ["exe", "exe"]
    assert w.calls(pid=target.pid) == {"cuStreamSynchronize": 60}
    assert not loss_of(w, "late", "unfinished") and target.running()


def test_a_daemon_stays_in_the_target(hb, storm):
    """Whoever descends from the target belongs to it, also when its parent is gone and it has a session of its own."""
    target, act = storm("daemon", 1, 25)

    def until_it_worked():
        act()
        return int(wait_for(lambda: [l for l in target.output().splitlines() if l.startswith("daemon")], timeout=30,
                            what="the daemon's work")[0].split()[1])

    path, _, pid = tracing.around(hb, until_it_worked, "-p", target.pid)
    os.kill(pid, signal.SIGKILL)
    w = hb.window(path)
    assert w.calls(pid=pid) == {"cuStreamSynchronize": 25}
    assert pid in {p["pid"] for p in w.head["processes"]}


def test_a_stopped_target(hb, storm):
    """Stopped when the tool comes, goes on in the window, stopped again when the tool leaves: probes come and go."""
    target, act = storm("many", 4, 10)
    os.kill(target.pid, signal.SIGSTOP)

    def go_on():
        os.kill(target.pid, signal.SIGCONT)
        did = act()
        os.kill(target.pid, signal.SIGSTOP)
        time.sleep(0.3)
        os.kill(target.pid, signal.SIGCONT)
        time.sleep(0.3)
        os.kill(target.pid, signal.SIGSTOP)
        return did

    path, _, did = tracing.around(hb, go_on, "-p", target.pid)
    assert did == 4
    w = hb.window(path)
    assert w.calls() == {"cuStreamSynchronize": 40}
    assert [r for r in w.of("offcpu", pid=target.pid) if r["state"] == "T" and r["dur"] > 200_000_000]
    assert alive(target.pid)
    os.kill(target.pid, signal.SIGCONT)


def test_a_target_that_is_a_child_of_a_target(hb, start, program, driver):
    """Parent and child both named on the command line: each is taken once."""
    parent = start(["sh", "-c", f"'{program}' '{driver}' many 2 10; true"], ready="ready")
    child = wait_for(lambda: [int(p) for p in open(f"/proc/{parent.pid}/task/{parent.pid}/children", encoding="ascii").read().split()],
                     what="the child")[0]

    def act():
        os.kill(child, signal.SIGUSR1)
        wait_for(lambda: "truth" in parent.output(), what="the calls")

    path, _, _ = tracing.around(hb, act, "-p", f"{parent.pid},{child}")
    w = hb.window(path)
    assert w.calls() == {"cuStreamSynchronize": 20}
    assert len([p for p in w.head["processes"] if p["pid"] == child]) == 1


def test_sleeps_across_the_edges_of_the_window(hb, start):
    """A thread blocked all the time is there, for the whole window; so is what began before it or ends after it."""
    code = ("import os, threading, time\nr, w = os.pipe()\n"
            "threading.Thread(target=lambda: os.read(r, 1), daemon=True).start()\n"
            "print('ready', flush=True)\nwhile True: time.sleep(1.5)")
    target = start([sys.executable, "-c", code], ready="ready")
    path, _ = hb.trace("-p", target.pid, duration="2s")
    w = hb.window(path)
    length = w.head["end_ns"] - w.head["start_ns"]
    blocked = [r for r in w.of("offcpu") if r["tid"] != target.pid]
    assert [(r["ts"], r["dur"], r["syscall"]) for r in blocked] == [(0, length, "read")]
    assert blocked[0]["before"] and blocked[0]["open"] and blocked[0]["chan"].startswith("pipe")
    sleeps = sorted(w.of("offcpu", tid=target.pid), key=lambda r: r["ts"])
    assert sleeps[0].get("before") and sleeps[0]["ts"] == 0
    assert sleeps[-1].get("open") and sleeps[-1]["ts"] + sleeps[-1]["dur"] == length
    assert sum(r["dur"] for r in sleeps) <= length
