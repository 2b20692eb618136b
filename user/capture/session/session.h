/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One window from beginning to end: resolve -> plan -> attach -> collect -> detach. Used by `trace`; later by
 * `why` and a daemon.
 */
#ifndef HB_SESSION_H
#define HB_SESSION_H

#include "base/error.h"
#include "capture/probes/probes.h"
#include "capture/python/pattern.h"
#include "capture/target/target.h"

enum hb_python_mode { HB_PYTHON_OFF, HB_PYTHON_STACKS, HB_PYTHON_CALLS };
enum hb_py_hook_mode { HB_PY_HOOK_OFF, HB_PY_HOOK_EVAL_FRAME, HB_PY_HOOK_FORCED };
/* What is kept of exceptions' messages; off: no exceptions at all. */
enum hb_exceptions { HB_EXCEPTIONS_OFF, HB_EXCEPTIONS_TYPES, HB_EXCEPTIONS_HASH, HB_EXCEPTIONS_TEXT };
enum hb_syscalls { HB_SYSCALLS_NONE, HB_SYSCALLS_BLOCKING, HB_SYSCALLS_ALL };

struct hb_session_fact { /* for the window's meta */
	const char *key, *value;
};

struct hb_session_opts {
	struct hb_selector target;
	u64 duration;	    /* ns */
	const char *output; /* NULL: default name */
	bool force;
	enum hb_layers layers;
	enum hb_syscalls syscalls;
	enum hb_python_mode python;
	const struct hb_py_pattern
	    *calls; /* functions whose calls are recorded; none: all, with HB_PYTHON_CALLS */
	u32 n_calls;
	const struct hb_py_field *fields; /* fields of objects, read in calls of their functions */
	u32 n_fields;
	bool capture_strings; /* texts of fields, not only hashes */
	enum hb_py_hook_mode py_hook;
	enum hb_exceptions exceptions;
	u32 stacks_every[HB_CLASS_COUNT]; /* Python stack with every n-th call of a class; 0: none */
	u32 max_functions; /* of Python, that are named; there is room for an eighth as many stacks */
	const char *const *probe_files;	     /* --probes, NULL-terminated; NULL: none */
	u32 timed;			     /* bits of enum hb_class whose calls are probed at both ends */
	const char *probe_rows;		     /* text of one more table, that of a plan; NULL: none */
	const struct hb_session_fact *facts; /* about this window, from whoever starts it */
	u32 n_facts;
	unsigned freq; /* CPU samples per second and CPU; 0 = off */
	u64 buffer;    /* bytes of one ring */
	u64 max_size;  /* bytes of the window file; 0 = unlimited */
	bool single;   /* force single uprobes (tests both paths) */
};

static inline bool hb_session__wants_calls(const struct hb_session_opts *o)
{
	return o->python == HB_PYTHON_CALLS || (o->python != HB_PYTHON_OFF && (o->n_calls || o->n_fields));
}

static inline bool hb_session__wants_all_calls(const struct hb_session_opts *o)
{
	return o->python == HB_PYTHON_CALLS && !o->n_calls;
}

/* What went on, for progress lines; called about 5 times a second on the session's thread. */
struct hb_progress {
	u64 elapsed, duration; /* ns */
	u64 events, bytes, lost;
	u32 processes;
};
typedef void (*hb_progress_fn)(const struct hb_progress *p, void *arg);

struct hb_session;
/* Resolves, plans, opens the window and attaches. On failure nothing of ours is left anywhere. */
struct hb_session *hb_session__new(const struct hb_session_opts *o, struct hb_error *e);
/* Collects until the duration is over, every target has exited, *stop is 1 (normal end) or 2 (at once), the
 * file reached max_size or the disk is full; then detaches and finalises the file. 0 or -errno with a
 * sentence; what was written is readable either way. */
int hb_session__run(struct hb_session *s, const volatile int *stop, hb_progress_fn fn, void *arg,
		    struct hb_error *e);
const char *hb_session__path(const struct hb_session *s); /* the file, valid until free */
/* Why the window ended, after run: a sentence without a full stop. */
const char *hb_session__ended_by(const struct hb_session *s);
void hb_session__free(struct hb_session *s);

#endif
