/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What happened where: CPU time, and what Python waited for and raised, added up by thread and stack. */
#ifndef HB_EXPORT_SPOTS_H
#define HB_EXPORT_SPOTS_H

#include "analysis/model/rows.h"
#include "window/window.h"

enum hb_spot_value {
	HB_SPOT_SAMPLES,
	HB_SPOT_CPU,	    /* ns, of samples */
	HB_SPOT_GIL,	    /* ns of waiting for it */
	HB_SPOT_GC,	    /* ns of garbage collections */
	HB_SPOT_EXCEPTIONS, /* raised there, those that were only counted included */
	HB_SPOT_VALUES
};

struct hb_spot { /* one thread with one stack */
	u32 pid, stack, kstack;
	u16 task;
	bool kernel; /* a sample within the kernel */
	u64 value[HB_SPOT_VALUES];
};

struct hb_spots {
	struct hb_rows rows;  /* struct hb_spot, in order of appearance */
	struct hb_map *pairs; /* (stack, kernel stack) -> number */
	u64 total[HB_SPOT_VALUES];
};

/* Reads the whole window; memory follows the number of different stacks. 0 or -errno; free() in any case. */
int hb_spots__read(struct hb_spots *s, struct hb_window *w);
void hb_spots__free(struct hb_spots *s);

#endif
