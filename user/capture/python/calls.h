/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How calls of Python functions can be seen, by version and build. Each way is a row of one table, with what
 * it does not see; a further one (sys.monitoring, from inside of the process) is one more row.
 */
#ifndef HB_PYTHON_CALLS_H
#define HB_PYTHON_CALLS_H

#include "capture/python/python.h"
#include "schema/pycall.h"

enum hb_py_way {
	HB_PY_WAY_NONE,
	HB_PY_WAY_FRAME, /* the function that runs a frame: each call goes through it (up to 3.10) */
	HB_PY_WAY_END,	 /* the function that each frame passes at its end: no begin, no duration */
	HB_PY_WAY_HOOK,	 /* as the first, after the interpreter was told to use it for each call */
};

struct hb_py_calls {
	enum hb_py_way way;
	char why[256];		      /* a sentence, when there is no way */
	const char *symbol;	      /* probed */
	const struct hb_mapping *map; /* of the file that it is in, of the process given to find() */
	u64 offset;		      /* in the file: the cheapest place at which the arguments are there */
	bool ret;		      /* with a return probe */
	const char *no_return;	      /* why not, where the way has one; NULL */
	const char *holes;	      /* what is not seen; NULL: complete */
	struct hb_py_call_site site;  /* runtime: index in the process */
	u64 end_offset;		      /* a second place, for what the first one misses; 0: none */
	struct hb_py_call_site end_site;
	u64 eval;		 /* address of the function that runs a frame; 0 unknown */
	u64 get_hook, get_limit; /* addresses of accessors; 0 unknown */
};

/* A library that swaps pieces of threads' stacks, under which return probes must not be. */
bool hb_py_calls__swaps_stacks(const char *path);
/* Why this process's functions may have no return probes; NULL: they may. */
const char *hb_py_calls__no_return(const struct hb_process *p);
/* The best way without changing anything, or the hook. NONE: `why` says why not. */
void hb_py_calls__find(const struct hb_process *p, const struct hb_py_runtime *r, u32 index, bool hook,
		       struct hb_py_calls *out);
/* Lines for a person, each "  ...\n": which way it is, and what it misses. */
const char *hb_py_calls__describe(const struct hb_process *p, const struct hb_py_runtime *r, char *buf,
				  size_t size);

/* ---- the hook: a word in each interpreter that names the function that runs frames ---- */

#define HB_PY_HOOKS 16 /* interpreters of one process */
struct hb_py_hook {
	u32 pid, n;
	u64 eval; /* what the word is set to */
	u64 slot[HB_PY_HOOKS];
};

/* Finds the words and looks whether they may be set: free, or set so already (left over by a tool that was
 * killed; *left). `force`: even where calls nested deeper than what is safe are allowed. 0, or -errno with a
 * sentence. Nothing is changed. */
int hb_py_hook__find(const struct hb_process *p, const struct hb_py_runtime *r, const struct hb_py_calls *c,
		     bool force, struct hb_py_hook *h, bool *left, struct hb_error *e);
/* Sets the words; 0 or -errno, and then all is as before. */
int hb_py_hook__set(const struct hb_py_hook *h);
/* All of its words are as they were set; true too when the process is gone. */
bool hb_py_hook__stands(const struct hb_py_hook *h);
/* Takes back what is still ours. Safe in a child between fork and exit: no memory, no locks. Words taken
 * back.
 */
u32 hb_py_hook__unset(const struct hb_py_hook *h);

#endif
