/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Devices: takes records, orders them, and has each device looked at. */
#include "analysis/model/device_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TASKS 65536

/* What struct hb_device_op has room for: more are as many. */
#define STREAMS_MAX ((1U << 23) - 1)
#define THREADS_MAX ((1U << 11) - 1)
#define BYTES_MAX   ((1ULL << 41) - 1)

/* In large steps once it is large: what is not filled yet is no memory yet, and what is there may have to be
 * copied. */
static u32 more_than(u32 cap, u64 most)
{
	u64 more = !cap ? 64 : cap < 65536 ? 2ULL * cap : 4ULL * cap;

	if (more > most && most > cap)
		more = most;
	return more < UINT32_MAX ? (u32)more : UINT32_MAX;
}

/* Room for more in an array that has no more than `most`, as far as is known. */
static bool grow(void *array, u32 *cap, size_t size, u64 most)
{
	void **a = array, *p;
	u32 more = more_than(*cap, most);

	p = more > *cap ? realloc(*a, more * size) : NULL;
	if (!p)
		return false;
	*a = p;
	*cap = more;
	return true;
}

void *hb_devices__push(void *array, u32 *n, u32 *cap, size_t size)
{
	if (*n == *cap && !grow(array, cap, size, UINT32_MAX))
		return NULL;
	return *(char **)array + (size_t)(*n)++ * size;
}

static struct hb_launch *new_launch(struct hb_devices *d)
{
	if (d->n_launches == d->cap_launches &&
	    !grow(&d->launch, &d->cap_launches, sizeof(*d->launch), hb_window__count(d->w, HB_TYPE_accel)))
		return NULL;
	return &d->launch[d->n_launches++];
}

static struct hb_device_op *new_op(const struct hb_devices *d, struct dev *v)
{
	if (v->n_ops == v->cap_ops &&
	    !grow(&v->ops, &v->cap_ops, sizeof(*v->ops), hb_window__count(d->w, HB_TYPE_device)))
		return NULL;
	return &v->ops[v->n_ops++];
}

/* ---- calls ---- */

static bool gives_work(const struct hb_window *w, u32 probe)
{
	const struct hb_probe_row *row = hb_window__probe(w, probe);

	return row && (row->cls == HB_CLASS_LAUNCH || row->cls == HB_CLASS_GRAPH ||
		       row->cls == HB_CLASS_COPY || row->cls == HB_CLASS_COLLECTIVE);
}

enum { IS_WORK = 1, IS_GRAPH = 2 };

static u8 probe_is(const struct hb_window *w, u32 probe)
{
	const struct hb_probe_row *row = hb_window__probe(w, probe);

	return (gives_work(w, probe) ? IS_WORK : 0) | (row && row->cls == HB_CLASS_GRAPH ? IS_GRAPH : 0);
}

static struct numbers *numbers_of(struct hb_devices *d, const struct hb_record *r)
{
	struct task *t = &d->task[r->task_idx];

	if (!t->numbers)
		t->numbers = hb_rows__get(&d->by_pid, r->task->pid, NULL);
	return t->numbers;
}

static int on_call(struct hb_devices *d, const struct hb_record *r)
{
	const struct hb_rec_accel *a = r->data;
	bool inner = a->flags & HB_AFLAG_INNER;
	u8 is = a->probe < d->n_probes ? d->probe_is[a->probe] : 0;
	struct numbers *n;
	struct hb_launch *l;

	if (!inner && (is & IS_WORK)) {
		d->counts.calls++;
		d->counts.numbered += a->correlation != 0;
	}
	if (!a->correlation)
		return 0;
	l = new_launch(d);
	n = numbers_of(d, r);
	if (!l || !n)
		return -ENOMEM;
	*l = (struct hb_launch){.begin = r->begin,
				.end = r->ts,
				.correlation = a->correlation,
				.stack = a->stack,
				.task = r->task_idx,
				.timed = a->dur || (a->flags & HB_AFLAG_TIMED),
				.inner = inner,
				.graph = (is & IS_GRAPH) != 0};
	return hb_numbers__add(d, n, a->correlation, d->n_launches - 1);
}

/* ---- operations ---- */

static struct dev *device_of(struct hb_devices *d, const struct hb_record *r, u32 number)
{
	struct task *t = &d->task[r->task_idx];
	struct dev *v = t->dev;
	bool fresh;

	if (v && v->pub.number == number)
		return v;
	v = t->dev = hb_rows__get(&d->devs, (u64)r->task->pid << 32 | number, &fresh);
	if (!v || !fresh)
		return v;
	v->stream_of = hb_map__new();
	v->numbers = numbers_of(d, r);
	v->pub.index = d->devs.n - 1;
	v->pub.number = number;
	v->pub.pid = r->task->pid;
	v->pub.main = hb_window__task_by_tid(d->w, r->task->pid);
	return v->stream_of && v->numbers ? v : NULL;
}

/* Few streams are seen at a time: the last ones are looked at before the map is asked. */
static int stream_of(struct dev *v, const struct hb_rec_device *r, u32 *index)
{
	struct hb_stream *s;
	bool fresh;
	u64 *slot;

	for (u32 i = 0; i < v->n_streams && i < 4; i++) {
		if (v->streams[i].number == r->stream && v->streams[i].context == r->context) {
			*index = i;
			return 0;
		}
	}
	slot = hb_map__slot(v->stream_of, r->stream ^ (u64)r->context << 40, &fresh);
	if (!slot)
		return -ENOMEM;
	if (fresh && v->n_streams == STREAMS_MAX) {
		*slot = STREAMS_MAX - 1;
	} else if (fresh) {
		*slot = v->n_streams;
		s = hb_devices__push(&v->streams, &v->n_streams, &v->cap_streams, sizeof(*s));
		if (!s)
			return -ENOMEM;
		*s = (struct hb_stream){.number = r->stream, .context = r->context};
	}
	*index = (u32)*slot;
	return 0;
}

static u64 times(u64 a, u64 b)
{
	u64 c;

	return __builtin_mul_overflow(a, b, &c) ? UINT64_MAX : c;
}

/* All at once. `k` is of a kernel. */
static void fill_op(struct hb_device_op *o, const struct hb_record *rec, const struct tally *k, u32 name,
		    u32 stream)
{
	const struct hb_rec_device *r = rec->data;
	u64 size = k ? times((u64)r->gx * r->gy, r->gz) : r->bytes, threads = (u64)r->bx * r->by * r->bz;

	*o = (struct hb_device_op){
	    .begin = rec->begin,
	    .end = rec->ts,
	    .size = size < BYTES_MAX ? size : BYTES_MAX,
	    .name = name,
	    .stream = stream,
	    .threads = threads < THREADS_MAX ? threads : THREADS_MAX,
	    .kind = r->kind & 3,
	    .work = k				   ? k->work & 3
		    : r->kind == HB_DEVKIND_MEMCPY ? HB_WORK_MEMCPY
						   : HB_WORK_COMPUTE,
	    .copy = r->copy < 16 ? r->copy : HB_COPY_UNKNOWN,
	    .src = r->srcmem < 16 ? r->srcmem : HB_MEMKIND_UNKNOWN,
	    .dst = r->dstmem < 16 ? r->dstmem : HB_MEMKIND_UNKNOWN,
	};
}

/* Most calls end before their work does, and are known by then. */
static int wait_for_call(struct dev *v, u64 correlation)
{
	struct pending *late = hb_devices__push(&v->pending, &v->n_pending, &v->cap_pending, sizeof(*late));

	if (!late)
		return -ENOMEM;
	*late = (struct pending){.correlation = correlation, .op = v->n_ops - 1};
	return 0;
}

static int on_operation(struct hb_devices *d, const struct hb_record *r, const struct hb_rec_device *x)
{
	struct dev *v = device_of(d, r, x->device);
	struct hb_device_op *o = v ? new_op(d, v) : NULL;
	struct tally *k = NULL;
	u32 stream, launch;

	if (!o || stream_of(v, x, &stream))
		return -ENOMEM;
	if (x->kind == HB_DEVKIND_KERNEL) {
		k = hb_devices__name(d, x->name);
		if (!k)
			return -ENOMEM;
		k->n++;
	}
	launch = hb_numbers__find(d, v->numbers, x->correlation, r->begin);
	fill_op(o, r, k, k ? (u32)(k - d->tally) : x->name, stream);
	set_launch(d, o, launch);
	v->unsorted |= r->begin < v->last_begin;
	v->last_begin = r->begin;
	return launch || !x->correlation ? 0 : wait_for_call(v, x->correlation);
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

/* Calls first: work is done after it was asked for. */
static int on_records(void *ctx, const struct hb_records *b)
{
	int rc = 0;

	hb_each_bit (i, b->of[HB_TYPE_accel])
		rc = rc ? rc : on_call(ctx, &b->record[i]);
	hb_each_bit (i, b->of[HB_TYPE_device])
		rc = rc ? rc : on_device(ctx, &b->record[i]);
	return rc;
}

/* ---- finishing ---- */

static void leave_out(struct hb_devices *d, struct dev *v)
{
	u32 kept = 0;

	for (u32 i = 0; i < v->n_ops; i++) {
		if (v->ops[i].launch)
			v->ops[kept++] = v->ops[i];
		else if (v->ops[i].kind == HB_DEVKIND_KERNEL)
			d->tally[v->ops[i].name].n--;
	}
	d->counts.left_out += v->n_ops - kept;
	v->n_ops = kept;
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
	v->pub.host_idle = &v->host_idle;
	v->pub.not_known = &v->not_known;
}

/* All operations get their calls, and come into their order. */
static int join(struct hb_devices *d)
{
	int rc = 0;

	for (u32 i = 0; i < d->devs.n; i++) {
		struct dev *v = d->devs.row[i];

		hb_devices__join(d, v);
		if (d->o.linked_only)
			leave_out(d, v);
		v->numbers = NULL; /* not needed any more, as pending */
		free(v->pending);
		v->pending = NULL;
		v->cap_pending = 0;
		d->largest = v->n_ops > d->largest ? v->n_ops : d->largest;
	}
	hb_rows__free(&d->by_pid, hb_numbers__drop);
	free(d->task);
	free(d->same);
	d->task = NULL;
	d->same = NULL;
	hb_rows__sort(&d->devs, cmp_devs);
	for (u32 i = 0; !rc && i < d->devs.n; i++) {
		struct dev *v = d->devs.row[i];

		rc = hb_devices__sort(d, v);
		v->pub.index = i;
		v->pub.op = v->ops;
		v->pub.n_ops = v->n_ops;
	}
	return rc;
}

/* Of one process. They are in the order of those. */
static bool several_devices(const struct hb_devices *d)
{
	for (u32 i = 1; i < d->devs.n; i++)
		if (((struct dev *)d->devs.row[i - 1])->pub.pid == ((struct dev *)d->devs.row[i])->pub.pid)
			return true;
	return false;
}

/* What all devices need before the time of one can be looked at: a call may have launched on several. */
static int link_all(struct hb_devices *d)
{
	size_t kernels = 0, pairs = 2 * (size_t)d->largest;

	for (u32 i = 0; i < d->n_tally; i++)
		kernels += d->tally[i].n;
	d->values = malloc(((kernels > pairs ? kernels : pairs) + 1) * sizeof(*d->values));
	/* Not calloc(): pages that are read before they are written cost twice. */
	d->first = malloc(((size_t)d->n_launches + 1) * sizeof(*d->first));
	d->first_on = several_devices(d) ? malloc(((size_t)d->n_launches + 1) * sizeof(*d->first_on)) : NULL;
	if (!d->values || !d->first || (several_devices(d) && !d->first_on))
		return -ENOMEM;
	memset(d->first, 0, d->n_launches * sizeof(*d->first));
	hb_devices__begin_names(d);
	for (u32 i = 0; i < d->devs.n; i++)
		hb_devices__link(d, d->devs.row[i]);
	hb_devices__end_names(d);
	free(d->first);
	free(d->first_on);
	d->first = d->first_on = NULL;
	return 0;
}

int hb_devices__finish(struct hb_devices *d, struct hb_error *e)
{
	int rc = join(d);

	rc = rc ? rc : link_all(d);
	for (u32 i = 0; !rc && i < d->devs.n; i++) {
		struct dev *v = d->devs.row[i];

		rc = hb_devices__time(d, v);
		publish(v);
	}
	free(d->order);
	free(d->values);
	d->order = NULL;
	d->values = NULL;
	d->finished = !rc;
	return rc ? hb_error__nomem(e, "the timelines of the devices") : 0;
}

struct hb_order *hb_devices__room(struct hb_devices *d)
{
	if (!d->order)
		d->order = malloc(((size_t)d->largest + 1) * sizeof(*d->order));
	return d->order;
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
	d->feed = (struct hb_feed){.records = on_records, .ctx = d};
	d->n_probes = n + 1;
	d->probe_is = calloc(d->n_probes, 1);
	d->task = calloc(TASKS, sizeof(*d->task));
	if (hb_rows__init(&d->by_pid, sizeof(struct numbers)) | hb_rows__init(&d->devs, sizeof(struct dev)) |
		hb_rows__init(&d->names, sizeof(struct name)) ||
	    !d->probe_is || !d->task)
		goto nomem;
	for (u32 i = 1; i <= n; i++)
		d->probe_is[i] = probe_is(w, i);
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
	free(v->ops);
	free(v->pending);
	free(v->streams);
	free(v->gaps);
	free(v->copies);
	hb_ivs__free(&v->host_idle);
	hb_ivs__free(&v->not_known);
}

void hb_devices__free(struct hb_devices *d)
{
	if (!d)
		return;
	hb_rows__free(&d->devs, drop_dev);
	hb_rows__free(&d->names, NULL);
	hb_rows__free(&d->by_pid, hb_numbers__drop);
	free(d->task);
	free(d->probe_is);
	free(d->by_id);
	free(d->tally);
	free(d->same);
	free(d->first);
	free(d->first_on);
	free(d->order);
	free(d->values);
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
	int rc;

	if (!d)
		return NULL;
	rc = hb_feed__all(&d->feed, w);
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
	return launch_of(d, o);
}

u64 hb_devices__asked(const struct hb_devices *d, const struct hb_device_op *o)
{
	return o->launch ? asked(d, o) : 0;
}

void hb_devices__fetch(const struct hb_devices *d, const struct hb_device_op *o)
{
	if (o->launch)
		__builtin_prefetch(&d->launch[o->launch - 1]);
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
