/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Kernels compute nothing, so what they "wrote" is made up when the host reads it. A copy of at most 64 KiB
 * from a device to the host whose source no copy or fill wrote since the device's last kernel gives results
 * instead of memory: 8-byte words with a number in [5, HB_SIM_VOCAB) (default 500). The upper half of a word
 * is 0, so that it is a token id as int64 and as a pair of int32 (the other one is token 0), and as floats
 * about 0. What is an odd number of int32 consists of such numbers only, and so is everything with
 * HB_SIM_RESULTS=int32 (for an engine that reads its token ids so). Bytes beyond whole words are 0.
 *
 * All words are the same until the device has run 8 kernels more, a step, for what is read of one step
 * belongs together: the token that was sampled must be among those whose probabilities are read. The numbers
 * of the steps depend on HB_SIM_SEED alone.
 *
 * After kernels that count (result=zero in the table of costs) all is 0: nothing was found, nothing is
 * indexed.
 *
 * What was written since the last kernel by a copy from the host, a fill, or a copy from such memory reads
 * back exactly; so do larger copies, and everything with HB_SIM_RESULTS=memory.
 */
#ifndef HB_SIM_RESULT_H
#define HB_SIM_RESULT_H

#include "sim.h"

/* All with the core's lock held. */
void hb_result__kernel(int device, bool zero); /* a kernel runs: what was written is no longer known */
void hb_result__written(int device, u64 addr, u64 bytes);
void hb_result__copied(int device, const struct hb_work *w); /* device to device */
bool hb_result__known(int device, u64 addr, u64 bytes);	     /* any of it */
bool hb_result__give(int device, const struct hb_work *w);   /* filled in w->dst; false: copy the memory */

#endif
