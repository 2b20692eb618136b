/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fields of Python objects: what values each had. */
#include "analysis/model/private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_VALUES   65536 /* of a field that are kept for its median: of more, a fair choice */
#define MAX_DISTINCT 65536

bool hb_field__number(const struct hb_rec_py_field *r, double *out)
{
	switch (r->kind) {
	case HB_PYKIND_BOOL:
	case HB_PYKIND_LEN:
		*out = (double)r->num;
		return true;
	case HB_PYKIND_INT:
		*out = (double)(s64)r->num;
		return true;
	case HB_PYKIND_FLOAT:
		memcpy(out, &r->num, sizeof(*out));
		return isfinite(*out);
	}
	return false;
}

/* Each value has the same chance to be kept. */
static void keep(struct hb_model *m, struct hb_field_stat *s, double v)
{
	u64 at = s->numbers - 1;

	if (!s->value)
		s->value = malloc(MAX_VALUES * sizeof(*s->value));
	if (!s->value) {
		m->oom = true;
		return;
	}
	if (at >= MAX_VALUES)
		at = hb_hash64(at) % s->numbers;
	if (at < MAX_VALUES)
		s->value[at] = v;
}

static void number(struct hb_model *m, struct hb_field_stat *s, double v)
{
	s->min = !s->numbers || v < s->min ? v : s->min;
	s->max = !s->numbers || v > s->max ? v : s->max;
	s->last = v;
	s->sum += v;
	s->numbers++;
	keep(m, s, v);
}

/* Texts by the number of their string, or by their hash. */
static void text(struct hb_model *m, struct hb_field_stat *s, const struct hb_rec_py_field *r)
{
	s->texts++;
	if (!s->distinct)
		s->distinct = hb_map__new();
	if (!s->distinct)
		m->oom = true;
	else if (hb_map__size(s->distinct) < MAX_DISTINCT &&
		 hb_map__put(s->distinct, r->kind == HB_PYKIND_STR ? r->text : r->num, 1))
		m->oom = true;
}

void hb_model__py_field(struct hb_model *m, struct thread *t, const struct hb_rec_py_field *r)
{
	bool fresh;
	struct hb_field_stat *s = hb_rows__get(&m->fields, (u64)t->pub.proc->idx << 32 | r->field, &fresh);
	double v;

	if (!s) {
		m->oom = true;
		return;
	}
	s->proc = t->pub.proc;
	s->field = r->field;
	s->count++;
	s->late += r->flags & 1;
	if (hb_field__number(r, &v))
		number(m, s, v);
	else if (r->kind == HB_PYKIND_STR || r->kind == HB_PYKIND_HASH)
		text(m, s, r);
	else if (r->kind == HB_PYKIND_NONE)
		s->none++;
	else
		s->without++;
}

static int cmp_values(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void finish_one(struct hb_field_stat *s)
{
	u64 n = s->numbers < MAX_VALUES ? s->numbers : MAX_VALUES;

	s->different = s->distinct ? hb_map__size(s->distinct) : 0;
	if (!n)
		return;
	qsort(s->value, n, sizeof(*s->value), cmp_values);
	s->median = s->value[(n - 1) / 2];
}

static int cmp_fields(const void *a, const void *b)
{
	CMP_ROWS(hb_field_stat, x, y, a, b);

	BIGGER_FIRST(y->field, x->field);
	BIGGER_FIRST(x->count, y->count);
	BIGGER_FIRST(y->proc->pid, x->proc->pid);
	return 0;
}

void hb_model__finish_py_fields(struct hb_model *m)
{
	for (u32 i = 0; i < m->fields.n; i++)
		finish_one(m->fields.row[i]);
	hb_rows__sort(&m->fields, cmp_fields);
}

void hb_model__drop_field(void *row)
{
	struct hb_field_stat *s = row;

	free(s->value);
	hb_map__free(s->distinct);
}
