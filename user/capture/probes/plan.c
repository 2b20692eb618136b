/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/probes/plan_private.h"
#include "base/map.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Fewer runtime launches than this in a check say nothing: one may be on its way to the driver. */
#define CHECK_MIN 4

void *hb_plan__grow(void *array, u32 n, u32 *cap, size_t size)
{
	u32 want = *cap ? *cap * 2 : 16;
	void *p;

	if (n < *cap)
		return array;
	p = realloc(array, want * size);
	if (p)
		*cap = want;
	return p;
}

/* ---- refusals and remarks: best effort, a lost one is no failure ---- */

void hb_plan__refuse(struct hb_plan *p, const char *file, const char *symbol, const char *why)
{
	struct hb_refusal *r;

	for (u32 i = 0; i < p->n_refusals; i++)
		if (!strcmp(p->refusals[i].file, file) && !strcmp(p->refusals[i].symbol, symbol))
			return;
	r = hb_plan__grow(p->refusals, p->n_refusals, &p->cap_refusals, sizeof(*r));
	if (!r)
		return;
	p->refusals = r;
	r = &p->refusals[p->n_refusals];
	*r = (struct hb_refusal){strdup(file), strdup(symbol), strdup(why)};
	if (!r->file || !r->symbol || !r->why) {
		free(r->file);
		free(r->symbol);
		free(r->why);
		return;
	}
	hb_text__clean(r->file);
	hb_text__clean(r->symbol);
	p->n_refusals++;
}

void hb_plan__remark(struct hb_plan *p, const char *fmt, ...)
{
	char text[1024], *kept;
	va_list ap;
	char **r;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	hb_text__clean(text);
	for (u32 i = 0; i < p->n_remarks; i++)
		if (!strcmp(p->remarks[i], text))
			return;
	r = hb_plan__grow(p->remarks, p->n_remarks, &p->cap_remarks, sizeof(*r));
	kept = r ? strdup(text) : NULL;
	if (r)
		p->remarks = r;
	if (kept)
		p->remarks[p->n_remarks++] = kept;
}

const struct hb_refusal *hb_plan__refusals(const struct hb_plan *p, u32 *n)
{
	*n = p->n_refusals;
	return p->refusals;
}

const char *const *hb_plan__remarks(const struct hb_plan *p, u32 *n)
{
	*n = p->n_remarks;
	return (const char *const *)p->remarks;
}

/* ---- families ---- */

/* "cuda-driver" and "cuda-runtime" are two layers of one family, "cuda". */
static size_t family_length(const char *api)
{
	static const char *const layers[] = {"-driver", "-runtime"};
	size_t len = strlen(api);

	for (u32 i = 0; i < 2; i++) {
		size_t w = strlen(layers[i]);

		if (len > w && !strcmp(api + len - w, layers[i]))
			return len - w;
	}
	return len;
}

static int family_of(struct hb_plan *p, const char *api)
{
	size_t len = family_length(api);

	for (u32 i = 0; i < p->n_families; i++)
		if (strlen(p->families[i]) == len && !memcmp(p->families[i], api, len))
			return (int)i;
	if (p->n_families == HB_MAX_FAMILIES)
		return HB_MAX_FAMILIES - 1; /* a table with 32 APIs: the rest share the last */
	p->families[p->n_families] = strndup(api, len);
	return p->families[p->n_families] ? (int)p->n_families++ : -ENOMEM;
}

static int learn_families(struct hb_plan *p)
{
	u32 n;
	const struct hb_row *rows = hb_tables__rows(p->tables, &n);

	p->row_family = calloc(n ? n : 1, 1);
	p->lib_rows = calloc(n ? n : 1, sizeof(*p->lib_rows));
	for (u32 i = 0; p->row_family && p->lib_rows && i < n; i++) {
		int f = family_of(p, rows[i].api);

		if (f < 0)
			return f;
		p->row_family[i] = (u8)f;
		if (!i || strcmp(rows[i].library, rows[i - 1].library))
			p->lib_rows[p->n_lib_rows++] = i;
		p->family_layers[f] |= (u8)(1 << rows[i].layer);
	}
	return p->row_family && p->lib_rows ? 0 : -ENOMEM;
}

/* ---- the object ---- */

struct hb_plan *hb_plan__new(const struct hb_tables *t, const struct hb_plan_opts *o)
{
	struct hb_plan *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->tables = t;
	p->o = *o;
	p->files = calloc(HB_MAX_FILES, sizeof(*p->files));
	p->file_keys = calloc(HB_MAX_FILES, sizeof(*p->file_keys));
	p->probes = calloc(HB_MAX_PROBES, sizeof(*p->probes));
	p->descs = calloc(HB_MAX_PROBES, sizeof(*p->descs));
	p->out = calloc(HB_MAX_FILES, sizeof(*p->out));
	if (p->files && p->file_keys && p->probes && p->descs && p->out && !learn_families(p))
		return p;
	hb_plan__free(p);
	return NULL;
}

static void free_files(struct hb_plan *p)
{
	for (u32 i = 0; i < p->n_files; i++) {
		for (u32 k = 0; k < p->files[i].n_sites; k++)
			free(p->files[i].sites[k].symbol);
		free(p->files[i].sites);
		free(p->files[i].path);
	}
	free(p->files);
	free(p->file_keys);
}

static void free_words(struct hb_plan *p)
{
	for (u32 i = 0; i < p->n_refusals; i++) {
		free(p->refusals[i].file);
		free(p->refusals[i].symbol);
		free(p->refusals[i].why);
	}
	for (u32 i = 0; i < p->n_remarks; i++)
		free(p->remarks[i]);
	for (u32 i = 0; i < p->n_families; i++)
		free(p->families[i]);
	free(p->refusals);
	free(p->remarks);
}

void hb_plan__free(struct hb_plan *p)
{
	if (!p)
		return;
	free_files(p);
	free_words(p);
	for (u32 i = 0; i < p->n_libs; i++)
		hb_lib__free(&p->libs[i]);
	for (u32 i = 0; i < p->n_choices; i++) {
		free(p->choices[i].libs);
		free(p->choices[i].files);
		free(p->choices[i].checks);
	}
	free(p->libs);
	free(p->choices);
	free(p->row_family);
	free(p->lib_rows);
	free(p->probes);
	free(p->descs);
	free(p->out);
	free(p);
}

/* ---- files and ids ---- */

static int add_site(struct hb_plan *p, struct hb_plan_file *f, const struct hb_cand *k, u8 pick, bool quiet)
{
	u32 id = p->n_probes + 1;
	struct hb_site *s = &f->sites[f->n_sites];

	if (id >= HB_MAX_PROBES) {
		hb_plan__refuse(p, f->path, k->symbol, "more than 4,095 functions to probe in one window");
		return 0;
	}
	*s = (struct hb_site){.probe = id,
			      .offset = k->offset,
			      .ret = pick == HB_PICK_RETURN,
			      .row = k->row,
			      .symbol = strdup(k->symbol)};
	if (!s->symbol)
		return -ENOMEM;
	p->probes[id] = (struct hb_probe_ref){p->n_files, f->n_sites};
	p->descs[id] = (struct hb_probe_desc){
	    .cls = k->row->cls, .layer = k->row->layer, .timed = s->ret, .flags = quiet ? HB_PROBE_QUIET : 0};
	memcpy(p->descs[id].args, k->row->args, sizeof(k->row->args));
	f->n_sites++;
	p->n_probes = id;
	return 0;
}

int hb_plan__file(struct hb_plan *p, u32 lib, const u8 *picks, bool quiet, u64 salt)
{
	const struct hb_lib *l = &p->libs[lib];
	u64 key = hb_hash64(hb_hash_bytes(picks, l->n) ^ hb_hash64(lib * 2 + quiet) ^ salt);
	struct hb_plan_file *f = &p->files[p->n_files];
	int err = 0;

	for (u32 i = 0; i < p->n_files; i++)
		if (p->file_keys[i] == key && p->files[i].ino == l->ino && p->files[i].dev == l->dev)
			return (int)i;
	if (p->n_files == HB_MAX_FILES)
		return -E2BIG;
	*f = (struct hb_plan_file){.ino = l->ino, .dev = l->dev, .path = strdup(l->path)};
	f->sites = calloc(l->n, sizeof(*f->sites));
	if (!f->path || !f->sites)
		err = -ENOMEM;
	for (u32 i = 0; i < l->n && !err; i++)
		if (picks[i] != HB_PICK_NO)
			err = add_site(p, f, &l->cands[i], picks[i], quiet);
	if (err) { /* ids given out to it stay unused */
		free(f->path);
		free(f->sites);
		return err;
	}
	p->file_keys[p->n_files] = key;
	return (int)p->n_files++;
}

const char *hb_plan__absent(const struct hb_plan *p, const struct hb_plan_file *f)
{
	for (u32 i = 0; i < p->n_libs; i++) {
		const struct hb_lib *l = &p->libs[i];

		if (l->ino == f->ino && l->dev == f->dev && l->absent.size && !l->absent.oom)
			return l->absent.data;
	}
	return "";
}

const struct hb_plan_file *hb_plan__files(const struct hb_plan *p, u32 *n)
{
	*n = p->n_files;
	return p->files;
}

u32 hb_plan__n_probes(const struct hb_plan *p)
{
	return p->n_probes;
}

const struct hb_probe_desc *hb_plan__desc(const struct hb_plan *p, u32 id)
{
	return id && id <= p->n_probes ? &p->descs[id] : NULL;
}

static int write_row(const struct hb_plan *p, u32 id, struct hb_window_writer *w)
{
	const struct hb_plan_file *f = &p->files[p->probes[id].file];
	const struct hb_site *s = &f->sites[p->probes[id].site];
	char base[256];
	struct hb_probe_row row = {
	    .name = hb_window_writer__string(w, hb_symbol__base(s->symbol, base, sizeof(base))),
	    .symbol = hb_window_writer__string(w, s->symbol),
	    .api = hb_window_writer__string(w, s->row->api),
	    .library = hb_window_writer__string(w, f->path),
	    .cls = s->row->cls,
	    .layer = s->row->layer,
	    .handle = s->row->handle,
	    .timed = s->ret,
	};

	return hb_window_writer__probe(w, id, &row);
}

int hb_plan__write_rows(const struct hb_plan *p, u32 first, struct hb_window_writer *w)
{
	int err = 0;

	for (u32 id = first ? first : 1; id <= p->n_probes && !err; id++)
		err = write_row(p, id, w);
	return err;
}

bool hb_plan__simulated(const struct hb_plan *p)
{
	for (u32 i = 0; i < p->n_libs; i++)
		if (p->libs[i].simulated)
			return true;
	return false;
}

/* ---- processes ---- */

static struct hb_choice *choice_of(const struct hb_plan *p, u32 pid)
{
	for (u32 i = 0; i < p->n_choices; i++)
		if (p->choices[i].pid == pid)
			return &p->choices[i];
	return NULL;
}

static struct hb_choice *choice_for(struct hb_plan *p, const struct hb_process *proc)
{
	struct hb_choice *c = choice_of(p, proc->pid);

	if (!c) {
		c = hb_plan__grow(p->choices, p->n_choices, &p->cap_choices, sizeof(*c));
		if (!c)
			return NULL;
		p->choices = c;
		c = &p->choices[p->n_choices++];
		*c = (struct hb_choice){.pid = proc->pid, .start_ticks = proc->start_ticks};
	}
	if (c->start_ticks != proc->start_ticks) { /* a reused pid: another process */
		memset(c->moved, 0, sizeof(c->moved));
		c->start_ticks = proc->start_ticks;
	}
	return c;
}

/* Libraries of the tables among the mappings, each once. */
static int find_libs(struct hb_plan *p, struct hb_choice *c, const struct hb_process *proc)
{
	c->n_libs = 0;
	for (u32 i = 0; i < proc->n_maps; i++) {
		const struct hb_mapping *m = &proc->maps[i];
		u32 *libs, k = 0;
		int lib;

		if (!m->ino || !m->path || !hb_plan__covers(p, m->path))
			continue;
		lib = hb_plan__lib(p, proc, m);
		if (lib == -ENOMEM)
			return lib;
		while (k < c->n_libs && c->libs[k] != (u32)lib)
			k++;
		if (lib < 0 || k < c->n_libs)
			continue;
		libs = hb_plan__grow(c->libs, c->n_libs, &c->cap_libs, sizeof(*libs));
		if (!libs)
			return -ENOMEM;
		c->libs = libs;
		c->libs[c->n_libs++] = (u32)lib;
	}
	return 0;
}

static bool returns_safe(const struct hb_plan *p, const struct hb_process *proc)
{
	return proc->seccomp != 2 || p->o.no_returns || hb_plan__confined_returns_work();
}

int hb_plan__add_process(struct hb_plan *p, const struct hb_process *proc, struct hb_error *e)
{
	struct hb_choice *c = choice_for(p, proc);
	u32 before = p->n_files;
	int err = c ? find_libs(p, c, proc) : -ENOMEM;

	if (!err) {
		/* The trial costs a child: only where there is something to probe. */
		c->returns = !c->n_libs || returns_safe(p, proc);
		err = hb_plan__choose(p, c);
	}
	if (err == -ENOMEM)
		return hb_error__nomem(e, "the plan");
	if (err)
		return hb_error__set(e, HB_EXIT_FAILED, err,
				     "process %u: more than %u libraries to probe in one window", proc->pid,
				     HB_MAX_FILES);
	hb_plan__explain(p, c, proc);
	return (int)(p->n_files - before);
}

static const struct hb_plan_file *const *give(struct hb_plan *p, const u32 *idx, u32 have, u32 *n)
{
	for (u32 i = 0; i < have; i++)
		p->out[i] = &p->files[idx[i]];
	*n = have;
	return p->out;
}

const struct hb_plan_file *const *hb_plan__files_of(struct hb_plan *p, u32 pid, u32 *n)
{
	const struct hb_choice *c = choice_of(p, pid);

	return give(p, c ? c->files : NULL, c ? c->n_files : 0, n);
}

const struct hb_mapping *hb_plan_file__mapping(const struct hb_plan_file *f, const struct hb_process *proc)
{
	for (u32 i = 0; i < proc->n_maps; i++)
		if (proc->maps[i].ino == f->ino && proc->maps[i].dev == f->dev)
			return &proc->maps[i];
	return NULL;
}

/* ---- the arrival check ---- */

const struct hb_plan_file *const *hb_plan__check_files(struct hb_plan *p, u32 pid, u32 *n)
{
	const struct hb_choice *c = choice_of(p, pid);

	return give(p, c ? c->checks : NULL, c ? c->n_checks : 0, n);
}

struct arrivals {
	u64 runtime, driver, inner;
	bool ends; /* runtime calls had return probes, so that `inner` means something */
};

static void add_arrivals(const struct hb_plan *p, u32 file, u32 cls, bool check, const u64 *hits,
			 const u64 *inner, struct arrivals *a)
{
	const struct hb_plan_file *f = &p->files[file];

	for (u32 i = 0; i < f->n_sites; i++) {
		const struct hb_site *s = &f->sites[i];

		if (s->row->cls != cls)
			continue;
		if (check) {
			a->runtime += hits[s->probe];
			a->ends = a->ends && s->ret;
		} else if (s->row->layer == HB_LAYER_DRIVER) {
			a->driver += hits[s->probe];
			a->inner += inner[s->probe];
		}
	}
}

static const u8 check_classes[] = {HB_CLASS_LAUNCH, HB_CLASS_GRAPH};
#define N_CHECK_CLASSES (sizeof(check_classes) / sizeof(*check_classes))

enum verdict { TOO_FEW, ARRIVES, BYPASSES };

static enum verdict arrival_of(const struct hb_plan *p, const struct hb_choice *c, u32 cls, const u64 *hits,
			       const u64 *inner)
{
	struct arrivals a = {.ends = true};

	for (u32 i = 0; i < c->n_checks; i++)
		add_arrivals(p, c->checks[i], cls, true, hits, inner, &a);
	for (u32 i = 0; i < c->n_files; i++)
		add_arrivals(p, c->files[i], cls, false, hits, inner, &a);
	if (a.runtime < CHECK_MIN)
		return TOO_FEW;
	return (a.ends ? a.inner : a.driver) > 0 ? ARRIVES : BYPASSES;
}

bool hb_plan__check_ready(struct hb_plan *p, u32 pid, const u64 *hits)
{
	const struct hb_choice *c = choice_of(p, pid);

	for (u32 i = 0; c && i < N_CHECK_CLASSES; i++)
		if (arrival_of(p, c, check_classes[i], hits, hits) != TOO_FEW)
			return true;
	return false;
}

/* From now on the check's probes of these classes record. Without an end, as launches are unless asked for.
 */
static void wake_checks(struct hb_plan *p, const struct hb_choice *c)
{
	for (u32 i = 0; i < c->n_checks; i++) {
		struct hb_plan_file *f = &p->files[c->checks[i]];

		for (u32 k = 0; k < f->n_sites; k++) {
			struct hb_site *s = &f->sites[k];

			if (!c->moved[s->row->cls])
				continue;
			p->descs[s->probe].flags &= (u8)~HB_PROBE_QUIET;
			if (p->o.timed >> s->row->cls & 1)
				continue;
			p->descs[s->probe].timed = 0;
			s->ret = false;
		}
	}
}

bool hb_plan__check(struct hb_plan *p, u32 pid, const u64 *hits, const u64 *inner)
{
	struct hb_choice *c = choice_of(p, pid);
	enum verdict v[N_CHECK_CLASSES];
	bool moved = false;

	for (u32 i = 0; c && i < c->n_checks; i++)
		moved |= hb_plan__woken(p, c, c->checks[i]);
	for (u32 i = 0; c && i < N_CHECK_CLASSES; i++)
		v[i] = arrival_of(p, c, check_classes[i], hits, inner);
	for (u32 i = 0; c && i < N_CHECK_CLASSES; i++) {
		u32 cls = check_classes[i];
		/* One way to the driver serves all: what was hardly called follows what was. */
		enum verdict mine = v[i] == TOO_FEW ? v[(i + 1) % N_CHECK_CLASSES] : v[i];

		if (c->moved[cls] || mine != BYPASSES)
			continue;
		c->moved[cls] = moved = true;
		hb_plan__remark(
		    p,
		    "calls of class %s made at the runtime do not arrive at the driver's exported "
		    "function: they are taken at the runtime, beside those made at the driver directly",
		    hb_word(HB_WORDS_CLASS, cls));
	}
	if (moved)
		wake_checks(p, c);
	return moved && !hb_plan__choose(p, c);
}
