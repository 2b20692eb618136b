/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/collect/collect.h"
#include "base/map.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* By default: records taken from one ring before the next one gets its turn: a thread that never stops
 * calling must not starve the ring in which its child's fork waits. */
#define BATCH 32768

struct subscriber {
	hb_collect_fn fn;
	void *arg;
	struct subscriber *next;
};

struct ring {
	struct ring_buffer *rb;
	struct hb_collect *collect;
	unsigned stream, batch;
	u64 last_task; /* key of the task seen last: records of one thread come in runs */
	u64 last_stack;
	u16 last_idx;
};

/* Other threads that a record names (a waker, who ran instead): a TID member followed by its PID member. */
#define OTHERS 2
struct other {
	int tid_off, pid_off; /* -1: none */
};

struct hb_collect {
	struct hb_window_writer *writer;
	struct ring *rings;
	unsigned n_rings;
	int epoll_fd;
	const struct hb_type *types[HB_TYPE_MAX];
	struct other others[HB_TYPE_MAX][OTHERS];
	struct subscriber *subs[HB_TYPE_MAX];
	struct subscriber diverted[HB_WIRE_MESSAGES];
	struct ring *delivering; /* whose message is being delivered */
	hb_collect_stack_fn stack_fn;
	hb_collect_task_fn task_fn;
	void *stack_arg, *task_arg;
	struct hb_map *tasks;  /* pid << 32 | tid -> index + 1 */
	struct hb_map *stacks; /* pid << 32 | raw id -> 1 */
	u64 events;
	u64 cut; /* time of the earliest record that came after the file was full */
	unsigned batch;
	int err; /* sticky error of the writer */
};

static void count_loss(struct hb_collect *c, enum hb_loss cause, unsigned type, u32 cpu)
{
	struct hb_loss_row row = {.cause = cause, .type = type, .cpu = cpu, .count = 1};

	hb_window_writer__loss(c->writer, &row);
}

u16 hb_collect__task(struct hb_collect *c, u32 pid, u32 tid)
{
	u64 key = (u64)pid << 32 | tid;
	bool fresh;
	u64 *slot = hb_map__slot(c->tasks, key, &fresh);
	struct hb_task t = {.pid = pid, .tid = tid, .nspid = pid, .nstid = tid};

	if (!slot)
		return 0xffff;
	if (!fresh)
		return (u16)(*slot - 1);
	*slot = 0x10000; /* 0xffff + 1: what stays when the table is full */
	if (c->task_fn)
		c->task_fn(&t, c->task_arg);
	*slot = (u64)hb_window_writer__task(c->writer, &t) + 1;
	return (u16)(*slot - 1);
}

static void note_stack(struct hb_collect *c, struct ring *r, u32 pid, u32 raw)
{
	u64 key = (u64)pid << 32 | raw;
	bool fresh;

	if (!raw || key == r->last_stack)
		return;
	r->last_stack = key;
	if (hb_map__slot(c->stacks, key, &fresh) && fresh && c->stack_fn)
		c->stack_fn(pid, raw, c->stack_arg);
}

static void find_others(const struct hb_type *t, struct other *o)
{
	unsigned n = 0;

	for (unsigned i = 0; i < OTHERS; i++)
		o[i] = (struct other){-1, -1};
	for (unsigned i = 0; t && i + 1 < t->n_fields && n < OTHERS; i++)
		if (t->fields[i].role == HB_ROLE_TID && t->fields[i + 1].role == HB_ROLE_PID)
			o[n++] = (struct other){t->fields[i].offset, t->fields[i + 1].offset};
}

/* Threads outside the target never send a record themselves, yet a reader wants their names. */
static void note_others(struct hb_collect *c, const struct other *o, const void *payload)
{
	for (unsigned i = 0; i < OTHERS && o[i].tid_off >= 0; i++) {
		u32 tid, pid;

		memcpy(&tid, (const char *)payload + o[i].tid_off, sizeof(tid));
		memcpy(&pid, (const char *)payload + o[i].pid_off, sizeof(pid));
		if (tid)
			hb_collect__task(c, pid, tid);
	}
}

/* The roles say where stacks and wakers are; the type itself is never looked at. */
static void note_roles(struct hb_collect *c, struct ring *r, const struct hb_type *t, const struct hb_wire *w,
		       const void *payload)
{
	note_others(c, c->others[t->id], payload);
	for (int i = 0; i < 2; i++) {
		u32 raw;

		if (t->stack_offset[i] < 0)
			continue;
		memcpy(&raw, (const char *)payload + t->stack_offset[i], sizeof(raw));
		note_stack(c, r, w->pid, raw);
	}
}

static bool divert(struct hb_collect *c, struct ring *r, const struct hb_wire *w, const void *payload,
		   size_t size)
{
	unsigned i = w->type - HB_WIRE_FIRST;

	if (w->type < HB_WIRE_FIRST || i >= HB_WIRE_MESSAGES || !c->diverted[i].fn || size < w->bytes)
		return false;
	c->delivering = r;
	c->diverted[i].fn(w, payload, c->diverted[i].arg);
	c->delivering = NULL;
	return true;
}

static int take(struct ring *r, const struct hb_wire *w, const void *payload, size_t size)
{
	struct hb_collect *c = r->collect;
	const struct hb_type *t = w->type < HB_TYPE_MAX ? c->types[w->type] : NULL;
	u64 key = (u64)w->pid << 32 | w->tid;
	int err;

	if (divert(c, r, w, payload, size))
		return 0;
	if (!t || t->size > size) {
		count_loss(c, HB_LOSS_UNKNOWN_TYPE, 0, w->cpu);
		return 0;
	}
	for (const struct subscriber *s = c->subs[w->type]; s; s = s->next)
		s->fn(w, payload, s->arg);
	note_roles(c, r, t, w, payload);
	if (key != r->last_task) {
		r->last_idx = hb_collect__task(c, w->pid, w->tid);
		r->last_task = key;
	}
	if (r->last_idx == 0xffff) {
		count_loss(c, HB_LOSS_TASKS, w->type, w->cpu);
		return 0;
	}
	err = hb_window_writer__put(c->writer, r->stream, w->ts, r->last_idx, w->type, payload);
	if (err == -EFBIG) { /* no loss: the window ends before the first of these */
		c->err = err;
		c->cut = w->ts < c->cut ? w->ts : c->cut;
		return 0;
	}
	if (err) {
		c->err = err;
		count_loss(c, HB_LOSS_DISK, w->type, w->cpu);
		return 0;
	}
	c->events++;
	return 0;
}

static int on_sample(void *arg, void *data, size_t size)
{
	struct ring *r = arg;
	const struct hb_wire *w = data;

	if (size < sizeof(*w)) {
		count_loss(r->collect, HB_LOSS_UNKNOWN_TYPE, 0, UINT32_MAX);
		return 0;
	}
	take(r, w, w + 1, size - sizeof(*w));
	/* A negative answer makes libbpf stop after this record, which it has consumed. */
	return ++r->batch >= r->collect->batch ? -EAGAIN : 0;
}

static int add_ring(struct hb_collect *c, unsigned i, int fd, struct hb_error *e)
{
	struct ring *r = &c->rings[i];
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = i};

	r->collect = c;
	r->stream = i;
	if (fd < 0) /* the stream of our own records has no ring */
		return 0;
	r->rb = ring_buffer__new(fd, on_sample, r, NULL);
	if (!r->rb)
		return hb_error__set(e, HB_EXIT_KERNEL, -errno,
				     "cannot map ring buffer %u (%s); a smaller --buffer may help", i,
				     strerror(errno));
	if (epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &ev))
		return hb_error__set(e, HB_EXIT_KERNEL, -errno, "cannot wait on ring buffer %u: %s", i,
				     strerror(errno));
	return 0;
}

struct hb_collect *hb_collect__new(const struct hb_collect_opts *o, struct hb_error *e)
{
	struct hb_collect *c = calloc(1, sizeof(*c));
	int fd_err;

	if (!c) {
		hb_error__nomem(e, "the collector");
		return NULL;
	}
	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	fd_err = -errno;
	c->writer = o->writer;
	c->n_rings = o->n_rings;
	c->batch = o->batch ? o->batch : BATCH;
	c->cut = UINT64_MAX;
	c->rings = calloc(o->n_rings + 1, sizeof(*c->rings));
	c->tasks = hb_map__new();
	c->stacks = hb_map__new();
	if (c->epoll_fd < 0 || !c->rings || !c->tasks || !c->stacks) {
		hb_error__fds(e, "the collector", c->epoll_fd < 0 ? fd_err : -ENOMEM);
		goto fail;
	}
	for (unsigned id = 0; id < HB_TYPE_MAX; id++) {
		c->types[id] = hb_schema__type(id);
		find_others(c->types[id], c->others[id]);
	}
	for (unsigned i = 0; i <= c->n_rings; i++)
		if (add_ring(c, i, i < c->n_rings ? o->ring_fds[i] : -1, e))
			goto fail;
	return c;
fail:
	hb_collect__free(c);
	return NULL;
}

void hb_collect__close_rings(struct hb_collect *c)
{
	for (unsigned i = 0; c->rings && i < c->n_rings; i++) {
		ring_buffer__free(c->rings[i].rb);
		c->rings[i].rb = NULL;
	}
}

void hb_collect__free(struct hb_collect *c)
{
	if (!c)
		return;
	hb_collect__close_rings(c);
	for (unsigned id = 0; id < HB_TYPE_MAX; id++) {
		for (struct subscriber *s = c->subs[id], *next; s; s = next) {
			next = s->next;
			free(s);
		}
	}
	if (c->epoll_fd >= 0)
		close(c->epoll_fd);
	hb_map__free(c->tasks);
	hb_map__free(c->stacks);
	free(c->rings);
	free(c);
}

int hb_collect__subscribe(struct hb_collect *c, unsigned type, hb_collect_fn fn, void *arg)
{
	struct subscriber *s = type < HB_TYPE_MAX ? calloc(1, sizeof(*s)) : NULL;

	if (!s)
		return type < HB_TYPE_MAX ? -ENOMEM : -EINVAL;
	s->fn = fn;
	s->arg = arg;
	s->next = c->subs[type];
	c->subs[type] = s;
	return 0;
}

int hb_collect__divert(struct hb_collect *c, unsigned id, hb_collect_fn fn, void *arg)
{
	unsigned i = id - HB_WIRE_FIRST;

	if (id < HB_WIRE_FIRST || i >= HB_WIRE_MESSAGES)
		return -EINVAL;
	c->diverted[i].fn = fn;
	c->diverted[i].arg = arg;
	return 0;
}

void hb_collect__on_stack(struct hb_collect *c, hb_collect_stack_fn fn, void *arg)
{
	c->stack_fn = fn;
	c->stack_arg = arg;
}

void hb_collect__on_task(struct hb_collect *c, hb_collect_task_fn fn, void *arg)
{
	c->task_fn = fn;
	c->task_arg = arg;
}

int hb_collect__poll(struct hb_collect *c, int timeout_ms)
{
	struct epoll_event ev[8];
	u64 before = c->events;
	bool more;

	if (timeout_ms > 0)
		epoll_wait(c->epoll_fd, ev, 8, timeout_ms);
	do {
		more = false;
		for (unsigned i = 0; i < c->n_rings; i++) {
			struct ring *r = &c->rings[i];

			r->batch = 0;
			if (r->rb)
				ring_buffer__consume(r->rb);
			more |= r->batch >= c->batch;
		}
	} while (more && !c->err && c->events - before < 64ULL * BATCH);
	if (c->err)
		return c->err;
	return (int)(c->events - before);
}

static int put(struct hb_collect *c, struct ring *r, unsigned type, u32 pid, u32 tid, u64 ts,
	       const void *payload)
{
	const struct hb_type *t = type < HB_TYPE_MAX ? c->types[type] : NULL;
	struct hb_wire w = {.ts = ts, .pid = pid, .tid = tid, .type = (u16)type};

	if (!t)
		return -EINVAL;
	w.bytes = t->size;
	take(r, &w, payload, t->size);
	return c->err;
}

int hb_collect__emit(struct hb_collect *c, unsigned type, u32 pid, u32 tid, u64 ts, const void *payload)
{
	return put(c, &c->rings[c->n_rings], type, pid, tid, ts, payload);
}

int hb_collect__instead(struct hb_collect *c, unsigned type, u32 pid, u32 tid, u64 ts, const void *payload)
{
	return put(c, c->delivering ? c->delivering : &c->rings[c->n_rings], type, pid, tid, ts, payload);
}

u64 hb_collect__cut(const struct hb_collect *c)
{
	return c->cut;
}

u64 hb_collect__events(const struct hb_collect *c)
{
	return __atomic_load_n(&c->events, __ATOMIC_RELAXED);
}

int hb_collect__fd(const struct hb_collect *c)
{
	return c->epoll_fd;
}
