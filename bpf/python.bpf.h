/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The Python stack of the current thread. What CPython looks like in memory is told by user space
 * (schema/python.h); here its frames are followed, whoever holds the GIL: the thread state is found through
 * the thread's own memory, where it stays while a call blocks without the GIL.
 *
 * Everything read is the target's and may be anything: the number of steps is fixed, reads that fail end the
 * walk, and addresses are only ever given to the function that reads user memory.
 */
#ifndef HB_PYTHON_BPF_H
#define HB_PYTHON_BPF_H

#include "emit.bpf.h"

/* --python; off: the code below is dead and is taken out at load. */
const volatile bool hb_python SEC(".rodata") __weak = false;

static __always_inline bool py_read(u64 *to, u64 at)
{
	*to = 0;
	return bpf_probe_read_user(to, sizeof(*to), (void *)at) == 0;
}

static __always_inline u64 py_thread_pointer_of(struct task_struct *t)
{
#if defined(__TARGET_ARCH_x86)
	return BPF_CORE_READ(t, thread.fsbase);
#elif defined(__TARGET_ARCH_arm64)
	return BPF_CORE_READ(t, thread.uw.tp_value);
#endif
}

static __always_inline u64 py_thread_pointer(void)
{
	return py_thread_pointer_of(bpf_get_current_task_btf());
}

/* The thread state; 0 for a thread that has none, or when what lies there is not one of this thread. */
static __always_inline u64 py_thread_state(const struct hb_py_walk *w)
{
	u64 self = py_thread_pointer(), ts, id;

	if (!self || !py_read(&ts, self + (s64)w->slot) || !ts)
		return 0;
	if (w->slot_inner >= 0 && (!py_read(&ts, ts + w->slot_inner) || !ts))
		return 0;
	if (!py_read(&id, ts + w->thread_id) || id != self)
		return 0;
	return ts;
}

static __always_inline bool py_innermost(const struct hb_py_walk *w, u64 ts, u64 *frame)
{
	if (!py_read(frame, ts + w->frame))
		return false;
	return w->frame_inner < 0 || !*frame || py_read(frame, *frame + w->frame_inner);
}

static __always_inline u64 py_word(const struct hb_stack_scratch *s, u16 off)
{
	u64 i = s->base + (off >> 3);

	asm volatile("" : "+r"(i)); /* else the mask is left out where it is known to be right */
	return s->window[i & (HB_PY_WINDOW / 8 - 1)];
}

static __always_inline u8 py_byte(const struct hb_stack_scratch *s, u16 off)
{
	return py_word(s, off) >> (off & 7) * 8;
}

/* Where in its code the frame under way is, in units of 2 bytes. */
static __always_inline u64 py_at2(const struct hb_stack_scratch *s, const struct hb_py_walk *w, u64 code)
{
	u64 at = py_word(s, w->instr);

	if (w->code_bytes)
		at -= code + w->code_bytes;
	else
		at = (u64)(s64)(s32)at * w->lasti_bytes;
	at >>= 1;
	return at < HB_PY_AT_MAX ? at : HB_PY_AT_MAX;
}

/* Word of the frame under way. */
static __always_inline u64 py_frame(const struct hb_stack_scratch *s, const struct hb_py_walk *w, u64 *code)
{
	u64 word;

	*code = py_word(s, w->code) & ~(u64)w->tag;
	if (!*code || *code == w->none || (w->owner && py_byte(s, w->owner) >= w->shim_owner))
		return HB_PY_BORDER;
	word = HB_PY_WORD(*code, py_at2(s, w, *code));
	if (w->always_entered || (w->entry && py_byte(s, w->entry)))
		word |= HB_PY_ENTERED;
	return word;
}

#define HB_CO_COROUTINE 0x180 /* flags of code: async def, or marked by types.coroutine() */

/* The coroutine whose frame is under way and whose code this is; 0: it is none. An asyncio task runs its
 * coroutine, which awaits others, so the outermost one on a stack tells the task. */
static __always_inline void py_coroutine(struct hb_stack_scratch *s, const struct hb_py_walk *w, u64 code)
{
	u64 gen;

	if (w->gen_owner)
		gen = py_byte(s, w->gen_owner) == 1 ? s->frame - w->gen : 0;
	else
		gen = w->gen ? py_word(s, w->gen) : 0;
	if (!gen || bpf_probe_read_user(s->parts, 4, (void *)(code + w->code_flags)))
		return;
	if (s->parts[0] & HB_CO_COROUTINE)
		s->task = gen;
}

/* By what two code objects that lay at one address differ. Since 3.12 each has a number of its own; before,
 * it is the place of its file, and its name: for frames further out than HB_PY_NAMED by place only, as
 * functions that come and go are inner ones. In the scratch, as the stacks of all functions together are
 * little. */
static __always_inline u64 py_mark(struct hb_stack_scratch *s, const struct hb_py_walk *w, u64 code, u32 i)
{
	if (!w->str_hash) {
		bpf_probe_read_user(s->parts, 8, (void *)(code + w->code_mark));
		return s->parts[0];
	}
	bpf_probe_read_user(s->parts, 16, (void *)(code + w->code_mark));
	s->parts[2] = s->parts[1];
	if (i < HB_PY_NAMED)
		bpf_probe_read_user(&s->parts[2], 8, (void *)(s->parts[1] + w->str_hash));
	return s->parts[2] ^ s->parts[0];
}

/* Makes the frame that is next the one under way. A read costs the same for a word and for a thousand bytes,
 * so what lies before a frame on its page comes along: its callers, from 3.11 on. Frames of generators, and
 * all up to 3.10, lie anywhere: one behind what was read is not in it, whatever was read there before. */
static __always_inline bool py_load(struct hb_stack_scratch *s, u32 size)
{
	u64 at = s->frame + size - HB_PY_WINDOW, page = s->frame & ~4095ULL;
	u64 off = s->frame - s->window_at, n;

	if ((s->frame & 7) || size > HB_PY_BLOCK)
		return false;
	if (off > HB_PY_WINDOW - HB_PY_BLOCK || s->frame + size > s->window_end) {
		at = at < page || at > s->frame ? page : at;
		n = s->frame + size - at;
		s->window_at = ~0ULL;
		if (n > HB_PY_WINDOW || bpf_probe_read_user(s->window, n, (void *)at))
			return false;
		s->window_at = at;
		s->window_end = s->frame + size;
		off = s->frame - at;
	}
	s->base = off >> 3;
	return true;
}

/* The next frame into the scratch, at its own index i; false when there is none. Like hb_py_take not inlined
 * and not static: the verifier then looks at it once, not once for each frame and each way through those
 * before. */
__weak __noinline u32 hb_py_step(struct hb_stack_scratch *s, const struct hb_py_walk *w, u32 i)
{
	u64 code, mark = 0, word;

	if (!s || !w || i >= HB_STACK_DEPTH || !s->frame)
		return false;
	if (!py_load(s, w->frame_size)) {
		s->trace.state = HB_TRACE_BROKEN;
		return false;
	}
	word = py_frame(s, w, &code);
	if (word != HB_PY_BORDER) {
		py_coroutine(s, w, code);
		mark = i < w->marked ? py_mark(s, w, code, i) : 0;
	}
	s->hash = hb_py_hash(s->hash, word, mark);
	asm volatile("" : "+r"(i)); /* what was known of it may have been forgotten on the stack */
	if (i >= HB_STACK_DEPTH)
		return false;
	s->trace.ip[i] = word;
	s->frame = py_word(s, w->back);
	return true;
}

/* Frames into the scratch, innermost first. */
static __always_inline void py_walk(struct hb_stack_scratch *s, const struct hb_py_walk *w)
{
	u32 i;

	s->hash = HB_PY_HASH_BEGIN;
	s->window_at = ~0ULL;
	s->task = 0;
	s->task_of = bpf_get_current_pid_tgid();
	s->trace.state = HB_TRACE_WHOLE;
	s->trace.marked = w->marked;
#pragma clang loop unroll(disable)
	for (i = 0; i < HB_STACK_DEPTH; i++) {
		if (!hb_py_step(s, w, i))
			break;
		if (i == 0)
			s->second = s->frame;
	}
	if (s->frame && i == HB_STACK_DEPTH)
		s->trace.state = HB_TRACE_TRUNCATED;
	s->trace.n = i;
	s->trace.hash = hb_py_hash_end(s->hash, s->trace.state);
}

/* At once: the function may be gone when the record comes that has this stack, such as that of a sleep. */
static __always_inline void py_announce(u32 id)
{
	struct hb_py_stack_news *n = hb_reserve_current(HB_WIRE_PY_STACK, sizeof(*n));

	if (!n)
		return;
	n->id = id;
	n->pad = 0;
	hb_wire_of(n)->flags = 1; /* wakes the reader */
	HB_SUBMIT(n);
}

/* Inlined: up to 5.15 what a function is given cannot be put into a map. */
static __always_inline u32 py_keep(struct hb_stack_scratch *s, u32 type)
{
	bool fresh = false;
	u32 id = s->trace.n ? hb_stack__intern(&s->trace, &fresh) : 0;

	if (fresh)
		py_announce(id);
	if (s->trace.n && !id)
		hb_lose(HB_LOSS_STACK_FULL, type);
	if (s->trace.state == HB_TRACE_TRUNCATED)
		hb_lose(HB_LOSS_PY_TRUNCATED, type);
	else if (s->trace.state == HB_TRACE_BROKEN)
		hb_lose(HB_LOSS_PY_UNREADABLE, type);
	return id;
}

/* The first of its interpreters of which the current thread has a thread state; NULL: none. */
static __always_inline struct hb_py_walk *py_runtime(u32 type, u64 *ts)
{
	u32 i, tgid = bpf_get_current_pid_tgid() >> 32;
	struct hb_py_process *p = bpf_map_lookup_elem(&py_processes, &tgid);

	if (!p) {
		hb_lose(HB_LOSS_PY_UNREADABLE, type);
		return NULL;
	}
#pragma clang loop unroll(disable)
	for (i = 0; i < HB_PY_RUNTIMES; i++) {
		if (i >= p->n)
			return NULL;
		*ts = py_thread_state(&p->runtime[i]);
		if (*ts)
			return &p->runtime[i];
	}
	return NULL;
}

/* Id of the stack in the scratch, which is set free. */
static __always_inline u32 py_took(struct hb_stack_scratch *s, bool read, u32 type)
{
	u32 id = 0;

	if (!read)
		hb_lose(HB_LOSS_PY_UNREADABLE, type);
	else if (s->trace.n)
		id = py_keep(s, type);
	s->busy = 0;
	return id;
}

static __always_inline struct hb_stack_scratch *py_scratch(u32 where, u32 type)
{
	struct hb_stack_scratch *s = bpf_map_lookup_elem(&stack_scratch, &where);

	if (s && __sync_lock_test_and_set(&s->busy, 1) == 0)
		return s;
	hb_lose(HB_LOSS_STACK_FULL, type);
	return NULL;
}

/* Id of the current thread's Python stack; 0 when it runs none. */
__weak __noinline u32 hb_py_take(u32 where, u32 type)
{
	u64 ts = 0;
	struct hb_py_walk *w = py_runtime(type, &ts);
	struct hb_stack_scratch *s = w ? py_scratch(where, type) : NULL;

	bool read;

	if (!s)
		return 0;
	s->trace.n = 0;
	read = py_innermost(w, ts, &s->frame);
	if (read && s->frame)
		py_walk(s, w);
	return py_took(s, read, type);
}

#define HB_PY_TRIES 4

/* One of a generator, which goes and comes at one place: it comes back to nobody while it is suspended. */
static __always_inline bool py_of_generator(const struct hb_py_walk *w, u64 frame)
{
	u64 gen;

	if (w->gen_owner)
		return bpf_probe_read_user(&gen, 1, (void *)(frame + w->gen_owner)) || (u8)gen == 1;
	return w->gen && (!py_read(&gen, frame + w->gen) || gen);
}

/* The frame that the walked stack begins at is still among the HB_PY_TRIES innermost ones, of the same code,
 * and comes back to the same one. */
static __always_inline bool py_still_there(const struct hb_stack_scratch *s, const struct hb_py_walk *w,
					   u64 ts, u64 first)
{
	u64 frame, code, second;
	u32 i;

	if (!py_innermost(w, ts, &frame))
		return false;
#pragma clang loop unroll(disable)
	for (i = 0; i < HB_PY_TRIES && frame != first; i++)
		if (!py_read(&frame, frame + w->back))
			return false;
	if (frame != first || !py_read(&second, first + w->back) || second != s->second)
		return false;
	if (!second && py_of_generator(w, first))
		return false;
	return s->trace.ip[0] == HB_PY_BORDER ||
	       (py_read(&code, first + w->code) && (code & ~(u64)w->tag) == HB_PY_CODE(s->trace.ip[0]));
}

/*
 * The same of another thread of the current process, which may run meanwhile: its frames are given up and
 * used again while they are read. As outer frames cannot go before inner ones, those that were read belong
 * together when the first of them is still there. Otherwise what was read is worth nothing, and it is read
 * again, from one frame further out: what a busy thread calls last is gone sooner than it is read. The caller
 * counts what stays torn.
 */
static __always_inline u32 py_take_other(const struct hb_py_walk *w, u64 ts, u32 where, u32 type, u8 *torn)
{
	struct hb_stack_scratch *s = py_scratch(where, type);
	bool read = false;
	u64 first;
	u32 i, out;

	if (!s)
		return 0;
	s->trace.n = 0;
#pragma clang loop unroll(disable)
	for (i = 0; i < HB_PY_TRIES && !read; i++) {
		if (!py_innermost(w, ts, &first))
			break;
#pragma clang loop unroll(disable)
		for (out = 0; out < i && first; out++)
			py_read(&first, first + w->back);
		if (!first) {
			read = i == 0; /* it runs no Python */
			break;
		}
		s->frame = first;
		py_walk(s, w);
		s->task_of = 0; /* not the current thread's */
		read = s->trace.n && py_still_there(s, w, ts, first);
	}
	*torn = !read;
	if (read)
		return py_took(s, true, type);
	s->busy = 0;
	return 0;
}

/* The asyncio task on the stack that the current thread took there just before: the address of its root
 * coroutine; 0: none, or the place has been used by another thread meanwhile. */
static __always_inline u64 py_task(u32 where)
{
	struct hb_stack_scratch *s = bpf_map_lookup_elem(&stack_scratch, &where);

	return s && s->task_of == bpf_get_current_pid_tgid() ? s->task : 0;
}

/* The id for a STACK member of a native stack and the Python stack of the same moment. */
static __always_inline u32 hb_stack__join(u32 native, u32 python, u32 type)
{
	struct hb_stack_pair pair = {native, python}, *old;
	u64 h = ((u64)native << 32 | python) * 0xff51afd7ed558ccdULL;
	u32 id = (u32)(h >> 32) | HB_STACK_PAIR;

	if (!python)
		return native;
	old = bpf_map_lookup_elem(&stack_pairs, &id);
	if (!old) {
		if (bpf_map_update_elem(&stack_pairs, &id, &pair, BPF_NOEXIST) == 0)
			return id;
		old = bpf_map_lookup_elem(&stack_pairs, &id);
	}
	if (old && old->native == native && old->python == python)
		return id;
	hb_lose(HB_LOSS_STACK_FULL, type);
	return native;
}

/* `native` with the current thread's Python stack, where it has one. */
static __always_inline u32 hb_stack__pair(u32 native, u32 type, enum hb_stack_ctx where)
{
	return hb_python ? hb_stack__join(native, hb_py_take(where, type), type) : native;
}

#endif
