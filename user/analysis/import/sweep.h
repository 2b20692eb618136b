/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The second pass: items in the order of their begin -> records in the order of their end. */
#ifndef HB_IMPORT_SWEEP_H
#define HB_IMPORT_SWEEP_H

#include "analysis/import/import.h"
#include "analysis/import/join.h"
#include "analysis/import/tasks.h"

#define HB_SWEEP_STREAMS 2 /* of the window: most records; those that end long after they began */

struct hb_sweep {
	struct hb_join *items;
	struct hb_names *names; /* written */
	struct hb_tasks *tasks; /* written */
	struct hb_window_writer *w;
	s64 shift;	    /* ns added to the trace's times: those of a window are positive */
	size_t memory;	    /* for items that go on, before they go to disk */
	const char *folder; /* where to */
	struct hb_import_stats *stats;
	u64 stacks_lost, tasks_lost; /* set */
};

int hb_sweep__run(struct hb_sweep *s, struct hb_error *e);

#endif
