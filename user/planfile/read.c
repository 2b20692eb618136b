/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* JSON -> plan, by the table of members. Nothing is guessed: what is no member of a plan, or of another type,
 * is refused, so that whoever approves a plan has seen all of it. */
#include "planfile/members.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <yajl/yajl_parse.h>

#define KEY_SIZE 64

struct reader {
	const char *name; /* of the file, for sentences */
	struct hb_planfile *p;
	struct hb_error *e;
	unsigned depth;		/* 1: in the plan itself */
	char object[KEY_SIZE];	/* we are in; "reasons[]" in the list and in its elements */
	bool in_list, in_lines; /* between the brackets of a list of objects, of texts */
	char key[KEY_SIZE];
	u64 seen, top_seen; /* members by their number in the table: of this object, of the plan itself */
	u64 objects_seen;   /* objects and lists by the number of their first member */
	u64 options_seen;
};

static int refuse(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int refuse(struct reader *r, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	hb_error__set(r->e, HB_EXIT_USAGE, -EINVAL, "%s is no plan: %s", r->name, text);
	return 0; /* yajl: stop */
}

static const char *where(const struct reader *r, char *buf, size_t size)
{
	snprintf(buf, size, "%s%s%s", r->object, *r->object ? "." : "", r->key);
	return buf;
}

static bool is_record(const struct reader *r)
{
	return strcmp(r->object, HB_PLANFILE_RECORD) == 0;
}

/* Number in the table; -1 when there is no such member. */
static int find(const char *object, const char *name)
{
	for (int i = 0; hb_planfile_members[i].name; i++)
		if (strcmp(hb_planfile_members[i].object, object) == 0 &&
		    strcmp(hb_planfile_members[i].name, name) == 0)
			return i;
	return -1;
}

/* First member of an object (or list, "reasons[]"); -1 when a plan has none of this name. */
static int find_object(const char *object)
{
	for (int i = 0; *object && hb_planfile_members[i].name; i++)
		if (strcmp(hb_planfile_members[i].object, object) == 0)
			return i;
	return -1;
}

/* One bit for each row of the table. */
static u64 *seen(struct reader *r)
{
	return *r->object ? &r->seen : &r->top_seen;
}

static u32 *count_of(struct reader *r, const struct hb_list *l)
{
	return (u32 *)((char *)r->p + l->count);
}

/* Where a member's value belongs. */
static void *place(struct reader *r, const struct hb_member *m)
{
	const struct hb_list *l = hb_planfile__list(m->object);
	char *base = (char *)r->p;

	if (l)
		base += l->offset + l->size * (*count_of(r, l) - 1);
	return base + m->offset;
}

/* The member that a value is for, NULL with a sentence: none, another type, or there already. */
static const struct hb_member *take(struct reader *r, enum hb_member_kind kind)
{
	static const char *const words[] = {"a text", "a number", "true or false", "a list of texts"};
	int i = r->depth && !r->in_list ? find(r->object, r->key) : -1;
	char buf[160];

	if (!r->depth || r->in_list) {
		refuse(r, "%s holds objects only", r->depth ? r->object : "it");
		return NULL;
	}
	if (i < 0) {
		refuse(r, "\"%s\" is no member of one", where(r, buf, sizeof(buf)));
		return NULL;
	}
	if (hb_planfile_members[i].kind != kind) {
		refuse(r, "\"%s\" is to be %s", where(r, buf, sizeof(buf)),
		       words[hb_planfile_members[i].kind]);
		return NULL;
	}
	if (*seen(r) >> i & 1) {
		refuse(r, "\"%s\" is there twice", where(r, buf, sizeof(buf)));
		return NULL;
	}
	*seen(r) |= 1ULL << i;
	return &hb_planfile_members[i];
}

/* ---- texts ---- */

static char *copy(struct reader *r, const char *s, size_t n)
{
	char *text, buf[160];

	if (!hb_planfile__text_ok(s, n)) {
		refuse(r, "\"%s\" is longer than %u bytes or has control characters",
		       where(r, buf, sizeof(buf)), HB_PLANFILE_TEXT);
		return NULL;
	}
	text = strndup(s, n);
	if (!text)
		hb_error__nomem(r->e, "the plan");
	return text;
}

/* Known, of the right type, and not there already. */
static bool take_option(struct reader *r, bool list)
{
	for (u32 i = 0; hb_planfile__option_name(i); i++) {
		if (strcmp(hb_planfile__option_name(i), r->key) != 0)
			continue;
		if (hb_planfile__option_is_list(i) != list)
			refuse(r, "\"record.%s\" is to be %s", r->key, list ? "a text" : "a list of texts");
		else if (r->options_seen >> i & 1)
			refuse(r, "\"record.%s\" is there twice", r->key);
		r->options_seen |= 1ULL << i;
		return !r->e->err;
	}
	refuse(r, "\"record.%s\" is nothing that a plan can ask for", r->key);
	return false;
}

static int option(struct reader *r, const char *s, size_t n)
{
	char *text;
	int err;

	if (!r->in_lines && !take_option(r, false))
		return 0;
	text = copy(r, s, n);
	if (!text)
		return 0;
	err = hb_planfile__set(r->p, r->key, text);
	free(text);
	if (err == -E2BIG)
		return refuse(r, "it asks for more than %u things", HB_PLANFILE_OPTIONS);
	if (err)
		hb_error__nomem(r->e, "the plan");
	return !err;
}

static int line(struct reader *r, const char *s, size_t n)
{
	struct hb_approval *a = &r->p->approval;

	if (a->n_signature == HB_PLANFILE_SIGNATURE)
		return refuse(r, "its signature has more than %u lines", HB_PLANFILE_SIGNATURE);
	a->signature[a->n_signature] = copy(r, s, n);
	if (!a->signature[a->n_signature])
		return 0;
	a->n_signature++;
	return 1;
}

static int on_string(void *ctx, const unsigned char *s, size_t n)
{
	struct reader *r = ctx;
	const struct hb_member *m;
	char *text;

	if (r->depth && is_record(r))
		return option(r, (const char *)s, n);
	if (r->in_lines)
		return line(r, (const char *)s, n);
	m = take(r, HB_MEMBER_TEXT);
	text = m ? copy(r, (const char *)s, n) : NULL;
	if (!text)
		return 0;
	*(char **)place(r, m) = text;
	return 1;
}

/* ---- other values ---- */

static int wrong_in_texts(struct reader *r)
{
	char buf[160];

	return refuse(r, "\"%s\" holds texts only", where(r, buf, sizeof(buf)));
}

static int on_number(void *ctx, const char *s, size_t n)
{
	struct reader *r = ctx;
	const struct hb_member *m;
	char buf[160];
	u64 v = 0;

	if (r->in_lines || is_record(r))
		return wrong_in_texts(r);
	m = take(r, HB_MEMBER_NUMBER);
	if (!m)
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (!isdigit((unsigned char)s[i]) || __builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (u64)(s[i] - '0'), &v))
			return refuse(r, "\"%s\" is to be a whole number from 0 to 18446744073709551615",
				      where(r, buf, sizeof(buf)));
	}
	*(u64 *)place(r, m) = v;
	return 1;
}

static int on_bool(void *ctx, int v)
{
	struct reader *r = ctx;
	const struct hb_member *m;

	if (r->in_lines || is_record(r))
		return wrong_in_texts(r);
	m = take(r, HB_MEMBER_BOOL);
	if (!m)
		return 0;
	*(bool *)place(r, m) = v != 0;
	return 1;
}

static int on_null(void *ctx)
{
	struct reader *r = ctx;
	char buf[160];

	return refuse(r, "\"%s\" is null", where(r, buf, sizeof(buf)));
}

/* ---- objects and lists ---- */

/* Enters an object or list of the plan itself. */
static int enter(struct reader *r, const char *suffix)
{
	char object[KEY_SIZE + 4];
	int first;

	snprintf(object, sizeof(object), "%s%s", r->key, suffix);
	first = find_object(object);
	if (first < 0)
		return refuse(r, "\"%s\" is no %s of one", r->key, *suffix ? "list" : "object");
	if (r->objects_seen >> first & 1)
		return refuse(r, "\"%s\" is there twice", r->key);
	r->objects_seen |= 1ULL << first;
	memcpy(r->object, object, strlen(object) + 1);
	return 1;
}

static int on_object(void *ctx)
{
	struct reader *r = ctx;
	const struct hb_list *l = r->in_list ? hb_planfile__list(r->object) : NULL;
	char buf[160];

	if (r->depth == 0) {
		r->depth = 1;
		return 1;
	}
	if (r->in_lines || (!r->in_list && r->depth > 1))
		return refuse(r, "\"%s\" is no object of one", where(r, buf, sizeof(buf)));
	if (l) {
		if (*count_of(r, l) == l->max)
			return refuse(r, "\"%.*s\" has more than %u", (int)strlen(l->object) - 2, l->object,
				      l->max);
		++*count_of(r, l);
		r->in_list = false;
	} else if (!enter(r, "")) {
		return 0;
	}
	r->seen = 0;
	r->depth = 2;
	return 1;
}

static int on_key(void *ctx, const unsigned char *s, size_t n)
{
	struct reader *r = ctx;

	if (n >= sizeof(r->key) || memchr(s, 0, n))
		return refuse(r, "it has a member with a name of %zu bytes", n);
	memcpy(r->key, s, n);
	r->key[n] = 0;
	return 1;
}

/* What must be in an object and was not. */
static int complete(struct reader *r)
{
	char buf[160];

	for (int i = 0; hb_planfile_members[i].name; i++) {
		const struct hb_member *m = &hb_planfile_members[i];

		if (!m->must || strcmp(m->object, r->object) != 0 || *seen(r) >> i & 1)
			continue;
		snprintf(r->key, sizeof(r->key), "%s", m->name);
		return refuse(r, "\"%s\" is missing", where(r, buf, sizeof(buf)));
	}
	return 1;
}

static int on_object_end(void *ctx)
{
	struct reader *r = ctx;
	bool list = hb_planfile__list(r->object) != NULL;

	if (!complete(r))
		return 0;
	if (r->depth == 1)
		return 1;
	r->depth = 1;
	r->in_list = list;
	if (!list)
		r->object[0] = 0;
	return 1;
}

static int on_array(void *ctx)
{
	struct reader *r = ctx;

	if (r->depth == 0 || r->in_list || r->in_lines)
		return refuse(r, "it has a list where an object belongs");
	if (r->depth == 1) {
		r->in_list = true;
		return enter(r, "[]");
	}
	if (is_record(r) ? !take_option(r, true) : !take(r, HB_MEMBER_LINES))
		return 0;
	r->in_lines = true;
	return 1;
}

static int on_array_end(void *ctx)
{
	struct reader *r = ctx;

	if (r->in_lines) {
		r->in_lines = false;
		return 1;
	}
	r->in_list = false;
	r->object[0] = 0;
	return 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_bool,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_object,
    .yajl_map_key = on_key,
    .yajl_end_map = on_object_end,
    .yajl_start_array = on_array,
    .yajl_end_array = on_array_end,
};

/* ---- text and file ---- */

static int check_whole(struct reader *r)
{
	const struct hb_planfile *p = r->p;

	/* A version this one does not know may mean other things by the same words. */
	if (p->version != HB_PLANFILE_VERSION)
		refuse(r, "it is of version %llu, this program reads %u", (unsigned long long)p->version,
		       HB_PLANFILE_VERSION);
	else if (!p->window_id || !p->boot)
		refuse(r, "\"window\" is missing");
	else if (!p->n_processes)
		refuse(r, "it names no process to record");
	else if (!p->n_options)
		refuse(r, "it asks for nothing to be recorded");
	for (u32 i = 0; i < p->n_processes; i++)
		if (!p->process[i].pid || p->process[i].pid > INT32_MAX)
			refuse(r, "%llu is no process id", (unsigned long long)p->process[i].pid);
	return r->e->err;
}

static int parse(struct reader *r, const char *text, size_t size)
{
	yajl_handle y = yajl_alloc(&callbacks, NULL, r);
	yajl_status s;

	if (!y)
		return hb_error__nomem(r->e, "the plan");
	s = yajl_parse(y, (const unsigned char *)text, size);
	if (s == yajl_status_ok)
		s = yajl_complete_parse(y);
	if (s != yajl_status_ok && !r->e->err)
		refuse(r, "%s", size ? "it is cut off, or no JSON" : "it is empty");
	yajl_free(y);
	return r->e->err ? r->e->err : check_whole(r);
}

struct hb_planfile *hb_planfile__parse(const char *name, const char *text, size_t size, struct hb_error *e)
{
	struct hb_error own = {0};
	struct reader r = {.name = name, .p = hb_planfile__new(), .e = &own};
	int err;

	if (!r.p)
		err = hb_error__nomem(&own, "the plan");
	else if (size > HB_PLANFILE_SIZE)
		err = refuse(&r, "it has more than %u KiB", HB_PLANFILE_SIZE >> 10) ?: own.err;
	else
		err = parse(&r, text, size);
	if (!err)
		return r.p;
	hb_planfile__free(r.p);
	hb_error__set(e, own.exit, own.err, "%s", own.text);
	return NULL;
}

static char *load(int fd, size_t *size, int *err)
{
	char *text = malloc(HB_PLANFILE_SIZE + 1);
	ssize_t n = 1;

	*err = text ? 0 : -ENOMEM;
	*size = 0;
	while (text && *size <= HB_PLANFILE_SIZE && n > 0) {
		n = read(fd, text + *size, HB_PLANFILE_SIZE + 1 - *size);
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n < 0)
			*err = -errno;
		else
			*size += (size_t)n;
	}
	return text;
}

struct hb_planfile *hb_planfile__read(const char *path, struct hb_planfile_owner *owner, struct hb_error *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), err = fd < 0 ? -errno : 0;
	struct hb_planfile *p = NULL;
	struct stat st = {0};
	char *text = NULL;
	size_t size = 0;

	/* Owner and contents of the same open file: whoever puts another in its place changes neither. */
	if (!err && fstat(fd, &st))
		err = -errno;
	if (!err && !S_ISREG(st.st_mode))
		err = S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	if (!err)
		text = load(fd, &size, &err);
	if (err == -EINVAL)
		hb_error__set(e, HB_EXIT_FAILED, err, "cannot read %s: it is no regular file", path);
	else if (err)
		hb_error__set(e, HB_EXIT_FAILED, err, "cannot read %s: %s", path, strerror(-err));
	else
		p = hb_planfile__parse(path, text, size, e);
	if (owner)
		*owner = (struct hb_planfile_owner){.uid = st.st_uid, .mode = st.st_mode & 07777};
	free(text);
	if (fd >= 0)
		close(fd);
	return p;
}
