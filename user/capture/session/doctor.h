/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Would tracing work here? Found out by doing it: programs are loaded, attached to ourselves and must deliver
 * an event; versions and configuration files are not asked. What cannot be done by doing (capabilities,
 * limits, settings) is read and told as a fact. Leaves nothing behind.
 */
#ifndef HB_SESSION_DOCTOR_H
#define HB_SESSION_DOCTOR_H

#include "base/error.h"
#include "schema/schema.h"

enum hb_answer { HB_ANSWER_NO, HB_ANSWER_YES, HB_ANSWER_UNTESTED };
enum hb_need {
	HB_NEED_MUST,	 /* without it nothing can be traced */
	HB_NEED_FEATURE, /* without it something is missing or slower */
	HB_NEED_FACT,	 /* explains the others */
};

struct hb_diagnosis {
	const char *id; /* stable, for --json */
	const char *title;
	const char *needed_for;
	enum hb_need need;
	enum hb_answer answer;
	u32 pid;	  /* about this process; 0: about the machine */
	char detail[320]; /* what was seen; "" when there is nothing to add */
	char remedy[320]; /* what to do about a "no"; "" otherwise */
};

struct hb_doctor;
/* Examines the machine, then the `n` processes. About half a second. NULL: out of memory. */
struct hb_doctor *hb_doctor__run(const u32 *pids, u32 n, struct hb_error *e);
void hb_doctor__free(struct hb_doctor *d);
const struct hb_diagnosis *hb_doctor__rows(const struct hb_doctor *d, u32 *n);
/* No "no" and nothing untested among what is a must. */
bool hb_doctor__usable(const struct hb_doctor *d);

#endif
