/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of Python functions in a session: where they are probed, and which of them are recorded. */
#ifndef HB_SESSION_PYCALLS_H
#define HB_SESSION_PYCALLS_H

#include "capture/python/calls.h"
#include "capture/session/impl.h"

/* 0 or -errno with a sentence; nothing is done where no calls are asked for. */
int hb_session_pycalls__begin(struct hb_session *s, struct hb_error *e);
void hb_session_pycalls__free(struct hb_session *s);
/* Control thread: the interpreters of a process are known; again when its mappings have changed. */
void hb_session_pycalls__look(struct hb_session *s, struct proc_state *ps);
/* Any thread: what is set in the parent is set in the child. */
void hb_session_pycalls__fork(struct hb_session *s, u32 parent, u32 child);
void hb_session_pycalls__forget(struct hb_session *s, u32 pid);
void hb_session_pycalls__tick(struct hb_session *s); /* five times a second, and at the end */
int hb_session_pycalls__subscribe(struct hb_session *s);
void hb_session_pycalls__describe(struct hb_session *s); /* notes, when the window has begun */
/* ns that the kernel takes to come to a program of this name; 0: it is not one of these. */
u64 hb_session_pycalls__trap(const struct hb_session *s, const char *program);
void hb_session_pycalls__account(struct hb_session *s);
/* Takes hooks back and closes links; may be repeated. */
void hb_session_pycalls__detach(struct hb_session *s, u64 deadline);

/* ---- pyhook.c: hooks that are set, and a child that takes them back when we are killed ---- */

struct hb_pyhooks;
struct hb_pyhooks *hb_pyhooks__new(struct hb_error *e); /* NULL with a sentence */
/* Sets one, and keeps it. 0 or -errno. */
int hb_pyhooks__set(struct hb_pyhooks *k, const struct hb_py_hook *h);
void hb_pyhooks__fork(struct hb_pyhooks *k, u32 parent, u32 child);
/* The next process whose hook something else has taken away, each once; 0: none. */
u32 hb_pyhooks__taken(struct hb_pyhooks *k);
/* Takes back all, also in children that nobody told of. */
void hb_pyhooks__unset(struct hb_pyhooks *k);
void hb_pyhooks__free(struct hb_pyhooks *k);

#endif
