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
#include "capture/python/heap.h"
#include "capture/python/memory.h"
#include "capture/python/objects.h"
#include "schema/wire.h"

/* How much of a code object is in the hash of a stack, by the frame's depth (py_mark in bpf/python.bpf.h). */
enum mark { MARK_NONE, MARK_PLACE, MARK_NAME, MARKS };

struct function {
	u32 func, file; /* strings, as offsets in text */
	u32 firstline;
	u32 n_lines; /* bytes of the line table */
	u8 *lines;
	u64 mark;		/* of all its parts */
	u64 kernel_mark[MARKS]; /* as in the hash of stacks */
	u64 code;		/* its address, in process pid */
	u32 pid;
	u32 before;    /* function that lay at its address before; 0 none */
	u8 kind;       /* enum hb_py_lines */
	bool unmarked; /* occurs in frames whose marks were not read ... */
	bool gone;     /* ... and was not there any more when looked at later */
};

struct layout { /* of one interpreter */
	struct hb_py_offsets off;
	u64 code_type, cell_type, runtime;
};

struct process {
	u32 n, parent; /* forked from it: what is known there is true here */
	bool uneasy;   /* functions have been replaced: all frames shall be marked ... */
	bool told;     /* ... and somebody has been told so */
	struct layout layout[HB_PY_RUNTIMES];
};

struct hb_py_names {
	struct hb_map *by_pid;	/* -> index of process + 1 */
	struct hb_map *by_code; /* of (pid, code) -> id */
	struct hb_map *strings; /* hash -> offset in text + 1 */
	struct process *processes;
	struct function *functions; /* by id - 1 */
	u32 n_processes, n_functions, cap_functions, max;
	u32 checked; /* functions before this one were looked at in this turn */
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
			p->layout[p->n++] =
			    (struct layout){r[i].off, r[i].code_type, r[i].cell_type, r[i].address};
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

bool hb_py_names__heap(const struct hb_py_names *n, u32 pid, u64 code, struct hb_py_heap *out)
{
	const struct process *p;
	u64 at, type;

	if (!hb_map__get(n->by_pid, pid, &at))
		return false;
	p = &n->processes[at - 1];
	for (u32 i = 0; i < p->n; i++) {
		const struct layout *l = &p->layout[i];

		*out = (struct hb_py_heap){pid, l->off, l->cell_type};
		if (hb_py_memory__word(pid, code + l->off.ob_type, &type) && type == l->code_type)
			return true;
	}
	return false;
}

bool hb_py_names__interpreter(const struct hb_py_names *n, u32 pid, struct hb_py_heap *out, u64 *runtime)
{
	const struct layout *l;
	u64 at;

	if (!hb_map__get(n->by_pid, pid, &at) || !n->processes[at - 1].n)
		return false;
	l = &n->processes[at - 1].layout[0];
	*out = (struct hb_py_heap){pid, l->off, l->cell_type};
	*runtime = l->runtime;
	return true;
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

/* As the kernel's walker marks the code object of a frame (py_mark in bpf/python.bpf.h). */
static u64 kernel_mark(const struct hb_py_offsets *o, const struct hb_py_code *c, u64 name_hash, enum mark m)
{
	if (m == MARK_NONE)
		return 0;
	if (!o->walk.str_hash)
		return c->version;
	return c->file ^ (m == MARK_NAME ? name_hash : c->func_name);
}

static enum mark mark_at(const struct hb_stack_trace *t, u32 i)
{
	if (i >= t->marked)
		return MARK_NONE;
	return i < HB_PY_NAMED ? MARK_NAME : MARK_PLACE;
}

static u64 mark_of(const struct hb_py_code *c, u64 name_hash)
{
	return hb_hash64(c->name ^ hb_hash64(c->file ^ hb_hash64(c->lines ^ (u64)c->firstline << 40))) ^
	       hb_hash64(name_hash);
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

/* ---- one stack ---- */

/* What was read for a frame. */
struct seen {
	const struct layout *of; /* NULL: there is no code object of Python's */
	struct hb_py_code code;
	u64 name_hash, mark;
	enum mark m;
	u32 id; /* known to be this function */
};

static u64 code_key(u32 pid, u64 code)
{
	return hb_hash64((u64)pid << 47 ^ code);
}

/* The latest function at this code object's address, 0 none. */
static u32 latest(const struct hb_py_names *n, u32 pid, u64 code)
{
	u64 id = 0;

	hb_map__get(n->by_code, code_key(pid, code), &id);
	return (u32)id;
}

static void worry(struct hb_py_names *n, u32 pid)
{
	u64 at;

	if (hb_map__get(n->by_pid, pid, &at))
		n->processes[at - 1].uneasy = true;
}

/* Another function lies where this one (0: none) was. */
static void gone(struct hb_py_names *n, u32 id)
{
	struct function *f = id ? &n->functions[id - 1] : NULL;

	if (!f || f->gone)
		return;
	f->gone = true;
	worry(n, f->pid);
}

static u32 read_function(struct hb_py_names *n, u32 from, u32 pid, u64 code, const struct seen *s)
{
	char func[HB_PY_TEXT_SIZE], file[HB_PY_TEXT_SIZE];
	const struct hb_py_offsets *o = &s->of->off;
	struct function f = {.firstline = s->code.firstline,
			     .mark = mark_of(&s->code, s->name_hash),
			     .kernel_mark = {0, kernel_mark(o, &s->code, s->name_hash, MARK_PLACE),
					     kernel_mark(o, &s->code, s->name_hash, MARK_NAME)},
			     .pid = pid,
			     .code = code,
			     .before = latest(n, pid, code),
			     .kind = o->lines};
	u32 id;

	gone(n, f.before);
	if (n->n_functions >= n->max) {
		n->overflow++;
		return 0;
	}
	if (hb_py_object__text(from, o, s->code.name, func, sizeof(func)) || !*func ||
	    hb_py_object__text(from, o, s->code.file, file, sizeof(file)))
		return 0;
	f.func = intern(n, func);
	f.file = intern(n, file);
	f.lines = hb_py_object__bytes(from, o, s->code.lines, &f.n_lines);
	id = f.lines ? add_function(n, &f) : 0;
	if (!id)
		free(f.lines);
	else if (hb_map__put(n->by_code, code_key(pid, code), id))
		return 0;
	return id;
}

static void parse(const struct process *p, const char *bytes, struct seen *s)
{
	for (u32 i = 0; i < p->n && !s->of; i++) {
		hb_py_code__parse(&p->layout[i].off, bytes, &s->code);
		if (s->code.type == p->layout[i].code_type)
			s->of = &p->layout[i];
	}
}

static size_t code_bytes(const struct process *p)
{
	size_t bytes = 0;

	for (u32 i = 0; i < p->n; i++) {
		size_t one = hb_py_code__bytes(&p->layout[i].off);

		bytes = one > bytes ? one : bytes;
	}
	return bytes <= HB_PY_CODE_MAX ? bytes : 0;
}

/* All frames' code objects and the hashes of their names, in two calls. */
static bool read_codes(u32 from, const struct process *p, const u64 *codes, const enum mark *marks, u32 n,
		       struct seen *s)
{
	u64 names[HB_STACK_DEPTH], hashes[HB_STACK_DEPTH];
	size_t bytes = code_bytes(p);
	bool ok[HB_STACK_DEPTH];
	char *data = bytes ? malloc(n * bytes) : NULL;

	if (!data)
		return false;
	hb_py_memory__many(from, codes, n, data, bytes, ok);
	for (u32 i = 0; i < n; i++) {
		memset(&s[i], 0, sizeof(s[i]));
		s[i].m = marks[i];
		if (ok[i])
			parse(p, data + i * bytes, &s[i]);
		names[i] = s[i].of ? s[i].code.func_name + s[i].of->off.walk.str_hash : 0;
	}
	hb_py_memory__many(from, names, n, hashes, sizeof(*hashes), ok);
	for (u32 i = 0; i < n; i++) {
		s[i].name_hash = ok[i] ? hashes[i] : 0;
		if (s[i].of)
			s[i].mark = kernel_mark(&s[i].of->off, &s[i].code, s[i].name_hash, marks[i]);
	}
	free(data);
	return true;
}

/* Whether the kernel saw these marks, that of code object `at` replaced by `other`. */
static bool matches(const struct hb_stack_trace *t, const struct seen *s, u32 at, u64 other)
{
	u64 h = HB_PY_HASH_BEGIN;
	u32 k = 0;

	for (u32 i = 0; i < t->n; i++) {
		u64 mark = 0;

		if (HB_PY_CODE(t->ip[i])) {
			mark = k == at ? other : s[k].mark;
			k++;
		}
		h = hb_py_hash(h, t->ip[i], mark);
	}
	return hb_py_hash_end(h, t->state) == t->hash;
}

#define AS_READ	  UINT32_MAX
#define OLDER_MAX 16 /* functions at one address that are tried */

/* One function is another than it was: is it one that was there before? */
static bool one_older(const struct hb_py_names *n, u32 pid, const struct hb_stack_trace *t, const u64 *codes,
		      u32 n_codes, struct seen *s)
{
	for (u32 i = 0; i < n_codes; i++) {
		u32 id = latest(n, pid, codes[i]);

		for (u32 k = 0; id && k < OLDER_MAX; k++) {
			const struct function *f = &n->functions[id - 1];

			u64 mark = f->kernel_mark[s[i].m];

			if (mark != s[i].mark && matches(t, s, i, mark)) {
				s[i].id = id;
				return true;
			}
			id = f->before;
		}
	}
	return false;
}

/* A function that was known before and is still the same. */
static u32 still(const struct hb_py_names *n, u32 pid, u64 code, const struct seen *s)
{
	u32 id = latest(n, pid, code);

	return id && s->of && n->functions[id - 1].mark == mark_of(&s->code, s->name_hash) ? id : 0;
}

/* From the memory of process `from`: the process itself, or one that it was forked from. */
static void see_from(struct hb_py_names *n, u32 from, u32 pid, const struct process *p,
		     const struct hb_stack_trace *t, const u64 *codes, const enum mark *marks, u32 n_codes,
		     u32 *ids)
{
	struct seen s[HB_STACK_DEPTH];
	bool same;

	if (!read_codes(from, p, codes, marks, n_codes, s))
		return;
	same = matches(t, s, AS_READ, 0) || one_older(n, pid, t, codes, n_codes, s);
	for (u32 i = 0; i < n_codes; i++) {
		u32 id = s[i].id ? s[i].id : still(n, pid, codes[i], &s[i]);

		/* In a stack that is not what the kernel saw at least one function is wrong: those count that
		 * were there before. */
		if (!id && same && s[i].of)
			id = read_function(n, from, pid, codes[i], &s[i]);
		ids[i] = ids[i] ? ids[i] : id;
	}
}

/* What is known of code objects that cannot be read any more. */
static void remember(const struct hb_py_names *n, u32 pid, const u64 *codes, const enum mark *marks,
		     u32 n_codes, const struct hb_stack_trace *t, u32 *ids)
{
	struct seen s[HB_STACK_DEPTH] = {0};

	for (u32 i = 0; i < n_codes; i++) {
		s[i].id = ids[i] ? ids[i] : latest(n, pid, codes[i]);
		s[i].m = marks[i];
		s[i].mark = s[i].id ? n->functions[s[i].id - 1].kernel_mark[marks[i]] : 0;
	}
	if (!matches(t, s, AS_READ, 0) && !one_older(n, pid, t, codes, n_codes, s))
		return;
	for (u32 i = 0; i < n_codes; i++)
		ids[i] = s[i].id;
}

static const struct process *process_of(const struct hb_py_names *n, u32 pid)
{
	u64 at;

	return hb_map__get(n->by_pid, pid, &at) ? &n->processes[at - 1] : NULL;
}

static bool all_found(const u32 *ids, u32 n)
{
	for (u32 i = 0; i < n; i++)
		if (!ids[i])
			return false;
	return true;
}

void hb_py_names__see(struct hb_py_names *n, u32 pid, const u64 *words, u32 n_words, u32 *ids)
{
	const struct process *p = process_of(n, pid);
	const enum mark whole = MARK_NAME;
	struct seen s;

	for (u32 i = 0; i < n_words; i++) {
		u64 code = HB_PY_CODE(words[i]);

		ids[i] = 0;
		if (!p || !code || !read_codes(pid, p, &code, &whole, 1, &s))
			continue;
		ids[i] = still(n, pid, code, &s);
		if (!ids[i] && s.of)
			ids[i] = read_function(n, pid, pid, code, &s);
	}
}

#define ANCESTORS 4

void hb_py_names__see_stack(struct hb_py_names *n, u32 pid, const struct hb_stack_trace *t, u32 *ids)
{
	const struct process *p = process_of(n, pid), *owner = p;
	u32 at[HB_STACK_DEPTH], found[HB_STACK_DEPTH] = {0}, n_codes = 0, from = pid;
	enum mark marks[HB_STACK_DEPTH];
	u64 codes[HB_STACK_DEPTH];

	memset(ids, 0, t->n * sizeof(*ids));
	for (u32 i = 0; p && i < t->n && i < HB_STACK_DEPTH; i++) {
		if (!HB_PY_CODE(t->ip[i]))
			continue;
		at[n_codes] = i;
		marks[n_codes] = mark_at(t, i);
		codes[n_codes++] = HB_PY_CODE(t->ip[i]);
	}
	/* A forked process may be gone; what it ran lies at the same place in its parent. */
	for (u32 i = 0; i < ANCESTORS && owner && !all_found(found, n_codes); i++) {
		see_from(n, from, pid, p, t, codes, marks, n_codes, found);
		from = owner->parent;
		owner = from ? process_of(n, from) : NULL;
	}
	if (!all_found(found, n_codes))
		remember(n, pid, codes, marks, n_codes, t, found);
	for (u32 i = 0; i < n_codes; i++) {
		ids[at[i]] = found[i];
		if (found[i] && marks[i] == MARK_NONE)
			n->functions[found[i] - 1].unmarked = true;
	}
	/* The inner ones are there and an outer one is gone already: it was made as the program runs. */
	if (n_codes && found[0] && marks[n_codes - 1] == MARK_NONE && !all_found(found, n_codes))
		worry(n, pid);
}

/* ---- functions that do not stay ---- */

/* Looks at functions of one process whose frames were not marked, as they lie there now. */
static void check_some(struct hb_py_names *n, const struct process *p, const u32 *ids, u32 count)
{
	enum mark marks[HB_STACK_DEPTH];
	u64 codes[HB_STACK_DEPTH], word;
	struct seen s[HB_STACK_DEPTH];
	u32 pid = n->functions[ids[0]].pid;

	for (u32 i = 0; i < count; i++) {
		codes[i] = n->functions[ids[i]].code;
		marks[i] = MARK_NAME;
	}
	/* Of a process that has ended, or runs another program by now, nothing can be said. */
	if (!p->n || !read_codes(pid, p, codes, marks, count, s) ||
	    !hb_py_memory__word(pid, p->layout[0].code_type, &word))
		return;
	for (u32 i = 0; i < count; i++) {
		const struct function *f = &n->functions[ids[i]];

		if (!s[i].of || s[i].mark != f->kernel_mark[MARK_NAME] ||
		    mark_of(&s[i].code, s[i].name_hash) != f->mark)
			gone(n, ids[i] + 1);
	}
}

void hb_py_names__check(struct hb_py_names *n, u32 most)
{
	const struct process *p = NULL;
	u32 ids[HB_STACK_DEPTH], count = 0, looked = 0;

	for (u32 k = 0; k < n->n_functions && looked < most; k++) {
		const struct function *f;

		n->checked = n->checked < n->n_functions ? n->checked : 0;
		f = &n->functions[n->checked];
		if (f->unmarked && !f->gone) {
			if (count && (count == HB_STACK_DEPTH || n->functions[ids[0]].pid != f->pid)) {
				check_some(n, p, ids, count);
				count = 0;
			}
			p = process_of(n, f->pid);
			if (p)
				ids[count++] = n->checked;
			looked++;
		}
		n->checked++;
	}
	if (count)
		check_some(n, p, ids, count);
}

u32 hb_py_names__uneasy(struct hb_py_names *n)
{
	u64 key, at;
	size_t pos = 0;

	while (hb_map__next(n->by_pid, &pos, &key, &at)) {
		struct process *p = &n->processes[at - 1];

		if (p->uneasy && !p->told) {
			p->told = true;
			return (u32)key;
		}
	}
	return 0;
}

bool hb_py_names__steady(const struct hb_py_names *n, u32 pid)
{
	const struct process *p = process_of(n, pid);

	return !p || !p->uneasy;
}

bool hb_py_names__stayed(const struct hb_py_names *n, u32 id)
{
	return !id || id > n->n_functions || !n->functions[id - 1].unmarked || !n->functions[id - 1].gone;
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

bool hb_py_place__is_shim(const struct hb_py_place *p)
{
	return (!*p->file && !*p->func) ||
	       (strcmp(p->file, "__init__") == 0 && strcmp(p->func, "__init__") == 0);
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
