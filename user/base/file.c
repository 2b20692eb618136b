/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PIECE 65536

static int read_all(int fd, const char *path, size_t max, const char *what, struct hb_buf *b,
		    struct hb_error *e)
{
	size_t begin = b->size;
	ssize_t n;

	do {
		char *room = hb_buf__room(b, PIECE);

		if (!room)
			return hb_error__nomem(e, what);
		n = read(fd, room, PIECE);
		if (n < 0)
			return hb_error__set(e, HB_EXIT_USAGE, -errno, "cannot read %s, as %s: %s", path,
					     what, strerror(errno));
		b->size += (size_t)n;
		if (b->size - begin > max)
			return hb_error__set(e, HB_EXIT_USAGE, -EFBIG, "%s is larger than %zu MiB: not %s",
					     path, max >> 20, what);
	} while (n > 0);
	return 0;
}

int hb_file__read(const char *path, size_t max, const char *what, struct hb_buf *b, struct hb_error *e)
{
	int rc, fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0)
		return hb_error__set(e, HB_EXIT_USAGE, -errno, "cannot open %s, as %s: %s", path, what,
				     strerror(errno));
	if (fstat(fd, &st) != 0 || S_ISDIR(st.st_mode))
		rc = hb_error__set(e, HB_EXIT_USAGE, -EISDIR, "%s is a directory, not %s", path, what);
	else
		rc = read_all(fd, path, max, what, b, e);
	close(fd);
	return rc;
}

bool hb_file__is_same(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
