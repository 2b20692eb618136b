/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/session/impl.h"
#include "capture/session/pycalls.h"
#include "capture/session/pyfields.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS	   200000000ULL
#define FLUSH_NS   1000000000ULL
#define DETACH_NS  300000000ULL /* what an operator waits for links to close; the rest goes on behind */
#define RESOLVE_NS 10000000000ULL

/* ---- before anything is touched ---- */

static int check_output(const struct hb_session *s, struct hb_error *e)
{
	char dir[4096];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", s->path);
	slash = strrchr(dir, '/');
	if (slash)
		slash[slash == dir] = 0;
	if (access(slash ? dir : ".", W_OK | X_OK))
		return hb_error__set(e, HB_EXIT_FAILED, -errno,
				     "cannot write to directory %s: %s; choose another with -o FILE",
				     slash ? dir : ".", strerror(errno));
	if (!s->o.force && access(s->path, F_OK) == 0)
		return hb_error__set(e, HB_EXIT_FAILED, -EEXIST,
				     "%s exists already; use --force to replace it, or -o FILE", s->path);
	return hb_window_writer__check(s->path, s->o.force, e);
}

/* HOST-PID-TIME.hbw in the current folder, or in the temporary one when that is not writable. */
static char *default_path(u32 pid)
{
	char host[64] = "host", stamp[32], *path;
	time_t now = time(NULL);
	struct tm tm;
	const char *tmp = getenv("TMPDIR");

	gethostname(host, sizeof(host) - 1);
	localtime_r(&now, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", &tm);
	if (asprintf(&path, "%s%s%s-%u-%s.hbw", access(".", W_OK) ? (tmp ? tmp : "/tmp") : "",
		     access(".", W_OK) ? "/" : "", host, pid, stamp) < 0)
		return NULL;
	return path;
}

static int load_tables(struct hb_session *s, struct hb_error *e)
{
	int err;

	s->tables = hb_tables__new();
	if (!s->tables)
		return hb_error__nomem(e, "probe tables");
	err = hb_tables__add_embedded(s->tables, e); /* a later table wins */
	for (unsigned i = 0; !err && s->o.probe_files && s->o.probe_files[i]; i++)
		err = hb_tables__add_file(s->tables, s->o.probe_files[i], e);
	if (!err && s->o.probe_rows)
		err = hb_tables__add_text(s->tables, "the plan", s->o.probe_rows, strlen(s->o.probe_rows), e);
	return err;
}

/* Programs, maps and their links are FDS_FIXED or more; rings, samplers and readers of mappings are one a CPU
 * each. Without this check libbpf is the one to run out of descriptors, and says something else. */
#define FDS_FIXED   48
#define FDS_PER_CPU 3

static int check_fds(struct hb_error *e)
{
	unsigned long long need = FDS_FIXED + FDS_PER_CPU * (unsigned long long)sysconf(_SC_NPROCESSORS_ONLN);
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= need)
		return 0;
	return hb_error__set(
	    e, HB_EXIT_KERNEL, -EMFILE,
	    "out of file descriptors: %llu may be open, at least %llu are needed; raise `ulimit -n`",
	    (unsigned long long)r.rlim_cur, need);
}

static int prepare(struct hb_session *s, struct hb_error *e)
{
	struct hb_plan_opts po = {.layers = s->o.layers, .timed = s->o.timed};
	int err = check_fds(e) ?: load_tables(s, e);

	err = err ? err : hb_target__need_proc(e);
	if (!err && !hb_target__initial_pidns())
		return hb_error__set(
		    e, HB_EXIT_KERNEL, -EPERM,
		    "this container has a pid namespace of its own, so the pids seen here are not those the "
		    "kernel reports; on the node run: sudo herschel-bpf trace --name PROGRAM (or give the "
		    "container the node's: hostPID: true, --pid=host)");
	err = err ? err : hb_selector__resolve(&s->o.target, &s->pids, &s->n_pids, e);
	if (err)
		return err;
	s->path = s->o.output ? strdup(s->o.output) : default_path(s->pids[0]);
	if (!s->path)
		return hb_error__nomem(e, "the file name");
	err = check_output(s, e);
	if (err)
		return err;
	s->lock = hb_target_lock__take(s->pids, s->n_pids, e);
	if (!s->lock)
		return e->err;
	s->plan = hb_plan__new(s->tables, &po);
	s->resolve = hb_resolve__new();
	s->by_pid = hb_map__new();
	s->fd_watch = hb_fd_watch__new();
	s->queue_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = hb_session_python__begin(s);
	if (s->queue_fd < 0)
		return hb_error__fds(e, "the session", -errno);
	if (err || !s->plan || !s->resolve || !s->by_pid || !s->fd_watch)
		return hb_error__nomem(e, "the session");
	return 0;
}

/* ---- attach ---- */

static int open_window(struct hb_session *s, struct hb_error *e)
{
	unsigned n_rings;
	const int *rings = hb_bpf__rings(s->bpf, &n_rings);
	struct hb_window_opts wo = {.streams = n_rings + 1,
				    .exempt = 1,
				    .force = s->o.force,
				    .max_size = s->o.max_size,
				    .start_ts = s->begin};
	/* All rings shall have come to about the same time when the file is full. */
	struct hb_collect_opts co = {.ring_fds = rings, .n_rings = n_rings, .batch = s->o.max_size ? 256 : 0};

	s->writer = hb_window_writer__new(s->path, &wo, e);
	if (!s->writer)
		return e->err;
	co.writer = s->writer;
	s->collect = hb_collect__new(&co, e);
	if (!s->collect)
		return e->err;
	return hb_session__subscribe(s) || hb_fd_watch__subscribe(s) || hb_session_python__subscribe(s)
		   ? hb_error__nomem(e, "subscriptions")
		   : 0;
}

/* Nothing to probe is a window without accelerator calls; a kernel that lets nothing be probed is no
 * window. */
static int nothing_probed(const struct hb_session *s, struct hb_error *e)
{
	if (s->no_probe.exit == HB_EXIT_KERNEL && !hb_attach__links(s->attach)) {
		*e = s->no_probe;
		return e->err;
	}
	if (s->no_probe.err)
		hb_warn("%s", s->no_probe.text);
	return 0;
}

static int attach_targets(struct hb_session *s, struct hb_error *e)
{
	u32 taken = 0;

	for (u32 i = 0; i < s->n_pids; i++) {
		struct hb_error one = {0};
		int err = hb_session__follow(s, s->pids[i], HB_HOW_PRESENT, 0, &one);

		if (err == 0)
			taken++;
		else if (err != -ESRCH) {
			*e = one;
			return err;
		}
	}
	if (!taken)
		return hb_error__set(e, HB_EXIT_TARGET, -ESRCH, "process %u exited before it could be traced",
				     s->pids[0]);
	return nothing_probed(s, e);
}

/* The tracepoints put every task of the machine on the slow path: whoever asks for them shall know. We are no
 * target, so our own calls show what bystanders pay. */
static void say_syscall_price(struct hb_session *s)
{
	u64 now = hb_price__syscall(), before = s->prices.syscall;

	s->syscall_extra = now > before ? now - before : 0;
	hb_warn("--syscalls all: each system call of every process on this machine takes %llu ns longer "
		"during the window "
		"(%llu ns bare); those of the target more",
		(unsigned long long)s->syscall_extra, (unsigned long long)before);
}

/* Single uprobes are closed under one lock of the kernel, from whatever thread or process, and after a kill
 * too. */
static void say_detach_time(const struct hb_session *s, bool single)
{
	double seconds = (double)hb_attach__links(s->attach) * (double)s->prices.detach / 1e9;

	if (single && seconds >= 1)
		hb_note(
		    "without uprobe_multi (Linux 6.6): %u single uprobes, which the kernel takes away one "
		    "after the other, in some %.0f s after the window",
		    hb_attach__links(s->attach), seconds);
}

static int attach(struct hb_session *s, struct hb_error *e)
{
	struct hb_attach_ops ops = hb_bpf__uprobes(s->bpf);
	u64 t = hb_clock__now();
	bool unpriced;
	int err;

	s->attach = hb_attach__new(&ops);
	if (!s->attach)
		return hb_error__nomem(e, "links");
	err = hb_session_pyevents__begin(s, e);
	if (err)
		return err;
	/* Before the target's own probes, so that its first calls are not measured with ours. */
	unpriced = hb_session__measure_prices(s) != 0;
	t = hb_clock__now();
	err = hb_session_pyfields__begin(s, e);
	err = err ? err : hb_session_pycalls__begin(s, e);
	err = err ? err : attach_targets(s, e);
	s->attach_ns = hb_clock__now() - t;
	if (err)
		return err;
	say_detach_time(s, ops.entry_multi < 0);
	if (unpriced)
		hb_warn("what a probe costs could not be measured here; costs are printed as unknown");
	s->mmaps = hb_mmap_events__new(e);
	if (!s->mmaps)
		return e->err;
	err = hb_bpf__attach_events(s->bpf, e);
	if (err)
		return err;
	if (s->o.syscalls == HB_SYSCALLS_ALL)
		say_syscall_price(s);
	if (s->o.freq) {
		s->sampling = hb_sampling__new(hb_bpf__sample_prog(s->bpf), s->o.freq, e);
		if (!s->sampling)
			return e->err;
	}
	return 0;
}

struct hb_session *hb_session__new(const struct hb_session_opts *o, struct hb_error *e)
{
	struct hb_session *s = calloc(1, sizeof(*s));

	if (!s) {
		hb_error__nomem(e, "the session");
		return NULL;
	}
	s->o = *o;
	s->queue_fd = -1;
	pthread_mutex_init(&s->procs_lock, NULL);
	pthread_mutex_init(&s->collect_lock, NULL);
	pthread_mutex_init(&s->queue_lock, NULL);
	if (prepare(s, e))
		goto fail;
	s->bpf = hb_bpf__new(o, e);
	if (!s->bpf || attach(s, e))
		goto fail;
	/* Attaching took a while; those that come after this one are late for their first calls. */
	hb_session__adopt_strays(s);
	/* The window begins before its file is there: what is recorded meanwhile waits in the rings. */
	hb_session__arm(s);
	hb_session_python__edge(s);
	if (open_window(s, e))
		goto fail;
	return s;
fail:
	hb_session__free(s);
	return NULL;
}

/* ---- the window ---- */

static void report_progress(const struct hb_session *s, hb_progress_fn fn, void *arg)
{
	struct hb_progress p = {
	    .elapsed = hb_clock__now() - s->begin,
	    .duration = s->o.duration,
	    .events = hb_collect__events(s->collect),
	    .bytes = hb_window_writer__bytes(s->writer),
	    .lost = hb_bpf__ring_losses(s->bpf),
	    .processes = s->n_live,
	};

	if (fn)
		fn(&p, arg);
}

/* Why the window should end now; NULL to go on. */
static const char *over(struct hb_session *s, const volatile int *stop)
{
	int err = atomic_load(&s->pump_err);

	if (err == -EFBIG)
		return "the file reached --max-size";
	if (err)
		return "the window file could not be written any further";
	if (*stop >= 2)
		return "interrupted twice: ended at once";
	if (*stop)
		return "interrupted";
	if (!s->n_live)
		return "every target process has exited";
	if (hb_clock__now() - s->begin >= s->o.duration)
		return "the time was over";
	return NULL;
}

static void control(struct hb_session *s, const volatile int *stop, hb_progress_fn fn, void *arg)
{
	struct pollfd fds[2] = {{.fd = s->queue_fd, .events = POLLIN},
				{.fd = hb_mmap_events__fd(s->mmaps), .events = POLLIN}};
	u64 tick = s->begin, flush = s->begin;

	while (!(s->ended_by = over(s, stop))) {
		u64 now = hb_clock__now(), end = s->begin + s->o.duration;
		u64 next = tick + TICK_NS < end ? tick + TICK_NS : end;

		poll(fds, 2, hb_clock__left_ms(next));
		hb_session__handle_life(s);
		hb_fd_watch__handle(s);
		hb_session__handle_mmaps(s);
		now = hb_clock__now();
		if (now - tick < TICK_NS)
			continue;
		tick = now;
		hb_session__check_live(s);
		hb_arrival__tick(s, false);
		hb_session_python__tick(s);
		hb_session_pyevents__tick(s);
		report_progress(s, fn, arg);
		if (now - flush >= FLUSH_NS) {
			flush = now;
			hb_window_writer__flush(s->writer);
		}
	}
}

/* Order: stop the flow (empty target set), then the perf events, then the links into the target, then ours.
 * Each step may be repeated; a SIGKILL between any two leaves the kernel to do the rest, because everything
 * hangs on fds. */
static void detach(struct hb_session *s)
{
	u64 t = hb_clock__now();

	if (s->bpf)
		hb_bpf__clear_targets(s->bpf);
	hb_sampling__free(s->sampling);
	s->sampling = NULL;
	hb_session_pycalls__detach(s, t + DETACH_NS);
	if (s->attach)
		hb_attach__detach(s->attach, t + DETACH_NS);
	hb_session_pyevents__detach(s, t + DETACH_NS);
	if (s->bpf)
		hb_bpf__detach_events(s->bpf);
	s->detach_ns = hb_clock__now() - t;
}

/* A file that got full has all of the window until there, so it ends there. */
static void end_at_cut(struct hb_session *s)
{
	u64 cut = hb_collect__cut(s->collect);

	if (cut < s->end)
		s->end = cut > s->begin ? cut : s->begin;
}

int hb_session__run(struct hb_session *s, const volatile int *stop, hb_progress_fn fn, void *arg,
		    struct hb_error *e)
{
	u64 resolve_until;
	int err = hb_pump__start(s, e), fatal;

	if (err)
		return err;
	s->stop = stop;
	hb_session__introduce(s);
	hb_session__describe(s);
	control(s, stop, fn, arg);
	s->end = hb_bpf__end_calls(s->bpf);
	hb_session__window_over(s);
	hb_bpf__clear_targets(s->bpf);
	hb_arrival__tick(s, true);
	detach(s);
	hb_pump__stop(s);
	hb_session_python__last_look(s);
	end_at_cut(s);
	hb_session_pyevents__account(s);
	hb_session_pytasks__account(s);
	resolve_until = hb_clock__now() + (*stop >= 2 ? 0 : RESOLVE_NS);
	hb_session__resolve_stacks(s, resolve_until);
	hb_session__account(s);
	report_progress(s, fn, arg);
	fatal = atomic_load(&s->pump_err);
	err = hb_window_writer__finish(s->writer, s->end, e);
	s->writer = NULL;
	if (fatal && fatal != -EFBIG)
		err = hb_error__set(e, HB_EXIT_FAILED, fatal,
				    "cannot write %s: %s; what was written is readable", s->path,
				    strerror(-fatal));
	return err;
}

const char *hb_session__path(const struct hb_session *s)
{
	return s->path;
}

const char *hb_session__ended_by(const struct hb_session *s)
{
	return s->ended_by;
}

void hb_session__free(struct hb_session *s)
{
	if (!s)
		return;
	detach(s);
	hb_pump__stop(s);
	if (s->writer)
		hb_window_writer__abort(s->writer);
	hb_collect__free(s->collect);
	hb_mmap_events__free(s->mmaps);
	hb_attach__free(s->attach);
	hb_session_pyevents__free(s);
	hb_bpf__free(s->bpf);
	hb_resolve__free(s->resolve);
	hb_plan__free(s->plan);
	hb_tables__free(s->tables);
	hb_target_lock__release(s->lock);
	for (u32 i = 0; i < s->n_procs; i++) {
		hb_process__free(s->procs[i].p);
		hb_python__free(s->procs[i].python);
	}
	hb_session_pyfields__free(s);
	hb_session_pycalls__free(s);
	hb_session_pytasks__free(s);
	hb_session_python__free(s);
	hb_map__free(s->by_pid);
	hb_fd_watch__free(s->fd_watch);
	if (s->queue_fd >= 0)
		close(s->queue_fd);
	free(s->procs);
	free(s->probed);
	free(s->queue);
	free(s->stacks);
	free(s->pids);
	free(s->path);
	free(s);
}
