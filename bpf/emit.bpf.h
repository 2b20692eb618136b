/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a program says something: filter, reserve, fill, submit; what cannot be said is counted.
 *
 *	if (!hb_target__is(tgid))
 *		return 0;
 *	struct hb_rec_exit *r = HB_RESERVE(exit);
 *	if (!r)
 *		return 0;		(already counted as ring_full)
 *	r->code = ...;			(every member: the memory is not zeroed)
 *	HB_SUBMIT(r);
 */
#ifndef HB_EMIT_BPF_H
#define HB_EMIT_BPF_H

#include "maps.bpf.h"

/* `by` more losses of this cause on this CPU. Atomic although the array is per CPU: uprobe programs can be
 * preempted by others on the same CPU, and recorded plus lost must equal what happened. */
static __always_inline void hb_lose_many(u32 cause, u32 type, u64 by)
{
	u32 key = HB_LOSS_KEY(cause, type);
	u64 *n = bpf_map_lookup_elem(&losses, &key);

	if (n)
		__sync_fetch_and_add(n, by);
}

static __always_inline void hb_lose(u32 cause, u32 type)
{
	hb_lose_many(cause, type, 1);
}

static __always_inline struct hb_target_cfg *hb_target__find(u32 tgid)
{
	return bpf_map_lookup_elem(&targets, &tgid);
}

static __always_inline bool hb_target__is(u32 tgid)
{
	return hb_target__find(tgid) != NULL;
}

/* True when a multiple of hb_wake_bytes lies among the `size` bytes just reserved. An edge, not a level: past
 * the threshold every record would otherwise raise an interrupt until the reader has caught up. An edge
 * cannot be lost, the reader's epoll remembers it; the reader's timeout collects what stays below. */
static __always_inline bool hb_ring__crossed(void *ring, u32 size)
{
	u64 after = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA);
	u64 before = after - size;

	return ((after ^ before) & ~((u64)hb_wake_bytes - 1)) != 0;
}

static __always_inline void *hb_ring__reserve(u32 idx, u32 size)
{
	void *ring = bpf_map_lookup_elem(&rings, &idx);
	struct hb_wire *w;

	if (!ring)
		return NULL;
	w = bpf_ringbuf_reserve(ring, size, 0);
	if (!w)
		return NULL;
	/* Nobody reads the record before submit: until then `flags` carries the decision, submit puts the 0.
	 * The kernel's own header of a record is 8 bytes. */
	w->flags = hb_ring__crossed(ring, size + 8);
	return w;
}

/* The ring of this CPU, then its neighbour: a burst on one CPU may use the room of another. */
static __always_inline void *hb_reserve_at(u32 type, u32 size, u32 pid, u32 tid, u64 ts)
{
	u32 cpu = bpf_get_smp_processor_id(), n = hb_n_rings, idx = cpu % n;
	struct hb_wire *w = hb_ring__reserve(idx, sizeof(*w) + size);

	if (!w && n > 1)
		w = hb_ring__reserve((idx + 1) % n, sizeof(*w) + size);
	if (!w) {
		if (type < HB_WIRE_FIRST) /* else no record: what such a message announces is read later */
			hb_lose(HB_LOSS_RING_FULL, type);
		return NULL;
	}
	w->ts = ts;
	w->pid = pid;
	w->tid = tid;
	w->type = type;
	w->bytes = size;
	w->cpu = cpu;
	return w + 1;
}

static __always_inline void *hb_reserve(u32 type, u32 size, u32 pid, u32 tid)
{
	return hb_reserve_at(type, size, pid, tid, bpf_ktime_get_ns());
}

static __always_inline void *hb_reserve_current(u32 type, u32 size)
{
	u64 id = bpf_get_current_pid_tgid();

	return hb_reserve(type, size, id >> 32, id);
}

static __always_inline void hb_submit(void *payload)
{
	struct hb_wire *w = (struct hb_wire *)payload - 1;
	u64 flags = w->flags ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;

	w->flags = 0;
	bpf_ringbuf_submit(w, flags);
}

/* struct hb_rec_NAME * or NULL (counted): a record about the current thread, or about another one. Its time
 * is now; `hb_wire_of(r)->ts` may be set to an earlier moment. Test it for NULL at once: with anything
 * between, the compiler leaves that test apart from the one in hb_reserve_at(), and verifiers up to 6.1,
 * which do not know that a reserved record is never NULL, then see a way on which it is not submitted. */
#define HB_RESERVE(name)                                                                                     \
	((struct hb_rec_##name *)hb_reserve_current(HB_TYPE_##name, sizeof(struct hb_rec_##name)))
#define HB_RESERVE_FOR(name, pid, tid)                                                                       \
	((struct hb_rec_##name *)hb_reserve(HB_TYPE_##name, sizeof(struct hb_rec_##name), pid, tid))
#define HB_SUBMIT(r)  hb_submit(r)
#define HB_DISCARD(r) bpf_ringbuf_discard((struct hb_wire *)(r)-1, BPF_RB_NO_WAKEUP)

static __always_inline struct hb_wire *hb_wire_of(void *payload)
{
	return (struct hb_wire *)payload - 1;
}

/* Index into stack_scratch. A call (uprobe, system call) may be preempted by one on another thread of the
 * same CPU: `busy` tells, and the second goes without a stack. */
enum hb_stack_ctx { HB_STACK_SWITCH, HB_STACK_SAMPLE, HB_STACK_CALL };

static __always_inline u64 hb_stack__hash(const struct hb_stack_trace *t)
{
	u64 h = 0x9e3779b97f4a7c15ULL ^ t->n;
	u32 i;

	for (i = 0; i < HB_STACK_DEPTH; i++) {
		if (i >= t->n)
			break;
		h ^= t->ip[i];
		h *= 0xff51afd7ed558ccdULL;
		h ^= h >> 32;
	}
	return h;
}

/* Id of the stack in the table by its hash, put there when it is new; 0 when there is no room or another
 * stack has this id. */
static __always_inline u32 hb_stack__intern(struct hb_stack_trace *t, bool *fresh)
{
	struct hb_stack_trace *old;
	u32 id;

	*fresh = false;
	/* The high half: to the low one of a product the high half of the last frame makes no difference, and
	 * walks of code without frame pointers end in words that differ just there. */
	id = (t->hash >> 32) & ~HB_STACK_PAIR;
	id = id ? id : 1;
	old = bpf_map_lookup_elem(&stacks, &id);
	if (!old) {
		if (bpf_map_update_elem(&stacks, &id, t, BPF_NOEXIST) == 0) {
			*fresh = true;
			return id;
		}
		old = bpf_map_lookup_elem(&stacks, &id); /* another CPU was first, or the table is full */
	}
	return old && old->hash == t->hash ? id : 0;
}

/* Native stack of the current thread for a STACK member (hb_stack__pair adds Python's); 0 when there is none.
 * Counted against the record type when
 * it could not be kept or user memory could not be read. */
static __always_inline u32 hb_stack__take(void *ctx, u32 type, u64 flags, enum hb_stack_ctx where)
{
	u32 key = where, id = 0;
	struct hb_stack_scratch *s = bpf_map_lookup_elem(&stack_scratch, &key);
	bool fresh;
	long size;

	if (!s || __sync_lock_test_and_set(&s->busy, 1)) {
		hb_lose(HB_LOSS_STACK_FULL, type);
		return 0;
	}
	size = bpf_get_stack(ctx, s->trace.ip, sizeof(s->trace.ip), flags);
	if (size > 0) {
		s->trace.n = (u32)size / sizeof(u64);
		s->trace.state = HB_TRACE_WHOLE;
		s->trace.hash = hb_stack__hash(&s->trace);
		id = hb_stack__intern(&s->trace, &fresh);
	}
	s->busy = 0;
	/* -EFAULT or nothing: no frames (a kernel thread, no user registers). */
	if (!id)
		hb_lose(size > 0 ? HB_LOSS_STACK_FULL : HB_LOSS_STACK_NONE, type);
	return id;
}

#endif
