/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/session/bpf.h"
#include "base/clock.h"
#include "capture/session/bpf_programs.h"
#include "capture/session/kernel_knobs.h"
#include "capture/session/sampling.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "herschel.skel.h"

struct hb_bpf {
	struct herschel *skel;
	int ring_fds[HB_MAX_RINGS];
	unsigned n_rings;
	int n_cpus;		 /* possible ones: values of per-CPU maps */
	int stats_fd;		 /* keeps the kernel's run-time statistics on; -1: refused */
	struct bpf_link **links; /* event programs */
	unsigned n_links;
	u64 *percpu; /* scratch of n_cpus values */
};

/* libbpf's own words go to stderr only when asked for: our sentence comes first. The last one is kept, since
 * it is often the verifier's or the kernel's reason. */
static char last_words[512];

static int libbpf_words(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char line[512];

	if (level == LIBBPF_DEBUG)
		return 0;
	if (getenv("HB_LIBBPF")) { /* whole: the verifier's log is one message */
		va_list all;

		va_copy(all, ap);
		vfprintf(stderr, fmt, all);
		va_end(all);
	}
	vsnprintf(line, sizeof(line), fmt, ap);
	line[strcspn(line, "\n")] = 0;
	if (level == LIBBPF_WARN && !last_words[0])
		memcpy(last_words, line, sizeof(last_words));
	return 0;
}

static u64 pow2_floor(u64 v)
{
	u64 p = 4096;

	while (p * 2 <= v)
		p *= 2;
	return p;
}

/* 32 MiB over all rings holds a third of a second of a million events; each ring is mapped twice, so this is
 * also what keeps the collector's memory bounded on machines with many CPUs. */
static u64 ring_bytes(const struct hb_session_opts *o, unsigned n_rings)
{
	u64 each = o->buffer ? o->buffer : (32ULL << 20) / n_rings;

	if (!o->buffer && each < (512U << 10))
		each = 512U << 10;
	if (each > (1ULL << 30))
		each = 1ULL << 30;
	return pow2_floor(each);
}

/* Python stacks lie in the same table as native ones. Eight functions in one stack of their own is what deep
 * programs have; each takes a KiB. */
static u32 python_stacks(const struct hb_session_opts *o)
{
	return o->max_functions / 8 > HB_MAX_STACKS ? o->max_functions / 8 : HB_MAX_STACKS;
}

static void configure_python(struct hb_bpf *b, const struct hb_session_opts *o)
{
	bool on = o->python != HB_PYTHON_OFF;

	b->skel->rodata->hb_python = on;
	for (unsigned c = 0; c < HB_CLASS_COUNT && c < HB_MAX_CLASSES; c++)
		b->skel->rodata->hb_accel_every[c] = on ? o->stacks_every[c] : 0;
	bpf_map__set_max_entries(b->skel->maps.stacks, HB_MAX_STACKS + (on ? python_stacks(o) : 0));
	bpf_map__set_max_entries(b->skel->maps.stack_pairs, on ? python_stacks(o) : 1);
	bpf_map__set_max_entries(b->skel->maps.edge_stacks, on ? HB_MAX_EDGE_STACKS : 1);
	bpf_map__set_max_entries(b->skel->maps.py_processes, on ? HB_MAX_TARGETS : 1);
	if (!hb_session__wants_calls(o))
		bpf_map__set_max_entries(b->skel->maps.py_functions, 1);
	b->skel->rodata->hb_py_fields_on = o->n_fields > 0;
	if (!o->n_fields) {
		bpf_map__set_max_entries(b->skel->maps.py_field_codes, 1);
		bpf_map__set_max_entries(b->skel->maps.py_field_plans, 1);
	}
	b->skel->rodata->hb_gil = on;
	b->skel->rodata->hb_exceptions = on && o->exceptions != HB_EXCEPTIONS_OFF;
	b->skel->rodata->hb_messages = o->exceptions == HB_EXCEPTIONS_TEXT   ? HB_PY_MESSAGES_TEXT
				       : o->exceptions == HB_EXCEPTIONS_HASH ? HB_PY_MESSAGES_HASH
									     : HB_PY_MESSAGES_NONE;
	bpf_map__set_max_entries(b->skel->maps.py_events, on ? HB_MAX_TARGETS : 1);
	bpf_map__set_max_entries(b->skel->maps.py_raises,
				 on && o->exceptions != HB_EXCEPTIONS_OFF ? HB_PY_RAISES : 1);
}

static void configure(struct hb_bpf *b, const struct hb_session_opts *o, u64 bytes)
{
	bool multi = !o->single && hb_attach__has_multi();
	struct hb_kernel_knobs knobs;
	struct bpf_program *p;

	hb_kernel_knobs__read(&knobs);
	b->skel->bss->hb_calls_from = UINT64_MAX;
	b->skel->rodata->hb_preempt_off = knobs.preempt_off;
	b->skel->rodata->hb_preempt_hardirq = knobs.preempt_hardirq;
	b->skel->rodata->hb_switch_has_state = knobs.switch_has_state;
	b->skel->rodata->hb_sample_period = hb_sampling__period(o->freq ? o->freq : 1);

	configure_python(b, o);
	b->skel->rodata->hb_n_rings = b->n_rings;
	/* An eighth: late enough to save wake-ups, early enough that the reader gets there in time. */
	b->skel->rodata->hb_wake_bytes = bytes >= 32768 ? (u32)(bytes / 8) : 4096;
	bpf_object__for_each_program(p, b->skel->obj) hb_bpf_programs__configure(p, o, multi);
}

static int load_error(struct hb_error *e, int err)
{
	const char *remedy = "run `herschel-bpf doctor` for what is missing";

	/* The youngest of what all programs need; asked by loading one that uses it. */
	if (err == -EINVAL &&
	    libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_get_attach_cookie, NULL) == 0)
		return hb_error__set(
		    e, HB_EXIT_KERNEL, err,
		    "this kernel is too old: its BPF programs cannot tell one probe from another "
		    "(bpf_get_attach_cookie); herschel-bpf needs Linux 5.15 or newer");
	if (err == -EPERM || err == -EACCES)
		remedy = "run as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE";
	return hb_error__set(e, HB_EXIT_KERNEL, err, "the kernel refused the BPF programs: %s%s%s%s; %s",
			     strerror(-err), last_words[0] ? " (" : "", last_words, last_words[0] ? ")" : "",
			     remedy);
}

static int make_rings(struct hb_bpf *b, u64 bytes, struct hb_error *e)
{
	for (unsigned i = 0; i < b->n_rings; i++) {
		b->ring_fds[i] = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "hb_ring", 0, 0, (u32)bytes, NULL);
		if (b->ring_fds[i] < 0 && (errno == EPERM || errno == EACCES))
			return load_error(e, -errno);
		if (b->ring_fds[i] < 0)
			return hb_error__set(
			    e, HB_EXIT_KERNEL, -errno,
			    "cannot create a ring buffer of %llu KiB for CPU %u: %s; try a smaller --buffer",
			    (unsigned long long)bytes >> 10, i, strerror(errno));
	}
	return 0;
}

static int fill_outer(struct hb_bpf *b, struct hb_error *e)
{
	for (u32 i = 0; i < b->n_rings; i++)
		if (bpf_map_update_elem(bpf_map__fd(b->skel->maps.rings), &i, &b->ring_fds[i], BPF_ANY))
			return hb_error__set(e, HB_EXIT_KERNEL, -errno, "cannot install ring buffer %u: %s",
					     i, strerror(errno));
	return 0;
}

struct hb_bpf *hb_bpf__new(const struct hb_session_opts *o, struct hb_error *e)
{
	struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	struct hb_bpf *b = calloc(1, sizeof(*b));
	int err, cpus = libbpf_num_possible_cpus();
	u64 bytes;

	if (!b) {
		hb_error__nomem(e, "the BPF side");
		return NULL;
	}
	memset(b->ring_fds, -1, sizeof(b->ring_fds));
	b->stats_fd = -1;
	b->n_cpus = cpus > 0 ? cpus : 1;
	b->n_rings = b->n_cpus < HB_MAX_RINGS ? (unsigned)b->n_cpus : HB_MAX_RINGS;
	b->percpu = calloc((size_t)b->n_cpus, sizeof(u64));
	/* Kernels before 5.11 charge maps to this limit; where it is refused, later ones do not need it. */
	setrlimit(RLIMIT_MEMLOCK, &unlimited);
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	libbpf_set_print(libbpf_words);
	last_words[0] = 0;
	b->skel = herschel__open();
	if (!b->skel || !b->percpu) {
		hb_error__set(e, HB_EXIT_KERNEL, -errno, "cannot open the BPF object: %s", strerror(errno));
		goto fail;
	}
	bytes = ring_bytes(o, b->n_rings);
	configure(b, o, bytes);
	if (make_rings(b, bytes, e))
		goto fail;
	if (bpf_map__set_inner_map_fd(b->skel->maps.rings, b->ring_fds[0]) && errno != EINVAL) {
		load_error(e, -errno);
		goto fail;
	}
	err = herschel__load(b->skel);
	if (err) {
		load_error(e, err);
		goto fail;
	}
	if (fill_outer(b, e))
		goto fail;
	b->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	return b;
fail:
	hb_bpf__free(b);
	return NULL;
}

void hb_bpf__free(struct hb_bpf *b)
{
	if (!b)
		return;
	hb_bpf__detach_events(b);
	herschel__destroy(b->skel);
	for (unsigned i = 0; i < b->n_rings; i++)
		if (b->ring_fds[i] >= 0)
			close(b->ring_fds[i]);
	if (b->stats_fd >= 0)
		close(b->stats_fd);
	free(b->percpu);
	free(b);
}

const int *hb_bpf__rings(const struct hb_bpf *b, unsigned *n)
{
	*n = b->n_rings;
	return b->ring_fds;
}

static int prog_fd(const struct hb_bpf *b, const char *name)
{
	struct bpf_program *p = bpf_object__find_program_by_name(b->skel->obj, name);
	int fd = p ? bpf_program__fd(p) : -1;

	return fd < 0 ? -1 : fd;
}

struct hb_attach_ops hb_bpf__uprobes(const struct hb_bpf *b)
{
	return (struct hb_attach_ops){
	    .entry_multi = prog_fd(b, HB_PROG_ENTRY_MULTI),
	    .ret_multi = prog_fd(b, HB_PROG_RETURN_MULTI),
	    .entry_single = prog_fd(b, HB_PROG_ENTRY_SINGLE),
	    .ret_single = prog_fd(b, HB_PROG_RETURN_SINGLE),
	};
}

struct hb_attach_ops hb_bpf__python_calls(const struct hb_bpf *b)
{
	int session = prog_fd(b, HB_PROG_PYCALL_SESSION);

	return (struct hb_attach_ops){
	    .session = session >= 0,
	    .entry_multi = session >= 0 ? session : prog_fd(b, HB_PROG_PYCALL_ENTRY_MULTI),
	    .ret_multi = prog_fd(b, HB_PROG_PYCALL_RETURN_MULTI),
	    .entry_single = prog_fd(b, HB_PROG_PYCALL_ENTRY_SINGLE),
	    .ret_single = prog_fd(b, HB_PROG_PYCALL_RETURN_SINGLE),
	};
}

int hb_bpf__set_call_site(struct hb_bpf *b, u32 cookie, const struct hb_py_call_site *site)
{
	return bpf_map_update_elem(bpf_map__fd(b->skel->maps.py_call_sites), &cookie, site, BPF_ANY) ? -errno
												     : 0;
}

void hb_bpf__judge(struct hb_bpf *b, u32 pid, u64 code, const struct hb_py_function *f)
{
	struct hb_py_function_key key = {.code = code, .pid = pid};

	if (f->mark)
		bpf_map_update_elem(bpf_map__fd(b->skel->maps.py_functions), &key, f, BPF_ANY);
}

int hb_bpf__set_fields(struct hb_bpf *b, u32 pid, u64 code, const struct hb_py_field_code *c)
{
	struct hb_py_code_key key = {.code = code, .tgid = pid};
	struct hb_py_field_code value = *c;

	value.code = code;
	return bpf_map_update_elem(bpf_map__fd(b->skel->maps.py_field_codes), &key, &value, BPF_ANY) ? -errno
												     : 0;
}

int hb_bpf__plan_field(struct hb_bpf *b, u32 pid, u64 type, u32 step, const struct hb_py_plan *p)
{
	struct hb_py_plan_key key = {.type = type, .tgid = pid, .step = step};

	return bpf_map_update_elem(bpf_map__fd(b->skel->maps.py_field_plans), &key, p, BPF_ANY) ? -errno : 0;
}

/* Entries of a map whose key has the pid at this place. */
static void forget(int fd, size_t size, size_t pid_at, u32 max, u32 pid)
{
	char key[32], next[32];
	u32 of;
	int err = bpf_map_get_next_key(fd, NULL, next);

	for (u32 i = 0; !err && i < 2 * max && size <= sizeof(key); i++) {
		memcpy(key, next, size);
		err = bpf_map_get_next_key(fd, key, next);
		memcpy(&of, key + pid_at, sizeof(of));
		if (of == pid)
			bpf_map_delete_elem(fd, key);
	}
}

void hb_bpf__forget_fields(struct hb_bpf *b, u32 pid)
{
	forget(bpf_map__fd(b->skel->maps.py_field_codes), sizeof(struct hb_py_code_key),
	       offsetof(struct hb_py_code_key, tgid), HB_PY_FIELD_CODES, pid);
	forget(bpf_map__fd(b->skel->maps.py_field_plans), sizeof(struct hb_py_plan_key),
	       offsetof(struct hb_py_plan_key, tgid), HB_PY_FIELD_PLANS, pid);
}

u64 hb_bpf__open_python_calls(const struct hb_bpf *b)
{
	return hb_probes__open_calls(bpf_map__fd(b->skel->maps.open_pycalls));
}

struct hb_attach_ops hb_bpf__py_events(const struct hb_bpf *b)
{
	return (struct hb_attach_ops){
	    .entry_multi = prog_fd(b, HB_PROG_PY_EVENT_MULTI),
	    .ret_multi = prog_fd(b, HB_PROG_PY_EVENT_END_MULTI),
	    .entry_single = prog_fd(b, HB_PROG_PY_EVENT),
	    .ret_single = prog_fd(b, HB_PROG_PY_EVENT_END),
	};
}

int hb_bpf__sample_prog(const struct hb_bpf *b)
{
	return prog_fd(b, HB_PROG_SAMPLE);
}

int hb_bpf__load_probes(struct hb_bpf *b, const struct hb_plan *p, u32 first, struct hb_error *e)
{
	for (u32 id = first; id <= hb_plan__n_probes(p); id++)
		if (bpf_map_update_elem(bpf_map__fd(b->skel->maps.probes), &id, hb_plan__desc(p, id),
					BPF_ANY))
			return hb_error__set(e, HB_EXIT_KERNEL, -errno,
					     "cannot describe probe %u to the kernel: %s", id,
					     strerror(errno));
	return 0;
}

int hb_bpf__add_target(struct hb_bpf *b, u32 pid, const struct hb_target_cfg *cfg)
{
	return bpf_map_update_elem(bpf_map__fd(b->skel->maps.targets), &pid, cfg, BPF_ANY) ? -errno : 0;
}

int hb_bpf__set_python(struct hb_bpf *b, u32 pid, const struct hb_py_process *cfg)
{
	int fd = bpf_map__fd(b->skel->maps.py_processes);

	return bpf_map_update_elem(fd, &pid, cfg, BPF_ANY) ? -errno : 0;
}

void hb_bpf__mark_python(struct hb_bpf *b, u32 pid, u16 frames)
{
	int fd = bpf_map__fd(b->skel->maps.py_processes);
	struct hb_py_process p;

	if (bpf_map_lookup_elem(fd, &pid, &p))
		return;
	for (u32 i = 0; i < HB_PY_RUNTIMES; i++)
		p.runtime[i].marked = frames;
	bpf_map_update_elem(fd, &pid, &p, BPF_EXIST);
}

int hb_bpf__set_py_events(struct hb_bpf *b, u32 pid, const struct hb_py_events *e)
{
	return bpf_map_update_elem(bpf_map__fd(b->skel->maps.py_events), &pid, e, BPF_ANY) ? -errno : 0;
}

void hb_bpf__each_raise(const struct hb_bpf *b,
			void (*fn)(const struct hb_py_raise_key *k, const struct hb_py_raise_count *c,
				   void *arg),
			void *arg)
{
	int fd = bpf_map__fd(b->skel->maps.py_raises);
	struct hb_py_raise_key key, *last = NULL;
	struct hb_py_raise_count count;

	while (bpf_map_get_next_key(fd, last, &key) == 0) {
		if (!bpf_map_lookup_elem(fd, &key, &count))
			fn(&key, &count, arg);
		last = &key;
	}
}

/* Ids as the kernel's side makes them (hb_stack__intern, hb_stack__join). */
int hb_bpf__edge_stack(struct hb_bpf *b, u32 pid, u64 thread, const struct hb_stack_trace *t)
{
	struct hb_py_thread key = {.pointer = thread, .tgid = pid};
	u32 python = (t->hash >> 32) & ~HB_STACK_PAIR, id;
	struct hb_stack_pair pair = {0};
	struct hb_stack_trace there;

	python = python ? python : 1;
	pair.python = python;
	id = (u32)((u64)python * 0xff51afd7ed558ccdULL >> 32) | HB_STACK_PAIR;
	if (bpf_map_update_elem(bpf_map__fd(b->skel->maps.stacks), &python, t, BPF_NOEXIST) &&
	    (!hb_bpf__trace(b, python, &there) || there.hash != t->hash))
		return -ENOSPC;
	if (bpf_map_update_elem(bpf_map__fd(b->skel->maps.stack_pairs), &id, &pair, BPF_NOEXIST) &&
	    errno != EEXIST)
		return -errno;
	return bpf_map_update_elem(bpf_map__fd(b->skel->maps.edge_stacks), &key, &id, BPF_ANY) ? -errno : 0;
}

/* All CPUs see a word within this time of its being written. */
#define AHEAD_NS 100000ULL

/* Writes a moment that is still to come when it has been written, and waits for it. */
static u64 agree(volatile u64 *word)
{
	u64 at;

	do {
		at = hb_clock__now() + AHEAD_NS;
		__atomic_store_n(word, at, __ATOMIC_SEQ_CST);
	} while (hb_clock__now() >= at);
	while (hb_clock__now() < at)
		usleep(AHEAD_NS / 2000);
	return at;
}

/* Runs window_edge over all tasks: sleeps that lie across an edge of the window. Without it (no iterators)
 * they are missing, as they would be anyway. */
static void walk_tasks(struct hb_bpf *b, bool end)
{
	struct bpf_program *p = bpf_object__find_program_by_name(b->skel->obj, HB_PROG_EDGE);
	struct bpf_link *link = p && bpf_program__autoload(p) ? bpf_program__attach_iter(p, NULL) : NULL;
	int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
	char nothing[64];

	b->skel->bss->hb_edge_end = end;
	while (fd >= 0 && read(fd, nothing, sizeof(nothing)) > 0)
		;
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
}

u64 hb_bpf__begin_calls(struct hb_bpf *b)
{
	u64 begin = agree(&b->skel->bss->hb_calls_from);

	walk_tasks(b, false);
	return begin;
}

u64 hb_bpf__end_calls(struct hb_bpf *b)
{
	u64 end = agree(&b->skel->data->hb_calls_until);

	walk_tasks(b, true);
	return end;
}

void hb_bpf__clear_targets(struct hb_bpf *b)
{
	int fd = bpf_map__fd(b->skel->maps.targets);
	u32 key;

	/* A fork between two steps may add one more: bounded by the size of the map, not by luck. */
	for (unsigned i = 0; i < 2 * HB_MAX_TARGETS && !bpf_map_get_next_key(fd, NULL, &key); i++)
		bpf_map_delete_elem(fd, &key);
}

int hb_bpf__attach_events(struct hb_bpf *b, struct hb_error *e)
{
	struct bpf_program *p;
	unsigned n = 0;

	bpf_object__for_each_program(p, b->skel->obj) n++;
	b->links = calloc(n, sizeof(struct bpf_link *));
	if (!b->links)
		return hb_error__nomem(e, "program links");
	bpf_object__for_each_program(p, b->skel->obj)
	{
		struct bpf_link *l;

		if (!bpf_program__autoload(p) || !hb_bpf_programs__is_event(p))
			continue;
		l = bpf_program__attach(p);
		if (!l)
			return hb_error__set(e, HB_EXIT_KERNEL, -errno,
					     "cannot attach %s: %s; run `herschel-bpf doctor`",
					     bpf_program__name(p), strerror(errno));
		b->links[b->n_links++] = l;
	}
	return 0;
}

void hb_bpf__detach_events(struct hb_bpf *b)
{
	for (unsigned i = 0; i < b->n_links; i++)
		bpf_link__destroy(b->links[i]);
	b->n_links = 0;
	free(b->links);
	b->links = NULL;
}

static u64 percpu_sum(const struct hb_bpf *b, const struct bpf_map *m, u32 key)
{
	u64 sum = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(m), &key, b->percpu))
		return 0;
	for (int i = 0; i < b->n_cpus; i++)
		sum += b->percpu[i];
	return sum;
}

void hb_bpf__sums(const struct hb_bpf *b, u32 n, u64 *hits, u64 *inner)
{
	hb_probes__sum(bpf_map__fd(b->skel->maps.hits), n, hits);
	hb_probes__sum(bpf_map__fd(b->skel->maps.inner), n, inner);
}

void hb_bpf__silent(const struct hb_bpf *b, u32 n, u64 *silent)
{
	hb_probes__sum(bpf_map__fd(b->skel->maps.silent), n, silent);
}

u64 hb_bpf__open_calls(const struct hb_bpf *b)
{
	return hb_probes__open_calls(bpf_map__fd(b->skel->maps.open_calls));
}

u64 hb_bpf__open_syscalls(const struct hb_bpf *b)
{
	return hb_probes__open_calls(bpf_map__fd(b->skel->maps.open_syscalls));
}

u64 hb_bpf__ring_losses(const struct hb_bpf *b)
{
	size_t n;
	const struct hb_type *t = hb_schema__types(&n);
	u64 sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += percpu_sum(b, b->skel->maps.losses, HB_LOSS_KEY(HB_LOSS_RING_FULL, t[i].id));
	return sum;
}

void hb_bpf__each_loss(const struct hb_bpf *b, void (*fn)(const struct hb_loss_row *row, void *arg),
		       void *arg)
{
	for (u32 key = 0; key < HB_LOSS_KEYS; key++) {
		if (bpf_map_lookup_elem(bpf_map__fd(b->skel->maps.losses), &key, b->percpu))
			continue;
		for (int cpu = 0; cpu < b->n_cpus; cpu++) {
			struct hb_loss_row row = {.cause = key / HB_TYPE_MAX,
						  .type = key % HB_TYPE_MAX,
						  .cpu = (u32)cpu,
						  .count = b->percpu[cpu]};

			if (row.count)
				fn(&row, arg);
		}
	}
}

bool hb_bpf__trace(const struct hb_bpf *b, u32 id, struct hb_stack_trace *out)
{
	return id && !bpf_map_lookup_elem(bpf_map__fd(b->skel->maps.stacks), &id, out) &&
	       out->n <= HB_STACK_DEPTH;
}

bool hb_bpf__pair(const struct hb_bpf *b, u32 raw, struct hb_stack_pair *out)
{
	return (raw & HB_STACK_PAIR) &&
	       !bpf_map_lookup_elem(bpf_map__fd(b->skel->maps.stack_pairs), &raw, out);
}

u32 hb_bpf__stack(const struct hb_bpf *b, u32 raw, u64 addr[HB_STACK_DEPTH])
{
	struct hb_stack_trace t;

	if (!hb_bpf__trace(b, raw, &t))
		return 0;
	memcpy(addr, t.ip, t.n * sizeof(u64));
	return t.n;
}

void hb_bpf__each_cost(const struct hb_bpf *b,
		       void (*fn)(const char *name, u64 runs, u64 ns, u64 missed, void *arg), void *arg)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, b->skel->obj)
	{
		struct bpf_prog_info info = {0};
		u32 size = sizeof(info);

		if (!bpf_program__autoload(p) || bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &size))
			continue;
		fn(bpf_program__name(p), info.run_cnt, info.run_time_ns, info.recursion_misses, arg);
	}
}
