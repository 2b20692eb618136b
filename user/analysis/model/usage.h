/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a window was spent on, slice by slice: for whoever compares windows, or looks how steady one is. A
 * slice is a group of engine steps, or, where there are none, an even part of the time. What lies before the
 * first slice and after the last is left out; an interval that crosses a border counts in the slice it begins
 * in, and its time in each.
 */
#ifndef HB_USAGE_H
#define HB_USAGE_H

#include "analysis/model/device.h"
#include "analysis/model/host.h"

#define HB_SLICES	24
#define HB_SLICES_LEAST 12 /* fewer tell nothing */

struct hb_slices {
	u32 n;
	u64 bound[HB_SLICES + 1]; /* slice i is [bound[i], bound[i + 1]) */
	u32 steps[HB_SLICES];	  /* in it; 0: slices of time */
};
void hb_slices__of_time(struct hb_slices *s, u64 begin, u64 end);
/* False when there are fewer than HB_SLICES_LEAST steps. */
bool hb_slices__of_steps(struct hb_slices *s, const struct hb_series *x);

enum hb_usage_kind {
	HB_USAGE_STEP,	 /* parts of a step: only with slices of steps */
	HB_USAGE_DEVICE, /* busy and idle */
	HB_USAGE_CALL,	 /* accelerator calls, outermost */
	HB_USAGE_WAIT,	 /* off the CPU, by thread and what was waited in */
	HB_USAGE_GIL,
	HB_USAGE_GC,
	HB_USAGE_EXCEPTION,
	HB_USAGE_PYCALL,
	HB_USAGE_OP,
	HB_USAGE_SYSCALL,
	HB_USAGE_CPU,	   /* samples by thread */
	HB_USAGE_FUNCTION, /* samples by innermost function */
	HB_USAGE_KERNEL,   /* and copies */
	HB_USAGE_KINDS,
};
const char *hb_usage__kind_name(enum hb_usage_kind k); /* "call", "wait", .. */

struct hb_usage_row {
	u8 kind;       /* enum hb_usage_kind */
	bool counted;  /* its number means something: not of the parts of a step, of samples, of busy time */
	bool timed;    /* at least one of them has a length */
	char *name;    /* cleaned; numbers at the end of thread names are one "#": workers are one row */
	u64 count, ns; /* in all slices */
	u64 in_count[HB_SLICES], in_ns[HB_SLICES];
};

struct hb_usage;

/* `series` NULL: none. `d` NULL: no devices. Those handed in may go afterwards. NULL with the error set: out
 * of memory. */
struct hb_usage *hb_usage__build(const struct hb_host *h, const struct hb_devices *d,
				 const struct hb_slices *s, const struct hb_series *series,
				 struct hb_error *e);
void hb_usage__free(struct hb_usage *u);				  /* NULL is fine */
const struct hb_usage_row *hb_usage__at(const struct hb_usage *u, u32 i); /* NULL at the end; no order */
const struct hb_usage_row *hb_usage__find(const struct hb_usage *u, enum hb_usage_kind kind,
					  const char *name);
/* Records there are behind a kind, in the slices or not: 0 = it was not recorded, or there were none. */
u64 hb_usage__records(const struct hb_usage *u, enum hb_usage_kind kind);

#endif
