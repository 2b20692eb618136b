/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Writes sequences of records, as fuzz_analyze reads them, into the folder given. */
#include <stdio.h>
#include <string.h>

#include "schema/schema.h"

static void put(FILE *f, u8 type, u8 task, s16 dt, const void *payload, u8 size)
{
	fputc(type, f);
	fputc(task, f);
	fwrite(&dt, sizeof(dt), 1, f);
	fputc(size, f);
	fwrite(payload, size, 1, f);
}

/* Launch, its kernel, a copy, a wait, a sleep: `steps` times, `late` x 100 ns between step and step. */
static int steps(const char *dir, unsigned n, s16 late)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s/steps-%u-%d", dir, n, late);
	f = fopen(path, "wb");
	if (!f)
		return 1;
	for (u64 i = 1; i <= n; i++) {
		struct hb_rec_accel call = {
		    .dur = 5000, .probe = 1, .stack = 1, .flags = HB_AFLAG_TIMED, .correlation = i};
		struct hb_rec_device work = {
		    .dur = 20000, .correlation = i, .kind = i % 3 ? HB_DEVKIND_KERNEL : HB_DEVKIND_MEMCPY};
		struct hb_rec_offcpu sleep = {
		    .dur = 30000, .ready = 1000, .waker = 11, .waker_pid = 10, .state = HB_TSTATE_SLEEPING};

		put(f, 0, 1, late, &call, sizeof(call));
		put(f, 1, 1, 250, &work, sizeof(work));
		call.probe = 3;
		call.correlation = 0;
		put(f, 2, 1, 300, &call, sizeof(call));
		put(f, 3, 1, 400, &sleep, sizeof(sleep));
	}
	return fclose(f);
}

int main(int argc, char **argv)
{
	return argc != 2 || steps(argv[1], 3, 100) || steps(argv[1], 40, 100) || steps(argv[1], 40, 20000) ||
	       steps(argv[1], 12, -200);
}
