/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of asyncio's tasks, by their root coroutines. asyncio keeps its tasks in sets of weak references
 * (asyncio.tasks._all_tasks, from 3.12 on _scheduled_tasks), from 3.14 on those of the C class in a list of
 * each thread. Where a task has its coroutine is found by looking for the address; its name is the next word.
 */
#ifndef HB_PYTHON_TASKS_H
#define HB_PYTHON_TASKS_H

#include "capture/python/heap.h"

#define HB_PY_TASK_SETS	 8
#define HB_PY_TASK_WORDS 32 /* of a task that are looked at */

/* What was found out of the tasks of one interpreter's file in one process. */
struct hb_py_asyncio {
	struct hb_py_heap heap;
	u64 runtime; /* address of _PyRuntime */
	u64 set[HB_PY_TASK_SETS];
	u32 n_sets;
	u16 coro_at; /* in a task, in words; 0: not known yet */
	u16 node_at; /* in a task, in bytes: its place in a thread's list; 0: not known yet */
};

struct hb_py_wanted {
	u64 coro;
	bool found;
	char name[4 * HB_PY_FIELD_TEXT + 4]; /* "" when it was not readable */
};

/* Finds the sets; false: the program has not imported asyncio (yet). */
bool hb_py_asyncio__find(struct hb_py_asyncio *a);
/* Looks for the tasks of these coroutines, in ascending order, among those that are alive. */
void hb_py_asyncio__names(struct hb_py_asyncio *a, struct hb_py_wanted *w, u32 n);

#endif
