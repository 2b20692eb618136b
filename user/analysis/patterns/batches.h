/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What each engine step held: prefill tokens and decoding requests. From an engine's annotations in an
 * imported trace, else from fields read in its steps. Inside of patterns. */
#ifndef HB_BATCHES_H
#define HB_BATCHES_H

#include "analysis/patterns/pattern.h"

struct hb_batch {
	u64 begin, end; /* of decoding requests: from one token to the next */
	u64 prefill, decode;
};

struct hb_batches {
	struct hb_batch *v; /* in time */
	u32 n;
	u32 pid;
};

/* Of the process that tells most. Without any n is 0. May rewind the window. 0 or -ENOMEM. */
int hb_batches__read(const struct hb_scene *s, struct hb_batches *out);
void hb_batches__free(struct hb_batches *b);

#endif
