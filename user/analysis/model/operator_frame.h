/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which function of a stack is the operator: a module's or a framework's own, else a part of an engine, else
 * the innermost of Python. A pick remembers stacks, of which there are far fewer than calls.
 */
#ifndef HB_OPERATOR_FRAME_H
#define HB_OPERATOR_FRAME_H

#include "window/window.h"
#include "base/buf.h"
#include "base/map.h"

struct hb_picked {
	u32 loc;     /* 0: no frame is an operator */
	u64 outside; /* hash of the frames that it was called from */
};

struct hb_frame_pick {
	struct hb_window *w;
	struct hb_map *ranks;  /* location -> what its function is */
	struct hb_map *stacks; /* pid << 32 | raw -> index of picked */
	struct hb_buf picked;
	bool oom;
};

/* 0, or -1: out of memory; free it in any case. */
int hb_frame_pick__init(struct hb_frame_pick *p, struct hb_window *w);
void hb_frame_pick__free(struct hb_frame_pick *p);
/* Of a thread's stack; out of memory sets p->oom. */
struct hb_picked hb_frame_pick__of(struct hb_frame_pick *p, u32 pid, u32 raw);

#endif
