/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fields of Python objects in a session: in which functions they are read, and what the kernel could not
 * read.
 */
#ifndef HB_SESSION_PYFIELDS_H
#define HB_SESSION_PYFIELDS_H

#include "capture/session/impl.h"

/* 0 or -errno with a sentence; nothing is done where no field is asked for. */
int hb_session_pyfields__begin(struct hb_session *s, struct hb_error *e);
void hb_session_pyfields__free(struct hb_session *s);
int hb_session_pyfields__subscribe(struct hb_session *s);
/* Pump: a function whose first call was seen. True when fields are read in its calls from now on. */
bool hb_session_pyfields__judge(struct hb_session *s, u32 pid, u64 code, const struct hb_py_place *at,
				bool qualified);
/* Pump: a call of such a function that was over before that was known. */
void hb_session_pyfields__unread(struct hb_session *s, const struct hb_wire *w, const struct hb_py_place *at,
				 bool qualified, u64 call);
/* Control thread: the process is gone. What is known of one that executes another program is not taken for
 * that one: functions and types are told by their names' addresses, too. */
void hb_session_pyfields__forget(struct hb_session *s, u32 pid);
/* At the end: fields of functions that nobody called. */
void hb_session_pyfields__account(struct hb_session *s);

#endif
