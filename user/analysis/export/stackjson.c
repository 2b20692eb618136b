/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/export/stackjson.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/export/jbuf.h"
#include "analysis/model/decode.h"
#include "base/map.h"

#define CACHE_MAX ((size_t)64 << 20) /* then it starts anew */

struct entry {
	size_t at, size;   /* in text: frames without the brackets */
	const char *state; /* NULL: whole */
};

struct hb_stackjson {
	struct hb_window *w;
	struct hb_map *ids; /* pid << 32 | raw -> index of entry + 1 */
	struct hb_buf entries, text;
};

struct hb_stackjson *hb_stackjson__new(struct hb_window *w)
{
	struct hb_stackjson *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->w = w;
	s->ids = hb_map__new();
	if (!s->ids) {
		free(s);
		return NULL;
	}
	return s;
}

void hb_stackjson__free(struct hb_stackjson *s)
{
	if (!s)
		return;
	hb_map__free(s->ids);
	hb_buf__free(&s->entries);
	hb_buf__free(&s->text);
	free(s);
}

static void add_frame(struct hb_stackjson *s, const struct hb_loc *l)
{
	struct hb_buf *b = &s->text;
	char buf[512];

	hb_jbuf__lit(b, "{\"f\":");
	hb_jbuf__str(b, hb_decode__frame(s->w, l, HB_FRAME_NAME, buf, sizeof(buf)));
	if (l->file) {
		hb_jbuf__lit(b, ",\"file\":");
		hb_jbuf__str(b, hb_window__string(s->w, l->file));
	}
	if (l->line) {
		hb_jbuf__lit(b, ",\"line\":");
		hb_jbuf__u64(b, l->line);
	}
	if (l->module) {
		hb_jbuf__lit(b, ",\"module\":");
		hb_jbuf__str(b, hb_window__string(s->w, l->module));
	}
	hb_jbuf__lit(b, ",\"lang\":");
	hb_jbuf__str(b, hb_decode__lang(l));
	hb_jbuf__lit(b, "}");
}

static struct entry make(struct hb_stackjson *s, u32 pid, u32 raw)
{
	struct hb_stack st = hb_window__stack(s->w, pid, raw);
	struct entry e = {.at = s->text.size, .state = hb_decode__stack_state(&st)};

	for (u32 i = 0; i < st.n; i++) {
		const struct hb_loc *l = hb_window__loc(s->w, st.locs[i]);

		if (!l)
			continue;
		if (s->text.size > e.at)
			hb_jbuf__lit(&s->text, ",");
		add_frame(s, l);
	}
	e.size = s->text.size - e.at;
	return e;
}

static bool restart(struct hb_stackjson *s)
{
	struct hb_map *fresh = hb_map__new();

	if (!fresh)
		return false;
	hb_map__free(s->ids);
	s->ids = fresh;
	s->entries.size = s->text.size = 0;
	return true;
}

static bool find(struct hb_stackjson *s, u32 pid, u32 raw, struct entry *e)
{
	u64 key = (u64)pid << 32 | raw, at;

	if (hb_map__get(s->ids, key, &at)) {
		memcpy(e, s->entries.data + (at - 1) * sizeof(*e), sizeof(*e));
		return true;
	}
	if (s->text.size > CACHE_MAX && !restart(s))
		return false;
	*e = make(s, pid, raw);
	hb_buf__add(&s->entries, e, sizeof(*e));
	return !s->text.oom && !s->entries.oom && !hb_map__put(s->ids, key, s->entries.size / sizeof(*e));
}

void hb_stackjson__array(struct hb_stackjson *s, struct hb_buf *b, u32 pid, u32 raw, u32 kraw)
{
	const u32 raws[] = {raw, kraw};
	const char *state = NULL;
	struct entry e;
	size_t begin;

	hb_jbuf__lit(b, "[");
	begin = b->size;
	for (unsigned i = 0; i < 2; i++) {
		if (!raws[i])
			continue;
		if (!find(s, pid, raws[i], &e)) {
			b->oom = true;
			return;
		}
		if (e.size && b->size > begin)
			hb_jbuf__lit(b, ",");
		hb_buf__add(b, s->text.data + e.at, e.size);
		if (!state)
			state = e.state;
	}
	hb_jbuf__lit(b, "]");
	if (state) {
		hb_jbuf__lit(b, ",\"stack_state\":");
		hb_jbuf__str(b, state);
	}
}
