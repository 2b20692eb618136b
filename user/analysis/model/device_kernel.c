/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What operations are: kernels by name, copies by direction. */
#include "analysis/model/device_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/demangle.h"

const char *hb_work__name(enum hb_work k)
{
	static const char *const names[HB_WORK_COUNT] = {"compute", "communication", "memcpy"};

	return k < HB_WORK_COUNT ? names[k] : "?";
}

/* Parts of the names of kernels that move data between devices: of the collective libraries, and of the
 * engines' own collectives. In any case of letters, and in the kernel's own name only: not in its template
 * arguments. */
static const char *const collectives[] = {
    "nccl",	  "rccl",      "hccl",	     "mscclpp",	      "nvshmem",	"deep_ep::",
    "all_reduce", "allreduce", "all_gather", "allgather",     "reduce_scatter", "reducescatter",
    "all_to_all", "alltoall",  "multimem_",  "cross_device_", "quick_reduce",	"quickreduce",
    "one_shot_",  "two_shot_", "oneshot_",   "twoshot_",      "symm_mem",	"sendrecv",
};

/* "(anonymous namespace)" has a bracket of its own. */
size_t hb_kernel__own_name(const char *name)
{
	static const char anonymous[] = "(anonymous namespace)";
	size_t n = 0;

	while (name[n] && name[n] != '<') {
		if (name[n] != '(')
			n++;
		else if (strncmp(name + n, anonymous, sizeof(anonymous) - 1) == 0)
			n += sizeof(anonymous) - 1;
		else
			break;
	}
	return n;
}

enum hb_work hb_work__of_kernel(const char *name)
{
	char own[512], plain[1024];
	size_t n;

	if (strncmp(name, "__amd_rocclr_copy", 17) == 0)
		return HB_WORK_MEMCPY;
	name = hb_demangle(name, plain, sizeof(plain));
	n = hb_kernel__own_name(name);
	snprintf(own, sizeof(own), "%.*s", (int)(n < sizeof(own) ? n : sizeof(own) - 1), name);
	for (size_t i = 0; i < sizeof(collectives) / sizeof(*collectives); i++)
		if (strcasestr(own, collectives[i]))
			return HB_WORK_COMM;
	return HB_WORK_COMPUTE;
}

/* ---- kernels ---- */

static struct tally *tally_of(struct hb_devices *d, u32 name)
{
	bool fresh;
	struct name *k = hb_rows__get(&d->names, name, &fresh);
	struct tally *t;

	if (!k || !fresh)
		return k ? &d->tally[k->tally] : NULL;
	t = hb_devices__push(&d->tally, &d->n_tally, &d->cap_tally, sizeof(*t));
	if (!t)
		return NULL;
	k->pub.name = name;
	k->pub.work = (u8)hb_work__of_kernel(hb_window__string(d->w, name));
	k->tally = d->n_tally - 1;
	*t = (struct tally){.name = name, .work = k->pub.work};
	return t;
}

/* Ids are dense: an array answers. A damaged record may name any id; those beyond this are looked up. */
#define ID_MAX (1u << 20)

struct tally *hb_devices__new_name(struct hb_devices *d, u32 name)
{
	u32 *p, n = name + name / 2 + 64;
	struct tally *t = tally_of(d, name);

	if (!t || name >= ID_MAX)
		return t;
	if (name >= d->n_by_id) {
		p = realloc(d->by_id, n * sizeof(*p));
		if (!p)
			return NULL;
		memset(p + d->n_by_id, 0, (n - d->n_by_id) * sizeof(*p));
		d->by_id = p;
		d->n_by_id = n;
	}
	d->by_id[name] = (u32)(t - d->tally) + 1;
	return t;
}

static int cmp_kernels(const void *a, const void *b)
{
	const struct hb_kernel *x = *(struct hb_kernel *const *)a, *y = *(struct hb_kernel *const *)b;

	if (x->dur.total != y->dur.total)
		return x->dur.total > y->dur.total ? -1 : 1;
	if (x->dur.count != y->dur.count)
		return x->dur.count > y->dur.count ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

void hb_devices__begin_names(struct hb_devices *d)
{
	u64 *next = d->values;

	for (u32 i = 0; i < d->n_tally; i++) {
		d->tally[i].next = next;
		next += d->tally[i].n;
	}
}

void hb_devices__end_names(struct hb_devices *d)
{
	for (u32 i = 0; i < d->n_tally; i++) {
		const struct tally *t = &d->tally[i];
		struct hb_kernel *k = d->names.row[i];

		k->blocks = t->blocks;
		k->dur = hb_dist__of(t->next - t->n, t->n);
		d->n_names += t->n > 0; /* the others lost all their operations: they come last */
	}
	hb_rows__sort(&d->names, cmp_kernels);
}

/* ---- copies ---- */

struct copying { /* the copies of one device */
	struct dev *v;
	u32 n;
	u32 *row;		  /* of each copy */
	u64 *dur;		  /* of each copy */
	u32 index[16][16][16][2]; /* by direction, memories, by_kernel: row + 1 */
};

static struct hb_copies *row_of(struct copying *c, const struct hb_device_op *o)
{
	u32 *at = &c->index[o->copy][o->src][o->dst][o->kind == HB_DEVKIND_KERNEL];
	struct hb_copies *r;

	if (*at)
		return &c->v->copies[*at - 1];
	r = hb_devices__push(&c->v->copies, &c->v->pub.n_copies, &c->v->cap_copies, sizeof(*r));
	if (!r)
		return NULL;
	*at = c->v->pub.n_copies;
	*r = (struct hb_copies){
	    .copy = o->copy, .src = o->src, .dst = o->dst, .by_kernel = o->kind == HB_DEVKIND_KERNEL};
	return r;
}

static void add_copy(const struct hb_devices *d, struct hb_copies *r, const struct hb_device_op *o)
{
	const struct hb_launch *l = launch_of(d, o);

	r->bytes += r->by_kernel ? 0 : o->size;
	if (!l || !l->timed || o->shared)
		return;
	r->linked++;
	r->blocked_ns += l->end - l->begin;
	r->until_done += l->end >= o->end;
}

static int cmp_copies(const void *a, const void *b)
{
	const struct hb_copies *x = a, *y = b;

	if (x->dur.total != y->dur.total)
		return x->dur.total > y->dur.total ? -1 : 1;
	return x->dur.count > y->dur.count ? -1 : x->dur.count < y->dur.count;
}

struct copying *hb_copying__new(struct dev *v)
{
	struct copying *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->v = v;
	c->row = malloc(((size_t)v->n_copies + 1) * sizeof(*c->row));
	c->dur = malloc(((size_t)v->n_copies + 1) * sizeof(*c->dur));
	if (c->row && c->dur)
		return c;
	hb_copying__free(c);
	return NULL;
}

void hb_copying__free(struct copying *c)
{
	if (!c)
		return;
	free(c->row);
	free(c->dur);
	free(c);
}

int hb_copying__add(struct copying *c, const struct hb_devices *d, const struct hb_device_op *o)
{
	struct hb_copies *r = row_of(c, o);

	if (!r)
		return -ENOMEM;
	add_copy(d, r, o);
	c->row[c->n] = (u32)(r - c->v->copies);
	c->dur[c->n++] = o->end - o->begin;
	return 0;
}

int hb_copying__finish(struct copying *c)
{
	struct dev *v = c->v;
	struct hb_dist *of = calloc((size_t)v->pub.n_copies + 1, sizeof(*of));
	int rc = of ? hb_dist__grouped(c->row, c->dur, c->n, of, v->pub.n_copies) : -ENOMEM;

	for (u32 i = 0; !rc && i < v->pub.n_copies; i++)
		v->copies[i].dur = of[i];
	free(of);
	if (!rc && v->pub.n_copies)
		qsort(v->copies, v->pub.n_copies, sizeof(*v->copies), cmp_copies);
	return rc;
}
