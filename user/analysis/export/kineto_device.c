/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Rows of devices and operators. A device is a process of this format, a stream a thread of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <yajl/yajl_tree.h>

#include "analysis/export/jbuf.h"
#include "analysis/export/kineto_private.h"

static u64 key_of(u32 pid, u64 correlation)
{
	return hb_hash64(correlation) ^ pid;
}

int hb_kineto__note_work(struct hb_kineto *c, const struct hb_record *r)
{
	const struct hb_rec_device *d = r->data;

	if (r->type != HB_TYPE_device)
		return 0;
	if (d->correlation && d->kind <= HB_DEVKIND_MEMSET &&
	    hb_map__put(c->work, key_of(r->task->pid, d->correlation), 1))
		return -ENOMEM;
	return d->device == UINT32_MAX ? 0 : hb_map__put(c->devices, d->device, r->task->pid);
}

int hb_kineto__note_call(struct hb_kineto *c, u32 pid, u64 correlation)
{
	bool fresh;
	u64 *owner, *place;

	if (!correlation)
		return 0;
	c->own_numbers = true;
	owner = hb_map__slot(c->owner, correlation, &fresh);
	if (!owner)
		return -ENOMEM;
	if (fresh)
		*owner = pid;
	c->shared |= *owner != pid;
	place = hb_map__slot(c->numbers, pid, &fresh);
	if (!place)
		return -ENOMEM;
	if (fresh)
		*place = hb_map__size(c->numbers);
	return 0;
}

/* Numbers of 32 bits, as profilers have them, stay what they are for the first process. */
u64 hb_kineto__number(const struct hb_kineto *c, u32 pid, u64 correlation)
{
	u64 place;

	if (!c->shared || !correlation || correlation >> 32 || !hb_map__get(c->numbers, pid, &place))
		return correlation;
	return correlation | (place - 1) << 32;
}

bool hb_kineto__has_work(const struct hb_kineto *c, u32 pid, u64 correlation)
{
	return correlation && hb_map__get(c->work, key_of(pid, correlation), NULL);
}

static const char *sync_name(u8 sync)
{
	static const char *const names[] = {
	    [HB_SYNCKIND_UNKNOWN] = "Sync",
	    [HB_SYNCKIND_EVENT] = "Event Sync",
	    [HB_SYNCKIND_STREAM_WAIT] = "Stream Wait Event",
	    [HB_SYNCKIND_STREAM] = "Stream Sync",
	    [HB_SYNCKIND_CONTEXT] = "Context Sync",
	};

	return names[sync < sizeof(names) / sizeof(*names) ? sync : 0];
}

static void add_sync(struct hb_kineto *c, u32 pid, const struct hb_rec_device *d)
{
	hb_kineto__text(c, "cuda_sync_kind", sync_name(d->sync));
	if (d->wstream != UINT32_MAX)
		hb_kineto__u64(c, "wait_on_stream", d->wstream);
	if (d->waits)
		hb_kineto__u64(c, "wait_on_cuda_event_record_corr_id", hb_kineto__number(c, pid, d->waits));
}

static void add_known(struct hb_kineto *c, const char *key, u64 v)
{
	if (v)
		hb_kineto__u64(c, key, v);
}

static void add_kernel(struct hb_kineto *c, const struct hb_rec_device *d)
{
	hb_kineto__u64(c, "registers per thread", d->regs);
	hb_kineto__u64(c, "shared memory", d->shm);
	if (d->gx)
		hb_kineto__three(c, "grid", d->gx, d->gy, d->gz);
	if (d->bx)
		hb_kineto__three(c, "block", d->bx, d->by, d->bz);
	add_known(c, "graph id", d->graph);
	add_known(c, "graph node id", d->node);
}

/* All of a context is stream -1 here. The profiler's own time is of the host. */
static struct hb_kineto_place place_of(const struct hb_record *r, const struct hb_rec_device *d)
{
	if (d->device == UINT32_MAX)
		return (struct hb_kineto_place){r->task->pid, r->task->tid};
	return (struct hb_kineto_place){d->device, d->stream == UINT32_MAX ? 0 : d->stream};
}

void hb_kineto__device(struct hb_kineto *c, const struct hb_record *r)
{
	static const char *const cats[] = {
	    [HB_DEVKIND_KERNEL] = "kernel",	[HB_DEVKIND_MEMCPY] = "gpu_memcpy",
	    [HB_DEVKIND_MEMSET] = "gpu_memset", [HB_DEVKIND_SYNC] = "cuda_sync",
	    [HB_DEVKIND_OVERHEAD] = "overhead",
	};
	const struct hb_rec_device *d = r->data;
	struct hb_kineto_place at = place_of(r, d);

	if (d->kind >= HB_DEVKIND_COUNT)
		return;
	hb_kineto__begin(c, cats[d->kind], hb_window__string(c->w, d->name), at, r);
	if (d->kind != HB_DEVKIND_OVERHEAD) {
		hb_kineto__u64(c, "device", d->device);
		hb_kineto__u64(c, "context", d->context);
		hb_kineto__s64(c, "stream", d->stream == UINT32_MAX ? -1 : (s64)d->stream);
	}
	add_known(c, "correlation", hb_kineto__number(c, r->task->pid, d->correlation));
	if (d->queued >= c->base)
		add_known(c, "queued", d->queued - c->base);
	if (d->kind == HB_DEVKIND_KERNEL)
		add_kernel(c, d);
	if (d->kind == HB_DEVKIND_MEMCPY || d->kind == HB_DEVKIND_MEMSET)
		hb_kineto__u64(c, "bytes", d->bytes);
	if (d->copy)
		hb_kineto__text(c, "kind", hb_word(HB_WORDS_COPY, d->copy));
	if (d->kind == HB_DEVKIND_SYNC)
		add_sync(c, r->task->pid, d);
	hb_kineto__end(c);
	if (d->correlation && d->kind <= HB_DEVKIND_MEMSET)
		hb_kineto__flow(c, 'f', hb_kineto__number(c, r->task->pid, d->correlation), at, r->begin);
}

/* A text that is JSON, as long as it looks like it: a damaged window must not make a damaged file. */
static void add_list(struct hb_kineto *c, const char *key, const char *s)
{
	unsigned depth = 0;
	bool text = false;

	for (const char *p = s; *p; p++) {
		text ^= *p == '"';
		if (*p == '\\' || (!text && !strchr("[],\"-0123456789", *p)))
			return;
		if (!text && *p == '[')
			depth++;
		if (!text && *p == ']' && (!depth-- || (!depth && p[1])))
			return;
	}
	if (*s != '[' || depth || text)
		return;
	hb_jbuf__str(&c->out, key);
	hb_jbuf__lit(&c->out, ":");
	hb_buf__add(&c->out, s, strlen(s));
	hb_jbuf__lit(&c->out, ",");
}

/* What a collective says of itself, under the profiler's own names. */
static void add_collective(struct hb_kineto *c, const char *values)
{
	static const struct {
		const char *ours, *theirs;
	} members[] = {{"collective", "Collective name"},
		       {"dtype", "dtype"},
		       {"group", "Process Group Name"},
		       {"in", "In msg nelems"},
		       {"out", "Out msg nelems"},
		       {"ranks", "Group size"},
		       {"seq", "Seq"}};
	char why[64];
	yajl_val all = *values == '{' ? yajl_tree_parse(values, why, sizeof(why)) : NULL;

	for (size_t i = 0; all && i < sizeof(members) / sizeof(*members); i++) {
		const char *path[] = {members[i].ours, NULL};
		yajl_val v = yajl_tree_get(all, path, yajl_t_any);

		if (v && YAJL_IS_STRING(v))
			hb_kineto__text(c, members[i].theirs, YAJL_GET_STRING(v));
		else if (v && YAJL_IS_INTEGER(v))
			hb_kineto__s64(c, members[i].theirs, YAJL_GET_INTEGER(v));
	}
	yajl_tree_free(all);
}

void hb_kineto__op(struct hb_kineto *c, const struct hb_record *r)
{
	static const char *const cats[] = {
	    [HB_OPKIND_CPU_OP] = "cpu_op",
	    [HB_OPKIND_ANNOTATION] = "user_annotation",
	    [HB_OPKIND_DEVICE_ANNOTATION] = "gpu_user_annotation",
	    [HB_OPKIND_OTHER] = "other",
	};
	const struct hb_rec_op *o = r->data;
	struct hb_kineto_place at = {r->task->pid, r->task->tid};

	if (o->kind == HB_OPKIND_DEVICE_ANNOTATION)
		at = (struct hb_kineto_place){o->device, o->stream};
	hb_kineto__begin(c, cats[o->kind <= HB_OPKIND_OTHER ? o->kind : HB_OPKIND_OTHER],
			 hb_window__string(c->w, o->name), at, r);
	add_known(c, "External id", o->external);
	if (o->seq)
		hb_kineto__u64(c, "Sequence number", o->seq - 1);
	add_list(c, "Input Dims", hb_window__string(c->w, o->shapes));
	add_list(c, "Input type", hb_window__string(c->w, o->types));
	if (*hb_window__string(c->w, o->values) == '[') /* of a collective it is no list */
		add_list(c, "Concrete Inputs", hb_window__string(c->w, o->values));
	add_collective(c, hb_window__string(c->w, o->values));
	hb_kineto__end(c);
}

static int cmp_numbers(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

/* In order of their numbers. A device that has the number of a traced process cannot be told from it. */
void hb_kineto__device_names(struct hb_kineto *c)
{
	size_t n = hb_map__size(c->devices), pos = 0, k = 0;
	u64 *number = calloc(n + 1, sizeof(*number)), pid;
	char text[48];

	if (!number) {
		c->out.oom = true;
		return;
	}
	while (k < n && hb_map__next(c->devices, &pos, &number[k], &pid))
		k++;
	qsort(number, k, sizeof(*number), cmp_numbers);
	for (size_t i = 0; i < k; i++) {
		snprintf(text, sizeof(text), "GPU %llu", (unsigned long long)number[i]);
		hb_kineto__name(c, "process_labels", (struct hb_kineto_place){number[i], 0}, "labels", text);
	}
	free(number);
}

static void add_number(struct hb_kineto *c, const char *key, const char *id, const char *what)
{
	char name[48];
	const char *v;

	snprintf(name, sizeof(name), "device_%s_%s", id, what);
	v = hb_window__meta(c->w, name);
	if (v)
		hb_buf__printf(&c->out, ", \"%s\": %llu", key, strtoull(v, NULL, 10));
}

/* "device_0_name" and so on are facts about the window. */
void hb_kineto__properties(struct hb_kineto *c)
{
	const char *key, *value;
	bool first = true;

	for (u32 i = 0; hb_window__meta_at(c->w, i, &key, &value); i++) {
		char id[16];
		int end = 0;

		if (sscanf(key, "device_%15[0-9]_name%n", id, &end) != 1 || !end || key[end])
			continue;
		hb_buf__printf(&c->out, "%s\n{\"id\": %llu, \"name\": ", first ? "" : ",",
			       strtoull(id, NULL, 10));
		hb_jbuf__str(&c->out, value);
		add_number(c, "numSms", id, "sms");
		add_number(c, "totalGlobalMem", id, "memory");
		hb_jbuf__lit(&c->out, "}");
		first = false;
	}
}
