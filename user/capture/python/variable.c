/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Variables of a function: where in its frame each lies. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "capture/python/heap_private.h"
#include "capture/python/memory.h"
#include "capture/python/objects.h"

#define MAX_VARIABLES 1024

/* Up to 3.10 there are three tuples, and in the frame they follow each other: locals, those that inner
 * functions use, those of outer functions. The first kind may be named in the second too: then it is there.
 */
enum { CODE_NLOCALS = 28, CODE_FREE = 80, CODE_CELL = 88 };

struct search {
	const char *name;
	char *all;
	size_t size;
	int found; /* index in the tuple; -1 */
};

static void mention(struct search *s, const char *name)
{
	size_t n = strlen(s->all);

	if (name[0] != '.' && n + strlen(name) + 3 < s->size)
		snprintf(s->all + n, s->size - n, "%s%s", n ? ", " : "", name);
}

/* The number of names in a tuple, or -errno. */
static int look_in(const struct hb_py_heap *h, u64 tuple, struct search *s)
{
	u64 n, at;
	char name[HB_PY_TEXT_SIZE];

	s->found = -1;
	if (!hb_py_memory__word(h->pid, tuple + h->off.ob_size, &n) || n > MAX_VARIABLES)
		return -EFAULT;
	for (u64 i = 0; i < n; i++) {
		if (!hb_py_memory__word(h->pid, tuple + h->off.tuple_items + 8 * i, &at) ||
		    hb_py_object__text(h->pid, &h->off, at, name, sizeof(name)))
			return -EFAULT;
		mention(s, name);
		if (s->found < 0 && strcmp(name, s->name) == 0)
			s->found = (int)i;
	}
	return (int)n;
}

static int up_to_10(const struct hb_py_heap *h, u64 code, struct search *s, u16 *index)
{
	u64 locals, cells, outer;
	int n_locals, n_cells, at = -1;

	if (!hb_py_memory__word(h->pid, code + h->off.code_locals, &locals) ||
	    !hb_py_memory__word(h->pid, code + CODE_CELL, &cells) ||
	    !hb_py_memory__word(h->pid, code + CODE_FREE, &outer))
		return -EFAULT;
	n_locals = look_in(h, locals, s);
	at = s->found;
	n_cells = n_locals < 0 ? n_locals : look_in(h, cells, s);
	if (n_cells < 0)
		return -EFAULT;
	if (s->found >= 0)
		at = n_locals + s->found;
	if (look_in(h, outer, s) < 0)
		return -EFAULT;
	if (at < 0 && s->found >= 0)
		at = n_locals + n_cells + s->found;
	*index = (u16)at;
	return at < 0 ? -ENOENT : 0;
}

int hb_py_variable__find(const struct hb_py_heap *h, u64 code, const char *name, u16 *index, char *all,
			 size_t size)
{
	struct search s = {name, all, size, -1};
	u64 names;

	all[0] = 0;
	if (h->off.minor <= 10)
		return up_to_10(h, code, &s, index);
	if (!hb_py_memory__word(h->pid, code + h->off.code_locals, &names) || look_in(h, names, &s) < 0)
		return -EFAULT;
	*index = (u16)s.found;
	return s.found < 0 ? -ENOENT : 0;
}
