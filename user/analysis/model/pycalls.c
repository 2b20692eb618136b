/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of Python functions: per function and process. */
#include "analysis/model/private.h"

void hb_model__py_call(struct hb_model *m, struct thread *t, const struct hb_rec_py_call *r)
{
	bool fresh;
	struct hb_py_call_stat *c = hb_rows__get(&m->py_calls, (u64)t->pub.proc->idx << 32 | r->func, &fresh);

	if (!c || ((r->flags & HB_PYCALL_TIMED) && hb_hist__add(&c->dur, r->dur))) {
		m->oom = true;
		return;
	}
	c->proc = t->pub.proc;
	c->loc = hb_window__loc(m->w, r->func);
	c->count++;
	c->raised += r->end == HB_PYEND_RAISE;
	c->yielded += r->end == HB_PYEND_YIELD;
}

static int cmp_py_calls(const void *a, const void *b)
{
	CMP_ROWS(hb_py_call_stat, x, y, a, b);

	BIGGER_FIRST(x->dur.total, y->dur.total);
	BIGGER_FIRST(x->count, y->count);
	BIGGER_FIRST(y->proc->pid, x->proc->pid);
	BIGGER_FIRST(y->loc, x->loc);
	return 0;
}

void hb_model__finish_py_calls(struct hb_model *m)
{
	hb_rows__sort(&m->py_calls, cmp_py_calls);
}
