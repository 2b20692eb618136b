/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Any bytes as a trace: refused with a sentence, or a window that is whole, whose records are in order and
 * say what the counts say. The first byte chooses how much memory there is, so that small inputs go through
 * sorting on disk too.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analysis/import/import.h"
#include "window/window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "broken promise: %s\n", what);
	abort();
}

static void read_window(const char *path, const struct hb_import_stats *s)
{
	struct hb_error e = {0};
	struct hb_window *w = hb_window__open(path, &e);
	struct hb_record r;
	u64 last = 0, n[HB_TYPE_MAX] = {0}, device = 0;

	require(w, "the window opens");
	require(hb_window__info(w)->complete && !hb_window__damage(w), "the window is whole");
	require(hb_window__info(w)->start_ts == s->start_ns && hb_window__info(w)->end_ts == s->end_ns,
		"begin and end");
	while (hb_window__next(w, &r) > 0) {
		require(r.ts >= last, "records in the order of their end");
		require(r.begin >= s->start_ns && r.ts <= s->end_ns, "within the window");
		require(r.task, "some task");
		last = r.ts;
		n[r.type]++;
		if (r.type == HB_TYPE_accel) {
			const struct hb_rec_accel *a = r.data;

			require(hb_window__probe(w, a->probe), "a probe");
			require(!a->stack || hb_window__stack(w, r.task->pid, a->stack).n, "a stack");
		}
	}
	for (unsigned k = 0; k < HB_DEVKIND_COUNT; k++)
		device += s->device[k];
	require(n[HB_TYPE_accel] == s->calls && n[HB_TYPE_op] == s->ops && n[HB_TYPE_py_call] == s->python &&
		    n[HB_TYPE_device] == device,
		"counts");
	require(hb_window__loss_total(w, HB_LOSS_IMPORT_ODD) == s->odd &&
		    hb_window__loss_total(w, HB_LOSS_IMPORT_CUT) == s->cut,
		"loss");
	hb_window__close(w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char in[64], out[64];
	struct hb_import_opts o = {.path = in, .output = out, .force = true};
	struct hb_import_stats s;
	struct hb_error e = {0};
	int fd = memfd_create("trace", MFD_CLOEXEC);

	if (fd < 0 || !size)
		return 0;
	o.memory = data[0] < 128 ? (size_t)data[0] * 64 + 1 : 0;
	snprintf(in, sizeof(in), "/proc/self/fd/%d", fd);
	snprintf(out, sizeof(out), "/dev/shm/fuzz-import-%d.hbw", (int)getpid());
	require(write(fd, data + 1, size - 1) == (ssize_t)size - 1, "memory for the input");
	if (hb_import__run(&o, &s, &e) == 0)
		read_window(out, &s);
	else
		require(e.text[0] && e.exit == HB_EXIT_FAILED && access(out, F_OK),
			"a sentence, and no file");
	unlink(out);
	close(fd);
	return 0;
}
