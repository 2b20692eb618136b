/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/python/events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "capture/python/memory.h"
#include "capture/python/private.h"
#include "capture/symbols/symbols.h"

/* ---- layouts ---- */

struct layout {
	u16 exc, exc_value, exc_tb; /* see struct hb_py_raise */
	u16 tb, args, frame;
	u16 type_name, type_flags;
	u16 eval_breaker, native_id;
	u16 gil_at;	 /* up to 3.11: the GIL in _PyRuntime */
	u16 gil_pointer; /* later: in an interpreter, the address of its GIL; 0: there is none */
	u16 gc_stats;	 /* in an interpreter; 0: not needed, the generation is told */
};

/* Free-threaded builds have a GIL that hardly anybody takes. */
static const struct {
	u8 minor, free_threaded;
	struct layout layout;
} builds[] = {
    {8, 0, {88, 96, 104, 0, 24, 0, 24, 168, 0, 0, 1152, 0, 0}},
    {9, 0, {88, 96, 104, 0, 24, 0, 24, 168, 0, 0, 352, 0, 0}},
    {10, 0, {88, 96, 104, 0, 24, 0, 24, 168, 0, 0, 352, 0, 0}},
    {11, 0, {96, 104, 112, 0, 24, 24, 24, 168, 0, 160, 360, 0, 0}},
    {12, 0, {96, 0, 0, 40, 24, 24, 24, 168, 0, 144, 0, 384, 0}},
    {13, 0, {112, 0, 0, 40, 24, 24, 24, 168, 24, 160, 0, 16, 7528}},
    {14, 0, {112, 0, 0, 40, 24, 24, 24, 168, 24, 160, 0, 16, 7528}},
    {15, 0, {136, 0, 0, 40, 24, 24, 24, 168, 24, 184, 0, 16, 0}},
    {13, 1, {112, 0, 0, 56, 40, 40, 40, 184, 24, 160, 0, 0, 0}},
    {14, 1, {112, 0, 0, 56, 40, 40, 40, 184, 24, 160, 0, 0, 0}},
    {15, 1, {136, 0, 0, 56, 40, 40, 40, 184, 24, 184, 0, 0, 0}},
};

static const struct layout *layout_of(const struct hb_py_runtime *r)
{
	for (unsigned i = 0; i < sizeof(builds) / sizeof(*builds); i++)
		if (builds[i].minor == r->minor && builds[i].free_threaded == r->free_threaded)
			return &builds[i].layout;
	return NULL;
}

/* ---- what a file offers ---- */

const struct hb_mapping *hb_py_runtime__mapping(const struct hb_py_runtime *r, const struct hb_process *p)
{
	for (u32 i = 0; i < p->n_maps; i++)
		if (p->maps[i].ino == r->file && strcmp(p->maps[i].path, r->path) == 0)
			return &p->maps[i];
	return NULL;
}

static void add_site(struct hb_py_image *im, const char *symbol, u32 cookie, u64 offset, u64 counter,
		     bool ret)
{
	struct hb_py_site *s = &im->site[im->n_sites];

	if (im->n_sites == HB_PY_SITES)
		return;
	im->n_sites++;
	*s = (struct hb_py_site){.cookie = cookie, .offset = offset, .counter = counter, .ret = ret};
	snprintf(s->symbol, sizeof(s->symbol), "%s", symbol);
}

/* After an endbr64 the kernel can emulate a push, which is several times cheaper than to step over the
 * endbr64; arguments and stack are the same there. The target's memory shows the code. */
static u64 cheapest(u32 pid, const struct hb_mapping *m, u64 offset)
{
	static const u8 endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	u8 code[6];

	if (offset < m->pgoff || hb_py_memory__read(pid, m->start + offset - m->pgoff, code, sizeof(code)) ||
	    memcmp(code, endbr64, sizeof(endbr64)) != 0)
		return offset;
	if ((code[4] & 0xf8) == 0x50 || (code[4] == 0x41 && (code[5] & 0xf8) == 0x50))
		return offset + sizeof(endbr64);
	return offset;
}

static bool add_function(const struct hb_process *p, const struct hb_mapping *m, const struct hb_elf *f,
			 struct hb_py_image *im, const char *name, u32 cookie, bool ret)
{
	struct hb_sym s;

	if (hb_elf__find(f, name, &s) || s.state != HB_SYM_OK)
		return false;
	add_site(im, name, cookie, cheapest(p->pid, m, s.offset), 0, ret);
	return true;
}

/* Its first arguments, by version, are not those of another function of that name. */
static const struct {
	const char *name;
	u8 first, last; /* minor versions that have it */
	u8 generation;	/* number of the argument */
} collectors[] = {
    {"gc_collect_main", 10, HB_PY_NEWEST, 1},
    {"collect", 8, 9, 1},
    {"collect.constprop.0", 8, 8, 0}, /* without the first argument, the only state there is */
    {"collect.constprop.1", 8, 8, 0},
};

static bool find_collector(const struct hb_process *p, const struct hb_mapping *m,
			   const struct hb_py_runtime *r, const struct hb_elf *f, struct hb_py_image *im)
{
	u32 before = im->n_sites;

	for (unsigned i = 0; i < sizeof(collectors) / sizeof(*collectors); i++)
		if (r->minor >= collectors[i].first && r->minor <= collectors[i].last)
			add_function(p, m, f, im, collectors[i].name,
				     HB_PYEV_COOKIE(HB_PYEV_COLLECT, collectors[i].generation, 0, 0), true);
	return im->n_sites > before;
}

/* A compiler may have made several places of one. */
static bool add_usdt(const struct hb_elf *f, struct hb_py_image *im, const char *name, enum hb_py_event event)
{
	struct hb_usdt u;
	unsigned n;

	for (n = 0; n < 2 && hb_elf__usdt(f, "python", name, n, &u); n++) {
		unsigned reg = HB_PYEV_REG(~0U); /* none */
		bool deref = false;
		int disp = 0;

		hb_usdt__place(u.args, &reg, &deref, &disp);
		add_site(im, name, HB_PYEV_COOKIE(event, reg, deref, disp), u.offset, u.counter, false);
	}
	return n > 0;
}

static bool find_usdt(const struct hb_elf *f, struct hb_py_image *im)
{
	struct hb_usdt u;

	return hb_elf__usdt(f, "python", "gc__done", 0, &u) &&
	       add_usdt(f, im, "gc__start", HB_PYEV_GC_START) && add_usdt(f, im, "gc__done", HB_PYEV_GC_DONE);
}

static enum hb_py_gc_way find_gc(const struct hb_process *p, const struct hb_mapping *m,
				 const struct hb_py_runtime *r, const struct hb_elf *f,
				 struct hb_py_image *im)
{
	if (find_collector(p, m, r, f, im))
		return HB_PY_GC_COLLECTOR;
	if (find_usdt(f, im))
		return HB_PY_GC_USDT;
	if (r->minor >= 13 && r->minor <= HB_PY_NEWEST &&
	    add_function(p, m, f, im, "_Py_HandlePending", HB_PYEV_COOKIE(HB_PYEV_PENDING, 0, 0, 0), true))
		return HB_PY_GC_PENDING;
	return HB_PY_GC_NONE;
}

static u64 value_of(const struct hb_elf *f, const char *name)
{
	struct hb_sym s;

	return hb_elf__find(f, name, &s) == 0 && s.state != HB_SYM_UNDEFINED ? s.value : 0;
}

static struct hb_elf *open_file(const struct hb_process *p, const struct hb_mapping *m, int *err)
{
	char path[4200];
	struct hb_elf *f;

	*err = hb_process__open_path(p, m, path, sizeof(path));
	f = *err ? NULL : hb_elf__open(path, NULL);
	if (!*err && !f)
		*err = -ENOEXEC;
	return f;
}

int hb_py_image__read(const struct hb_process *p, const struct hb_mapping *m, const struct hb_py_runtime *r,
		      struct hb_py_image *out)
{
	static const char *const quiet[] = {"PyExc_StopIteration", "PyExc_StopAsyncIteration",
					    "PyExc_GeneratorExit"};
	u64 size;
	int err;
	struct hb_elf *f = open_file(p, m, &err);

	memset(out, 0, sizeof(*out));
	if (!f)
		return err;
	out->runtime = value_of(f, "_PyRuntime");
	if (!out->runtime)
		hb_elf__section(f, ".PyRuntime", &out->runtime, &size);
	for (unsigned i = 0; i < 3; i++)
		out->quiet[i] = value_of(f, quiet[i]);
	if (layout_of(r))
		out->raises = add_function(p, m, f, out, "PyTraceBack_Here",
					   HB_PYEV_COOKIE(HB_PYEV_RAISE, 0, 0, 0), false);
	out->gc = find_gc(p, m, r, f, out);
	hb_elf__close(f);
	return 0;
}

bool hb_py_image__is_cxx(const char *path)
{
	return strncmp(hb_text__basename(path), "libstdc++.so", 12) == 0;
}

int hb_py_image__read_cxx(const struct hb_process *p, const struct hb_mapping *m, struct hb_py_image *out)
{
	int err;
	struct hb_elf *f = open_file(p, m, &err);

	memset(out, 0, sizeof(*out));
	if (!f)
		return err;
	out->raises =
	    add_function(p, m, f, out, "__cxa_throw", HB_PYEV_COOKIE(HB_PYEV_THROW, 0, 0, 0), false);
	hb_elf__close(f);
	return 0;
}

/* ---- GILs ---- */

#define MAX_INTERPRETERS 256
#define MAX_STATES	 4096

struct gil { /* the begin of struct _gil_runtime_state */
	u64 interval, last_holder;
	s32 locked, pad;
	u64 switches;
};

/* The interval is a number of microseconds that somebody may have set, the holder a thread state. */
static bool is_gil(u32 pid, u64 at, const u64 *states, u32 n)
{
	struct gil g;

	if (!at || at % 8 || hb_py_memory__read(pid, at, &g, sizeof(g)))
		return false;
	if (!g.interval || g.interval > 100000000 || g.locked < -1 || g.locked > 1)
		return false;
	for (u32 i = 0; i < n; i++)
		if (states[i] == g.last_holder)
			return true;
	return !g.last_holder || n == MAX_STATES;
}

static void add_gil(struct hb_py_events *e, u64 at, u32 runtime)
{
	for (u32 i = 0; i < e->n_gils; i++)
		if (e->gil[i] == at)
			return;
	if (e->n_gils == HB_PY_GILS)
		return;
	e->gil_runtime[e->n_gils] = runtime;
	e->gil[e->n_gils++] = at;
}

static void find_gils(u32 pid, const struct hb_py_runtime *r, u32 index, struct hb_py_events *e)
{
	const struct layout *l = layout_of(r);
	u64 *states = malloc(MAX_STATES * sizeof(*states)), interp, at;
	u32 n = states ? hb_py_threads__list(pid, r, states, MAX_STATES) : 0;

	if (l && n && l->gil_at && is_gil(pid, r->address + l->gil_at, states, n))
		add_gil(e, r->address + l->gil_at, index);
	if (l && n && l->gil_pointer && hb_py_memory__word(pid, r->address + r->off.interpreters, &interp))
		for (u32 i = 0; interp && i < MAX_INTERPRETERS; i++) {
			if (hb_py_memory__word(pid, interp + l->gil_pointer, &at) &&
			    is_gil(pid, at, states, n))
				add_gil(e, at, index);
			if (!hb_py_memory__word(pid, interp + r->off.interp_next, &interp))
				break;
		}
	free(states);
}

/* ---- threads' numbers before 3.11 ---- */

#define PTHREAD_AREA 0x400

static bool is_tid(const u32 *tids, u32 n, u32 tid)
{
	for (u32 i = 0; i < n; i++)
		if (tids[i] == tid)
			return true;
	return false;
}

/* A C library keeps a thread's tid in what its pthread_t points at: the place that holds one of the process's
 * tids in all threads, a different one in each. */
static u16 find_tid(u32 pid, const struct hb_py_runtime *r)
{
	u64 states[64], self;
	u32 area[64][PTHREAD_AREA / 4], n_tids, n_areas = 0;
	u32 n = hb_py_threads__list(pid, r, states, 64), *tids = hb_process__threads(pid, &n_tids);
	u16 found = 0;

	/* As the process itself sees them. */
	for (u32 i = 0; tids && i < n_tids; i++) {
		char comm[16];

		hb_thread__read(pid, tids[i], &tids[i], comm);
	}
	for (u32 i = 0; tids && i < n; i++)
		if (hb_py_memory__word(pid, states[i] + r->off.walk.thread_id, &self) &&
		    !hb_py_memory__read(pid, self, area[n_areas], PTHREAD_AREA))
			n_areas++;
	for (u32 at = 0; n_areas && at < PTHREAD_AREA / 4 && !found; at++) {
		u32 votes = 0;

		for (u32 i = 0; i < n_areas; i++)
			votes +=
			    is_tid(tids, n_tids, area[i][at]) && (i == 0 || area[i][at] != area[i - 1][at]);
		if (votes == n_areas)
			found = (u16)(at * 4);
	}
	free(tids);
	return found;
}

/* ---- for the kernel ---- */

static void fill_raise(u32 pid, const struct hb_py_runtime *r, const struct hb_py_image *im,
		       struct hb_py_raise *e)
{
	const struct layout *l = layout_of(r);
	const struct hb_py_offsets *o = &r->off;

	if (!l)
		return;
	*e = (struct hb_py_raise){
	    .exc = l->exc,
	    .exc_value = l->exc_value,
	    .exc_tb = l->exc_tb,
	    .tb = l->tb,
	    .args = l->args,
	    .frame = l->frame,
	    .ob_type = o->ob_type,
	    .ob_size = o->ob_size,
	    .tuple_items = o->tuple_items,
	    .type_name = l->type_name,
	    .type_flags = l->type_flags,
	    .str_state = o->str_state,
	    .str_length = o->str_length,
	    .str_ascii = o->str_ascii,
	    .str_compact = o->str_compact,
	    .str_kind_bit = o->str_kind_bit,
	    .eval_breaker = l->eval_breaker,
	    .native_id = l->native_id,
	    .gc_stats = l->gc_stats,
	    .thread_tid = l->native_id ? 0 : find_tid(pid, r),
	};
	for (unsigned i = 0; im && im->runtime && i < 3; i++)
		if (im->quiet[i])
			hb_py_memory__word(pid, r->address - im->runtime + im->quiet[i], &e->quiet[i]);
}

void hb_py_events__fill(u32 pid, const struct hb_python *py, const struct hb_py_image *const *image,
			struct hb_py_events *out)
{
	const struct hb_py_runtime *r;
	u32 n, k = 0;

	memset(out, 0, sizeof(*out));
	r = hb_python__runtimes(py, &n);
	for (u32 i = 0; i < n; i++) {
		if (r[i].state != HB_PY_READY)
			continue;
		fill_raise(pid, &r[i], image[i], &out->runtime[k]);
		find_gils(pid, &r[i], k, out);
		k++;
	}
}

/* ---- for a person ---- */

static const char *const gc_words[] = {
    [HB_PY_GC_NONE] = "garbage collections have no visible hook in this build",
    [HB_PY_GC_COLLECTOR] = "garbage collections complete, with generation",
    [HB_PY_GC_USDT] = "garbage collections complete, with generation (USDT)",
    [HB_PY_GC_PENDING] = "automatic garbage collections only (gc.collect() is not seen)",
};

const char *hb_py_events__describe(u32 pid, const struct hb_py_runtime *r, const struct hb_py_image *im,
				   char *buf, size_t size)
{
	struct hb_py_events e = {0};
	char gil[96];

	find_gils(pid, r, 0, &e);
	if (r->free_threaded)
		snprintf(gil, sizeof(gil), "no GIL");
	else if (e.n_gils)
		snprintf(gil, sizeof(gil), "waits for %s%u GIL%s", e.n_gils > 1 ? "each of " : "", e.n_gils,
			 e.n_gils > 1 ? "s" : "");
	else
		snprintf(gil, sizeof(gil), "the GIL was not found");
	snprintf(buf, size, "%s; %s; %s",
		 im->raises ? "exceptions complete but those raised and handled within C"
			    : "exceptions have no visible hook in this build",
		 gil, gc_words[im->gc]);
	return buf;
}
