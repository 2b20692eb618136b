/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/roof_shape.h"

#include <stdlib.h>
#include <string.h>

#define SIZE_MOST 9007199254740992.0 /* 2^53: beyond it doubles do not count by ones */

static bool eat(const char **s, char c)
{
	if (**s != c)
		return false;
	++*s;
	return true;
}

/* ---- sizes ---- */

static bool read_size(const char **s, double *v)
{
	const char *begin = *s;

	for (*v = 0; **s >= '0' && **s <= '9'; ++*s)
		*v = *v * 10 + (**s - '0');
	return *s > begin && *v < SIZE_MOST;
}

/* "[1,2],[3]]" of a list of tensors: passed over. */
static bool skip_list(const char **s)
{
	unsigned depth = 1;

	for (; **s && depth; ++*s) {
		depth += **s == '[';
		depth -= **s == ']';
	}
	return !depth;
}

static bool read_shape(const char **s, struct hb_roof_operand *o)
{
	if (!eat(s, '['))
		return false;
	if (**s == '[') {
		o->list = true;
		return skip_list(s);
	}
	if (eat(s, ']'))
		return true;
	do {
		if (o->n == HB_ROOF_DIMS || !read_size(s, &o->dim[o->n]))
			return false;
		o->n++;
	} while (eat(s, ','));
	return eat(s, ']');
}

static bool read_shapes(const char *s, struct hb_roof_operands *o)
{
	if (!eat(&s, '['))
		return false;
	if (eat(&s, ']'))
		return !*s;
	do {
		if (o->n == HB_ROOF_OPERANDS || !read_shape(&s, &o->of[o->n]))
			return false;
		o->n++;
	} while (eat(&s, ','));
	return eat(&s, ']') && !*s;
}

/* ---- texts ---- */

static void take_type(struct hb_roof_operand *o, const char *s, size_t n)
{
	o->type = (uint8_t)hb_dtype__of_name(s, n);
}

static void take_value(struct hb_roof_operand *o, const char *s, size_t n)
{
	char text[24], *end;

	if (!n || n >= sizeof(text))
		return;
	memcpy(text, s, n);
	text[n] = 0;
	o->known = true;
	if (strcmp(text, "True") == 0 || strcmp(text, "False") == 0) {
		o->value = *text == 'T';
		return;
	}
	o->value = strtoll(text, &end, 10);
	o->known = !*end;
}

/* One text for each operand; what is no text says nothing. */
static bool read_texts(const char *s, struct hb_roof_operands *o,
		       void (*take)(struct hb_roof_operand *o, const char *s, size_t n))
{
	unsigned i = 0;

	if (!eat(&s, '['))
		return false;
	if (eat(&s, ']'))
		return !*s;
	do {
		const char *begin, *end;

		if (*s == '[') {
			s++;
			if (!skip_list(&s))
				return false;
		} else if (eat(&s, '"')) {
			begin = s;
			end = strchr(s, '"');
			if (!end)
				return false;
			if (i < o->n)
				take(&o->of[i], begin, (size_t)(end - begin));
			s = end + 1;
		} else {
			s += strcspn(s, ",]");
		}
		i++;
	} while (eat(&s, ','));
	return eat(&s, ']') && !*s;
}

bool hb_roof__operands(const char *shapes, const char *types, const char *values, struct hb_roof_operands *o)
{
	memset(o, 0, sizeof(*o));
	if (!read_shapes(shapes, o))
		return false;
	o->typed = *types && read_texts(types, o, take_type);
	o->valued = *values == '[' && read_texts(values, o, take_value);
	return true;
}

double hb_roof__elements(const struct hb_roof_operand *o)
{
	double n = 1;

	for (unsigned i = 0; i < o->n; i++)
		n *= o->dim[i];
	return n;
}
