/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One JSON object a line; docs/ndjson.md is the contract. */
#include "analysis/export/ndjson.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/export/export.h"
#include "analysis/export/jbuf.h"
#include "analysis/export/ndjson_private.h"
#include "analysis/model/decode.h"

#define FLUSH_AT (256 * 1024)
#define TASKS	 65536

static int flush(struct hb_ndjson *c, FILE *out, struct hb_error *e)
{
	if (c->line.oom || c->text.oom)
		return hb_error__nomem(e, "ndjson lines");
	if (c->line.size && fwrite(c->line.data, 1, c->line.size, out) != c->line.size)
		return -errno;
	c->line.size = 0;
	return 0;
}

static void add_task(struct hb_ndjson *c, const struct hb_record *r)
{
	struct hb_ndjson_span *s = &c->task[r->task_idx];

	if (!s->size) {
		s->at = c->text.size;
		hb_jbuf__lit(&c->text, ",\"pid\":");
		hb_jbuf__u64(&c->text, r->task ? r->task->pid : 0);
		hb_jbuf__lit(&c->text, ",\"tid\":");
		hb_jbuf__u64(&c->text, r->task ? r->task->tid : 0);
		hb_jbuf__lit(&c->text, ",\"comm\":");
		hb_jbuf__str(&c->text, hb_decode__comm(c->w, r->task));
		s->size = c->text.size - s->at;
	}
	if (c->text.data && !c->text.oom) /* flush() says so */
		hb_buf__add(&c->line, c->text.data + s->at, s->size);
}

static void add_record(struct hb_ndjson *c, const struct hb_ndjson_plan *p, u64 start)
{
	const struct hb_record *r = c->r;

	hb_jbuf__lit(&c->line, "{\"type\":\"");
	hb_buf__add(&c->line, p->type, strlen(p->type));
	hb_jbuf__lit(&c->line, "\",\"ts\":");
	hb_jbuf__s64(&c->line, (s64)(r->begin - start));
	add_task(c, r);
	for (unsigned i = 0; i < p->n; i++) {
		const struct hb_ndjson_item *it = &p->item[i];

		it->emit(c, it, it->f->role == HB_ROLE_COMM ? 0 : (u64)hb_field__int(it->f, r->data));
	}
	hb_jbuf__lit(&c->line, "}\n");
}

static void add_meta(struct hb_ndjson *c, const char *name)
{
	const char *v = hb_window__meta(c->w, name);

	hb_jbuf__lit(&c->line, ",");
	hb_jbuf__str(&c->line, name);
	hb_jbuf__lit(&c->line, ":");
	hb_jbuf__str(&c->line, v ? v : "");
}

static void add_proc(struct hb_ndjson *c, const struct hb_proc *p)
{
	const struct {
		const char *key;
		u32 string;
	} texts[] = {{",\"exe\":", p->exe},
		     {",\"cmdline\":", p->cmdline},
		     {",\"cgroup\":", p->cgroup},
		     {",\"container\":", p->container}};

	hb_buf__printf(&c->line, "{\"pid\":%u,\"ppid\":%u,\"nspid\":%u,\"comm\":", p->pid, p->ppid, p->nspid);
	hb_jbuf__str(&c->line, hb_decode__comm(c->w, hb_window__task_by_tid(c->w, p->pid)));
	for (unsigned i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (!texts[i].string)
			continue;
		hb_buf__add(&c->line, texts[i].key, strlen(texts[i].key));
		hb_jbuf__str(&c->line, hb_window__string(c->w, texts[i].string));
	}
	hb_buf__printf(&c->line, ",\"how\":\"%s\",\"start_ns\":%llu,\"since_ns\":%llu}",
		       hb_word(HB_WORDS_HOW, p->how), (unsigned long long)p->start,
		       (unsigned long long)p->since);
}

static void add_damage(struct hb_ndjson *c)
{
	if (!hb_window__damage(c->w))
		return;
	hb_jbuf__lit(&c->line, ",\"damage\":");
	hb_jbuf__str(&c->line, hb_window__damage(c->w));
}

static void add_window(struct hb_ndjson *c)
{
	const struct hb_window_info *i = hb_window__info(c->w);
	u32 n;
	const struct hb_proc *p = hb_window__procs(c->w, &n);

	hb_buf__printf(&c->line,
		       "{\"type\":\"window\",\"version\":\"%u.%u\",\"start_ns\":%llu,\"end_ns\":%llu",
		       i->major, i->minor, (unsigned long long)i->start_ts, (unsigned long long)i->end_ts);
	add_meta(c, "host");
	add_meta(c, "kernel");
	add_meta(c, "profile");
	hb_buf__printf(&c->line, ",\"simulated\":%s,\"complete\":%s", i->simulated ? "true" : "false",
		       i->complete ? "true" : "false");
	if (hb_decode__simulated(c->w)) {
		hb_jbuf__lit(&c->line, ",\"device\":");
		hb_jbuf__str(&c->line, hb_decode__simulated(c->w));
	}
	add_damage(c);
	hb_jbuf__lit(&c->line, ",\"processes\":[");
	for (u32 k = 0; k < n; k++) {
		if (k)
			hb_jbuf__lit(&c->line, ",");
		add_proc(c, &p[k]);
	}
	hb_jbuf__lit(&c->line, "]}\n");
}

static void add_loss(struct hb_ndjson *c)
{
	u32 n;
	const struct hb_loss_row *row = hb_window__losses(c->w, &n);

	hb_jbuf__lit(&c->line, "{\"type\":\"loss\"");
	if (!hb_window__info(c->w)->complete)
		hb_jbuf__lit(&c->line, ",\"known\":false");
	for (unsigned k = 0; k < HB_LOSS_COUNT; k++)
		hb_buf__printf(&c->line, ",\"%s\":%llu", hb_word(HB_WORDS_LOSS, k),
			       (unsigned long long)hb_window__loss_total(c->w, k));
	add_damage(c);
	hb_jbuf__lit(&c->line, ",\"rows\":[");
	for (u32 k = 0; k < n; k++) {
		const struct hb_type *t = hb_schema__type(row[k].type);

		hb_buf__printf(&c->line, "%s{\"cause\":\"%s\"", k ? "," : "",
			       hb_word(HB_WORDS_LOSS, row[k].cause));
		if (t)
			hb_buf__printf(&c->line, ",\"of\":\"%s\"", hb_ndjson__type(t->name));
		if (row[k].cpu != UINT32_MAX)
			hb_buf__printf(&c->line, ",\"cpu\":%u", row[k].cpu);
		hb_buf__printf(&c->line, ",\"count\":%llu}", (unsigned long long)row[k].count);
	}
	hb_jbuf__lit(&c->line, "]}\n");
}

static int records(struct hb_ndjson *c, FILE *out, struct hb_error *e)
{
	struct hb_ndjson_plan plans[HB_TYPE_MAX] = {{0}};
	u64 start = hb_window__info(c->w)->start_ts;
	struct hb_record r;
	size_t n;
	const struct hb_type *types = hb_schema__types(&n);
	int rc = 0, more;

	for (size_t i = 0; i < n; i++)
		hb_ndjson__plan(&plans[types[i].id], &types[i]);
	c->r = &r;
	hb_window__rewind(c->w);
	while (!rc && (more = hb_window__next(c->w, &r)) > 0) {
		if (plans[r.type].type) /* always: the reader skips types it does not know */
			add_record(c, &plans[r.type], start);
		if (c->line.size >= FLUSH_AT)
			rc = flush(c, out, e);
	}
	c->r = NULL;
	return rc;
}

static int run(struct hb_window *w, FILE *out, struct hb_error *e)
{
	struct hb_ndjson c = {.w = w, .n_probes = hb_window__probes(w)};
	int rc;

	c.task = calloc(TASKS, sizeof(*c.task));
	c.probe = calloc((size_t)c.n_probes + 1, sizeof(*c.probe));
	c.stacks = hb_stackjson__new(w);
	c.fields = hb_ndjson_fields__new(w);
	if (!c.task || !c.probe || !c.stacks || !c.fields) {
		rc = hb_error__nomem(e, "ndjson");
	} else {
		add_window(&c);
		rc = records(&c, out, e);
		add_loss(&c);
		rc = rc ? rc : flush(&c, out, e);
	}
	hb_stackjson__free(c.stacks);
	hb_ndjson_fields__free(c.fields);
	hb_buf__free(&c.line);
	hb_buf__free(&c.text);
	free(c.task);
	free(c.probe);
	return rc;
}

HB_EXPORTER(ndjson) = {
    .name = "ndjson",
    .doc = "every record, one JSON object a line (docs/ndjson.md)",
    .run = run,
};

/* ---- documentation ---- */

void hb_ndjson__describe(FILE *out)
{
	size_t n;
	const struct hb_type *types = hb_schema__types(&n);

	for (size_t i = 0; i < n; i++) {
		struct hb_ndjson_plan p = {0};

		hb_ndjson__plan(&p, &types[i]);
		fprintf(out, "### `%s`\n\n| key | meaning |\n|---|---|\n", p.type);
		for (unsigned k = 0; k < p.n; k++) {
			const struct hb_ndjson_item *it = &p.item[k];

			if (it->name)
				fprintf(out, "| `%s` | ", it->name);
			else
				fprintf(out, "| `%.*s` | ", (int)it->key_size - 4, it->key + 2);
			for (const char *d = it->doc; *d; d++)
				fprintf(out, *d == '|' ? "\\%c" : "%c", *d); /* a bar ends a cell */
			fprintf(out, " |\n");
		}
		fputc('\n', out);
	}
}
