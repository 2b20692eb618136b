/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Between the files of this folder. */
#ifndef HB_PYTHON_PRIVATE_H
#define HB_PYTHON_PRIVATE_H

#include "capture/python/python.h"

#define HB_PY_THREADS_MAX 4096 /* thread states looked at */

/* Thread states of all interpreters of a runtime: addresses, at most `max`; 0 when it has not started up. */
u32 hb_py_threads__list(u32 pid, const struct hb_py_runtime *r, u64 *states, u32 max);
/* Finds the place in a thread's own memory that leads to its thread state: sets off.walk.slot and slot_inner.
 * False when no place is right for all of these. */
bool hb_py_threads__slot(u32 pid, struct hb_py_runtime *r, const u64 *states, u32 n);

enum hb_py_walked {
	HB_PY_WALK_RIGHT,
	HB_PY_WALK_NOTHING, /* no thread runs Python */
	HB_PY_WALK_WRONG,   /* `why` says what was found */
};
/* Walks stacks from here as the kernel's walker would, and looks whether what is found makes sense. */
enum hb_py_walked hb_py_walk__try(u32 pid, const struct hb_py_runtime *r, const u64 *states, u32 n, char *why,
				  size_t size);

/* As the kernel's walker does it. False: there is no stack. */
bool hb_py_walk__trace(u32 pid, const struct hb_py_runtime *r, u64 state, struct hb_stack_trace *out);

#endif
