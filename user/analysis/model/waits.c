/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Time off the CPU: why, in which call, who ended it; and system calls when they were all recorded. */
#include "analysis/model/private.h"

const char *hb_reason__name(enum hb_reason r)
{
	static const char *const names[HB_OFF_COUNT] = {
	    [HB_OFF_SYSCALL] = "syscall",     [HB_OFF_LOCK] = "lock",	    [HB_OFF_FAULT] = "page fault",
	    [HB_OFF_PREEMPTED] = "preempted", [HB_OFF_STOPPED] = "stopped",
	};

	return r < HB_OFF_COUNT ? names[r] : "?";
}

static enum hb_reason reason_of(const struct hb_rec_offcpu *r)
{
	if (r->state == HB_TSTATE_RUNNING)
		return HB_OFF_PREEMPTED;
	if (r->state == HB_TSTATE_STOPPED || r->state == HB_TSTATE_TRACED)
		return HB_OFF_STOPPED;
	if (r->chankind == HB_CHAN_FUTEX)
		return HB_OFF_LOCK;
	return r->sysno == HB_SYSNO_NONE ? HB_OFF_FAULT : HB_OFF_SYSCALL;
}

/* In softirq and hardirq the running task is a bystander: it woke nobody. */
static bool names_waker(const struct hb_rec_offcpu *r)
{
	return r->waker && (r->wctx == HB_WCTX_TASK || r->wctx == HB_WCTX_OWN_SEND);
}

/* ---- the rows of a sleep ---- */

static struct hb_reason_stat *reason_row(struct hb_model *m, struct hb_proc_stat *p, enum hb_reason why)
{
	struct hb_reason_stat *s = hb_rows__get(&m->reasons, (u64)p->idx << 3 | why, NULL);

	if (s) {
		s->proc = p;
		s->reason = why;
	}
	return s;
}

/* Key: process woken 16 bits, reason 3, context 3, waker's call 16, waker 22 (the kernel's largest tid). */
static struct hb_waker_stat *waker_row(struct hb_model *m, struct hb_proc_stat *p,
				       const struct hb_rec_offcpu *r, enum hb_reason why)
{
	bool named = names_waker(r), fresh;
	u32 tid = named ? r->waker & 0x3fffff : 0;
	u16 sysno = named ? r->wsys : HB_SYSNO_NONE;
	u64 key =
	    (u64)(p->idx & 0xffff) << 44 | (u64)why << 41 | (u64)(r->wctx & 7) << 38 | (u64)sysno << 22 | tid;
	struct hb_waker_stat *s = hb_rows__get(&m->wakers, key, &fresh);

	if (s && fresh) {
		s->task = tid ? hb_window__task_by_tid(m->w, tid) : NULL;
		s->proc = tid ? hb_model__proc(m, r->waker_pid) : NULL;
		s->context = r->wctx;
		s->sysno = sysno;
	}
	return s;
}

static u32 sysno12(u16 sysno)
{
	return sysno < 0xfff ? sysno : 0xfff;
}

static struct hb_edge_stat *edge_row(struct hb_model *m, struct thread *t, struct hb_proc_stat *from,
				     const struct hb_rec_offcpu *r)
{
	struct hb_proc_stat *to = t->pub.proc;
	u64 key = (u64)(from->idx & 0xffff) << 44 | (u64)(to->idx & 0xffff) << 28 |
		  (u64)(r->chankind & 15) << 24 | sysno12(r->sysno) << 12 | sysno12(r->wsys);
	bool fresh;
	struct hb_edge_stat *s = hb_rows__get(&m->edges, key, &fresh);

	if (s && fresh) {
		s->from = from;
		s->to = to;
		s->chankind = r->chankind;
		s->sysno = r->sysno;
		s->wsys = r->wsys;
		s->waker = hb_window__task_by_tid(m->w, r->waker);
		s->wakee = t->pub.task;
	}
	return s;
}

static struct hb_sleep_stat *sleep_row(struct hb_model *m, struct hb_proc_stat *p,
				       const struct hb_rec_offcpu *r)
{
	u64 key = (u64)p->idx << 24 | (u64)r->sysno << 8 | r->chankind;
	struct hb_sleep_stat *s = hb_rows__get(&m->sleeps, key, NULL);

	if (s) {
		s->proc = p;
		s->sysno = r->sysno;
		s->chankind = r->chankind;
	}
	return s;
}

/* User addresses have 47 bits (57 with five page table levels, where two processes may share a row). */
static struct hb_lock_stat *lock_row(struct hb_model *m, struct hb_proc_stat *p, u64 addr)
{
	struct hb_lock_stat *s = hb_rows__get(&m->locks, (u64)p->idx << 48 ^ addr, NULL);

	if (s) {
		s->proc = p;
		s->addr = addr;
	}
	return s;
}

/* A process may become a traced one yet: as long as it is none, it is asked for each time. */
static bool add_edge(struct hb_model *m, struct thread *t, const struct hb_rec_offcpu *r, struct slept *k)
{
	struct hb_proc_stat *from = hb_model__proc(m, r->waker_pid);

	if (!from)
		return false;
	if (!from->traced || !t->pub.proc->traced) {
		k->how = 0;
		return true;
	}
	k->edge = edge_row(m, t, from, r);
	return k->edge;
}

static bool find_rows(struct hb_model *m, struct thread *t, const struct hb_rec_offcpu *r, enum hb_reason why,
		      struct slept *k)
{
	struct hb_proc_stat *p = t->pub.proc;
	bool slept = why == HB_OFF_SYSCALL || why == HB_OFF_LOCK;

	k->reason = reason_row(m, p, why);
	k->waker = why != HB_OFF_PREEMPTED ? waker_row(m, p, r, why) : NULL;
	k->sleep = slept && r->sysno != HB_SYSNO_NONE ? sleep_row(m, p, r) : NULL;
	return k->reason && (k->waker || why == HB_OFF_PREEMPTED) &&
	       (k->sleep || !slept || r->sysno == HB_SYSNO_NONE) && !m->oom &&
	       (!names_waker(r) || add_edge(m, t, r, k)) &&
	       (why != HB_OFF_LOCK || (k->lock = lock_row(m, p, r->chan)));
}

/* NULL: out of memory. */
static struct slept *slept_of(struct hb_model *m, struct thread *t, const struct hb_rec_offcpu *r)
{
	enum hb_reason why = reason_of(r);
	u64 who = (u64)r->waker_pid << 32 | r->waker;
	u64 how = (u64)(why + 1) << 48 | (u64)r->wctx << 40 | (u64)r->chankind << 32 | (u64)r->wsys << 16 |
		  r->sysno;
	struct slept *k = &t->slept[(r->waker ^ r->sysno ^ why) % SLEPT];

	if (k->how != how || k->who != who) {
		*k = (struct slept){.who = who, .how = how};
		return find_rows(m, t, r, why, k) ? k : NULL;
	}
	if (k->lock && k->lock->addr != r->chan)
		k->lock = lock_row(m, t->pub.proc, r->chan);
	return k->lock || why != HB_OFF_LOCK ? k : NULL;
}

/* ---- counting ---- */

/* What slept in a call is counted with the call; reasons have the sum of these. */
static int add_times(const struct slept *k, const struct hb_rec_offcpu *r)
{
	*(k->sleep ? &k->sleep->ready_ns : &k->reason->ready_ns) += r->ready;
	if (r->ready > k->reason->ready_max)
		k->reason->ready_max = r->ready;
	if (k->sleep && r->dur >= k->sleep->longest.dur)
		k->sleep->longest = *r;
	return hb_hist__add(k->sleep ? &k->sleep->dur : &k->reason->dur, r->dur);
}

void hb_model__offcpu(struct hb_model *m, struct thread *t, const struct hb_rec_offcpu *r)
{
	const struct slept *k = slept_of(m, t, r);

	if (!k || add_times(k, r)) {
		m->oom = true;
		return;
	}
	t->pub.sleeps++;
	t->pub.offcpu_ns += r->dur;
	t->pub.ready_ns += r->ready;
	if (k->waker) {
		k->waker->count++;
		k->waker->slept_ns += r->dur;
	}
	if (k->edge) {
		k->edge->count++;
		k->edge->slept_ns += r->dur;
		k->edge->ready_ns += r->ready;
	}
	if (k->lock) {
		k->lock->count++;
		k->lock->total_ns += r->dur;
		if (r->dur > k->lock->max_ns)
			k->lock->max_ns = r->dur;
	}
	if (r->stack)
		hb_model__add_stack(m, HB_USE_OFFCPU, t->pub.proc, r->stack, r->dur);
}

void hb_model__syscall(struct hb_model *m, struct thread *t, const struct hb_rec_syscall *r)
{
	struct hb_syscall_stat *s = hb_rows__get(&m->syscalls, (u64)t->pub.proc->idx << 16 | r->sysno, NULL);

	t->pub.syscalls++;
	if (!s || hb_hist__add(&s->dur, r->dur)) {
		m->oom = true;
		return;
	}
	s->proc = t->pub.proc;
	s->sysno = r->sysno;
	s->errors += r->ret < 0 && r->ret >= -4095;
}

static int cmp_sleeps(const void *a, const void *b)
{
	CMP_ROWS(hb_sleep_stat, x, y, a, b);

	BIGGER_FIRST(x->dur.total, y->dur.total);
	BIGGER_FIRST(x->dur.count, y->dur.count);
	BIGGER_FIRST(y->sysno, x->sysno);
	return 0;
}

static int cmp_locks(const void *a, const void *b)
{
	CMP_ROWS(hb_lock_stat, x, y, a, b);

	BIGGER_FIRST(x->total_ns, y->total_ns);
	BIGGER_FIRST(x->count, y->count);
	BIGGER_FIRST(y->addr, x->addr);
	return 0;
}

static int cmp_reasons(const void *a, const void *b)
{
	CMP_ROWS(hb_reason_stat, x, y, a, b);

	BIGGER_FIRST(x->dur.total, y->dur.total);
	BIGGER_FIRST(x->dur.count, y->dur.count);
	return (int)x->reason - (int)y->reason;
}

static int cmp_edges(const void *a, const void *b)
{
	CMP_ROWS(hb_edge_stat, x, y, a, b);

	BIGGER_FIRST(x->from != x->to, y->from != y->to);
	BIGGER_FIRST(x->count, y->count);
	BIGGER_FIRST(x->slept_ns, y->slept_ns);
	return 0;
}

static int cmp_syscalls(const void *a, const void *b)
{
	CMP_ROWS(hb_syscall_stat, x, y, a, b);

	BIGGER_FIRST(x->dur.total, y->dur.total);
	BIGGER_FIRST(x->dur.count, y->dur.count);
	return 0;
}

/* Insertion into a list of HB_TOP_WAKERS by time slept. */
static void rank_waker(struct hb_reason_stat *s, const struct hb_waker_stat *k)
{
	u32 i;

	if (s->n_wakers < HB_TOP_WAKERS)
		s->waker[s->n_wakers++] = NULL;
	else if (s->waker[HB_TOP_WAKERS - 1]->slept_ns >= k->slept_ns)
		return;
	for (i = s->n_wakers - 1; i > 0 && s->waker[i - 1]->slept_ns < k->slept_ns; i--)
		s->waker[i] = s->waker[i - 1];
	s->waker[i] = k;
}

static void sum_up(struct hb_model *m)
{
	for (u32 i = 0; i < m->sleeps.n; i++) {
		const struct hb_sleep_stat *s = m->sleeps.row[i];
		enum hb_reason why = s->chankind == HB_CHAN_FUTEX ? HB_OFF_LOCK : HB_OFF_SYSCALL;
		struct hb_reason_stat *to = reason_row(m, s->proc, why);

		if (!to || hb_hist__merge(&to->dur, &s->dur)) {
			m->oom = true;
			return;
		}
		to->ready_ns += s->ready_ns;
	}
	for (u32 i = 0; i < m->threads.n; i++) {
		const struct hb_thread_stat *t = m->threads.row[i];

		t->proc->offcpu_ns += t->offcpu_ns;
		t->proc->ready_ns += t->ready_ns;
	}
}

void hb_model__finish_waits(struct hb_model *m)
{
	size_t pos = 0;
	u64 key, at;

	sum_up(m);
	while (hb_map__next(m->wakers.map, &pos, &key, &at)) {
		struct hb_reason_stat *s = hb_rows__find(&m->reasons, (key >> 44) << 3 | ((key >> 41) & 7));

		if (s)
			rank_waker(s, (const struct hb_waker_stat *)(uintptr_t)at);
	}
	hb_rows__sort(&m->sleeps, cmp_sleeps);
	hb_rows__sort(&m->locks, cmp_locks);
	hb_rows__sort(&m->reasons, cmp_reasons);
	hb_rows__sort(&m->edges, cmp_edges);
	hb_rows__sort(&m->syscalls, cmp_syscalls);
}
