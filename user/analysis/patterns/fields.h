/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The state of an engine's scheduler over time, from fields of its objects (trace --field). Inside of
 * patterns. */
#ifndef HB_FIELDS_H
#define HB_FIELDS_H

#include "analysis/patterns/pattern.h"

enum hb_state_field {
	HB_STATE_WAITING, /* requests that wait for admission */
	HB_STATE_RUNNING,
	HB_STATE_LIMIT,	    /* most that may run */
	HB_STATE_FREE,	    /* free KV blocks */
	HB_STATE_BLOCKS,    /* all KV blocks */
	HB_STATE_PREEMPTED, /* counter */
	HB_STATE_PREFILL,   /* tokens of the step's prefills */
	HB_STATE_DECODE,    /* its decoding requests, or their tokens */
	HB_STATE_FIELDS,
};
#define HB_STATE_BATCH	   (1U << HB_STATE_PREFILL | 1U << HB_STATE_DECODE)
#define HB_STATE_SCHEDULER ((1U << HB_STATE_PREFILL) - 1) /* the others */

struct hb_state { /* what was known at a moment; carried on until it is read again */
	u64 at;
	u32 known; /* bits */
	u64 value[HB_STATE_FIELDS];
};

struct hb_states {
	struct hb_state *v;
	u32 n;
	u32 pid;
	u32 known; /* bits that occur */
};

/* Reads the window once more (rewinds). Of the process with most readings of these fields (bits). 0 or
 * -ENOMEM. */
int hb_states__read(const struct hb_scene *s, u32 fields, struct hb_states *out);
void hb_states__free(struct hb_states *v);
/* Time from reading i to the next; 0 for the last. */
u64 hb_states__length(const struct hb_states *v, u32 i);

#endif
