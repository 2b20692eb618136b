/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One stack of a native and a Python one. Each call of the interpreter's loop (an eval frame of the native
 * stack) runs Python frames up to one that was entered from C. Where both have as many of these, each eval
 * frame is replaced by its Python frames. Native walks often end early or step over frames, in code without
 * frame pointers: then the native frames inside of the first eval frame are below Python's, which know their
 * callers to the end. Such walks take anything for a frame; what lies in no file goes, but where the thread
 * itself was.
 */
#include "capture/session/impl.h"

struct merged {
	u32 *locs; /* innermost first until the end */
	u32 n, max;
};

static void put(struct merged *m, u32 loc)
{
	if (m->n < m->max)
		m->locs[m->n++] = loc;
}

static void put_native(struct merged *m, const struct hb_native_frame *f, u32 i)
{
	if (!i || !f[i].nowhere)
		put(m, f[i].loc);
}

/* Python frames of one call of the loop, from i on; the index after them. */
static u32 put_call(struct merged *m, const struct hb_py_frame *p, u32 n, u32 i)
{
	while (i < n) {
		put(m, p[i].loc);
		if (p[i++].entered)
			break;
	}
	return i;
}

static u32 calls_of(const struct hb_py_frame *p, u32 n)
{
	u32 calls = 0;

	for (u32 i = 0; i < n; i++)
		calls += p[i].entered || i == n - 1; /* the outermost was, whatever its mark says */
	return calls;
}

static u32 evals_of(const struct hb_native_frame *f, u32 n)
{
	u32 evals = 0;

	for (u32 i = 0; i < n; i++)
		evals += f[i].eval;
	return evals;
}

/* What the interpreter does between two of its loops, and outside of them, is known from Python's frames. */
static void interleave(struct merged *m, const struct hb_native_frame *f, u32 n_f,
		       const struct hb_py_frame *p, u32 n_p)
{
	bool inside = true; /* of the innermost loop */
	u32 at = 0;

	for (u32 i = 0; i < n_f; i++) {
		if (f[i].eval) {
			at = put_call(m, p, n_p, at);
			inside = false;
		} else if (inside || !f[i].interpreter) {
			put_native(m, f, i);
		}
	}
	while (at < n_p)
		put(m, p[at++].loc);
}

static void leaf_then_python(struct merged *m, const struct hb_native_frame *f, u32 n_f,
			     const struct hb_py_frame *p, u32 n_p)
{
	for (u32 i = 0; i < n_f && !f[i].eval; i++)
		put_native(m, f, i);
	for (u32 i = 0; i < n_p; i++)
		put(m, p[i].loc);
}

static void turn_round(u32 *locs, u32 n)
{
	for (u32 i = 0; i < n / 2; i++) {
		u32 t = locs[i];

		locs[i] = locs[n - 1 - i];
		locs[n - 1 - i] = t;
	}
}

u32 hb_session__merge(const struct hb_native_frame *native, u32 n_native, const struct hb_py_frame *python,
		      u32 n_python, u32 *locs, u32 max)
{
	struct merged m = {locs, 0, max};

	if (!n_python)
		for (u32 i = 0; i < n_native; i++)
			put(&m, native[i].loc);
	else if (evals_of(native, n_native) != calls_of(python, n_python))
		leaf_then_python(&m, native, n_native, python, n_python);
	else
		interleave(&m, native, n_native, python, n_python);
	turn_round(m.locs, m.n);
	return m.n;
}
