/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/patterns/fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/text.h"

/* By the last part of the path that was asked for, without a type: "self.scheduler.running:len" -> "running".
 */
static const struct {
	const char *glob;
	u8 field;
} names[] = {
    {"waiting*", HB_STATE_WAITING},
    {"num_waiting*", HB_STATE_WAITING},
    {"waiting_queue*", HB_STATE_WAITING},
    {"running", HB_STATE_RUNNING},
    {"num_running*", HB_STATE_RUNNING},
    {"running_batch*", HB_STATE_RUNNING},
    {"max_num_seqs", HB_STATE_LIMIT},
    {"max_num_running_reqs", HB_STATE_LIMIT},
    {"max_running_requests", HB_STATE_LIMIT},
    {"max_batch*", HB_STATE_LIMIT},
    {"free", HB_STATE_FREE},
    {"free_blocks", HB_STATE_FREE},
    {"num_free_blocks", HB_STATE_FREE},
    {"num_gpu_blocks", HB_STATE_BLOCKS},
    {"num_blocks", HB_STATE_BLOCKS},
    {"blocks", HB_STATE_BLOCKS},
    {"preempted*", HB_STATE_PREEMPTED},
    {"num_preempt*", HB_STATE_PREEMPTED},
    {"*preemptions*", HB_STATE_PREEMPTED},
    {"num_prefill_tokens", HB_STATE_PREFILL},
    {"num_decode_tokens", HB_STATE_DECODE},
    {"num_decodes", HB_STATE_DECODE},
};

/* Engines that do not count preemptions have a function for one: "*:Scheduler._preempt_request request.x". */
#define PREEMPTS (HB_STATE_FIELDS + 1)

static u8 field_of(const char *asked)
{
	const char *path = strrchr(asked, ' ');
	const char *last = strrchr(path ? path : asked, '.');
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(asked, " "), asked);
	if (path && hb_text__glob("*preempt*", name))
		return PREEMPTS;
	snprintf(name, sizeof(name), "%s", last ? last + 1 : path ? path + 1 : asked);
	name[strcspn(name, ":[( ")] = 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (hb_text__glob(names[i].glob, name))
			return names[i].field;
	return HB_STATE_FIELDS;
}

struct reading {
	u64 at, value;
	u32 pid;
	u8 field;
	bool event; /* one more of what `field` counts */
};

static int cmp_reading(const void *a, const void *b)
{
	const struct reading *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

static int collect(const struct hb_scene *s, u32 fields, struct reading **out, u32 *n)
{
	struct hb_map *kind = hb_map__new();
	struct hb_record r;
	u32 cap = 0;
	int err = kind ? 0 : -ENOMEM;

	hb_window__rewind(s->w);
	while (!err && hb_window__next(s->w, &r) > 0) {
		const struct hb_rec_py_field *f = r.data;
		bool fresh, event;
		u64 *slot;
		double v = 0;

		if (r.type != HB_TYPE_py_field)
			continue;
		slot = hb_map__slot(kind, f->field, &fresh);
		if (!slot) {
			err = -ENOMEM;
			break;
		}
		if (fresh)
			*slot = field_of(hb_window__string(s->w, f->field));
		event = *slot == PREEMPTS;
		if (*slot == HB_STATE_FIELDS || !(fields & 1U << (event ? HB_STATE_PREEMPTED : *slot)))
			continue;
		if (!event && (!hb_field__number(f, &v) || v < 0)) /* a call is one whatever was read in it */
			continue;
		if (*n == cap) {
			struct reading *more = realloc(*out, (cap = cap ? cap * 2 : 256) * sizeof(*more));

			if (!more) {
				err = -ENOMEM;
				break;
			}
			*out = more;
		}
		(*out)[(*n)++] = (struct reading){.at = f->call,
						  .value = (u64)v,
						  .pid = r.task->pid,
						  .field = event ? HB_STATE_PREEMPTED : (u8)*slot,
						  .event = event};
	}
	hb_map__free(kind);
	return err;
}

static u32 busiest(const struct reading *r, u32 n)
{
	u32 best = 0, most = 0;

	for (u32 i = 0; i < n; i++) {
		u32 count = 0;

		if (r[i].pid == best)
			continue;
		for (u32 j = i; j < n; j++)
			count += r[j].pid == r[i].pid;
		if (count > most) {
			most = count;
			best = r[i].pid;
		}
		if (n - i <= most)
			break;
	}
	return best;
}

/* Events as a counter that is read with each of them, and as the first reading of all: 0. */
static void count_events(struct reading *r, u32 n, u32 pid, struct hb_state *first)
{
	u64 count = 0, last = 0;

	for (u32 i = 0; i < n; i++) {
		if (!r[i].event || r[i].pid != pid)
			continue;
		count += r[i].at != last; /* several fields of one call are one event */
		last = r[i].at;
		r[i].value = count;
		first->known |= 1U << r[i].field;
	}
}

int hb_states__read(const struct hb_scene *s, u32 fields, struct hb_states *out)
{
	struct reading *r = NULL;
	struct hb_state now = {0};
	u32 n = 0;
	int err = collect(s, fields, &r, &n);

	*out = (struct hb_states){.v = calloc(n + 1, sizeof(*out->v))};
	if (err || !out->v) {
		free(r);
		hb_states__free(out);
		return -ENOMEM;
	}
	if (n)
		qsort(r, n, sizeof(*r), cmp_reading);
	out->pid = busiest(r, n);
	count_events(r, n, out->pid, &now);
	for (u32 i = 0; i < n; i++) {
		if (r[i].pid != out->pid)
			continue;
		if (out->n && r[i].at == now.at)
			out->n--; /* several fields of one call are one reading */
		now.at = r[i].at;
		now.known |= 1U << r[i].field;
		now.value[r[i].field] = r[i].value;
		out->known |= now.known;
		out->v[out->n++] = now;
	}
	free(r);
	return 0;
}

void hb_states__free(struct hb_states *v)
{
	free(v->v);
	*v = (struct hb_states){0};
}

u64 hb_states__length(const struct hb_states *v, u32 i)
{
	return i + 1 < v->n ? v->v[i + 1].at - v->v[i].at : 0;
}

int hb_patterns__load(const struct hb_patterns_input *in, struct hb_load *out)
{
	static const u32 both = 1U << HB_STATE_RUNNING | 1U << HB_STATE_WAITING;
	struct hb_scene s = {.w = in->window, .m = in->model};
	struct hb_states st;

	*out = (struct hb_load){0};
	if (!hb_model__totals(in->model)->by_type[HB_TYPE_py_field])
		return 0;
	if (hb_states__read(&s, HB_STATE_SCHEDULER, &st))
		return -ENOMEM;
	for (u32 i = 0; i < st.n; i++) {
		u64 ns = hb_states__length(&st, i);

		if ((st.v[i].known & both) != both)
			continue;
		out->known += ns;
		out->none += st.v[i].value[HB_STATE_RUNNING] || st.v[i].value[HB_STATE_WAITING] ? 0 : ns;
	}
	hb_states__free(&st);
	return 0;
}
