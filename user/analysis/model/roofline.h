/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Speed of light: how long the work of kernels must at least take on their device, and how long it took. Only
 * for work whose sizes are known; all other kernels are counted with the reason, and get no number.
 * docs/roofline.md.
 *
 * Sizes come from operators of an imported trace (their shapes), from calls whose arguments are sizes
 * (cuBLAS), and, where a model's configuration is given, from the order of the kernels in a step whose batch
 * is known (annotations, fields).
 *
 *   struct hb_roofline *r = hb_roofline__new(w, &opts, &e);
 *   .. feeds it in the pass that builds the devices (hb_roofline__feed), which are finished first ..
 *   hb_roofline__finish(r, devices, &e);
 */
#ifndef HB_ROOFLINE_H
#define HB_ROOFLINE_H

#include "analysis/model/device.h"
#include "analysis/model/llm.h"
#include "analysis/model/peaks.h"
#include "analysis/model/roof_rule.h"

struct hb_roofline;

#define HB_ROOF_ERROR 1.10 /* faster than light by more than this: the model, or the peaks, are wrong */

struct hb_roofline_opts {
	const struct hb_peaks *peaks; /* NULL: none, so no speed of light is known */
	const struct hb_llm *llm;     /* of the service; NULL: not known */
	unsigned tp;		      /* devices that share each of its layers; 0 counts as 1 */
	const char *gpu;	      /* name of the devices, where the window does not tell; NULL */
};

enum hb_roof_basis { HB_ROOF_BY_OPERATOR, HB_ROOF_BY_CALL, HB_ROOF_BY_PLAN, HB_ROOF_BASES };
const char *hb_roof__basis(enum hb_roof_basis b); /* "operator", "call", "model" */

enum hb_roof_bound { HB_ROOF_BY_NOTHING, HB_ROOF_BY_COMPUTE, HB_ROOF_BY_MEMORY, HB_ROOF_BY_LINK };
const char *hb_roof__bound(enum hb_roof_bound b); /* "compute", "memory", "link"; "" for NOTHING */

struct hb_roof_exec {  /* one execution */
	u64 begin, ns; /* of its first operation; ns: as in hb_roof_row.dur */
	u32 stack;     /* of the launch, for hb_window__stack(); 0 none */
	u32 row;       /* inside */
};

struct hb_roof_row {	  /* executions of the same work on one device */
	const char *name; /* operator, call, or part of a layer ("gate_up") */
	enum hb_roof_basis basis;
	enum hb_roof_kind kind;
	struct hb_roof_in in;
	u32 device;	       /* index, hb_devices__at() */
	u32 kernel;	       /* string: name of its kernel that took longest, in the first execution */
	struct hb_dist dur;    /* ns on the device of each execution: the union of its kernels and memsets */
	double flops, bytes;   /* of one execution */
	double tflops, tbytes; /* 10^12 a second: the mean of what each execution reached */
	double light_ns;       /* of one execution, against the data sheet; 0: no peak is known */
	double ceiling_ns;     /* against what was measured at best; 0: not known */
	enum hb_roof_bound bound; /* of light_ns */
	bool wrong; /* beyond HB_ROOF_ERROR: the numbers are shown, and are not to be believed */
	u32 first;  /* inside: of its executions */
};
/* Parts of the time that it had to take: 1 = at the speed of light. 0 where light_ns is 0. */
double hb_roof_row__light(const struct hb_roof_row *r);
double hb_roof_row__ceiling(const struct hb_roof_row *r);

struct hb_roof_rest { /* kernels of one name, of which there is no model, for one reason */
	u32 name;     /* string */
	u32 operator; /* string: that called them; 0 none */
	enum hb_roof_why why;
	u64 count, total; /* total: ns, overlaps counted twice */
};

struct hb_roof_device {			      /* what a device was measured against */
	const char *name;		      /* NULL: not known */
	const struct hb_peak *peak, *ceiling; /* NULL: none */
	u32 sms;			      /* as the device says; 0 not told */
	bool other; /* there is a peak for the name, but not for so many multiprocessors */
};

/* `o` and what it points to must stay as long as the roofline; so must the window. NULL: out of memory. */
struct hb_roofline *hb_roofline__new(struct hb_window *w, const struct hb_roofline_opts *o,
				     struct hb_error *e);
void hb_roofline__free(struct hb_roofline *r);
const struct hb_feed *hb_roofline__feed(struct hb_roofline *r);
/* After the last record, and after hb_devices__finish(). 0 or -ENOMEM. */
int hb_roofline__finish(struct hb_roofline *r, const struct hb_devices *d, struct hb_error *e);

/* Executions of a row, as many as dur.count, in no order. */
const struct hb_roof_exec *hb_roofline__execs(const struct hb_roofline *r, const struct hb_roof_row *row);
/* By time, most first. */
const struct hb_roof_row *hb_roofline__rows(const struct hb_roofline *r, u32 *n);
const struct hb_roof_rest *hb_roofline__rest(const struct hb_roofline *r, u32 *n);
/* i: as hb_devices__at(); NULL beyond. */
const struct hb_roof_device *hb_roofline__device(const struct hb_roofline *r, u32 i);

struct hb_roof_counts {
	u64 kernels, ns;	   /* of all devices */
	u64 modelled, modelled_ns; /* of those: with a model */
	u64 steps;		   /* whose batch is told */
	u64 planned,
	    unplanned; /* of those: whose kernels are as the configuration says; not so. 0 without one */
};
const struct hb_roof_counts *hb_roofline__counts(const struct hb_roofline *r);

#endif
