/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Executions of operators: which function of the model or of the engine gave the device its work, how long
 * the host was at it, how long it waited there, and how long the device worked for it.
 *
 * The function of a call is, in this order: the innermost operator of a profiler around it (imported traces);
 * the innermost frame of its stack that is a module's forward or a framework's operator; else the innermost
 * that is one of the functions of engines known by name; else the innermost of Python. Calls without any of
 * these belong to no operator and are counted.
 *
 * One execution is a span of that function where spans were recorded (operators of a trace, `trace --calls`);
 * else calls of one thread in a row below the same frames, less than 1 ms apart: two activations in a row
 * from the same line look like one.
 */
#ifndef HB_OPERATORS_H
#define HB_OPERATORS_H

#include "analysis/model/device.h"
#include "analysis/model/timeline.h"

#define HB_OPERATOR_APART_NS 1000000

enum hb_operator_basis { HB_OPERATOR_BY_SPAN, HB_OPERATOR_BY_CALL, HB_OPERATOR_BY_STACK, HB_OPERATOR_BASES };
const char *hb_operator__basis(enum hb_operator_basis b); /* "operator", "call", "stack" */

struct hb_operator { /* executions of one function in one process */
	u32 pid;
	u32 name;	     /* string */
	u32 file, line;	     /* string and line of one of its frames; 0 not known */
	u8 basis;	     /* enum hb_operator_basis */
	u64 launches;	     /* calls that give a device work */
	u64 waited_ns;	     /* in calls that waited for the device */
	struct hb_dist host; /* from the first call to the end of the last, or the span. Of executions */
	/* Of executions with operations in device records (device.count of them): */
	u64 operations, device_ns; /* all, and the sum of their lengths: more than time where they overlap */
	struct hb_dist device;	   /* from the begin of the first to the end of the last */
};

struct hb_operators_counts {
	u64 calls;   /* outermost accelerator calls */
	u64 without; /* of these: below no function that is known */
};

struct hb_operators;

/* Devices finished, or NULL. NULL with the error set: out of memory. */
struct hb_operators *hb_operators__build(const struct hb_timeline *tl, const struct hb_devices *d,
					 struct hb_error *e);
void hb_operators__free(struct hb_operators *o); /* NULL is fine */
/* By device time, then by host time; NULL beyond. */
u32 hb_operators__count(const struct hb_operators *o);
const struct hb_operator *hb_operators__at(const struct hb_operators *o, u32 i);
const struct hb_operators_counts *hb_operators__counts(const struct hb_operators *o);

#endif
