/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/export/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER (1 << 20)

struct hb_output {
	char *path, *part; /* NULL: standard output; part NULL: a device or pipe */
	FILE *f;
	bool force;
};

static void release(struct hb_output *o)
{
	free(o->path);
	free(o->part);
	free(o);
}

static int cannot(const struct hb_output *o, int err, struct hb_error *e)
{
	return hb_error__set(e, HB_EXIT_FAILED, -err, "cannot write %s: %s", o->path, strerror(err));
}

static int open_part(struct hb_output *o, struct hb_error *e)
{
	int fd;

	if (asprintf(&o->part, "%s.XXXXXX", o->path) < 0) {
		o->part = NULL;
		return hb_error__nomem(e, "a file name");
	}
	fd = mkostemp(o->part, O_CLOEXEC);
	if (fd < 0) {
		int err = errno;

		free(o->part);
		o->part = NULL;
		return cannot(o, err, e);
	}
	o->f = fdopen(fd, "w");
	if (!o->f) {
		close(fd);
		return hb_error__nomem(e, "an output file");
	}
	return 0;
}

static int open_special(struct hb_output *o, struct hb_error *e)
{
	int fd = open(o->path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);

	o->f = fd < 0 ? NULL : fdopen(fd, "w");
	return o->f ? 0 : cannot(o, errno, e);
}

static int open_path(struct hb_output *o, struct hb_error *e)
{
	struct stat st;

	if (lstat(o->path, &st) < 0)
		return errno == ENOENT ? open_part(o, e) : cannot(o, errno, e);
	if (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode))
		return open_special(o, e);
	if (S_ISDIR(st.st_mode))
		return cannot(o, EISDIR, e);
	if (!o->force)
		return hb_error__set(e, HB_EXIT_FAILED, -EEXIST, "%s exists; --force replaces it", o->path);
	return open_part(o, e);
}

struct hb_output *hb_output__new(const char *path, bool force, struct hb_error *e)
{
	struct hb_output *o = calloc(1, sizeof(*o));
	int rc = o ? 0 : -ENOMEM;

	if (o && strcmp(path, "-") == 0) {
		o->f = stdout;
	} else if (o) {
		o->force = force;
		o->path = strdup(path);
		rc = o->path ? open_path(o, e) : -ENOMEM;
	}
	if (!rc) {
		setvbuf(o->f, NULL, _IOFBF, BUFFER);
		return o;
	}
	hb_error__set(e, HB_EXIT_FAILED, rc, "out of memory for an output file");
	hb_output__abort(o);
	return NULL;
}

FILE *hb_output__file(struct hb_output *o)
{
	return o->f;
}

const char *hb_output__unfinished(const struct hb_output *o)
{
	return o->part;
}

/* Somebody else may have made the file meanwhile: without --force the kernel refuses, where the file system
 * can. */
static int name_it(struct hb_output *o, struct hb_error *e)
{
	int rc;

	if (!o->part)
		return 0;
	rc = renameat2(AT_FDCWD, o->part, AT_FDCWD, o->path, o->force ? 0 : RENAME_NOREPLACE);
	if (rc && (errno == EINVAL || errno == ENOSYS))
		rc = rename(o->part, o->path);
	if (rc)
		return cannot(o, errno, e);
	free(o->part);
	o->part = NULL;
	return 0;
}

int hb_output__commit(struct hb_output *o, struct hb_error *e)
{
	int rc = fflush(o->f) || ferror(o->f) ? -(errno ? errno : EIO) : 0;

	if (o->path) {
		if (fclose(o->f) && !rc)
			rc = -errno;
		o->f = NULL;
		rc = rc ? cannot(o, -rc, e) : name_it(o, e);
	} else if (rc) {
		hb_error__set(e, HB_EXIT_FAILED, rc, "cannot write to the standard output: %s",
			      strerror(-rc));
	}
	if (rc)
		hb_output__abort(o);
	else
		release(o);
	return rc;
}

void hb_output__abort(struct hb_output *o)
{
	if (!o)
		return;
	if (o->f && o->path)
		fclose(o->f);
	if (o->part)
		unlink(o->part);
	release(o);
}
