/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of patterns. */
#ifndef HB_NEEDS_H
#define HB_NEEDS_H

#include "analysis/patterns/pattern.h"

/* HB_NEED_* of the records that there are. */
u64 hb_needs__present(const struct hb_scene *s);

#endif
