/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Devices: takes records, joins operations with their launches, sorts. */
#include "analysis/model/device_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Calls with one number that are looked at to find an operation's own: more than that is no number. */
#define SAME_MAX 64

void *hb_devices__push(void *array, u32 *n, u32 *cap, size_t size)
{
	void **a = array;

	if (*n == *cap) {
		u32 more = *cap ? *cap * 2 : 64;
		void *p = more > *cap ? realloc(*a, more * size) : NULL;

		if (!p)
			return NULL;
		*a = p;
		*cap = more;
	}
	return memset((char *)*a + (size_t)(*n)++ * size, 0, size);
}

/* ---- calls ---- */

/* Numbers are small in practice; where they are not, the chain of equal keys tells them apart. */
static u64 call_key(u32 pid, u64 correlation)
{
	return correlation >> 32 ? hb_hash64(correlation ^ (u64)pid << 40) : (u64)pid << 32 | correlation;
}

static bool gives_work(const struct hb_window *w, u32 probe)
{
	const struct hb_probe_row *row = hb_window__probe(w, probe);

	return row && (row->cls == HB_CLASS_LAUNCH || row->cls == HB_CLASS_GRAPH ||
		       row->cls == HB_CLASS_COPY || row->cls == HB_CLASS_COLLECTIVE);
}

static int on_call(struct hb_devices *d, const struct hb_record *r)
{
	const struct hb_rec_accel *a = r->data;
	bool inner = a->flags & HB_AFLAG_INNER;
	struct hb_launch *l;
	u64 *last;

	if (!inner && a->probe <= hb_window__probes(d->w) && d->is_work[a->probe]) {
		d->counts.calls++;
		d->counts.numbered += a->correlation != 0;
	}
	if (!a->correlation)
		return 0;
	l = hb_devices__push(&d->launch, &d->n_launches, &d->cap_launches, sizeof(*l));
	last = l ? hb_map__slot(d->calls, call_key(r->task->pid, a->correlation), NULL) : NULL;
	if (!last)
		return -ENOMEM;
	if (*last)
		d->launch[*last - 1].repeated = true;
	*l = (struct hb_launch){.begin = r->begin,
				.end = r->ts,
				.correlation = a->correlation,
				.pid = r->task->pid,
				.probe = a->probe,
				.stack = a->stack,
				.same = (u32)*last,
				.task = r->task_idx,
				.timed = a->dur || (a->flags & HB_AFLAG_TIMED),
				.inner = inner,
				.repeated = *last != 0};
	*last = d->n_launches;
	return 0;
}

/* ---- operations ---- */

static struct dev *device_of(struct hb_devices *d, const struct hb_record *r, u32 number)
{
	bool fresh;
	struct dev *v = hb_rows__get(&d->devs, (u64)r->task->pid << 32 | number, &fresh);

	if (!v || !fresh)
		return v;
	v->stream_of = hb_map__new();
	v->pub.index = d->devs.n - 1;
	v->pub.number = number;
	v->pub.pid = r->task->pid;
	v->pub.main = hb_window__task_by_tid(d->w, r->task->pid);
	return v->stream_of ? v : NULL;
}

static int stream_of(struct dev *v, const struct hb_rec_device *r, u32 *index)
{
	bool fresh;
	u64 *slot = hb_map__slot(v->stream_of, r->stream ^ (u64)r->context << 40, &fresh);
	struct hb_stream *s;

	if (!slot)
		return -ENOMEM;
	if (fresh) {
		*slot = v->n_streams;
		s = hb_devices__push(&v->streams, &v->n_streams, &v->cap_streams, sizeof(*s));
		if (!s)
			return -ENOMEM;
		s->number = r->stream;
		s->context = r->context;
	}
	*index = (u32)*slot;
	return 0;
}

static u64 times(u64 a, u64 b)
{
	u64 c;

	return __builtin_mul_overflow(a, b, &c) ? UINT64_MAX : c;
}

static void describe(struct hb_device_op *o, const struct hb_rec_device *r)
{
	u64 threads = (u64)r->bx * r->by * r->bz;

	o->name = r->name;
	o->kind = r->kind;
	o->work = r->kind == HB_DEVKIND_MEMCPY ? HB_WORK_MEMCPY : HB_WORK_COMPUTE;
	o->size = r->kind == HB_DEVKIND_KERNEL ? times((u64)r->gx * r->gy, r->gz) : r->bytes;
	o->threads = threads < 4095 ? (u32)threads : 4095;
	o->copy = r->copy < 16 ? r->copy : HB_COPY_UNKNOWN;
	o->src = r->srcmem < 16 ? r->srcmem : HB_MEMKIND_UNKNOWN;
	o->dst = r->dstmem < 16 ? r->dstmem : HB_MEMKIND_UNKNOWN;
}

static int on_operation(struct hb_devices *d, const struct hb_record *r, const struct hb_rec_device *x)
{
	struct dev *v = device_of(d, r, x->device);
	struct arrived *a = v ? hb_devices__push(&d->in, &d->n_in, &d->cap_in, sizeof(*a)) : NULL;
	struct hb_kernel *k;

	if (!a || stream_of(v, x, &a->op.stream))
		return -ENOMEM;
	describe(&a->op, x);
	a->op.begin = r->begin;
	a->op.end = r->ts;
	a->correlation = x->correlation;
	a->device = v->pub.index;
	a->kernel = NO_KERNEL;
	if (x->kind != HB_DEVKIND_KERNEL)
		return 0;
	k = hb_devices__name(d, x->name, &a->kernel);
	if (!k)
		return -ENOMEM;
	a->op.work = k->work;
	return 0;
}

static int on_device(struct hb_devices *d, const struct hb_record *r)
{
	const struct hb_rec_device *x = r->data;

	d->counts.records++;
	switch (x->kind) {
	case HB_DEVKIND_KERNEL:
	case HB_DEVKIND_MEMCPY:
	case HB_DEVKIND_MEMSET:
		break;
	case HB_DEVKIND_SYNC:
		d->counts.syncs++;
		return 0;
	default:
		d->counts.others++;
		return 0;
	}
	if (x->dur > r->ts) { /* it would have begun before time did */
		d->counts.backward++;
		return 0;
	}
	return on_operation(d, r, x);
}

static int on_record(void *ctx, const struct hb_record *r)
{
	struct hb_devices *d = ctx;

	if (r->type == HB_TYPE_accel)
		return on_call(d, r);
	return r->type == HB_TYPE_device ? on_device(d, r) : 0;
}

/* ---- joining ---- */

/* Of two calls with the number of an operation that both began before it: the one it belongs to. */
static bool better(const struct hb_launch *a, const struct hb_launch *b)
{
	/* A runtime call and the driver call made in it may have one number: the outer one is the launch. */
	if (a->inner != b->inner && a->begin <= b->end && b->begin <= a->end)
		return !a->inner;
	return a->begin > b->begin;
}

static u32 find_launch(const struct hb_devices *d, u32 pid, const struct arrived *a)
{
	u32 best = 0, any = 0, at;
	u64 first;

	if (!a->correlation || !hb_map__get(d->calls, call_key(pid, a->correlation), &first))
		return 0;
	at = (u32)first;
	for (u32 i = 0; at && i < SAME_MAX; at = d->launch[at - 1].same, i++) { /* the last one first */
		const struct hb_launch *l = &d->launch[at - 1];

		if (l->pid != pid || l->correlation != a->correlation)
			continue;
		any = any ? any : at;
		if (l->begin <= a->op.begin && (!best || better(l, &d->launch[best - 1])))
			best = at;
	}
	return best ? best : at ? 0 : any;
}

/* Those of a graph launch come one after the other with the same number. */
static void join(struct hb_devices *d)
{
	struct arrived *before = NULL;
	u32 kept = 0;

	for (u32 i = 0; i < d->n_in; i++) {
		struct arrived *a = &d->in[i];
		const struct dev *v = d->devs.row[a->device];

		if (before && before->correlation == a->correlation && before->device == a->device &&
		    before->op.launch && !d->launch[before->op.launch - 1].repeated)
			a->op.launch = before->op.launch;
		else
			a->op.launch = find_launch(d, v->pub.pid, a);
		if (d->o.linked_only && !a->op.launch) {
			d->counts.left_out++;
			continue;
		}
		d->in[kept] = *a;
		before = &d->in[kept++];
	}
	d->n_in = kept;
}

/* ---- sorting ---- */

/* Operations by device and begin; every device is told its part. */
static int sort(struct hb_devices *d)
{
	struct hb_order *o = malloc(((size_t)d->n_in + 1) * sizeof(*o));
	u32 at = 0, *to = calloc(d->devs.n + 1, sizeof(*to));
	int rc = o && to ? 0 : -ENOMEM;

	for (u32 i = 0; !rc && i < d->n_in; i++) {
		o[i] = (struct hb_order){.key = d->in[i].op.begin, .item = i};
		to[d->in[i].device]++;
	}
	rc = rc ? rc : hb_order__sort(o, d->n_in);
	d->op = rc ? NULL : malloc(((size_t)d->n_in + 1) * sizeof(*d->op));
	rc = d->op ? 0 : -ENOMEM;
	for (u32 i = 0; !rc && i < d->devs.n; i++) {
		struct dev *v = d->devs.row[i];

		v->pub.op = d->op + at;
		v->pub.n_ops = to[i];
		to[i] = at;
		at += v->pub.n_ops;
	}
	for (u32 i = 0; !rc && i < d->n_in; i++)
		d->op[to[d->in[o[i].item].device]++] = d->in[o[i].item].op;
	free(o);
	free(to);
	return rc;
}

static void count(struct hb_devices *d, struct dev *v)
{
	for (u32 i = 0; i < v->pub.n_ops; i++) {
		const struct hb_device_op *o = &v->pub.op[i];
		struct hb_launch *l = o->launch ? &d->launch[o->launch - 1] : NULL;

		v->pub.kernels += o->kind == HB_DEVKIND_KERNEL;
		v->pub.memcpys += o->kind == HB_DEVKIND_MEMCPY;
		v->pub.memsets += o->kind == HB_DEVKIND_MEMSET;
		v->pub.kernels_10us += o->kind == HB_DEVKIND_KERNEL && o->end - o->begin < 10000;
		v->streams[o->stream].ops++;
		if (!l)
			continue;
		v->pub.linked++;
		v->pub.early += o->begin < l->begin;
		if (!l->ops || o->begin < ((struct dev *)d->devs.row[l->device])->pub.op[l->first].begin) {
			l->device = v->pub.index;
			l->first = i;
		}
		l->ops++;
	}
}

/* Devices in order of process and number. */
static int cmp_devs(const void *a, const void *b)
{
	const struct dev *x = *(struct dev *const *)a, *y = *(struct dev *const *)b;

	if (x->pub.pid != y->pub.pid)
		return x->pub.pid < y->pub.pid ? -1 : 1;
	return x->pub.number < y->pub.number ? -1 : x->pub.number > y->pub.number;
}

static void publish(struct dev *v)
{
	v->pub.stream = v->streams;
	v->pub.n_streams = v->n_streams;
	v->pub.gap = v->gaps;
	v->pub.n_gaps = v->n_gaps;
	v->pub.copies = v->copies;
	v->pub.active = &v->active;
	v->pub.host_idle = &v->host_idle;
	v->pub.not_known = &v->not_known;
}

static int renumber(struct hb_devices *d)
{
	u32 *now = malloc((d->devs.n + 1) * sizeof(*now));

	if (!now)
		return -ENOMEM;
	hb_rows__sort(&d->devs, cmp_devs);
	for (u32 i = 0; i < d->devs.n; i++) {
		struct dev *v = d->devs.row[i];

		now[v->pub.index] = i;
		v->pub.index = i;
	}
	for (u32 i = 0; i < d->n_in; i++)
		d->in[i].device = now[d->in[i].device];
	free(now);
	return 0;
}

int hb_devices__finish(struct hb_devices *d, struct hb_error *e)
{
	int rc = renumber(d);

	if (!rc) {
		join(d);
		rc = hb_devices__by_name(d);
	}
	rc = rc ? rc : sort(d);
	free(d->in);
	d->in = NULL;
	hb_map__free(d->calls);
	d->calls = NULL;
	for (u32 i = 0; !rc && i < d->devs.n; i++)
		count(d, d->devs.row[i]);
	for (u32 i = 0; !rc && i < d->devs.n; i++) {
		struct dev *v = d->devs.row[i];

		rc = hb_devices__queue(d, v);
		rc = rc ? rc : hb_devices__time(d, v);
		rc = rc ? rc : hb_devices__copies(d, v);
		publish(v);
	}
	d->finished = !rc;
	return rc ? hb_error__nomem(e, "the timelines of the devices") : 0;
}

/* ---- life ---- */

struct hb_devices *hb_devices__new(struct hb_window *w, const struct hb_devices_opts *o, struct hb_error *e)
{
	struct hb_devices *d = calloc(1, sizeof(*d));
	u32 n = hb_window__probes(w);

	if (!d)
		goto nomem;
	d->w = w;
	d->o = o ? *o : (struct hb_devices_opts){0};
	d->feed = (struct hb_feed){.record = on_record, .ctx = d};
	d->calls = hb_map__new();
	d->is_work = calloc((size_t)n + 1, 1);
	if (hb_rows__init(&d->devs, sizeof(struct dev)) | hb_rows__init(&d->names, sizeof(struct name)) ||
	    !d->calls || !d->is_work)
		goto nomem;
	for (u32 i = 1; i <= n; i++)
		d->is_work[i] = gives_work(w, i);
	return d;
nomem:
	hb_error__nomem(e, "the timelines of the devices");
	hb_devices__free(d);
	return NULL;
}

static void drop_dev(void *row)
{
	struct dev *v = row;

	hb_map__free(v->stream_of);
	free(v->streams);
	free(v->gaps);
	free(v->copies);
	hb_ivs__free(&v->active);
	hb_ivs__free(&v->host_idle);
	hb_ivs__free(&v->not_known);
}

void hb_devices__free(struct hb_devices *d)
{
	if (!d)
		return;
	hb_rows__free(&d->devs, drop_dev);
	hb_rows__free(&d->names, NULL);
	hb_map__free(d->calls);
	free(d->is_work);
	free(d->in);
	free(d->op);
	free(d->launch);
	free(d);
}

const struct hb_feed *hb_devices__feed(struct hb_devices *d)
{
	return &d->feed;
}

struct hb_devices *hb_devices__build(struct hb_window *w, const struct hb_devices_opts *o, struct hb_error *e)
{
	struct hb_devices *d = hb_devices__new(w, o, e);
	struct hb_record r;
	int rc = 0;

	if (!d)
		return NULL;
	hb_window__rewind(w);
	while (!rc && hb_window__next(w, &r) > 0)
		rc = on_record(d, &r);
	if (rc)
		hb_error__nomem(e, "the timelines of the devices");
	else
		rc = hb_devices__finish(d, e);
	if (!rc)
		return d;
	hb_devices__free(d);
	return NULL;
}

/* ---- getters ---- */

u32 hb_devices__count(const struct hb_devices *d)
{
	return d->finished ? d->devs.n : 0;
}

const struct hb_device *hb_devices__at(const struct hb_devices *d, u32 i)
{
	return i < hb_devices__count(d) ? &((struct dev *)d->devs.row[i])->pub : NULL;
}

const struct hb_launch *hb_devices__launches(const struct hb_devices *d, u32 *n)
{
	*n = d->n_launches;
	return d->launch;
}

const struct hb_launch *hb_devices__launch_of(const struct hb_devices *d, const struct hb_device_op *o)
{
	return o->launch ? &d->launch[o->launch - 1] : NULL;
}

const struct hb_kernel *const *hb_devices__kernels(const struct hb_devices *d, u32 *n)
{
	*n = d->n_names;
	return (const struct hb_kernel *const *)d->names.row;
}

const struct hb_device_counts *hb_devices__counts(const struct hb_devices *d)
{
	return &d->counts;
}
