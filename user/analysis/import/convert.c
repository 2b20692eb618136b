/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/import/convert.h"

#include <errno.h>
#include <string.h>

#define TIME_MOST  (1LL << 61) /* ns: sums of two stay in 64 bits */
#define OPEN_MOST  4096	       /* rows begun and not ended */
#define N_ELEMS(a) (sizeof(a) / sizeof(*(a)))

enum what { CALL, DEVICE, OP, PYTHON, NOTHING };

struct category {
	const char *cat;
	u8 what, kind; /* kind: layer, kind of work, kind of span */
};

/* Lower case: today's words. Capitals: those of traces before 2022. */
static const struct category categories[] = {
    {"python_function", PYTHON, 0},
    {"cpu_op", OP, HB_OPKIND_CPU_OP},
    {"cuda_runtime", CALL, HB_LAYER_RUNTIME},
    {"cuda_driver", CALL, HB_LAYER_DRIVER},
    {"kernel", DEVICE, HB_DEVKIND_KERNEL},
    {"gpu_memcpy", DEVICE, HB_DEVKIND_MEMCPY},
    {"gpu_memset", DEVICE, HB_DEVKIND_MEMSET},
    {"cuda_sync", DEVICE, HB_DEVKIND_SYNC},
    {"overhead", DEVICE, HB_DEVKIND_OVERHEAD},
    {"user_annotation", OP, HB_OPKIND_ANNOTATION},
    {"gpu_user_annotation", OP, HB_OPKIND_DEVICE_ANNOTATION},
    {"hip_runtime", CALL, HB_LAYER_RUNTIME},
    {"xpu_runtime", CALL, HB_LAYER_RUNTIME},
    {"xpu_driver", CALL, HB_LAYER_DRIVER},
    {"mtia_runtime", CALL, HB_LAYER_RUNTIME},
    {"privateuse1_runtime", CALL, HB_LAYER_RUNTIME},
    {"privateuse1_driver", CALL, HB_LAYER_DRIVER},
    {"Runtime", CALL, HB_LAYER_RUNTIME},
    {"Driver", CALL, HB_LAYER_DRIVER},
    {"Kernel", DEVICE, HB_DEVKIND_KERNEL},
    {"Memcpy", DEVICE, HB_DEVKIND_MEMCPY},
    {"Memset", DEVICE, HB_DEVKIND_MEMSET},
    {"Operator", OP, HB_OPKIND_CPU_OP},
    {"PythonFunction", PYTHON, 0},
    {"Trace", NOTHING, 0}, /* the profiler's own length */
};

static const struct category *category_of(struct hb_piece cat)
{
	static const struct category other = {"", OP, HB_OPKIND_OTHER};

	for (size_t i = 0; i < N_ELEMS(categories); i++)
		if (hb_piece__is(cat, categories[i].cat))
			return &categories[i];
	return &other;
}

static int odd(struct hb_convert *c, enum hb_odd o)
{
	c->odd[o]++;
	return 0;
}

const char *hb_odd__text(enum hb_odd o)
{
	static const char *const texts[] = {
#define ODD_TEXT(id, text) text,
	    HB_ODDS(ODD_TEXT)};

	return texts[o];
}

/* ---- kinds of records ---- */

static u16 to_u16(u32 v)
{
	return v > UINT16_MAX ? UINT16_MAX : (u16)v;
}

static u8 copy_kind(const struct hb_row *r)
{
	static const u8 numbers[] = {[HB_COPY_HTOD] = 1, [HB_COPY_DTOH] = 2, [HB_COPY_DTOD] = 3};
	u8 d = hb_text__direction(hb_row__text(r, HB_ARG_KIND));
	u32 v = hb_row__u32(r, HB_ARG_KIND);

	return d < N_ELEMS(numbers) && numbers[d] ? numbers[d] : v < 256 ? (u8)v : 0;
}

static int make_call(struct hb_convert *c, const struct hb_row *r, enum hb_layer layer, u32 name,
		     struct hb_item *i)
{
	struct hb_rec_accel *a = (void *)i->data;
	const struct hb_cell *grid = &r->cell[HB_ARG_GRID], *block = &r->cell[HB_ARG_BLOCK];
	s64 ret;

	hb_item__init(i, HB_TYPE_accel);
	a->probe = hb_names__probe(c->names, name, layer, hb_row__text(r, HB_ARG_API),
				   hb_row__text(r, HB_ARG_CLASS));
	if (!a->probe)
		return -ENOMEM;
	a->correlation = hb_row__u64(r, HB_ARG_CORRELATION);
	a->bytes = hb_row__u64(r, HB_ARG_BYTES);
	a->gx = grid->list[0], a->gy = grid->list[1], a->gz = grid->list[2];
	a->bx = to_u16(block->list[0]), a->by = to_u16(block->list[1]), a->bz = to_u16(block->list[2]);
	a->shm = hb_row__u32(r, HB_ARG_SHM);
	a->flags = HB_AFLAG_TIMED | HB_AFLAG_NO_STREAM; /* its device rows have it */
	if (hb_names__class(c->names, a->probe) == HB_CLASS_COPY)
		a->kind = copy_kind(r);
	if (hb_row__int(r, HB_ARG_RET, &ret)) {
		a->ret = (s32)ret;
		a->flags |= HB_AFLAG_RET;
	}
	return 0;
}

/* -1 is "all of them" in some versions, 4294967295 in others; both end up as that. */
static u32 stream_of(const struct hb_row *r, enum hb_col c, u32 absent)
{
	s64 v;

	return hb_row__int(r, c, &v) ? (u32)v : absent;
}

/* Without arguments: a device is a process there, a stream a thread ("stream 7"). */
static u32 place_of(const struct hb_row *r, enum hb_col arg, enum hb_col col)
{
	s64 v;

	if (hb_row__int(r, arg, &v) || hb_row__int(r, col, &v) || hb_text__digits(hb_row__text(r, col), &v))
		return (u32)v;
	return 0;
}

static void fill_copy(const struct hb_row *r, struct hb_rec_device *d)
{
	hb_text__copy(hb_row__text(r, HB_COL_NAME), &d->copy, &d->srcmem, &d->dstmem);
	if (d->kind != HB_DEVKIND_MEMCPY)
		d->copy = d->dstmem = 0;
	else if (!d->copy)
		d->copy = hb_text__direction(hb_row__text(r, HB_ARG_KIND));
}

static void fill_sync(const struct hb_row *r, struct hb_rec_device *d)
{
	s64 waits;

	d->sync = hb_text__sync(hb_row__text(r, HB_ARG_SYNC));
	if (!d->sync)
		d->sync = hb_text__sync(hb_row__text(r, HB_COL_NAME));
	d->wstream = stream_of(r, HB_ARG_WSTREAM, UINT32_MAX);
	if (hb_row__int(r, HB_ARG_WAITS, &waits) && waits > 0)
		d->waits = (u64)waits;
}

static void make_device(const struct hb_row *r, u8 kind, u32 name, struct hb_item *i)
{
	struct hb_rec_device *d = (void *)i->data;
	const struct hb_cell *grid = &r->cell[HB_ARG_GRID], *block = &r->cell[HB_ARG_BLOCK];

	hb_item__init(i, HB_TYPE_device);
	d->kind = kind;
	d->name = name;
	d->correlation = hb_row__u64(r, HB_ARG_CORRELATION);
	d->device = kind == HB_DEVKIND_OVERHEAD ? UINT32_MAX : place_of(r, HB_ARG_DEVICE, HB_COL_PID);
	d->stream = place_of(r, HB_ARG_STREAM, HB_COL_TID);
	d->context = hb_row__u32(r, HB_ARG_CONTEXT);
	d->bytes = hb_row__u64(r, HB_ARG_BYTES);
	d->graph = hb_row__u64(r, HB_ARG_GRAPH);
	d->node = hb_row__u64(r, HB_ARG_NODE);
	d->gx = grid->list[0], d->gy = grid->list[1], d->gz = grid->list[2];
	d->bx = to_u16(block->list[0]), d->by = to_u16(block->list[1]), d->bz = to_u16(block->list[2]);
	d->regs = to_u16(hb_row__u32(r, HB_ARG_REGS));
	d->shm = hb_row__u32(r, HB_ARG_SHM);
	if (kind == HB_DEVKIND_MEMCPY || kind == HB_DEVKIND_MEMSET)
		fill_copy(r, d);
	if (kind == HB_DEVKIND_SYNC)
		fill_sync(r, d);
}

static u32 text_of(struct hb_convert *c, const struct hb_row *r, enum hb_col col)
{
	return r->cell[col].kind == HB_CELL_LIST ? hb_names__id(c->names, hb_row__text(r, col)) : 0;
}

/* A collective says what it moves: {"collective":"allreduce","in":1024,..}. */
static u32 collective_of(struct hb_convert *c, const struct hb_row *r)
{
	static const struct {
		const char *key;
		enum hb_col col;
	} members[] = {{"collective", HB_ARG_COLLECTIVE},
		       {"dtype", HB_ARG_DTYPE},
		       {"group", HB_ARG_GROUP},
		       {"in", HB_ARG_IN},
		       {"out", HB_ARG_OUT},
		       {"ranks", HB_ARG_RANKS},
		       {"seq", HB_ARG_SEQ}};
	struct hb_buf b = {0};
	u32 id = 0;

	for (size_t i = 0; i < N_ELEMS(members); i++) {
		const struct hb_cell *cell = &r->cell[members[i].col];
		const char *quote = cell->kind == HB_CELL_STRING ? "\"" : "";

		if ((cell->kind != HB_CELL_STRING && cell->kind != HB_CELL_NUMBER) ||
		    memchr(cell->text.s, '"', cell->text.n) || memchr(cell->text.s, '\\', cell->text.n))
			continue;
		hb_buf__printf(&b, "%s\"%s\":%s%.*s%s", b.size ? "," : "{", members[i].key, quote,
			       (int)cell->text.n, cell->text.s, quote);
	}
	if (b.size)
		hb_buf__printf(&b, "}");
	if (!b.oom && b.size)
		id = hb_names__id(c->names, (struct hb_piece){b.data, b.size});
	hb_buf__free(&b);
	return id;
}

/* Kept where they tell what shapes do not, such as whether an attention is causal: of most they say nothing
 * new, and are different each time. */
static u32 values_of(struct hb_convert *c, const struct hb_row *r)
{
	struct hb_piece v = hb_row__text(r, HB_ARG_VALUES);

	if (r->cell[HB_ARG_COLLECTIVE].kind)
		return collective_of(c, r);
	return r->cell[HB_ARG_VALUES].kind == HB_CELL_LIST &&
		       (memmem(v.s, v.n, "\"True\"", 6) || memmem(v.s, v.n, "\"False\"", 7))
		   ? hb_names__id(c->names, v)
		   : 0;
}

static int make_op(struct hb_convert *c, const struct hb_row *r, u8 kind, u32 name, struct hb_item *i)
{
	struct hb_rec_op *o = (void *)i->data;
	s64 seq;

	hb_item__init(i, HB_TYPE_op);
	o->kind = kind;
	o->name = name;
	o->external = hb_row__u64(r, HB_ARG_EXTERNAL);
	o->seq = hb_row__int(r, HB_ARG_SEQUENCE, &seq) && seq >= 0 ? (u64)seq + 1 : 0;
	o->shapes = text_of(c, r, HB_ARG_DIMS);
	o->types = text_of(c, r, HB_ARG_TYPES);
	o->values = kind == HB_OPKIND_CPU_OP ? values_of(c, r) : 0;
	if (kind == HB_OPKIND_DEVICE_ANNOTATION) {
		o->device = to_u16(place_of(r, HB_ARG_DEVICE, HB_COL_PID));
		o->stream = place_of(r, HB_ARG_STREAM, HB_COL_TID);
	}
	if (kind == HB_OPKIND_CPU_OP) /* its frame in the stacks of calls below it */
		i->frame = hb_names__operator(c->names, name);
	return kind == HB_OPKIND_CPU_OP && !i->frame ? -ENOMEM : 0;
}

static int make_python(struct hb_convert *c, u32 name, struct hb_item *i)
{
	struct hb_rec_py_call *p = (void *)i->data;

	hb_item__init(i, HB_TYPE_py_call);
	p->func = i->frame = hb_names__python(c->names, name);
	p->end = HB_PYEND_RETURN;
	p->flags = HB_PYCALL_TIMED;
	return i->frame ? 0 : -ENOMEM;
}

/* ---- rows with a time ---- */

/* ns as an integer; microseconds in the trace. */
static bool time_of(const struct hb_row *r, enum hb_col c, s64 *ns)
{
	const struct hb_cell *cell = &r->cell[c];

	return (cell->kind == HB_CELL_NUMBER || cell->kind == HB_CELL_STRING) &&
	       hb_text__decimal(cell->text, 3, ns) && *ns<TIME_MOST && * ns> - TIME_MOST;
}

static u32 name_of(struct hb_convert *c, const struct hb_row *r)
{
	struct hb_piece name = hb_row__text(r, HB_COL_NAME);

	if (name.n)
		return hb_names__id(c->names, name);
	odd(c, HB_ODD_NAME);
	return hb_names__id(c->names, (struct hb_piece){"?", 1});
}

static bool on_host(const struct category *cat)
{
	return cat->what != DEVICE && !(cat->what == OP && cat->kind == HB_OPKIND_DEVICE_ANNOTATION);
}

/* A call into a library as an export of our own writes it. */
static const struct category *call_of_ours(const struct category *cat, const struct hb_row *r)
{
	static const struct category library = {"", CALL, HB_LAYER_LIBRARY};

	return cat->what == OP && cat->kind == HB_OPKIND_ANNOTATION && r->cell[HB_ARG_API].kind &&
		       r->cell[HB_ARG_CLASS].kind
		   ? &library
		   : cat;
}

/* The time of a device's queue is kept where it can be one on the same clock: not after the begin, and not
 * long before. */
static void set_queued(const struct hb_row *r, struct hb_item *i)
{
	struct hb_rec_device *d = (void *)i->data;
	s64 v;

	if (hb_row__int(r, HB_ARG_QUEUED, &v) && v > 0 && v <= i->begin && i->begin - v < 10000000000LL)
		d->queued = (u64)v;
}

/* Everything but the length. -EAGAIN: the row is of no use. */
static int make_item(struct hb_convert *c, const struct hb_row *r, struct hb_item *i)
{
	const struct category *cat = call_of_ours(category_of(hb_row__text(r, HB_COL_CAT)), r);
	s64 begin;
	u32 name;
	int err = 0;

	if (cat->what == NOTHING)
		return -EAGAIN;
	if (!time_of(r, HB_COL_TS, &begin))
		return odd(c, HB_ODD_TIME), -EAGAIN;
	name = name_of(c, r);
	if (!name)
		return -ENOMEM;
	if (cat->what == CALL)
		err = make_call(c, r, cat->kind, name, i);
	else if (cat->what == DEVICE)
		make_device(r, cat->kind, name, i);
	else if (cat->what == PYTHON)
		err = make_python(c, name, i);
	else
		err = make_op(c, r, cat->kind, name, i);
	i->begin = begin;
	i->source = c->source;
	if (cat->what == DEVICE)
		set_queued(r, i);
	if (!on_host(cat) || err)
		return err;
	if (!r->cell[HB_COL_PID].kind && !r->cell[HB_COL_TID].kind)
		odd(c, HB_ODD_PLACE);
	i->task = hb_tasks__of(c->tasks, r);
	return i->task ? 0 : -ENOMEM;
}

static int whole(struct hb_convert *c, const struct hb_row *r)
{
	struct hb_item i;
	s64 dur;
	int err = make_item(c, r, &i);

	if (err)
		return err == -EAGAIN ? 0 : err;
	if (!time_of(r, HB_COL_DUR, &dur) || dur < 0) {
		odd(c, HB_ODD_LENGTH);
		dur = 0;
	}
	i.dur = (u64)dur;
	return hb_sorter__add(c->items, &i, c->e);
}

static int begin(struct hb_convert *c, const struct hb_row *r)
{
	struct hb_item i;
	int err = make_item(c, r, &i);

	if (err)
		return err == -EAGAIN ? 0 : err;
	if (c->open.size / sizeof(i) >= OPEN_MOST) {
		odd(c, HB_ODD_LENGTH);
		return hb_sorter__add(c->items, &i, c->e);
	}
	hb_buf__add(&c->open, &i, sizeof(i));
	return c->open.oom ? -ENOMEM : 0;
}

/* The last one begun on the same thread. Traces with such rows are small, and few are open at a time. */
static int end(struct hb_convert *c, const struct hb_row *r)
{
	struct hb_item *open = (void *)c->open.data, i;
	size_t n = c->open.size / sizeof(*open);
	u32 task = hb_tasks__of(c->tasks, r);
	s64 at;

	if (!task)
		return -ENOMEM;
	if (!time_of(r, HB_COL_TS, &at))
		return odd(c, HB_ODD_TIME);
	while (n && open[n - 1].task != task)
		n--;
	if (!n)
		return odd(c, HB_ODD_END);
	i = open[n - 1];
	c->open.size -= sizeof(i);
	memmove(&open[n - 1], &open[n], c->open.size - (n - 1) * sizeof(i));
	if (at < i.begin)
		odd(c, HB_ODD_LENGTH);
	i.dur = at < i.begin ? 0 : (u64)(at - i.begin);
	return hb_sorter__add(c->items, &i, c->e);
}

/* ---- all rows ---- */

static int skip(struct hb_convert *c, char ph, struct hb_piece cat)
{
	struct hb_skipped *s = (void *)c->skipped.data, fresh = {.ph = ph, .count = 1};
	size_t n = c->skipped.size / sizeof(*s);

	if (cat.n)
		fresh.cat = hb_names__id(c->names, cat);
	for (size_t i = 0; i < n; i++)
		if (s[i].ph == ph && (s[i].cat == fresh.cat || i >= 255)) {
			s[i].count++;
			return 0;
		}
	hb_buf__add(&c->skipped, &fresh, sizeof(fresh));
	return c->skipped.oom ? -ENOMEM : 0;
}

int hb_convert__row(struct hb_convert *c, const struct hb_row *r)
{
	struct hb_piece ph = hb_row__text(r, HB_COL_PH);

	switch (ph.n == 1 ? *ph.s : 0) {
	case 'X':
		return whole(c, r);
	case 'M':
		return hb_tasks__name(c->tasks, r);
	case 'B':
		return begin(c, r);
	case 'E':
		return end(c, r);
	case 0:
		return odd(c, HB_ODD_KIND);
	default:
		return skip(c, *ph.s, hb_row__text(r, HB_COL_CAT));
	}
}

int hb_convert__end(struct hb_convert *c)
{
	struct hb_item *open = (void *)c->open.data;
	s64 first, last;
	int err = 0;

	if (!hb_sorter__range(c->items, &first, &last))
		last = INT64_MIN;
	for (size_t i = 0; i < c->open.size / sizeof(*open) && !err; i++) {
		odd(c, HB_ODD_OPEN);
		open[i].dur = last > open[i].begin ? (u64)(last - open[i].begin) : 0;
		err = hb_sorter__add(c->items, &open[i], c->e);
	}
	return err;
}

void hb_convert__free(struct hb_convert *c)
{
	hb_buf__free(&c->skipped);
	hb_buf__free(&c->open);
}
