/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "window/part.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* The folder of `path`, allocated. */
static char *folder(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return strdup(".");
	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static int check_folder(const char *path, struct hb_error *e)
{
	char *dir = folder(path);
	struct stat st;
	int err = 0;

	if (!dir)
		return hb_error__nomem(e, "a file name");
	if (stat(dir, &st))
		err = hb_error__set(e, HB_EXIT_FAILED, -errno,
				    "cannot write to folder %s: %s; create it or choose another file name",
				    dir, strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		err = hb_error__set(e, HB_EXIT_FAILED, -ENOTDIR,
				    "%s is not a folder; choose another file name", dir);
	free(dir);
	return err;
}

/* Refusing early saves a window that could not be kept at its end. Only a regular file may be replaced: as
 * root, renaming over /dev/null would break the machine. */
static int check_target(const char *path, bool force, struct hb_error *e)
{
	struct stat st;

	if (!*path || path[strlen(path) - 1] == '/')
		return hb_error__set(e, HB_EXIT_FAILED, -EISDIR, "'%s' names a folder; give a file name",
				     path);
	if (lstat(path, &st))
		return errno == ENOENT ? 0 : check_folder(path, e) ?: hb_error__set(e, HB_EXIT_FAILED, -errno,
			"cannot use %s: %s", path, strerror(errno));
	if (S_ISLNK(st.st_mode))
		return hb_error__set(e, HB_EXIT_FAILED, -ELOOP,
				     "%s is a symbolic link, which is not followed; give the file's own name",
				     path);
	if (!S_ISREG(st.st_mode))
		return hb_error__set(e, HB_EXIT_FAILED, -EEXIST,
				     "%s exists and is not a regular file; choose another name", path);
	if (!force)
		return hb_error__set(e, HB_EXIT_FAILED, -EEXIST,
				     "%s exists; choose another name, or replace it with --force", path);
	return 0;
}

/* Is `name` still the file behind fd? */
static bool same_file(int fd, const char *name)
{
	struct stat a, b;

	return fstat(fd, &a) == 0 && lstat(name, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

/* May the .part behind fd be replaced? Its writer holds a lock for as long as it lives, so a lock that we get
 * means that the writer is dead. What it left is all there is of its window, so only --force throws it away.
 */
static int check_stale(int fd, const char *part, bool force, struct hb_error *e)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
		return hb_error__set(e, HB_EXIT_FAILED, -EEXIST,
				     "%s is in the way and is not ours; remove it or choose another name",
				     part);
	if (flock(fd, LOCK_EX | LOCK_NB))
		return hb_error__set(e, HB_EXIT_FAILED, -EBUSY,
				     "%s is being written by another herschel-bpf; choose another name",
				     part);
	if (!force)
		return hb_error__set(
		    e, HB_EXIT_FAILED, -EEXIST,
		    "%s holds what an interrupted window kept; move it away, or replace it with --force",
		    part);
	return 0;
}

/* A .part that is there already is checked and, where `remove` says so, removed. */
static int handle_stale(const char *part, bool force, bool remove, struct hb_error *e)
{
	int fd = open(part, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK), err;

	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return hb_error__set(
		    e, HB_EXIT_FAILED, -errno,
		    "%s is in the way and cannot be opened (%s); remove it or choose another name", part,
		    errno == ELOOP ? "it is a symbolic link" : strerror(errno));
	err = check_stale(fd, part, force, e);
	if (!err && remove && same_file(fd, part) && unlink(part) && errno != ENOENT)
		err = hb_error__set(e, HB_EXIT_FAILED, -errno, "cannot remove the leftover %s: %s", part,
				    strerror(errno));
	close(fd);
	return err;
}

/* The lock and the look back close the race with another writer that takes our fresh file for a leftover. */
static int lock_fresh(int fd, const char *part, struct hb_error *e)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && same_file(fd, part))
		return fd;
	close(fd);
	return hb_error__set(e, HB_EXIT_FAILED, -EBUSY,
			     "%s was taken by another herschel-bpf at the same moment; choose another name",
			     part);
}

/* The allocated name, when nothing but perhaps a leftover is in the way. */
static int part_name(const char *path, bool force, char **part, struct hb_error *e)
{
	int err = check_target(path, force, e) ?: check_folder(path, e);

	if (!err && asprintf(part, "%s.part", path) < 0)
		err = hb_error__nomem(e, "a file name");
	return err;
}

int hb_part__check(const char *path, bool force, struct hb_error *e)
{
	char *part = NULL;
	int err = part_name(path, force, &part, e);

	if (err)
		return err;
	err = handle_stale(part, force, false, e);
	free(part);
	return err;
}

int hb_part__open(const char *path, bool force, char **part, struct hb_error *e)
{
	int fd, err = part_name(path, force, part, e);

	if (err)
		return err;
	for (int i = 0; i < 3; i++) {
		fd = open(*part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0)
			return lock_fresh(fd, *part, e);
		if (errno != EEXIST)
			break;
		err = handle_stale(*part, force, true, e);
		if (err)
			return err;
	}
	return hb_error__set(e, HB_EXIT_FAILED, -errno, "cannot create %s: %s", *part, strerror(errno));
}

static void sync_folder(const char *path)
{
	char *dir = folder(path);
	int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0) {
		fsync(fd); /* best effort: some file systems refuse it for folders, and the data is safe
			      already */
		close(fd);
	}
	free(dir);
}

/* A check before the rename could be overtaken; RENAME_NOREPLACE cannot. File systems without it have
 * link(2), which does not replace either. */
static int rename_new(const char *part, const char *path)
{
	if (renameat2(AT_FDCWD, part, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (link(part, path))
		return -errno;
	unlink(part);
	return 0;
}

/* Somebody renamed, removed or replaced it, or its folder, while it was written. */
static int moved_away(int fd, const char *part, struct hb_error *e)
{
	char link[64], now[4096];
	ssize_t n;
	struct stat st;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, now, sizeof(now) - 1);
	now[n > 0 ? n : 0] = 0;
	if (fstat(fd, &st) == 0 && st.st_nlink > 0 && n > 0)
		return hb_error__set(
		    e, HB_EXIT_FAILED, -ESTALE,
		    "%s was moved while it was written; the window is whole and now lies in %s", part, now);
	return hb_error__set(e, HB_EXIT_FAILED, -ESTALE,
			     "%s was removed while it was written: the window is lost", part);
}

int hb_part__finish(int fd, const char *part, const char *path, bool force, struct hb_error *e)
{
	int err = fsync(fd) ? -errno : 0;

	if (err)
		hb_error__set(e, HB_EXIT_FAILED, err, "cannot write %s to disk: %s; what is there is kept",
			      part, strerror(-err));
	if (!err && !same_file(fd, part))
		err = moved_away(fd, part, e);
	if (!err) {
		err = force ? (rename(part, path) ? -errno : 0) : rename_new(part, path);
		if (err)
			hb_error__set(
			    e, HB_EXIT_FAILED, err,
			    "the window is whole but could not be renamed to %s: %s; it is kept in %s", path,
			    strerror(-err), part);
	}
	close(fd);
	if (!err)
		sync_folder(path);
	return err;
}
