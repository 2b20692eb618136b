/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Device operations as the truth log and an observer see them. All with the core's lock held. */
#ifndef HB_SIM_OPERATION_H
#define HB_SIM_OPERATION_H

#include "sim.h"

/* One operation ran (or will have run) on s from start to end; flags: HB_OPERATION_*. */
void hb_operation__log(const struct hb_stream *s, const struct hb_work *w, const struct hb_moment *start,
		       const struct hb_moment *end, u32 flags);
/* A planted fault was switched. */
void hb_operation__fault(const char *line, bool on, u64 now);
/* Looks whether ends that depended on other ranks are known by now; all: of all operations, however many. */
void hb_operation__settle(bool all);
void hb_operation__synced(void); /* the host waited: the same, with the lock not held */
void hb_operation__forget(void); /* in the child of a fork */

#endif
