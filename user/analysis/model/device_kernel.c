/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What operations are: kernels by name, copies by direction. */
#include "analysis/model/device_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* The name up to its template arguments and parameters; "(anonymous namespace)" has a bracket of its own. */
static size_t own_name(const char *name)
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
	char own[512];
	size_t n = own_name(name);

	if (strncmp(name, "__amd_rocclr_copy", 17) == 0)
		return HB_WORK_MEMCPY;
	snprintf(own, sizeof(own), "%.*s", (int)(n < sizeof(own) ? n : sizeof(own) - 1), name);
	for (size_t i = 0; i < sizeof(collectives) / sizeof(*collectives); i++)
		if (strcasestr(own, collectives[i]))
			return HB_WORK_COMM;
	return HB_WORK_COMPUTE;
}

/* ---- kernels ---- */

struct hb_kernel *hb_devices__name(struct hb_devices *d, u32 name, u32 *row)
{
	bool fresh;
	struct name *k = hb_rows__get(&d->names, name, &fresh);

	if (k && fresh) {
		k->pub.name = name;
		k->pub.work = (u8)hb_work__of_kernel(hb_window__string(d->w, name));
		k->row = d->names.n - 1;
	}
	if (k)
		*row = k->row;
	return k ? &k->pub : NULL;
}

static int cmp_kernels(const void *a, const void *b)
{
	const struct hb_kernel *x = *(struct hb_kernel *const *)a, *y = *(struct hb_kernel *const *)b;

	if (x->dur.total != y->dur.total)
		return x->dur.total > y->dur.total ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

int hb_devices__by_name(struct hb_devices *d)
{
	struct hb_dist *of = calloc((size_t)d->names.n + 1, sizeof(*of));
	u32 *group = malloc(((size_t)d->n_in + 1) * sizeof(*group)), n = 0;
	u64 *value = malloc(((size_t)d->n_in + 1) * sizeof(*value));
	int rc = of && group && value ? 0 : -ENOMEM;

	for (u32 i = 0; !rc && i < d->n_in; i++) {
		if (d->in[i].kernel == NO_KERNEL)
			continue;
		group[n] = d->in[i].kernel;
		value[n++] = d->in[i].op.end - d->in[i].op.begin;
	}
	rc = rc ? rc : hb_dist__grouped(group, value, n, of, d->names.n);
	for (u32 i = 0; !rc && i < d->names.n; i++)
		((struct name *)d->names.row[i])->pub.dur = of[i];
	free(of);
	free(group);
	free(value);
	if (rc)
		return rc;
	hb_rows__sort(&d->names, cmp_kernels);
	/* Names whose operations were all left out have nothing to tell. */
	for (d->n_names = d->names.n; d->n_names; d->n_names--)
		if (((struct name *)d->names.row[d->n_names - 1])->pub.dur.count)
			break;
	return 0;
}

/* ---- copies ---- */

struct copying { /* the copies of one device */
	struct dev *v;
	u32 cap;
	u32 index[16][16][16][2]; /* by direction, memories, by_kernel: row + 1 */
};

static u32 *slot_of(struct copying *c, const struct hb_device_op *o)
{
	return &c->index[o->copy][o->src][o->dst][o->kind == HB_DEVKIND_KERNEL];
}

static struct hb_copies *row_of(struct copying *c, const struct hb_device_op *o)
{
	u32 *at = slot_of(c, o);
	struct hb_copies *r;

	if (*at)
		return &c->v->copies[*at - 1];
	r = hb_devices__push(&c->v->copies, &c->v->pub.n_copies, &c->cap, sizeof(*r));
	if (!r)
		return NULL;
	*at = c->v->pub.n_copies;
	*r = (struct hb_copies){
	    .copy = o->copy, .src = o->src, .dst = o->dst, .by_kernel = o->kind == HB_DEVKIND_KERNEL};
	return r;
}

static void add_copy(const struct hb_devices *d, struct hb_copies *r, const struct hb_device_op *o)
{
	const struct hb_launch *l = hb_devices__launch_of(d, o);

	r->bytes += r->by_kernel ? 0 : o->size;
	if (!l || !l->timed || l->ops != 1)
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

static int gather(struct hb_devices *d, struct copying *c, u32 *group, u64 *value)
{
	struct dev *v = c->v;
	struct hb_dist *of;
	u32 n = 0;
	int rc;

	for (u32 i = 0; i < v->pub.n_ops; i++) {
		const struct hb_device_op *o = &v->pub.op[i];
		struct hb_copies *r = o->work == HB_WORK_MEMCPY ? row_of(c, o) : NULL;

		if (o->work != HB_WORK_MEMCPY)
			continue;
		if (!r)
			return -ENOMEM;
		add_copy(d, r, o);
		group[n] = (u32)(r - v->copies);
		value[n++] = o->end - o->begin;
	}
	of = calloc((size_t)v->pub.n_copies + 1, sizeof(*of));
	rc = of ? hb_dist__grouped(group, value, n, of, v->pub.n_copies) : -ENOMEM;
	for (u32 i = 0; !rc && i < v->pub.n_copies; i++)
		v->copies[i].dur = of[i];
	free(of);
	if (!rc && v->pub.n_copies)
		qsort(v->copies, v->pub.n_copies, sizeof(*v->copies), cmp_copies);
	return rc;
}

int hb_devices__copies(struct hb_devices *d, struct dev *v)
{
	struct copying *c = calloc(1, sizeof(*c));
	size_t n = 1;
	u32 *group;
	u64 *value;
	int rc;

	for (u32 i = 0; i < v->pub.n_ops; i++)
		n += v->pub.op[i].work == HB_WORK_MEMCPY;
	group = malloc(n * sizeof(*group));
	value = malloc(n * sizeof(*value));
	rc = c && group && value ? 0 : -ENOMEM;
	if (!rc) {
		c->v = v;
		rc = gather(d, c, group, value);
	}
	free(c);
	free(group);
	free(value);
	return rc;
}
