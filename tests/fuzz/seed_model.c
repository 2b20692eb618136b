/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Seeds of fuzz_model: engine steps with waits and sleeps, as that one cuts them. usage: seed_model FOLDER */
#include <stdio.h>
#include <string.h>

#include "schema/schema.h"

static FILE *out;

static void put(u8 type, u8 task, u32 gap_ns, const void *payload, size_t size)
{
	u8 head[5] = {type, task, (u8)(gap_ns / 64), (u8)(gap_ns / 64 >> 8), 0};

	fwrite(head, 1, sizeof(head), out);
	fwrite(payload, 1, size, out);
}

static void step(u32 wait_probe, bool server)
{
	struct hb_rec_accel a = {.probe = 2, .handle = 5, .stream = 1, .stack = 1};
	struct hb_rec_offcpu o = {.dur = 200000,
				  .ready = 2000,
				  .chan = 11,
				  .peer = 22,
				  .chankind = HB_CHAN_UNIX,
				  .sysno = 45,
				  .waker = 200,
				  .waker_pid = 200,
				  .wctx = HB_WCTX_TASK,
				  .state = HB_TSTATE_SLEEPING};
	struct hb_rec_device d = {.dur = 90000, .correlation = 7, .kind = HB_DEVKIND_KERNEL};

	put(0, 0, 10000, &a, sizeof(a));
	a = (struct hb_rec_accel){.probe = 4,
				  .dur = 5000,
				  .bytes = 64,
				  .kind = 2,
				  .stream = 1,
				  .stack = 3,
				  .flags = HB_AFLAG_TIMED};
	put(0, 0, 10000, &a, sizeof(a));
	a = (struct hb_rec_accel){.probe = wait_probe,
				  .dur = 100000,
				  .stream = 1,
				  .handle = 9,
				  .stack = 3,
				  .flags = HB_AFLAG_TIMED};
	put(0, 0, 110000, &a, sizeof(a));
	put(10, 0, 0, &d, sizeof(d));
	if (!server)
		return;
	put(1, 0, 220000, &o, sizeof(o));
	o.chan = 22;
	o.peer = 11;
	o.waker = o.waker_pid = 100;
	put(1, 3, 100000, &o, sizeof(o));
}

int main(int argc, char **argv)
{
	static const u32 waits[] = {7, 8, 9};
	char path[4096];

	for (u32 i = 0; argc == 2 && i < 6; i++) {
		snprintf(path, sizeof(path), "%s/steps-%u", argv[1], i);
		out = fopen(path, "w");
		if (!out)
			return 1;
		for (u32 k = 0; k < 8; k++)
			step(waits[i % 3], i >= 3);
		fclose(out);
	}
	return argc != 2;
}
