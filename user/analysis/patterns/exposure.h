/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Idle device time by the thread that is to blame for it. Inside of patterns. */
#ifndef HB_EXPOSURE_H
#define HB_EXPOSURE_H

#include "analysis/patterns/pattern.h"

/* NULL: out of memory. */
struct hb_exposure *hb_exposure__new(const struct hb_scene *s);
void hb_exposure__free(struct hb_exposure *x);
const struct hb_sets *hb_exposure__of(const struct hb_exposure *x, u32 thread);

void hb_sets__free(struct hb_sets *s);
bool hb_sets__oom(const struct hb_sets *s);

#endif
