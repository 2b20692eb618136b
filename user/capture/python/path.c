/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* "self.scheduler.running:len": from a variable to a value. */
#include "capture/python/heap.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *const wants[] = {[HB_PY_ANY] = "",		[HB_PY_WANT_STR] = "str",
				    [HB_PY_WANT_INT] = "int",	[HB_PY_WANT_FLOAT] = "float",
				    [HB_PY_WANT_BOOL] = "bool", [HB_PY_WANT_LEN] = "len"};
#define N_WANTS (sizeof(wants) / sizeof(*wants))

static bool is_name(const char *s, size_t n)
{
	if (!n || n >= HB_PY_NAME_MAX || isdigit((unsigned char)s[0]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '_' && !((unsigned char)s[i] & 0x80))
			return false;
	return true;
}

static int parse_want(const char *text, const char *word, struct hb_py_path *p, struct hb_error *e)
{
	for (unsigned i = 1; i < N_WANTS; i++) {
		if (strcmp(word, wants[i]) == 0) {
			p->want = (u8)i;
			return 0;
		}
	}
	return hb_error__set(e, HB_EXIT_USAGE, -EINVAL,
			     "\"%s\": \"%s\" is no type of a field; there are str, int, float, bool and len",
			     text, word);
}

int hb_py_path__parse(const char *text, struct hb_py_path *p, struct hb_error *e)
{
	const char *at = text, *colon = strchr(text, ':'), *end = colon ? colon : text + strlen(text);
	char *to = p->variable;

	memset(p, 0, sizeof(*p));
	if (colon && parse_want(text, colon + 1, p, e))
		return -EINVAL;
	for (;; at++) {
		size_t n = strcspn(at, ".:");

		if (!is_name(at, n))
			return hb_error__set(
			    e, HB_EXIT_USAGE, -EINVAL,
			    "\"%s\": a field is a variable of the function and attributes from "
			    "there, such as self.scheduler.running:len",
			    text);
		memcpy(to, at, n);
		at += n;
		if (at >= end)
			return 0;
		if (p->steps == HB_PY_STEPS)
			return hb_error__set(e, HB_EXIT_USAGE, -EINVAL,
					     "\"%s\" is too long a way: %d attributes can be followed", text,
					     HB_PY_STEPS);
		to = p->attribute[p->steps++];
	}
}

/* ---- */

/* What was written up to attribute `step`. */
static const char *so_far(const struct hb_py_path *p, unsigned step, char *buf, size_t size)
{
	size_t n = (size_t)snprintf(buf, size, "%s", p->variable);

	for (unsigned i = 0; i < step && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, ".%s", p->attribute[i]);
	return buf;
}

static void explain(const struct hb_py_heap *h, enum hb_py_found found, const struct hb_py_path *p,
		    unsigned step, u64 type, char *why, size_t size)
{
	const char *name = p->attribute[step];
	char class[256], path[HB_PY_NAME_MAX * (HB_PY_STEPS + 1)];

	hb_py_heap__class(h, type, class, sizeof(class));
	so_far(p, step, path, sizeof(path));
	if (found == HB_PY_UNKNOWN)
		snprintf(why, size, "%s has no attribute \"%s\": it is a %s", path, name, class);
	else if (found == HB_PY_COMPUTED)
		snprintf(why, size, "\"%s\" of %s (a %s) is computed by code, which is not run from here",
			 name, path, class);
	else if (found == HB_PY_NATIVE)
		snprintf(why, size, "\"%s\" of %s (a %s) is a number inside of a C struct, which is not read",
			 name, path, class);
}

static bool value_of(const struct hb_py_heap *h, const struct hb_py_path *p, u64 object,
		     struct hb_py_value *value, hb_py_plan_fn fn, void *arg, char *why, size_t size)
{
	u64 type = hb_py_heap__type(h, object);
	char class[256], path[HB_PY_NAME_MAX * (HB_PY_STEPS + 1)];
	struct hb_py_plan is;

	hb_py_value__read(h, object, p->want, value);
	if (value->kind == HB_PYKIND_UNREADABLE)
		return false;
	if (fn && hb_py_value__is(h, type, &is))
		fn(type, HB_PY_VALUE, &is, arg);
	if (value->kind != HB_PYKIND_OBJECT)
		return true;
	snprintf(why, size, "%s is a %s, %s%s%s", so_far(p, p->steps, path, sizeof(path)),
		 hb_py_heap__class(h, type, class, sizeof(class)),
		 p->want == HB_PY_ANY || p->want == HB_PY_WANT_LEN ? "of which no " : "no ",
		 p->want == HB_PY_ANY	     ? "value"
		 : p->want == HB_PY_WANT_LEN ? "length"
					     : wants[p->want],
		 p->want == HB_PY_ANY || p->want == HB_PY_WANT_LEN ? " can be read" : "");
	return false;
}

bool hb_py_path__follow(const struct hb_py_heap *h, const struct hb_py_path *p, unsigned step, u64 object,
			struct hb_py_value *value, hb_py_plan_fn fn, void *arg, char *why, size_t size)
{
	why[0] = 0;
	memset(value, 0, sizeof(*value));
	value->kind = HB_PYKIND_UNREADABLE;
	for (; step < p->steps; step++) {
		u64 type = hb_py_heap__type(h, object), next;
		struct hb_py_plan plan;
		enum hb_py_found found = hb_py_attribute__find(h, object, p->attribute[step], &next, &plan);

		if (found == HB_PY_UNREADABLE)
			return false;
		if (fn)
			fn(type, step, &plan, arg);
		if (found != HB_PY_FOUND) {
			value->kind = HB_PYKIND_MISSING;
			explain(h, found, p, step, type, why, size);
			return false;
		}
		object = next;
	}
	return value_of(h, p, object, value, fn, arg, why, size);
}
