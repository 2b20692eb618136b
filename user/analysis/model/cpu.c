/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* CPU time: by thread, by function, by system call in kernel mode; and what was spent on each stack. */
#include <stdlib.h>
#include <string.h>

#include "analysis/model/private.h"

/* Samples have two stacks: the pair gets a dense number so that it fits into a key. */
static bool pair_of(struct hb_model *m, u32 raw, u32 kraw, u32 *id)
{
	bool fresh;
	u64 *slot = hb_map__slot(m->pairs, (u64)raw << 32 | kraw, &fresh);

	if (!slot)
		return false;
	if (fresh)
		*slot = hb_map__size(m->pairs);
	*id = (u32)*slot;
	return true;
}

/* Stacks are numbered as records bring them. A number that is far beyond both is damage, for which no table
 * of that size is made. */
static bool is_usual(const struct hb_model *m, u32 id)
{
	return id / 4 <= m->totals.records + 4096 && id < 1U << 22;
}

struct hb_stack_stat *hb_model__new_stack(struct hb_model *m, const struct what_stack *x)
{
	struct stack_rows *by = &m->stacks_by[x->use];
	u64 key = (u64)x->use << 60 | (u64)x->proc->idx << 32 | x->id;
	struct hb_stack_stat *s = hb_rows__get(&m->stacks, key, NULL);

	if (!s)
		return NULL;
	*s = (struct hb_stack_stat){.use = x->use,
				    .proc = (struct hb_proc_stat *)x->proc,
				    .raw = x->raw,
				    .kraw = x->kraw,
				    .count = s->count,
				    .ns = s->ns};
	if (x->id >= by->n && is_usual(m, x->id)) {
		u32 n = x->id + x->id / 2 + 64;
		void *more = realloc(by->row, n * sizeof(struct hb_stack_stat *));

		if (!more)
			return NULL;
		by->row = more;
		memset(by->row + by->n, 0, (n - by->n) * sizeof(struct hb_stack_stat *));
		by->n = n;
	}
	if (x->id < by->n)
		by->row[x->id] = s;
	return s;
}

void hb_model__sample(struct hb_model *m, struct thread *t, const struct hb_rec_sample *r)
{
	struct what_stack x = {.use = HB_USE_SAMPLE, .proc = t->pub.proc, .raw = r->stack, .kraw = r->kstack};
	struct hb_kernel_stat *k;

	if (!pair_of(m, x.raw, x.kraw, &x.id)) {
		m->oom = true;
		return;
	}
	t->pub.samples++;
	t->pub.cpu_ns += r->weight;
	t->pub.proc->samples++;
	t->pub.proc->cpu_ns += r->weight;
	hb_model__count_stack(m, &x, r->weight);
	if (r->mode != HB_CPUMODE_KERNEL)
		return;
	k = hb_rows__get(&m->kernel, r->sysno, NULL);
	if (!k) {
		m->oom = true;
		return;
	}
	k->sysno = r->sysno;
	k->samples++;
	k->cpu_ns += r->weight;
}

/* Python functions have a source file and no module. */
static u64 function_key(const struct hb_loc *l)
{
	return (u64)l->func << 32 | (l->lang == HB_LANG_PYTHON ? l->file : l->module);
}

/* One row for a function wherever in it the address is; addresses without a name stay apart. */
static struct func *func_of(struct hb_model *m, u32 loc)
{
	const struct hb_loc *l = loc ? hb_window__loc(m->w, loc) : NULL;
	u64 key = !l ? 0 : l->func ? function_key(l) : 1ULL << 63 | loc;
	struct func *f = hb_rows__get(&m->funcs, key, NULL);

	if (!f)
		m->oom = true;
	else if (l)
		f->pub.loc = l;
	return f;
}

static void add_frames(struct hb_model *m, const struct hb_stack *st, u64 ns, u64 mark)
{
	for (u32 i = 0; i < st->n; i++) {
		struct func *f = func_of(m, st->locs[i]);

		if (!f || f->mark == mark)
			continue;
		f->mark = mark;
		f->pub.total_ns += ns;
	}
}

static void add_to_funcs(struct hb_model *m, const struct hb_stack_stat *s, u64 mark)
{
	struct hb_stack none = {0};
	struct hb_stack user = s->raw ? hb_window__stack(m->w, s->proc->pid, s->raw) : none;
	struct hb_stack kernel = s->kraw ? hb_window__stack(m->w, s->proc->pid, s->kraw) : none;
	const struct hb_stack *inner = kernel.n ? &kernel : &user;
	struct func *self = func_of(m, inner->n ? inner->locs[inner->n - 1] : 0);

	add_frames(m, &user, s->ns, mark);
	add_frames(m, &kernel, s->ns, mark);
	if (!self)
		return;
	self->pub.self_ns += s->ns;
	self->pub.samples += s->count;
	if (!inner->n)
		self->pub.total_ns += s->ns;
}

static int cmp_funcs(const void *a, const void *b)
{
	CMP_ROWS(hb_func_stat, x, y, a, b);

	BIGGER_FIRST(x->self_ns, y->self_ns);
	BIGGER_FIRST(x->total_ns, y->total_ns);
	return 0;
}

static int cmp_kernel(const void *a, const void *b)
{
	CMP_ROWS(hb_kernel_stat, x, y, a, b);

	BIGGER_FIRST(x->cpu_ns, y->cpu_ns);
	return 0;
}

static int cmp_stacks(const void *a, const void *b)
{
	CMP_ROWS(hb_stack_stat, x, y, a, b);

	BIGGER_FIRST(x->ns, y->ns);
	BIGGER_FIRST(x->count, y->count);
	BIGGER_FIRST(y->raw, x->raw);
	return 0;
}

static u64 mix_frames(const struct hb_model *m, u64 h, u32 pid, u32 raw)
{
	struct hb_stack st = raw ? hb_window__stack(m->w, pid, raw) : (struct hb_stack){0};

	for (u32 i = 0; i < st.n; i++) {
		const struct hb_loc *l = hb_window__loc(m->w, st.locs[i]);

		h = hb_hash64(h ^ (l && l->func ? function_key(l) : st.locs[i])) + 1;
	}
	return h;
}

/* Stacks that differ in addresses within the same functions become one row. Two chains with one 64-bit hash
 * would be taken for the same; with 100,000 stacks the chance is one in four billion. */
static void merge_stacks(struct hb_model *m)
{
	for (u32 i = 0; i < m->stacks.n && !m->oom; i++) {
		const struct hb_stack_stat *s = m->stacks.row[i];
		u64 h = hb_hash64((u64)s->use << 32 | s->proc->idx) + 1;
		struct hb_stack_stat *to;
		bool fresh;

		h = mix_frames(m, mix_frames(m, h, s->proc->pid, s->raw), s->proc->pid, s->kraw);
		to = hb_rows__get(&m->merged, h, &fresh);
		if (!to) {
			m->oom = true;
		} else if (fresh) {
			*to = *s;
		} else {
			to->count += s->count;
			to->ns += s->ns;
		}
	}
}

void hb_model__finish_cpu(struct hb_model *m)
{
	for (u32 i = 0; i < m->stacks.n; i++) {
		const struct hb_stack_stat *s = m->stacks.row[i];

		if (s->use == HB_USE_SAMPLE)
			add_to_funcs(m, s, i + 1);
	}
	hb_rows__sort(&m->funcs, cmp_funcs);
	hb_rows__sort(&m->kernel, cmp_kernel);
	merge_stacks(m);
	hb_rows__sort(&m->merged, cmp_stacks);
}
