/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which function of a stack is the operator: a module's or a framework's own, else a part of an engine, else
 * the innermost of Python. A pick remembers stacks, of which there are far fewer than calls.
 */
#ifndef HB_OPERATOR_FRAME_H
#define HB_OPERATOR_FRAME_H

#include "analysis/model/rows.h"
#include "window/window.h"

struct hb_picked {   /* of one stack of one process */
	u32 loc;     /* 0: no frame is an operator */
	u32 mine;    /* for the caller; 0 at first */
	u64 outside; /* hash of the frames that it was called from */
};

struct hb_frame_recent { /* calls come by the million, stacks by the hundred */
	u64 key;	 /* 0: none */
	struct hb_picked *picked;
};

struct hb_frame_pick {
	struct hb_window *w;
	u8 *rank; /* what the function of a location is; below n_ranks */
	u32 n_ranks;
	struct hb_rows stacks; /* struct hb_picked, by pid << 32 | raw */
	struct hb_frame_recent *recent;
	struct hb_picked none;
	bool oom;
};

/* 0, or -1: out of memory; free it in any case. */
int hb_frame_pick__init(struct hb_frame_pick *p, struct hb_window *w);
void hb_frame_pick__free(struct hb_frame_pick *p);
/* Of a thread's stack; never NULL, and the same for the same stack, until the pick is freed. Out of memory
 * sets p->oom. */
struct hb_picked *hb_frame_pick__of(struct hb_frame_pick *p, u32 pid, u32 raw);

#endif
