/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses -> code locations. One thread. */
#include "capture/target/resolve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/map.h"
#include "base/text.h"
#include "capture/symbols/symbols.h"

#define MAX_FILES   1024 /* files kept open: a mapping each, no file descriptor */
#define MAX_INDEXES 4 /* of them with a symbol index in memory: tens of megabytes for a framework library */
#define MAX_SNAPSHOTS                                                                                        \
	4 /* mappings of one process, newest first: what was unmapped or replaced by exec still resolves */
#define RELEARN_NS 100000000ull /* a JIT's addresses must not make us read /proc for every frame */

struct file {
	u64 ino;
	u32 dev;
	struct hb_elf *elf; /* NULL: could not be read; not tried again */
	u64 used;	    /* stamp of the last use of its index; 0: no index */
};

struct proc {
	u32 pid;
	bool gone;
	u64 learned; /* monotonic ns */
	u32 n;
	struct hb_process *snap[MAX_SNAPSHOTS];
};

struct hb_resolve {
	struct hb_map *by_pid, *by_file; /* -> index + 1 */
	struct proc *procs;
	struct file *files;
	u32 n_procs, cap_procs, n_files, cap_files, n_indexes;
	u64 stamp;
	struct hb_ksyms *ksyms;
	bool ksyms_tried;
	char func[1024];
};

struct hb_resolve *hb_resolve__new(void)
{
	struct hb_resolve *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->by_pid = hb_map__new();
	r->by_file = hb_map__new();
	if (r->by_pid && r->by_file)
		return r;
	hb_resolve__free(r);
	return NULL;
}

void hb_resolve__free(struct hb_resolve *r)
{
	if (!r)
		return;
	for (u32 i = 0; i < r->n_procs; i++)
		for (u32 k = 0; k < r->procs[i].n; k++)
			hb_process__free(r->procs[i].snap[k]);
	for (u32 i = 0; i < r->n_files; i++)
		hb_elf__close(r->files[i].elf);
	free(r->procs);
	free(r->files);
	hb_map__free(r->by_pid);
	hb_map__free(r->by_file);
	hb_ksyms__free(r->ksyms);
	free(r);
}

static void *grow(void *array, u32 *cap, u32 n, size_t item)
{
	void *p;

	if (n < *cap)
		return array;
	p = reallocarray(array, *cap ? 2u * *cap : 64, item);
	if (p)
		*cap = *cap ? 2 * *cap : 64;
	return p;
}

/* ---- files ---- */

/* (dev, ino) in one key; find_file compares both, so a collision only costs the names of one file. */
static u64 file_key(const struct hb_mapping *m)
{
	return hb_hash64(m->ino) ^ m->dev;
}

static struct file *find_file(struct hb_resolve *r, const struct hb_mapping *m)
{
	u64 i;

	if (!hb_map__get(r->by_file, file_key(m), &i))
		return NULL;
	return r->files[i - 1].ino == m->ino && r->files[i - 1].dev == m->dev ? &r->files[i - 1] : NULL;
}

/* Opens a file while the process lives: afterwards its namespace may be gone. Only the headers are read here.
 */
static void open_file(struct hb_resolve *r, const struct hb_process *p, const struct hb_mapping *m)
{
	char path[512];
	struct file *files;

	if (m->ino == 0 || r->n_files == MAX_FILES || find_file(r, m))
		return;
	files = grow(r->files, &r->cap_files, r->n_files, sizeof(*files));
	if (!files)
		return;
	r->files = files;
	if (hb_map__put(r->by_file, file_key(m), r->n_files + 1) != 0)
		return;
	files[r->n_files] = (struct file){.ino = m->ino, .dev = m->dev};
	if (hb_process__open_path(p, m, path, sizeof(path)) == 0)
		files[r->n_files].elf = hb_elf__open(path, NULL);
	r->n_files++;
}

/* Makes room before an index is built: the one not used for longest goes. */
static void touch(struct hb_resolve *r, struct file *f)
{
	struct file *oldest = NULL;

	if (f->used == 0 && r->n_indexes == MAX_INDEXES) {
		for (u32 i = 0; i < r->n_files; i++)
			if (r->files[i].used && (!oldest || r->files[i].used < oldest->used))
				oldest = &r->files[i];
		if (oldest) {
			hb_elf__trim(oldest->elf);
			oldest->used = 0;
			r->n_indexes--;
		}
	}
	r->n_indexes += f->used == 0;
	f->used = ++r->stamp;
}

/* ---- processes ---- */

static struct proc *get_proc(struct hb_resolve *r, u32 pid)
{
	struct proc *procs;
	u64 i;

	if (hb_map__get(r->by_pid, pid, &i))
		return &r->procs[i - 1];
	procs = grow(r->procs, &r->cap_procs, r->n_procs, sizeof(*procs));
	if (!procs)
		return NULL;
	r->procs = procs;
	if (hb_map__put(r->by_pid, pid, r->n_procs + 1) != 0)
		return NULL;
	procs[r->n_procs] = (struct proc){.pid = pid};
	return &procs[r->n_procs++];
}

static bool same_maps(const struct hb_process *a, const struct hb_process *b)
{
	if (a->n_maps != b->n_maps || a->start_ticks != b->start_ticks)
		return false;
	for (u32 i = 0; i < a->n_maps; i++)
		if (a->maps[i].start != b->maps[i].start || a->maps[i].end != b->maps[i].end ||
		    a->maps[i].ino != b->maps[i].ino || a->maps[i].dev != b->maps[i].dev ||
		    a->maps[i].pgoff != b->maps[i].pgoff)
			return false;
	return true;
}

/* A pid used again belongs to another program: nothing known of the old one may answer for it. */
static void forget_if_reused(struct proc *p, const struct hb_process *now)
{
	if (p->n == 0 || p->snap[0]->start_ticks == now->start_ticks)
		return;
	while (p->n)
		hb_process__free(p->snap[--p->n]);
}

int hb_resolve__learn(struct hb_resolve *r, u32 pid)
{
	struct proc *p = get_proc(r, pid);
	struct hb_error e = {0};
	struct hb_process *now;

	if (!p)
		return -ENOMEM;
	p->learned = hb_clock__now();
	now = hb_process__read(pid, &e);
	if (!now) {
		p->gone = e.err == -ESRCH;
		return e.err ? e.err : -ESRCH;
	}
	p->gone = false;
	for (u32 i = 0; i < now->n_maps; i++)
		open_file(r, now, &now->maps[i]);
	forget_if_reused(p, now);
	if (p->n && same_maps(p->snap[0], now)) {
		hb_process__free(now);
		return 0;
	}
	if (p->n == MAX_SNAPSHOTS)
		hb_process__free(p->snap[--p->n]);
	for (u32 i = p->n; i > 0; i--)
		p->snap[i] = p->snap[i - 1];
	p->snap[0] = now;
	p->n++;
	return 0;
}

static const struct hb_mapping *find_mapping(const struct proc *p, u64 addr)
{
	for (u32 k = 0; k < p->n; k++) {
		const struct hb_mapping *maps = p->snap[k]->maps;
		u32 lo = 0, hi = p->snap[k]->n_maps;

		while (lo < hi) { /* the kernel lists them by address */
			u32 mid = lo + (hi - lo) / 2;

			if (maps[mid].end <= addr)
				lo = mid + 1;
			else
				hi = mid;
		}
		if (lo < p->snap[k]->n_maps && maps[lo].start <= addr)
			return &maps[lo];
	}
	return NULL;
}

static const struct hb_mapping *lookup(struct hb_resolve *r, u32 pid, u64 addr)
{
	struct proc *p = get_proc(r, pid);
	const struct hb_mapping *m = p ? find_mapping(p, addr) : NULL;

	if (m || !p || p->gone || (p->learned && hb_clock__now() - p->learned < RELEARN_NS))
		return m;
	if (hb_resolve__learn(r, pid) != 0)
		return NULL;
	return find_mapping(p, addr);
}

static const char *person_name(struct hb_resolve *r, const char *name)
{
	const char *s = hb_demangle(name, r->func, sizeof(r->func));

	if (s != r->func)
		snprintf(r->func, sizeof(r->func), "%s", s);
	return hb_text__clean(r->func);
}

u64 hb_resolve__file(struct hb_resolve *r, u32 pid, u64 addr)
{
	const struct hb_mapping *m = lookup(r, pid, addr);

	return m && m->ino ? file_key(m) : 0;
}

int hb_resolve__user(struct hb_resolve *r, u32 pid, u64 addr, struct hb_code *out)
{
	const struct hb_mapping *m = lookup(r, pid, addr);
	struct hb_sym sym;
	struct file *f;

	*out = (struct hb_code){.offset = addr};
	if (!m)
		return -ENOENT;
	out->module = m->path;
	out->offset = addr - m->start + m->pgoff;
	f = find_file(r, m);
	if (!f || !f->elf)
		return 0;
	touch(r, f);
	if (hb_elf__at(f->elf, out->offset, &sym))
		out->func = person_name(r, sym.name);
	return 0;
}

int hb_resolve__kernel(struct hb_resolve *r, u64 addr, struct hb_code *out)
{
	const char *name;

	*out = (struct hb_code){.module = "[kernel]", .offset = addr};
	if (!r->ksyms_tried) {
		r->ksyms_tried = true;
		r->ksyms = hb_ksyms__new();
	}
	name = r->ksyms ? hb_ksyms__at(r->ksyms, addr) : NULL;
	if (!name)
		return -ENOENT;
	out->func = person_name(r, name);
	return 0;
}
