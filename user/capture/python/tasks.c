/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/python/tasks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/python/heap_private.h"
#include "capture/python/memory.h"
#include "capture/python/private.h"

#define INTERPRETERS 8
#define INTERP_BYTES 16384 /* of an interpreter's state, in which the dict of its modules is looked for */
#define TASKS_MAX    (1u << 16)
#define TSTATE_BYTES 2048
#define TASK_BYTES   (8 * HB_PY_TASK_WORDS)
#define C_TASK	     "_asyncio.Task"

static bool is_pointer(u64 v)
{
	return v >= 4096 && !(v & 7) && !(v >> 47);
}

static bool is_a(const struct hb_py_heap *h, u64 object, const char *type)
{
	char name[64];

	return strcmp(hb_py_type__name(h, hb_py_heap__type(h, object), name, sizeof(name)), type) == 0;
}

/* ---- where the sets are ---- */

/* asyncio.tasks among an interpreter's modules: of the dicts that its state points to the one that has it. */
static u64 find_module(const struct hb_py_heap *h, u64 interp)
{
	u64 words[INTERP_BYTES / 8], types[INTERP_BYTES / 8], dict_type = 0;
	bool ok[INTERP_BYTES / 8];
	struct hb_py_entry e;
	u32 n = 0;
	long got = hb_py_memory__some(h->pid, interp, words, sizeof(words));

	for (long i = 0; i < got / 8; i++)
		if (is_pointer(words[i]))
			words[n++] = words[i] + h->off.ob_type;
	hb_py_memory__many(h->pid, words, n, types, sizeof(*types), ok);
	for (u32 i = 0; i < n; i++) {
		u64 object = words[i] - h->off.ob_type;

		if (!ok[i] || !is_pointer(types[i]) ||
		    (dict_type ? types[i] != dict_type : !is_a(h, object, "dict")))
			continue;
		dict_type = types[i];
		if (hb_py_dict__find(h, object, "asyncio.tasks", &e) == 0 && is_a(h, e.value, "module"))
			return e.value;
	}
	return 0;
}

static void add_set(struct hb_py_asyncio *a, u64 module)
{
	static const char *const names[] = {"_scheduled_tasks", "_all_tasks"};
	const struct hb_py_heap *h = &a->heap;
	struct hb_py_plan plan;
	struct hb_py_entry e;
	u64 dict, set;

	if (!hb_py_memory__word(h->pid, module + hb_py_heap__head(h), &dict) || !is_a(h, dict, "dict"))
		return;
	for (unsigned i = 0; i < 2 && a->n_sets < HB_PY_TASK_SETS; i++)
		if (hb_py_dict__find(h, dict, names[i], &e) == 0 &&
		    hb_py_attribute__find(h, e.value, "data", &set, &plan) == HB_PY_FOUND &&
		    is_a(h, set, "set"))
			a->set[a->n_sets++] = set;
}

bool hb_py_asyncio__find(struct hb_py_asyncio *a)
{
	const struct hb_py_heap *h = &a->heap;
	u64 interp = 0, module;

	a->n_sets = 0;
	hb_py_memory__word(h->pid, a->runtime + h->off.interpreters, &interp);
	for (u32 i = 0; interp && i < INTERPRETERS; i++) {
		module = find_module(h, interp);
		if (module)
			add_set(a, module);
		if (!hb_py_memory__word(h->pid, interp + h->off.interp_next, &interp))
			break;
	}
	return a->n_sets > 0;
}

/* ---- a task ---- */

static struct hb_py_wanted *wanted(struct hb_py_wanted *w, u32 n, u64 coro)
{
	u32 low = 0;

	while (n > 0) {
		u32 half = n / 2;

		if (w[low + half].coro < coro) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return w + low;
}

static struct hb_py_wanted *match(struct hb_py_wanted *w, u32 n, u64 coro)
{
	struct hb_py_wanted *at = wanted(w, n, coro);

	return coro && at < w + n && at->coro == coro ? at : NULL;
}

/* A str, or the number of a task that was given no name. */
static bool read_name(const struct hb_py_heap *h, u64 object, struct hb_py_wanted *to)
{
	struct hb_py_value v;

	memset(&v, 0, sizeof(v));
	hb_py_value__read(h, object, 0, &v);
	if (v.kind == HB_PYKIND_STR)
		snprintf(to->name, sizeof(to->name), "%s", v.text);
	else if (v.kind == HB_PYKIND_INT)
		snprintf(to->name, sizeof(to->name), "Task-%llu", (unsigned long long)v.num);
	else
		return false;
	to->found = true;
	return true;
}

/* An object of the C class, or of one derived from it. */
static void look_at_words(struct hb_py_asyncio *a, const u64 *words, struct hb_py_wanted *w, u32 n)
{
	u32 first = a->coro_at ? a->coro_at : 2, end = a->coro_at ? a->coro_at + 1u : HB_PY_TASK_WORDS - 1;

	for (u32 i = first; i < end; i++) {
		struct hb_py_wanted *to = match(w, n, words[i]);

		if (to && read_name(&a->heap, words[i + 1], to))
			a->coro_at = (u16)i;
	}
}

/* One of the class that is written in Python: where the C module is missing, or was left aside. */
static void look_at_python(struct hb_py_asyncio *a, u64 task, struct hb_py_wanted *w, u32 n)
{
	struct hb_py_plan plan;
	struct hb_py_wanted *to;
	u64 coro, name;

	if (hb_py_attribute__find(&a->heap, task, "_coro", &coro, &plan) != HB_PY_FOUND)
		return;
	to = match(w, n, coro);
	if (to && hb_py_attribute__find(&a->heap, task, "_name", &name, &plan) == HB_PY_FOUND)
		read_name(&a->heap, name, to);
}

static void look_at_tasks(struct hb_py_asyncio *a, const u64 *tasks, u32 n_tasks, struct hb_py_wanted *w,
			  u32 n)
{
	const struct hb_py_heap *h = &a->heap;
	u64(*words)[HB_PY_TASK_WORDS] = malloc(n_tasks * sizeof(*words) + 1), type = 0;
	bool *ok = malloc(n_tasks + 1), in_c = false;

	if (words && ok)
		hb_py_memory__many(h->pid, tasks, n_tasks, words, sizeof(*words), ok);
	for (u32 i = 0; words && ok && i < n_tasks; i++) {
		u64 its = ok[i] ? words[i][h->off.ob_type / 8] : 0;

		if (its != type)
			in_c = its && hb_py_type__has_base(h, its, C_TASK);
		type = its;
		if (in_c)
			look_at_words(a, words[i], w, n);
		else if (its)
			look_at_python(a, tasks[i], w, n);
	}
	free(words);
	free(ok);
}

/* ---- sets of weak references ---- */

struct set_entry {
	u64 key, hash;
};

/* The objects that a set's references lead to: malloc'ed. */
static u64 *referents(const struct hb_py_heap *h, u64 set, u32 *n)
{
	u64 head[4]; /* fill, used, mask, table */
	struct set_entry *table = NULL;
	u64 *at = NULL, *out = NULL;
	bool *ok = NULL;
	u32 refs = 0;

	*n = 0;
	if (hb_py_memory__read(h->pid, set + hb_py_heap__head(h), head, sizeof(head)) || head[2] >= TASKS_MAX)
		return NULL;
	table = malloc((head[2] + 1) * sizeof(*table));
	at = malloc((head[2] + 1) * sizeof(*at));
	out = malloc((head[2] + 1) * sizeof(*out));
	ok = malloc(head[2] + 1);
	if (table && at && out && ok &&
	    !hb_py_memory__read(h->pid, head[3], table, (head[2] + 1) * sizeof(*table))) {
		for (u64 i = 0; i <= head[2]; i++)
			if (is_pointer(table[i].key) && table[i].hash != ~0ULL)
				at[refs++] = table[i].key + hb_py_heap__head(h);
		hb_py_memory__many(h->pid, at, refs, out, sizeof(*out), ok);
		for (u32 i = 0; i < refs; i++)
			if (ok[i] && is_pointer(out[i]))
				out[(*n)++] = out[i];
	}
	free(table);
	free(at);
	free(ok);
	return out;
}

/* ---- lists of threads (3.14 and later) ---- */

/* How far into its task a list's node lies; 0: it is none of a task. */
static u16 node_of(const struct hb_py_heap *h, u64 node)
{
	u64 block[HB_PY_TASK_WORDS * 2];
	u32 n = sizeof(block) / 8;

	if (hb_py_memory__read(h->pid, node - sizeof(block), block, sizeof(block)))
		return 0;
	for (u32 back = 4; back < n; back++) {
		u64 type = block[n - back + h->off.ob_type / 8];

		if (h->off.ob_type / 8 < back && is_pointer(type) && hb_py_type__has_base(h, type, C_TASK))
			return (u16)(8 * back);
	}
	return 0;
}

static void walk_list(struct hb_py_asyncio *a, u64 head, u64 node, struct hb_py_wanted *w, u32 n)
{
	u64 *tasks = malloc(TASKS_MAX * sizeof(*tasks));
	u32 n_tasks = 0;

	while (tasks && is_pointer(node) && node != head && n_tasks < TASKS_MAX) {
		tasks[n_tasks++] = node - a->node_at;
		if (!hb_py_memory__word(a->heap.pid, node, &node))
			break;
	}
	if (n_tasks)
		look_at_tasks(a, tasks, n_tasks, w, n);
	free(tasks);
}

/* Heads of lists that are not empty: the first node points back at them. */
static void look_in_thread(struct hb_py_asyncio *a, u64 state, struct hb_py_wanted *w, u32 n)
{
	u64 words[TSTATE_BYTES / 8], back;
	long got = hb_py_memory__some(a->heap.pid, state, words, sizeof(words));

	for (long i = 0; i + 1 < got / 8; i++) {
		u64 head = state + 8 * (u64)i;
		u16 at;

		if (!is_pointer(words[i]) || words[i] == head || !is_pointer(words[i + 1]) ||
		    !hb_py_memory__word(a->heap.pid, words[i] + 8, &back) || back != head)
			continue;
		at = a->node_at ? a->node_at : node_of(&a->heap, words[i]);
		if (!at || !hb_py_type__has_base(&a->heap, hb_py_heap__type(&a->heap, words[i] - at), C_TASK))
			continue;
		a->node_at = at;
		walk_list(a, head, words[i], w, n);
	}
}

static void look_in_threads(struct hb_py_asyncio *a, struct hb_py_wanted *w, u32 n)
{
	struct hb_py_runtime *r = calloc(1, sizeof(*r));
	u64 *states = malloc(HB_PY_THREADS_MAX * sizeof(*states));
	u32 n_states = 0;

	if (r && states) {
		r->address = a->runtime;
		r->off = a->heap.off;
		n_states = hb_py_threads__list(a->heap.pid, r, states, HB_PY_THREADS_MAX);
	}
	for (u32 i = 0; i < n_states; i++)
		look_in_thread(a, states[i], w, n);
	free(states);
	free(r);
}

void hb_py_asyncio__names(struct hb_py_asyncio *a, struct hb_py_wanted *w, u32 n)
{
	for (u32 i = 0; i < a->n_sets; i++) {
		u32 n_tasks;
		u64 *tasks = referents(&a->heap, a->set[i], &n_tasks);

		if (tasks)
			look_at_tasks(a, tasks, n_tasks, w, n);
		free(tasks);
	}
	if (a->heap.off.minor >= 14)
		look_in_threads(a, w, n);
}
