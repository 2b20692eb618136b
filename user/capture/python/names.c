/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions by the addresses of their code objects. A function that is gone leaves its name here; another one
 * at its address is told from it by the addresses of its parts, and is a function of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "capture/python/memory.h"
#include "capture/python/objects.h"
#include "schema/wire.h"

struct function {
	u32 func, file; /* strings, as offsets in text */
	u32 firstline;
	u32 n_lines; /* bytes of the line table */
	u8 *lines;
	u64 mark;
	u8 kind; /* enum hb_py_lines */
};

struct layout { /* of one interpreter */
	struct hb_py_offsets off;
	u64 code_type;
};

struct process {
	u32 n, parent; /* forked from it: what is known there is true here */
	struct layout layout[HB_PY_RUNTIMES];
};

struct hb_py_names {
	struct hb_map *by_pid;	/* -> index of process + 1 */
	struct hb_map *by_code; /* of (pid, code) -> id */
	struct hb_map *strings; /* hash -> offset in text + 1 */
	struct process *processes;
	struct function *functions; /* by id - 1 */
	u32 n_processes, n_functions, cap_functions, max;
	u64 overflow;
	struct hb_buf text;
};

struct hb_py_names *hb_py_names__new(u32 max)
{
	struct hb_py_names *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	n->max = max;
	n->by_pid = hb_map__new();
	n->by_code = hb_map__new();
	n->strings = hb_map__new();
	hb_buf__add(&n->text, "", 1);
	if (!n->by_pid || !n->by_code || !n->strings || n->text.oom) {
		hb_py_names__free(n);
		return NULL;
	}
	return n;
}

void hb_py_names__free(struct hb_py_names *n)
{
	if (!n)
		return;
	for (u32 i = 0; i < n->n_functions; i++)
		free(n->functions[i].lines);
	free(n->functions);
	free(n->processes);
	hb_map__free(n->by_pid);
	hb_map__free(n->by_code);
	hb_map__free(n->strings);
	hb_buf__free(&n->text);
	free(n);
}

/* ---- processes ---- */

static struct process *process_slot(struct hb_py_names *n, u32 pid)
{
	struct process *more;
	u64 at;

	if (hb_map__get(n->by_pid, pid, &at))
		return &n->processes[at - 1];
	more = reallocarray(n->processes, n->n_processes + 1, sizeof(*more));
	if (!more)
		return NULL;
	n->processes = more;
	if (hb_map__put(n->by_pid, pid, n->n_processes + 1))
		return NULL;
	return &n->processes[n->n_processes++];
}

int hb_py_names__process(struct hb_py_names *n, u32 pid, const struct hb_python *py)
{
	struct process *p = process_slot(n, pid);
	const struct hb_py_runtime *r;
	u32 count;

	if (!p)
		return -ENOMEM;
	memset(p, 0, sizeof(*p));
	r = hb_python__runtimes(py, &count);
	for (u32 i = 0; i < count && p->n < HB_PY_RUNTIMES; i++)
		if (r[i].state == HB_PY_READY)
			p->layout[p->n++] = (struct layout){r[i].off, r[i].code_type};
	return 0;
}

int hb_py_names__fork(struct hb_py_names *n, u32 parent, u32 child)
{
	struct process *p;
	u64 at;

	if (!hb_map__get(n->by_pid, parent, &at) || hb_map__get(n->by_pid, child, NULL))
		return 0;
	p = process_slot(n, child);
	if (!p)
		return -ENOMEM;
	*p = n->processes[at - 1];
	p->parent = parent;
	return 0;
}

/* ---- strings ---- */

static u32 intern(struct hb_py_names *n, const char *s)
{
	u64 key = hb_hash_bytes(s, strlen(s)), at;

	for (; hb_map__get(n->strings, key, &at); key++)
		if (strcmp(n->text.data + at - 1, s) == 0)
			return (u32)at - 1;
	at = n->text.size;
	hb_buf__add(&n->text, s, strlen(s) + 1);
	if (n->text.oom || at >= UINT32_MAX || hb_map__put(n->strings, key, at + 1))
		return 0;
	return (u32)at;
}

/* ---- functions ---- */

static u64 mark_of(const struct hb_py_code *c)
{
	return hb_hash64(c->name ^ hb_hash64(c->file ^ hb_hash64(c->lines ^ (u64)c->firstline << 40)));
}

static u32 add_function(struct hb_py_names *n, const struct function *f)
{
	if (n->n_functions == n->cap_functions) {
		u32 cap = n->cap_functions ? 2 * n->cap_functions : 1024;
		struct function *more = reallocarray(n->functions, cap, sizeof(*more));

		if (!more)
			return 0;
		n->functions = more;
		n->cap_functions = cap;
	}
	n->functions[n->n_functions++] = *f;
	return n->n_functions;
}

static u32 read_function(struct hb_py_names *n, u32 pid, const struct layout *l, const struct hb_py_code *c)
{
	char func[HB_PY_TEXT_SIZE], file[HB_PY_TEXT_SIZE];
	struct function f = {.firstline = c->firstline, .mark = mark_of(c), .kind = l->off.lines};
	u32 id;

	if (n->n_functions >= n->max) {
		n->overflow++;
		return 0;
	}
	if (hb_py_object__text(pid, &l->off, c->name, func, sizeof(func)) || !*func ||
	    hb_py_object__text(pid, &l->off, c->file, file, sizeof(file)))
		return 0;
	f.func = intern(n, func);
	f.file = intern(n, file);
	f.lines = hb_py_object__bytes(pid, &l->off, c->lines, &f.n_lines);
	id = f.lines ? add_function(n, &f) : 0;
	if (!id)
		free(f.lines);
	return id;
}

/* The function whose code object these bytes are; 0 when they are none. */
static u32 function_of(struct hb_py_names *n, u32 pid, const struct process *p, u64 code, const char *bytes)
{
	const struct layout *l = NULL;
	struct hb_py_code c;
	u64 *known, key = hb_hash64((u64)pid << 47 ^ code);
	u32 id;

	for (u32 i = 0; i < p->n && !l; i++) {
		hb_py_code__parse(&p->layout[i].off, bytes, &c);
		if (c.type == p->layout[i].code_type)
			l = &p->layout[i];
	}
	if (!l)
		return 0;
	known = hb_map__slot(n->by_code, key, NULL);
	if (!known)
		return 0;
	if (*known && n->functions[*known - 1].mark == mark_of(&c))
		return (u32)*known;
	id = read_function(n, pid, l, &c);
	if (id)
		*known = id;
	return id;
}

/* What is known of a code object that cannot be read any more (the process is gone). */
static u32 remembered(const struct hb_py_names *n, u32 pid, u32 parent, u64 code)
{
	u64 id = 0;

	if (!hb_map__get(n->by_code, hb_hash64((u64)pid << 47 ^ code), &id) && parent)
		hb_map__get(n->by_code, hb_hash64((u64)parent << 47 ^ code), &id);
	return (u32)id;
}

static void see_some(struct hb_py_names *n, u32 pid, const struct process *p, const u64 *codes, u32 n_codes,
		     u32 *ids)
{
	static const size_t size = HB_PY_CODE_MAX;
	size_t bytes = 0;
	bool ok[HB_STACK_DEPTH];
	char *data;

	for (u32 i = 0; i < p->n; i++) {
		size_t one = hb_py_code__bytes(&p->layout[i].off);

		bytes = one > bytes ? one : bytes;
	}
	data = bytes && bytes <= size ? malloc(n_codes * bytes) : NULL;
	if (!data)
		return;
	hb_py_memory__many(pid, codes, n_codes, data, bytes, ok);
	for (u32 i = 0; i < n_codes; i++)
		ids[i] = ok[i] ? function_of(n, pid, p, codes[i], data + i * bytes)
			       : remembered(n, pid, p->parent, codes[i]);
	free(data);
}

void hb_py_names__see(struct hb_py_names *n, u32 pid, const u64 *words, u32 n_words, u32 *ids)
{
	u64 codes[HB_STACK_DEPTH];
	u32 at[HB_STACK_DEPTH], found[HB_STACK_DEPTH] = {0}, n_codes = 0;
	u64 p;

	memset(ids, 0, n_words * sizeof(*ids));
	if (!hb_map__get(n->by_pid, pid, &p))
		return;
	for (u32 i = 0; i < n_words && i < HB_STACK_DEPTH; i++) {
		if (!HB_PY_CODE(words[i]))
			continue;
		at[n_codes] = i;
		codes[n_codes++] = HB_PY_CODE(words[i]);
	}
	see_some(n, pid, &n->processes[p - 1], codes, n_codes, found);
	for (u32 i = 0; i < n_codes; i++)
		ids[at[i]] = found[i];
}

bool hb_py_names__place(const struct hb_py_names *n, u32 id, u32 at2, struct hb_py_place *out)
{
	const struct function *f = id && id <= n->n_functions ? &n->functions[id - 1] : NULL;

	if (!f)
		return false;
	out->func = n->text.data + f->func;
	out->file = n->text.data + f->file;
	out->line = f->firstline;
	if (at2 != HB_PY_AT_MAX)
		out->line = hb_py_lines__at(f->kind, f->lines, f->n_lines, f->firstline, 2 * at2);
	return true;
}

const struct hb_py_offsets *hb_py_names__layout(const struct hb_py_names *n, u32 pid)
{
	u64 at;

	if (!hb_map__get(n->by_pid, pid, &at) || !n->processes[at - 1].n)
		return NULL;
	return &n->processes[at - 1].layout[0].off;
}

u32 hb_py_names__functions(const struct hb_py_names *n)
{
	return n->n_functions;
}

u64 hb_py_names__overflow(const struct hb_py_names *n)
{
	return n->overflow;
}
