/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/probes/probes.h"
#include "capture/probes/attach_link.h"
#include "base/clock.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Links to many places close in some 30 ms; single ones take 0.1 s each. */
#define TRIM_NS 5000000000ULL

struct entry { /* what is attached for one (process, file) */
	u32 pid;
	const struct hb_plan_file *file;
	int *fds;
	u32 n_fds, cap_fds;
	u32 n_returns; /* the first of the fds: return probes */
	u32 probes;
};

struct hb_attach {
	struct hb_attach_ops ops;
	struct entry *entries;
	u32 n, cap;
	struct hb_refusal *refusals;
	u32 n_refusals, cap_refusals;
	int trial_prog, trial_map; /* our own, -1: none */
};

/* The job of attaching one file in one process. */
struct job {
	struct hb_attach *a;
	struct entry *to;
	const struct hb_plan_file *file;
	const char *path; /* of an fd of ours: the target may unmap the file between two places */
	u32 pid;
	bool multi, ret;
	u64 *offsets, *cookies, *counters;
	bool counted; /* one of them has a counter */
	const struct hb_site **sites;
	bool *refused; /* by index into file->sites */
	u32 n;
	int err; /* the last error of a place */
};

struct hb_attach *hb_attach__new(const struct hb_attach_ops *ops)
{
	struct hb_attach *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->ops = *ops;
	a->trial_prog = a->trial_map = -1;
	return a;
}

struct hb_attach *hb_attach__new_trial(bool single, struct hb_error *e)
{
	bool multi = !single && hb_attach__has_multi();
	int map = -1, prog = hb_trial__load(multi, &map);
	struct hb_attach_ops ops = {.entry_multi = multi ? prog : -1,
				    .ret_multi = multi ? prog : -1,
				    .entry_single = prog,
				    .ret_single = prog};
	struct hb_attach *a;

	if (prog < 0) {
		hb_error__set(e, HB_EXIT_KERNEL, prog,
			      "cannot load a BPF program: %s; run as root, or with CAP_BPF and "
			      "CAP_PERFMON",
			      strerror(-prog));
		return NULL;
	}
	a = hb_attach__new(&ops);
	if (!a) {
		close(prog);
		close(map);
		hb_error__nomem(e, "links");
		return NULL;
	}
	a->trial_prog = prog;
	a->trial_map = map;
	return a;
}

static void *grown(void *array, u32 n, u32 *cap, size_t size)
{
	u32 want = *cap ? *cap * 2 : 8;
	void *p;

	if (n < *cap)
		return array;
	p = realloc(array, want * size);
	if (p)
		*cap = want;
	return p;
}

static struct entry *entry_find(const struct hb_attach *a, u32 pid, const struct hb_plan_file *f)
{
	for (u32 i = 0; i < a->n; i++)
		if (a->entries[i].pid == pid && a->entries[i].file == f)
			return &a->entries[i];
	return NULL;
}

static struct entry *entry_add(struct hb_attach *a, u32 pid, const struct hb_plan_file *f)
{
	struct entry *e = grown(a->entries, a->n, &a->cap, sizeof(*e));

	if (!e)
		return NULL;
	a->entries = e;
	e = &a->entries[a->n++];
	*e = (struct entry){.pid = pid, .file = f};
	return e;
}

static int entry_keep(struct entry *e, int fd)
{
	int *p = grown(e->fds, e->n_fds, &e->cap_fds, sizeof(*p));

	if (!p) {
		close(fd);
		return -ENOMEM;
	}
	e->fds = p;
	e->fds[e->n_fds++] = fd;
	return 0;
}

/* ---- refusals ---- */

static const char *why_refused(int err)
{
	switch (err) {
	case -ENOTSUP:
	case -524: /* the kernel's own ENOTSUPP */
		return "the kernel cannot step over the instruction there";
	case -EINVAL:
		return "no code of this file at that offset";
	case -EILSEQ:
	case -EEXIST:
		return "another tool has a breakpoint there";
	case -EMFILE:
	case -ENFILE:
		return "out of file descriptors: raise ulimit -n";
	default:
		return strerror(-err);
	}
}

static void refuse(struct hb_attach *a, const struct hb_site *s, const char *file, int err)
{
	struct hb_refusal *r = grown(a->refusals, a->n_refusals, &a->cap_refusals, sizeof(*r));

	if (!r)
		return;
	a->refusals = r;
	a->refusals[a->n_refusals++] =
	    (struct hb_refusal){strdup(file), strdup(s->symbol), strdup(why_refused(err))};
}

const struct hb_refusal *hb_attach__refusals(const struct hb_attach *a, u32 *n)
{
	*n = a->n_refusals;
	return a->refusals;
}

/* ---- attaching ---- */

/* Errors about the process or our rights, not about one place: trying the others is of no use. */
static bool is_global(int err)
{
	return err == -EPERM || err == -EACCES || err == -ESRCH || err == -ENOENT || err == -ENOMEM ||
	       err == -EBADF || err == -EMFILE || err == -ENFILE;
}

static int link_range(const struct job *j, u32 from, u32 n)
{
	const struct hb_attach_ops *o = &j->a->ops;
	struct hb_places at = {.offsets = j->offsets + from,
			       .cookies = j->cookies + from,
			       .counters = j->counted ? j->counters + from : NULL,
			       .n = n};

	if (j->multi && o->session)
		return hb_link__session(o->entry_multi, j->path, &at, j->pid);
	if (j->multi)
		return hb_link__multi(j->ret ? o->ret_multi : o->entry_multi, j->path, &at, j->ret, j->pid);
	return hb_link__single(j->ret ? o->ret_single : o->entry_single, j->path, &at, j->ret, j->pid);
}

/* Attaches places from..from+n. A link over many fails as a whole, so a failure is halved until the bad
 * places are alone and refused; the halves that worked stay as they are. */
static int attach_range(struct job *j, u32 from, u32 n)
{
	int err, fd = j->multi || n == 1 ? link_range(j, from, n) : -EAGAIN;

	if (fd >= 0)
		return entry_keep(j->to, fd);
	if (is_global(fd))
		return fd;
	if (n == 1) {
		refuse(j->a, j->sites[from], j->file->path, fd);
		j->refused[j->sites[from] - j->file->sites] = true;
		j->err = fd;
		return 0;
	}
	err = attach_range(j, from, n / 2);
	return err ? err : attach_range(j, from + n / 2, n - n / 2);
}

/* One pass over the sites: returns, or entries. */
static int attach_pass(struct job *j, bool ret)
{
	j->ret = ret;
	j->n = 0;
	for (u32 i = 0; i < j->file->n_sites; i++) {
		const struct hb_site *s = &j->file->sites[i];

		if (j->refused[i] || (ret && !s->ret))
			continue;
		j->offsets[j->n] = s->offset;
		j->cookies[j->n] = s->probe;
		j->counters[j->n] = s->counter;
		j->counted |= s->counter != 0;
		j->sites[j->n++] = s;
	}
	return j->n ? attach_range(j, 0, j->n) : 0;
}

static int say(const struct job *j, int err, struct hb_error *e)
{
	if (err == -EPERM || err == -EACCES)
		return hb_error__set(e, HB_EXIT_KERNEL, err,
				     "not allowed to probe %s in process %u: run as root, or with CAP_BPF, "
				     "CAP_PERFMON and CAP_SYS_PTRACE%s",
				     j->file->path, j->pid,
				     j->multi ? "" : " (and CAP_SYS_ADMIN: this kernel has no uprobe_multi)");
	if (err == -ESRCH)
		return hb_error__set(e, HB_EXIT_TARGET, err, "process %u has exited", j->pid);
	if (!j->multi && access("/sys/bus/event_source/devices/uprobe/type", R_OK))
		return hb_error__set(e, HB_EXIT_KERNEL, err,
				     "cannot probe %s in process %u: this kernel has no uprobes; it needs "
				     "CONFIG_UPROBE_EVENTS, and /sys/bus/event_source mounted",
				     j->file->path, j->pid);
	if (err == -EMFILE || err == -ENFILE)
		return hb_error__set(e, HB_EXIT_KERNEL, err, "cannot probe %s in process %u: %s",
				     j->file->path, j->pid, why_refused(err));
	return hb_error__set(e, HB_EXIT_KERNEL, err, "cannot probe %s in process %u: %s", j->file->path,
			     j->pid, strerror(-err));
}

/* Returns first: a call that enters between the two passes then returns unseen, instead of waiting for ever
 * for a return that no probe sees. A site whose return probe is refused gets no entry either. */
static int run(struct job *j)
{
	int err = j->multi && j->a->ops.session ? 0 : attach_pass(j, true);

	j->to->n_returns = j->to->n_fds;
	return err ? err : attach_pass(j, false);
}

/* Entries first: single uprobes go one by one, and an entry without its return waits for it for ever. */
static void entry_close(struct hb_attach *a, struct entry *e, u64 deadline)
{
	for (u32 i = 0, j = e->n_fds; i + 1 < j; i++) {
		int fd = e->fds[--j];

		e->fds[j] = e->fds[i];
		e->fds[i] = fd;
	}
	hb_fds__close(e->fds, e->n_fds, a->ops.entry_multi < 0, deadline);
	*e = a->entries[--a->n];
}

static u32 attached(const struct job *j)
{
	u32 n = 0;

	for (u32 i = 0; i < j->file->n_sites; i++)
		n += !j->refused[i];
	return n;
}

static int attach_at(struct job *j)
{
	u32 n = j->file->n_sites;
	int err = -ENOMEM;

	j->offsets = calloc(n, sizeof(*j->offsets));
	j->cookies = calloc(n, sizeof(*j->cookies));
	j->counters = calloc(n, sizeof(*j->counters));
	j->sites = calloc(n, sizeof(*j->sites));
	j->refused = calloc(n, sizeof(*j->refused));
	j->to = entry_add(j->a, j->pid, j->file);
	if (j->offsets && j->cookies && j->counters && j->sites && j->refused && j->to)
		err = run(j);
	if (!err && !attached(j))
		err = j->err;
	if (!err)
		err = (int)(j->to->probes = attached(j));
	else if (j->to) /* waits: at a next attempt a call would hit what is left of this one too */
		entry_close(j->a, j->to, err == -ESRCH ? 0 : hb_clock__now() + TRIM_NS);
	free(j->offsets);
	free(j->cookies);
	free(j->counters);
	free(j->sites);
	free(j->refused);
	return err;
}

int hb_attach__file(struct hb_attach *a, const struct hb_process *proc, const struct hb_mapping *m,
		    const struct hb_plan_file *f, struct hb_error *e)
{
	struct entry *to = entry_find(a, proc->pid, f);
	struct job j = {.a = a, .file = f, .pid = proc->pid, .multi = a->ops.entry_multi >= 0};
	char path[PATH_MAX];
	int fd, err;

	if (to || !f->n_sites)
		return to ? (int)to->probes : 0;
	err = hb_process__open_path(proc, m, path, sizeof(path));
	fd = err ? err : open(path, O_PATH | O_CLOEXEC);
	if (fd < 0) {
		err = err ? err : errno == ENOENT ? -ESRCH : -errno;
		return hb_error__set(e, HB_EXIT_TARGET, err, "cannot open %s of process %u: %s", f->path,
				     proc->pid, err == -ESRCH ? "it is not mapped any more" : strerror(-err));
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	j.path = path;
	err = attach_at(&j);
	close(fd);
	return err < 0 ? say(&j, err, e) : err;
}

bool hb_attach__has(const struct hb_attach *a, u32 pid, const struct hb_plan_file *f)
{
	return entry_find(a, pid, f) != NULL;
}

static bool among(const struct hb_plan_file *f, const struct hb_plan_file *const *files, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (files[i] == f)
			return true;
	return false;
}

/* Files of the arrival check are the caller's to drop. */
static bool chosen(struct hb_plan *p, u32 pid, const struct hb_plan_file *f)
{
	u32 n;
	const struct hb_plan_file *const *files = hb_plan__files_of(p, pid, &n);

	if (among(f, files, n))
		return true;
	files = hb_plan__check_files(p, pid, &n);
	return among(f, files, n);
}

/* Waits for the end of what is dropped: its functions are about to get other probes, and a call that hits
 * both would be recorded twice. */
void hb_attach__trim(struct hb_attach *a, struct hb_plan *p, const struct hb_process *proc)
{
	for (u32 i = a->n; i-- > 0;) {
		const struct hb_plan_file *f = a->entries[i].file;

		/* What is unmapped may be mapped again, and then its probes are wanted at once. */
		if (a->entries[i].pid == proc->pid && hb_plan_file__mapping(f, proc) &&
		    !chosen(p, proc->pid, f))
			entry_close(a, &a->entries[i], hb_clock__now() + TRIM_NS);
	}
}

int hb_attach__process(struct hb_attach *a, struct hb_plan *p, const struct hb_process *proc,
		       hb_attached_fn fn, void *arg, struct hb_error *e)
{
	const struct hb_plan_file *const *files;
	int total = 0, first = 0;
	u32 n;

	hb_attach__trim(a, p, proc);
	files = hb_plan__files_of(p, proc->pid, &n);
	for (u32 i = 0; i < n; i++) {
		const struct hb_mapping *m = hb_plan_file__mapping(files[i], proc);
		int got;

		if (!m || entry_find(a, proc->pid, files[i]))
			continue;
		got = hb_attach__file(a, proc, m, files[i], e);
		if (got < 0)
			first = first ? first : got;
		else if (got > 0 && fn)
			fn(files[i], got, arg);
		total += got > 0 ? got : 0;
	}
	return total || !first ? total : first;
}

/* ---- detaching ---- */

int hb_attach__drop(struct hb_attach *a, u32 pid, const struct hb_plan_file *f)
{
	struct entry *e = entry_find(a, pid, f);

	if (!e)
		return -ENOENT;
	entry_close(a, e, hb_clock__now() + 2000000000ULL);
	return 0;
}

int hb_attach__drop_returns(struct hb_attach *a, u32 pid, const struct hb_plan_file *f)
{
	struct entry *e = entry_find(a, pid, f);
	u32 n = e ? e->n_returns : 0;
	int *fds = n ? malloc(n * sizeof(*fds)) : NULL;

	if (!e)
		return -ENOENT;
	if (!fds)
		return n ? -ENOMEM : 0;
	memcpy(fds, e->fds, n * sizeof(*fds));
	e->n_fds -= n;
	e->n_returns = 0;
	memmove(e->fds, e->fds + n, e->n_fds * sizeof(*fds));
	hb_fds__close(fds, n, a->ops.entry_multi < 0, 0);
	return 0;
}

void hb_attach__forget(struct hb_attach *a, u32 pid)
{
	for (u32 i = a->n; i-- > 0;)
		if (a->entries[i].pid == pid)
			entry_close(a, &a->entries[i], 0);
}

u32 hb_attach__links(const struct hb_attach *a)
{
	u32 n = 0;

	for (u32 i = 0; i < a->n; i++)
		n += a->entries[i].n_fds;
	return n;
}

void hb_attach__detach(struct hb_attach *a, u64 deadline_ns)
{
	u32 n = 0, total = hb_attach__links(a);
	int *all = total ? malloc(total * sizeof(*all)) : NULL;

	if (total && !all) { /* one by one, in the background */
		while (a->n)
			entry_close(a, &a->entries[a->n - 1], 0);
		return;
	}
	for (u32 i = 0; i < a->n; i++) {
		struct entry *e = &a->entries[i];

		if (e->n_fds)
			memcpy(all + n, e->fds, e->n_fds * sizeof(*all));
		n += e->n_fds;
		free(e->fds);
	}
	a->n = 0;
	hb_fds__close(all, n, a->ops.entry_multi < 0, deadline_ns ? deadline_ns : 1);
}

void hb_attach__free(struct hb_attach *a)
{
	if (!a)
		return;
	hb_attach__detach(a, hb_clock__now() + 2000000000ULL);
	for (u32 i = 0; i < a->n_refusals; i++) {
		free(a->refusals[i].file);
		free(a->refusals[i].symbol);
		free(a->refusals[i].why);
	}
	if (a->trial_prog >= 0) {
		close(a->trial_prog);
		close(a->trial_map);
	}
	free(a->refusals);
	free(a->entries);
	free(a);
}

/* ---- accounts ---- */

int hb_probes__sum(int fd, u32 n, u64 *sums)
{
	int cpus = libbpf_num_possible_cpus();
	u64 *v = cpus > 0 ? calloc((size_t)cpus, sizeof(*v)) : NULL;
	int err = v ? 0 : -ENOMEM;

	for (u32 id = 0; !err && id <= n; id++) {
		sums[id] = 0;
		if (bpf_map_lookup_elem(fd, &id, v))
			err = -errno;
		for (int c = 0; !err && c < cpus; c++)
			sums[id] += v[c];
	}
	free(v);
	return err;
}

u64 hb_probes__open_calls(int fd)
{
	u64 sum = 0; /* wraps: the terms are signed */

	return hb_probes__sum(fd, 0, &sum) || (s64)sum < 0 ? 0 : sum;
}
