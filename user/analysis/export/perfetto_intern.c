/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tables of a packet sequence. Strings and frames have one number in the whole trace and a mark of the
 * sequence that last wrote them: sequences are written one after the other, so the mark says whether this one
 * has it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/export/perfetto_private.h"
#include "analysis/model/decode.h"

#define NO_FRAMES UINT64_MAX

enum {
	IN_CATEGORIES = 1,
	IN_NAMES = 2,
	IN_ANNOTATIONS = 3,
	IN_FUNCTIONS = 5,
	IN_FRAMES = 6,
	IN_CALLSTACKS = 7,
	IN_BUILD_IDS = 16,
	IN_PATHS = 17,
	IN_SOURCES = 18,
	IN_MAPPINGS = 19,
	IN_VALUES = 29,
};
enum { IID = 1, STRING = 2 }; /* of every table entry */
enum { MAPPING_BUILD_ID = 2, MAPPING_PATH = 7 };
enum { FRAME_FUNCTION = 2, FRAME_MAPPING = 3, FRAME_PC = 4, FRAME_SOURCE = 5, FRAME_LINE = 6 };
enum { STACK_FRAME = 2 };

static const u8 table_of[HB_PF_USES] = {
    [HB_PF_CATEGORY] = IN_CATEGORIES, [HB_PF_NAME] = IN_NAMES, [HB_PF_ANNOTATION] = IN_ANNOTATIONS,
    [HB_PF_VALUE] = IN_VALUES,	      [HB_PF_PATH] = IN_PATHS, [HB_PF_FUNCTION] = IN_FUNCTIONS,
    [HB_PF_SOURCE] = IN_SOURCES,
};

struct string {
	char *text;
	u32 iid;
	u32 seq[HB_PF_USES]; /* that has it */
};

int hb_pf__intern_init(struct hb_pf *p)
{
	return hb_rows__init(&p->strings, sizeof(struct string));
}

static void drop_string(void *row)
{
	free(((struct string *)row)->text);
}

void hb_pf__intern_free(struct hb_pf *p)
{
	hb_rows__free(&p->strings, drop_string);
	hb_buf__free(&p->frames);
	hb_map__free(p->stacks);
}

bool hb_pf__intern_begin(struct hb_pf *p)
{
	size_t at;

	hb_map__free(p->stacks);
	p->stacks = hb_map__new();
	/* mappings have to name a build-id; ours are unknown */
	at = hb_pb__open(&p->interned, IN_BUILD_IDS);
	hb_pb__uint(&p->interned, IID, 1);
	hb_pb__bytes(&p->interned, STRING, "", 0);
	hb_pb__close(&p->interned, at);
	return p->stacks;
}

/* By content: hash, then compare, then the next key on a collision. */
static struct string *find(struct hb_pf *p, const char *s)
{
	u64 key = hb_hash_bytes(s, strlen(s));
	struct string *t;
	bool fresh;

	for (;; key++) {
		t = hb_rows__get(&p->strings, key, &fresh);
		if (!t || (t->text && strcmp(t->text, s) == 0))
			return t;
		if (fresh || !t->text) {
			t->text = strdup(s);
			t->iid = p->strings.n;
			return t->text ? t : NULL;
		}
	}
}

static u32 number_of(struct hb_pf *p, enum hb_pf_use use, struct string *t)
{
	size_t at;

	if (!t) {
		p->body.oom = true;
		return 0;
	}
	if (t->seq[use] == p->seq)
		return t->iid;
	t->seq[use] = p->seq;
	at = hb_pb__open(&p->interned, table_of[use]);
	hb_pb__uint(&p->interned, IID, t->iid);
	hb_pf__text(&p->interned, STRING, t->text);
	hb_pb__close(&p->interned, at);
	return t->iid;
}

u32 hb_pf__string(struct hb_pf *p, enum hb_pf_use use, const char *s)
{
	return number_of(p, use, find(p, s));
}

u32 hb_pf__stable(struct hb_pf *p, enum hb_pf_use use, const char *s)
{
	struct hb_pf_known *k = &p->known[hb_hash64((uintptr_t)s) % HB_PF_KNOWN];

	if (k->at != s) {
		k->at = s;
		k->string = find(p, s);
	}
	return number_of(p, use, k->string);
}

/* Parts of a path are joined with a slash before each. */
static u32 mapping(struct hb_pf *p, const char *path)
{
	struct string *t;
	size_t at;
	u32 iid;

	path = *path == '/' ? path + 1 : path;
	iid = hb_pf__string(p, HB_PF_PATH, path);
	t = find(p, path);
	if (!t || t->seq[HB_PF_MAPPING] == p->seq)
		return iid;
	t->seq[HB_PF_MAPPING] = p->seq;
	at = hb_pb__open(&p->interned, IN_MAPPINGS);
	hb_pb__uint(&p->interned, IID, iid);
	hb_pb__uint(&p->interned, MAPPING_BUILD_ID, 1);
	hb_pb__uint(&p->interned, MAPPING_PATH, iid);
	hb_pb__close(&p->interned, at);
	return iid;
}

static u32 *frame_mark(struct hb_pf *p, u32 id)
{
	size_t need = ((size_t)id + 1) * sizeof(u32);

	if (p->frames.size < need) {
		size_t more = need - p->frames.size + 4096;
		void *room = hb_buf__room(&p->frames, more);

		if (!room)
			return NULL;
		memset(room, 0, more);
		p->frames.size += more;
	}
	return (u32 *)(void *)p->frames.data + id;
}

static void add_frame(struct hb_pf *p, u32 id, const struct hb_loc *l)
{
	u32 *mark = frame_mark(p, id), function, file, source = 0;
	char buf[512];
	size_t at;

	if (!mark) {
		p->body.oom = true;
		return;
	}
	if (*mark == p->seq)
		return;
	*mark = p->seq;
	function =
	    hb_pf__string(p, HB_PF_FUNCTION, hb_decode__frame(p->w, l, HB_FRAME_NAME, buf, sizeof(buf)));
	file = mapping(p, *hb_decode__frame_file(p->w, l) ? hb_decode__frame_file(p->w, l) : "[unknown]");
	if (l->file)
		source = hb_pf__string(p, HB_PF_SOURCE, hb_window__string(p->w, l->file));
	at = hb_pb__open(&p->interned, IN_FRAMES);
	hb_pb__uint(&p->interned, IID, id);
	hb_pb__uint(&p->interned, FRAME_FUNCTION, function);
	hb_pb__uint(&p->interned, FRAME_MAPPING, file);
	hb_pb__uint(&p->interned, FRAME_PC, l->offset);
	if (source)
		hb_pb__uint(&p->interned, FRAME_SOURCE, source);
	if (l->line)
		hb_pb__uint(&p->interned, FRAME_LINE, l->line);
	hb_pb__close(&p->interned, at);
}

static u32 add_frames(struct hb_pf *p, const struct hb_stack *s)
{
	u32 n = 0;

	for (u32 i = 0; i < s->n; i++) {
		const struct hb_loc *l = hb_window__loc(p->w, s->locs[i]);

		if (l) {
			add_frame(p, s->locs[i], l);
			n++;
		}
	}
	return n;
}

static void add_stack(struct hb_pf *p, u32 iid, const struct hb_stack *s)
{
	size_t at = hb_pb__open(&p->interned, IN_CALLSTACKS);

	hb_pb__uint(&p->interned, IID, iid);
	for (unsigned k = 0; k < 2; k++)
		for (u32 i = 0; i < s[k].n; i++)
			if (hb_window__loc(p->w, s[k].locs[i]))
				hb_pb__uint(&p->interned, STACK_FRAME, s[k].locs[i]);
	hb_pb__close(&p->interned, at);
}

u32 hb_pf__stack(struct hb_pf *p, u32 raw, u32 kraw)
{
	const u32 raws[] = {raw, kraw};
	struct hb_stack s[2] = {{0}};
	u64 *slot;
	u32 n = 0, iid;
	bool fresh;

	if (!raw && !kraw)
		return 0;
	slot = hb_map__slot(p->stacks, (u64)raw << 32 | kraw, &fresh);
	if (!slot) {
		p->body.oom = true;
		return 0;
	}
	if (!fresh)
		return *slot == NO_FRAMES ? 0 : (u32)*slot;
	iid = (u32)hb_map__size(p->stacks);
	*slot = NO_FRAMES;
	for (unsigned k = 0; k < 2; k++) {
		if (raws[k])
			s[k] = hb_window__stack(p->w, p->task->pid, raws[k]);
		n += add_frames(p, &s[k]);
	}
	if (!n)
		return 0;
	*slot = iid; /* nothing was put into the map meanwhile */
	add_stack(p, iid, s);
	return iid;
}
