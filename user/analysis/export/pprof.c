/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A profile of pprof (profile.proto): CPU samples and their time by stack, and where the window has them
 * waits for Python's GIL, collections and exceptions as further values; Python functions with file and line.
 * Uncompressed, which its readers take as well. Memory follows the number of different stacks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/export/export.h"
#include "analysis/export/perfetto_proto.h"
#include "analysis/export/spots.h"
#include "analysis/model/decode.h"
#include "base/map.h"

enum profile {
	SAMPLE_TYPE = 1,
	SAMPLE = 2,
	MAPPING = 3,
	LOCATION = 4,
	FUNCTION = 5,
	STRING = 6,
	TIME_NANOS = 9,
	DURATION_NANOS = 10,
	PERIOD_TYPE = 11,
	COMMENT = 13,
	DEFAULT_TYPE = 14
};
enum value_type { TYPE = 1, UNIT = 2 };
enum sample { LOCATION_ID = 1, VALUE = 2, LABEL = 3 };
enum label { KEY = 1, STR = 2, NUM = 3 };
enum mapping { MAPPING_FILE = 5 };
enum location { LOCATION_MAPPING = 2, ADDRESS = 3, LINE = 4 };
enum line { LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum function { FUNCTION_NAME = 2, FUNCTION_FILE = 4 };
#define ID 1 /* of mappings, locations and functions */

struct ctx {
	struct hb_window *w;
	struct hb_map *strings;	  /* hash -> index + 1 */
	struct hb_map *functions; /* (name, file) -> id */
	struct hb_map *mappings;  /* file -> id */
	struct hb_map *locations; /* those that are written */
	struct hb_spots spots;
	u32 n_strings;
	struct hb_buf out;
};

static u32 string(struct ctx *c, const char *s)
{
	bool fresh;
	u64 *slot = hb_map__slot(c->strings, hb_hash_bytes(s, strlen(s)), &fresh);

	if (!slot)
		return 0;
	if (fresh) {
		*slot = c->n_strings++;
		hb_pb__bytes(&c->out, STRING, s, strlen(s));
	}
	return (u32)*slot;
}

static void value_type(struct ctx *c, unsigned field, const char *type, const char *unit)
{
	u32 t = string(c, type), u = string(c, unit);
	size_t at = hb_pb__open(&c->out, field);

	hb_pb__uint(&c->out, TYPE, t);
	hb_pb__uint(&c->out, UNIT, u);
	hb_pb__close(&c->out, at);
}

/* ---- code ---- */

static u64 mapping(struct ctx *c, const char *file)
{
	u32 name = string(c, file);
	bool fresh;
	u64 *id = hb_map__slot(c->mappings, name, &fresh);
	size_t at;

	if (!id || !fresh)
		return id ? *id : 0;
	*id = hb_map__size(c->mappings);
	at = hb_pb__open(&c->out, MAPPING);
	hb_pb__uint(&c->out, ID, *id);
	hb_pb__uint(&c->out, MAPPING_FILE, name);
	hb_pb__close(&c->out, at);
	return *id;
}

static u64 function(struct ctx *c, const struct hb_loc *l)
{
	char buf[512];
	u32 name = string(c, hb_decode__frame(c->w, l, HB_FRAME_NAME, buf, sizeof(buf)));
	u32 file = string(c, hb_decode__frame_file(c->w, l));
	bool fresh;
	u64 *id = hb_map__slot(c->functions, (u64)name << 32 | file, &fresh);
	size_t at;

	if (!id || !fresh)
		return id ? *id : 0;
	*id = hb_map__size(c->functions);
	at = hb_pb__open(&c->out, FUNCTION);
	hb_pb__uint(&c->out, ID, *id);
	hb_pb__uint(&c->out, FUNCTION_NAME, name);
	hb_pb__uint(&c->out, FUNCTION_FILE, file);
	hb_pb__close(&c->out, at);
	return *id;
}

/* The window's ids of locations are used as they are. */
static void location(struct ctx *c, u32 id, const struct hb_loc *l)
{
	u64 in = 0, func;
	size_t at, line;
	bool fresh;

	if (!hb_map__slot(c->locations, id, &fresh) || !fresh)
		return;
	if (l->module)
		in = mapping(c, hb_window__string(c->w, l->module));
	func = function(c, l);
	at = hb_pb__open(&c->out, LOCATION);
	hb_pb__uint(&c->out, ID, id);
	if (in)
		hb_pb__uint(&c->out, LOCATION_MAPPING, in);
	if (l->lang != HB_LANG_PYTHON)
		hb_pb__uint(&c->out, ADDRESS, l->offset);
	line = hb_pb__open(&c->out, LINE);
	hb_pb__uint(&c->out, LINE_FUNCTION, func);
	if (l->line)
		hb_pb__uint(&c->out, LINE_NUMBER, l->line);
	hb_pb__close(&c->out, line);
	hb_pb__close(&c->out, at);
}

/* ---- samples ---- */

static struct hb_stack stack_of(struct ctx *c, u32 pid, u32 raw)
{
	return raw ? hb_window__stack(c->w, pid, raw) : (struct hb_stack){0};
}

static void locations_of(struct ctx *c, const struct hb_stack *s)
{
	for (u32 i = 0; i < s->n; i++) {
		const struct hb_loc *l = hb_window__loc(c->w, s->locs[i]);

		if (l)
			location(c, s->locs[i], l);
	}
}

/* Innermost first. */
static void put_frames(struct ctx *c, const struct hb_stack *s)
{
	for (u32 i = s->n; i > 0; i--)
		if (hb_window__loc(c->w, s->locs[i - 1]))
			hb_pb__uint(&c->out, LOCATION_ID, s->locs[i - 1]);
}

static void label(struct ctx *c, u32 key, u32 text, u64 number)
{
	size_t at = hb_pb__open(&c->out, LABEL);

	hb_pb__uint(&c->out, KEY, key);
	if (text)
		hb_pb__uint(&c->out, STR, text);
	else
		hb_pb__uint(&c->out, NUM, number);
	hb_pb__close(&c->out, at);
}

static const struct {
	const char *name, *unit;
	bool always; /* also when there are none */
} values[HB_SPOT_VALUES] = {
    [HB_SPOT_SAMPLES] = {"samples", "count", true},
    [HB_SPOT_CPU] = {"cpu", "nanoseconds", true},
    [HB_SPOT_GIL] = {"gil_wait", "nanoseconds", false},
    [HB_SPOT_GC] = {"garbage_collection", "nanoseconds", false},
    [HB_SPOT_EXCEPTIONS] = {"exceptions", "count", false},
};

static bool has(const struct ctx *c, unsigned value)
{
	return values[value].always || c->spots.total[value];
}

static void put_sample(struct ctx *c, const struct hb_spot *s)
{
	const struct hb_task *t = hb_window__task(c->w, s->task);
	struct hb_stack user = stack_of(c, s->pid, s->stack), kernel = stack_of(c, s->pid, s->kstack);
	u32 thread = string(c, "thread"), comm = string(c, hb_decode__comm(c->w, t)), pid = string(c, "pid");
	size_t at;

	locations_of(c, &user);
	locations_of(c, &kernel);
	at = hb_pb__open(&c->out, SAMPLE);
	put_frames(c, &kernel);
	put_frames(c, &user);
	for (unsigned i = 0; i < HB_SPOT_VALUES; i++)
		if (has(c, i))
			hb_pb__uint(&c->out, VALUE, s->value[i]);
	label(c, thread, comm, 0);
	label(c, pid, 0, s->pid);
	hb_pb__close(&c->out, at);
}

static int write_all(struct ctx *c, FILE *out)
{
	const struct hb_window_info *i = hb_window__info(c->w);
	const char *real = hb_window__meta(c->w, "realtime_offset_ns"), *sim = hb_decode__simulated(c->w);

	u32 cpu;

	string(c, ""); /* index 0 */
	for (unsigned k = 0; k < HB_SPOT_VALUES; k++)
		if (has(c, k))
			value_type(c, SAMPLE_TYPE, values[k].name, values[k].unit);
	value_type(c, PERIOD_TYPE, "cpu", "nanoseconds");
	cpu = string(c, "cpu");
	hb_pb__uint(&c->out, DEFAULT_TYPE, cpu);
	hb_pb__uint(&c->out, TIME_NANOS, i->start_ts + (real ? strtoull(real, NULL, 10) : 0));
	hb_pb__uint(&c->out, DURATION_NANOS, i->end_ts - i->start_ts);
	if (sim) {
		u32 text = string(c, sim);

		hb_pb__uint(&c->out, COMMENT, text);
	}
	for (u32 k = 0; k < c->spots.rows.n && !c->out.oom; k++)
		put_sample(c, c->spots.rows.row[k]);
	if (c->out.oom)
		return -ENOMEM;
	return fwrite(c->out.data, 1, c->out.size, out) == c->out.size ? 0 : -EIO;
}

static int run(struct hb_window *w, FILE *out, struct hb_error *e)
{
	struct ctx c = {.w = w};
	struct hb_map **maps[] = {&c.strings, &c.functions, &c.mappings, &c.locations};
	int rc = hb_spots__read(&c.spots, w);

	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		if (!(*maps[i] = hb_map__new()))
			rc = -ENOMEM;
	rc = rc ? rc : write_all(&c, out);
	if (rc == -ENOMEM)
		hb_error__nomem(e, "the profile");
	for (size_t i = 0; i < sizeof(maps) / sizeof(*maps); i++)
		hb_map__free(*maps[i]);
	hb_spots__free(&c.spots);
	hb_buf__free(&c.out);
	return rc;
}

HB_EXPORTER(pprof) = {
    .name = "pprof",
    .doc = "CPU samples, and waits for the GIL, collections, exceptions, for pprof",
    .bare = true,
    .run = run,
};
