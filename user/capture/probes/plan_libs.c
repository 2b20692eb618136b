/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/probes/plan_private.h"
#include "base/map.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_MAX (64 << 20) /* of an executable that may contain a runtime */

struct reading {
	struct hb_plan *p;
	struct hb_lib *lib;
	const struct hb_elf *elf;
	const struct hb_row *row;
	u8 family;
	struct hb_map *names;	/* symbols that a row has spoken for: the first row wins, be it on or off */
	struct hb_map *offsets; /* places taken: aliases of one function are one probe */
	u32 not_entry;
	u32 may_throw; /* rows of a user's table, in a file that raises exceptions */
	bool throws;
	bool matched; /* the row has a function here, if only one that another row spoke for */
	bool oom;
};

bool hb_plan__covers(const struct hb_plan *p, const char *path)
{
	u32 n;
	const struct hb_row *rows = hb_tables__rows(p->tables, &n);

	for (u32 i = 0; i < p->n_lib_rows; i++)
		if (hb_row__covers_library(&rows[p->lib_rows[i]], path))
			return true;
	return false;
}

/* A table of ours says too that this function never throws. */
static bool trusted(const struct reading *r, const char *symbol)
{
	u32 n;
	const struct hb_row *rows = hb_tables__rows(r->p->tables, &n);

	for (u32 i = 0; i < n; i++)
		if (rows[i].builtin && rows[i].nothrow && hb_row__covers_library(&rows[i], r->lib->path) &&
		    hb_row__covers_symbol(&rows[i], symbol))
			return true;
	return false;
}

static void add_cand(struct reading *r, const struct hb_sym *s)
{
	struct hb_lib *l = r->lib;
	struct hb_cand *c = hb_plan__grow(l->cands, l->n, &l->cap, sizeof(*c));
	char *symbol = strdup(s->name);

	if (c)
		l->cands = c;
	if (!c || !symbol) {
		free(symbol);
		r->oom = true;
		return;
	}
	c = &l->cands[l->n++];
	*c = (struct hb_cand){
	    .row = r->row, .symbol = hb_text__clean(symbol), .offset = s->offset, .family = r->family};
	c->entry = hb_elf__is_entry(r->elf, s->offset);
	r->not_entry += r->row->ret && !c->entry;
	if (r->throws && !trusted(r, s->name)) {
		r->may_throw += r->row->ret && c->entry;
		c->entry = false;
	}
}

static int on_symbol(const struct hb_sym *s, void *arg)
{
	struct reading *r = arg;
	bool fresh = false;
	u64 *slot = hb_map__slot(r->names, hb_hash_bytes(s->name, strlen(s->name)), &fresh);

	r->matched = true;
	if (!slot) {
		r->oom = true;
		return 1;
	}
	if (!fresh || !hb_plan__enabled(r->p, r->row))
		return 0;
	if (s->state != HB_SYM_OK) {
		hb_plan__refuse(r->p, r->lib->path, s->name, hb_sym_state__why(s->state));
		return 0;
	}
	slot = hb_map__slot(r->offsets, s->offset, &fresh);
	if (!slot)
		r->oom = true;
	else if (fresh)
		add_cand(r, s);
	return r->oom;
}

/* An exception through a return probe ends the process. A file that neither raises one nor passes one on has
 * no business with them; in one that does, only those who wrote our tables are believed that a function never
 * throws. */
static bool raises(const struct hb_elf *elf)
{
	static const char *const names[] = {
	    "__cxa_throw",	    "__cxa_rethrow", "_Unwind_RaiseException", "_Unwind_Resume_or_Rethrow",
	    "_Unwind_ForcedUnwind", "_Unwind_Resume"};
	struct hb_sym sym;

	for (u32 i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (hb_elf__find(elf, names[i], &sym) == 0)
			return true;
	return false;
}

static void read_rows(struct reading *r)
{
	u32 n;
	const struct hb_row *rows = hb_tables__rows(r->p->tables, &n);

	for (u32 i = 0; i < n && !r->oom; i++) {
		if (!hb_row__covers_library(&rows[i], r->lib->path))
			continue;
		r->row = &rows[i];
		r->family = r->p->row_family[i];
		r->matched = false;
		hb_row__each(r->row, r->elf, on_symbol, r);
		if (!r->matched && hb_plan__enabled(r->p, r->row))
			hb_buf__printf(&r->lib->absent, "%s%s", r->lib->absent.size ? ", " : "",
				       r->row->symbol);
	}
}

static int read_lib(struct hb_plan *p, struct hb_lib *l, const char *path)
{
	struct reading r = {.p = p, .lib = l, .names = hb_map__new(), .offsets = hb_map__new()};
	struct hb_error why = {0};
	struct hb_sym sym;
	struct hb_elf *elf = hb_elf__open(path, &why);

	if (!elf)
		hb_plan__refuse(p, l->path, "*", why.err ? why.text : "cannot be read");
	r.oom = !r.names || !r.offsets;
	r.elf = elf;
	if (elf && !r.oom) {
		r.throws = raises(elf);
		read_rows(&r);
		l->simulated = hb_elf__find(elf, "hb_simulated_accelerator", &sym) == 0;
		if (!l->n && !hb_map__size(r.names))
			hb_plan__remark(
			    p,
			    "%s has none of the functions of its probe table: stripped, or another "
			    "library of that name; nothing is probed there",
			    l->path);
		if (r.not_entry)
			hb_plan__remark(
			    p,
			    "%u functions of %s cannot take a return probe (their symbol is not at a "
			    "function's first instruction): calls are counted, durations and results are "
			    "not",
			    r.not_entry, l->path);
		if (r.may_throw)
			hb_plan__remark(p,
					"%u functions of %s may throw, whatever their table says: the file "
					"raises C++ exceptions, "
					"and one through a return probe would end the process; calls are "
					"recorded, durations "
					"and results are not",
					r.may_throw, l->path);
	}
	hb_elf__close(elf);
	hb_map__free(r.names);
	hb_map__free(r.offsets);
	return r.oom ? -ENOMEM : 0;
}

static struct hb_lib *new_lib(struct hb_plan *p, const struct hb_mapping *m)
{
	struct hb_lib *l = hb_plan__grow(p->libs, p->n_libs, &p->cap_libs, sizeof(*l));
	char *path = strdup(m->path);

	if (l)
		p->libs = l;
	if (!l || !path) {
		free(path);
		return NULL;
	}
	l = &p->libs[p->n_libs++];
	*l = (struct hb_lib){.ino = m->ino, .dev = m->dev, .path = path};
	return l;
}

int hb_plan__lib(struct hb_plan *p, const struct hb_process *proc, const struct hb_mapping *m)
{
	char path[PATH_MAX];
	struct hb_lib *l;
	int err;

	for (u32 i = 0; i < p->n_libs; i++)
		if (p->libs[i].ino == m->ino && p->libs[i].dev == m->dev)
			return (int)i;
	err = hb_process__open_path(proc, m, path, sizeof(path));
	if (err) {
		/* Not remembered: another process may be able to show it. */
		hb_plan__refuse(p, m->path, "*", "the file cannot be opened from here");
		return err;
	}
	l = new_lib(p, m);
	if (!l)
		return -ENOMEM;
	err = read_lib(p, l, path);
	return err ? err : (int)p->n_libs - 1;
}

void hb_lib__free(struct hb_lib *l)
{
	for (u32 i = 0; i < l->n; i++)
		free(l->cands[i].symbol);
	free(l->cands);
	free(l->path);
	hb_buf__free(&l->absent);
}

/* ---- runtimes linked statically ---- */

static const struct hb_mapping *exe_of(const struct hb_process *proc)
{
	for (u32 i = 0; i < proc->n_maps; i++)
		if (proc->exe && proc->maps[i].path && !strcmp(proc->maps[i].path, proc->exe))
			return &proc->maps[i];
	return NULL;
}

/* Rows of the family's runtime with a plain name, looked up in the executable. */
static bool defines_runtime(const struct hb_plan *p, const struct hb_elf *elf, const char *family)
{
	u32 n;
	const struct hb_row *rows = hb_tables__rows(p->tables, &n);
	struct hb_sym sym;

	for (u32 i = 0; i < n; i++)
		if (rows[i].layer == HB_LAYER_RUNTIME && !strpbrk(rows[i].symbol, "*?[") &&
		    !strcmp(p->families[p->row_family[i]], family) &&
		    hb_elf__find(elf, rows[i].symbol, &sym) == 0 && sym.state == HB_SYM_OK)
			return true;
	return false;
}

/* A stripped executable still has the runtime's words in it: the names of its error codes. */
static bool mentions_runtime(const char *path)
{
	static const char word[] = "cudaErrorInvalidValue";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	bool found = false;
	size_t size;
	void *at;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0) {
		size = st.st_size < LOOK_MAX ? (size_t)st.st_size : LOOK_MAX;
		at = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (at != MAP_FAILED) {
			found = memmem(at, size, word, sizeof(word) - 1) != NULL;
			munmap(at, size);
		}
	}
	if (fd >= 0)
		close(fd);
	return found;
}

bool hb_plan__has_static(struct hb_plan *p, const struct hb_process *proc, const char *family)
{
	const struct hb_mapping *m = exe_of(proc);
	struct hb_elf *elf;
	char path[PATH_MAX];
	bool yes;
	u64 key = m ? m->ino ^ hb_hash_bytes(family, strlen(family)) : 0;

	if (!m || key == p->static_seen || hb_process__open_path(proc, m, path, sizeof(path)))
		return false;
	p->static_seen = key;
	elf = hb_elf__open(path, NULL);
	yes = elf && defines_runtime(p, elf, family);
	hb_elf__close(elf);
	return yes || (!strcmp(family, "cuda") && mentions_runtime(path));
}
