/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Flame graphs of a page, from the stacks of the model: CPU samples, time off the CPU, accelerator calls.
 * Each is a tree of frames, flat: parent, name, weight with all below, in an order in which parents come
 * first. Frames below a weight that bounds their number are left out; their parents' weight holds them still.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/model/decode.h"
#include "analysis/model/rows.h"
#include "analysis/report/html/private.h"

enum { DEEPEST = 256 };

struct frame {
	u32 number, parent, name; /* parent: number of another; its own for a root */
	u32 shown;		  /* its number among those that are kept */
	u64 value;
};

struct tree {
	struct hb_page *p;
	struct hb_rows frames;
	u64 total, stacks;
	bool oom;
};

static struct frame *grow(struct tree *t, struct frame *parent, u32 name, u64 value)
{
	u64 key = (parent ? (u64)parent->number + 1 : 0) << 32 | name;
	bool fresh = false;
	struct frame *f = t->oom ? NULL : hb_rows__get(&t->frames, key, &fresh);

	if (!f) {
		t->oom = true;
		return NULL;
	}
	if (fresh) {
		f->number = t->frames.n - 1;
		f->parent = parent ? parent->number : f->number;
		f->name = name;
	}
	f->value += value;
	return f;
}

static struct frame *grow_stack(struct tree *t, struct frame *f, u32 pid, u32 raw, u64 value)
{
	struct hb_stack st = raw ? hb_window__stack(t->p->in->w, pid, raw) : (struct hb_stack){0};
	char buf[512];

	for (u32 i = 0; f && i < st.n && i < DEEPEST; i++) {
		const struct hb_loc *l = hb_window__loc(t->p->in->w, st.locs[i]);

		if (l)
			f = grow(
			    t, f,
			    hb_labels__add(t->p->labels, hb_decode__frame(t->p->in->w, l, HB_FRAME_MARKED,
									  buf, sizeof(buf))),
			    value);
	}
	return f;
}

static void add_stack(struct tree *t, const struct hb_stack_stat *s, u64 value)
{
	char buf[96];
	struct frame *root;

	snprintf(buf, sizeof(buf), "%s %u", hb_decode__comm(t->p->in->w, s->proc->main), s->proc->pid);
	root = grow(t, NULL, hb_labels__add(t->p->labels, buf), value);
	if (!s->raw && !s->kraw) {
		grow(t, root, hb_labels__add(t->p->labels, "[no stack]"), value);
		return;
	}
	root = grow_stack(t, root, s->proc->pid, s->raw, value);
	grow_stack(t, root, s->proc->pid, s->kraw, value);
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* The weight from which on a frame is kept; 0: all are. -ENOMEM as UINT64_MAX. */
static u64 least(const struct tree *t)
{
	u64 *v, found;

	if (t->frames.n <= HB_HTML_FRAMES)
		return 0;
	v = malloc(t->frames.n * sizeof(*v));
	if (!v)
		return UINT64_MAX;
	for (u32 i = 0; i < t->frames.n; i++)
		v[i] = ((const struct frame *)t->frames.row[i])->value;
	qsort(v, t->frames.n, sizeof(*v), by_value);
	found = v[HB_HTML_FRAMES - 1];
	/* Many of that weight: none of them, or there would be more than may be. */
	if (v[HB_HTML_FRAMES] == found)
		found++;
	free(v);
	return found;
}

static void put_tree(struct tree *t, const char *what, const char *unit)
{
	struct hb_json *j = t->p->j;
	u64 from = least(t);
	u32 shown = 0;

	t->oom |= from == UINT64_MAX;
	hb_json__object(j);
	hb_json__kstring(j, "what", what);
	hb_json__kstring(j, "unit", unit);
	hb_json__ku64(j, "total", t->total);
	hb_json__ku64(j, "stacks", t->stacks);
	hb_json__karray(j, "d");
	for (u32 i = 0; i < t->frames.n; i++) {
		struct frame *f = t->frames.row[i];
		const struct frame *parent = t->frames.row[f->parent];

		if (f->value < from)
			continue;
		f->shown = shown++;
		/* A parent weighs as much at least, so it is kept too, and has come before. */
		hb_json__u64(j, f->parent == f->number ? f->shown : parent->shown);
		hb_json__u64(j, f->name);
		hb_json__u64(j, f->value);
	}
	hb_json__end(j);
	hb_json__ku64(j, "left_out", t->frames.n - shown);
	hb_json__end(j);
}

static int put_use(struct hb_page *p, enum hb_stack_use use, const char *what, bool counted)
{
	struct tree t = {.p = p};
	u32 n;
	const struct hb_stack_stat *const *s = hb_model__stacks(p->in->m, &n);

	if (hb_rows__init(&t.frames, sizeof(struct frame)))
		return -ENOMEM;
	for (u32 i = 0; i < n; i++) {
		u64 value = counted ? s[i]->count : s[i]->ns;

		if (s[i]->use != use || !value)
			continue;
		t.total += value;
		t.stacks++;
		add_stack(&t, s[i], value);
	}
	if (t.total)
		put_tree(&t, what, counted ? "count" : "ns");
	hb_rows__free(&t.frames, NULL);
	return t.oom ? -ENOMEM : 0;
}

int hb_page__flames(struct hb_page *p)
{
	int rc;

	hb_json__karray(p->j, "flames");
	rc = put_use(p, HB_USE_SAMPLE, "CPU time (samples)", false);
	rc = rc ? rc : put_use(p, HB_USE_OFFCPU, "time off the CPU", false);
	rc = rc ? rc : put_use(p, HB_USE_ACCEL, "time in accelerator calls", false);
	rc = rc ? rc : put_use(p, HB_USE_ACCEL, "number of accelerator calls", true);
	hb_json__end(p->j);
	return rc;
}
