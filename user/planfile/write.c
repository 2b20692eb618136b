/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A plan as JSON. With `pretty` off and without the approval this is the canonical text: one form for one
 * content, whatever the file it was read from looked like. */
#include "planfile/members.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"

/* Nothing is written of what is not known: no text, number 0. */
static void member(struct hb_json *j, const struct hb_member *m, const void *at, const struct hb_planfile *p)
{
	switch (m->kind) {
	case HB_MEMBER_TEXT:
		if (*(char *const *)at)
			hb_json__kstring(j, m->name, *(char *const *)at);
		break;
	case HB_MEMBER_NUMBER:
		if (*(const u64 *)at || m->must)
			hb_json__ku64(j, m->name, *(const u64 *)at);
		break;
	case HB_MEMBER_BOOL:
		hb_json__kbool(j, m->name, *(const bool *)at);
		break;
	case HB_MEMBER_LINES:
		if (!p->approval.n_signature)
			break;
		hb_json__karray(j, m->name);
		for (u32 i = 0; i < p->approval.n_signature; i++)
			hb_json__string(j, ((char *const *)at)[i]);
		hb_json__end(j);
		break;
	}
}

static bool same_object(const struct hb_member *a, const struct hb_member *b)
{
	return b->name && strcmp(a->object, b->object) == 0;
}

static void members(struct hb_json *j, const struct hb_member *m, const void *base,
		    const struct hb_planfile *p)
{
	for (const struct hb_member *k = m; same_object(m, k); k++)
		member(j, k, (const char *)base + k->offset, p);
}

static void list(struct hb_json *j, const struct hb_member *m, const struct hb_list *l,
		 const struct hb_planfile *p)
{
	u32 n = *(const u32 *)((const char *)p + l->count);
	char name[32];

	snprintf(name, sizeof(name), "%.*s", (int)strlen(l->object) - 2, l->object);
	hb_json__karray(j, name);
	for (u32 i = 0; i < n; i++) {
		hb_json__object(j);
		members(j, m, (const char *)p + l->offset + l->size * i, p);
		hb_json__end(j);
	}
	hb_json__end(j);
}

static void record(struct hb_json *j, const struct hb_planfile *p)
{
	u32 at = 0;

	hb_json__kobject(j, HB_PLANFILE_RECORD);
	for (u32 i = 0; hb_planfile__option_name(i); i++) {
		const char *name = hb_planfile__option_name(i);
		bool is_list = hb_planfile__option_is_list(i), any = false;

		for (; at < p->n_options && strcmp(p->option[at].name, name) == 0; at++) {
			if (!any)
				hb_json__key(j, name);
			if (is_list && !any)
				hb_json__array(j);
			hb_json__string(j, p->option[at].value);
			any = true;
		}
		if (any && is_list)
			hb_json__end(j);
	}
	hb_json__end(j);
}

int hb_planfile__emit(const struct hb_planfile *p, FILE *out, bool pretty, bool approval)
{
	struct hb_json *j = hb_json__new(out, pretty);
	const struct hb_member *m = hb_planfile_members, *next;

	if (!j)
		return -ENOMEM;
	hb_json__object(j);
	for (; m->name; m = next) {
		const struct hb_list *l = hb_planfile__list(m->object);

		for (next = m; same_object(m, next); next++)
			;
		if (l) {
			list(j, m, l, p);
		} else if (strcmp(m->object, HB_PLANFILE_RECORD) == 0) {
			record(j, p);
		} else if (!*m->object) {
			members(j, m, p, p);
		} else if (strcmp(m->object, "approval") != 0 || (approval && p->approval.plan)) {
			hb_json__kobject(j, m->object);
			members(j, m, p, p);
			hb_json__end(j);
		}
	}
	hb_json__end(j);
	hb_json__newline(j);
	return hb_json__free(j);
}

int hb_planfile__print(const struct hb_planfile *p, FILE *out)
{
	return hb_planfile__emit(p, out, true, true);
}

int hb_planfile__hash(const struct hb_planfile *p, char hash[HB_SHA256_TEXT])
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int err = out ? hb_planfile__emit(p, out, false, false) : -ENOMEM;

	if (out && fclose(out) && !err)
		err = -ENOMEM;
	if (!err)
		hb_sha256(text, size, hash);
	free(text);
	return err;
}

/* ---- the file ---- */

static int failed(const char *path, int err, struct hb_error *e)
{
	return hb_error__set(e, HB_EXIT_FAILED, err, "cannot write %s: %s", path, strerror(-err));
}

/* Written beside it and put in its place when it is whole. */
static int write_beside(const struct hb_planfile *p, const char *beside)
{
	int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644), err;
	FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;

	if (!out) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	err = hb_planfile__print(p, out);
	if (!err && (fflush(out) || fsync(fd)))
		err = -errno;
	if (fclose(out) && !err)
		err = -errno;
	return err;
}

int hb_planfile__write(const struct hb_planfile *p, const char *path, bool force, struct hb_error *e)
{
	char real[PATH_MAX], *beside = NULL;
	int err;

	/* Through a symbolic link, so that the link stays one. */
	if (!realpath(path, real))
		snprintf(real, sizeof(real), "%s", path);
	else if (!force)
		return hb_error__set(e, HB_EXIT_FAILED, -EEXIST,
				     "%s exists already; name another file, or use --force", path);
	if (asprintf(&beside, "%s.%d.part", real, (int)getpid()) < 0)
		return hb_error__nomem(e, "the plan's file name");
	err = write_beside(p, beside);
	if (!err && rename(beside, real))
		err = -errno;
	if (err && err != -EEXIST)
		unlink(beside);
	free(beside);
	return err ? failed(path, err, e) : 0;
}
