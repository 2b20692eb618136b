/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What devices can do at best: a text file, built in (peaks.tbl, which says how it is written) and to be
 * amended by one of the user's own, whose rows come first.
 */
#ifndef HB_PEAKS_H
#define HB_PEAKS_H

#include "analysis/model/dtype.h"
#include "base/error.h"

enum hb_peak_kind {
	HB_PEAK_SHEET,	 /* "peak": the vendor's data sheet */
	HB_PEAK_CEILING, /* "ceiling": the best that was measured */
	HB_PEAK_KINDS,
};

struct hb_peak {
	char device[128]; /* names it is for: globs between '|' */
	char table[64];	  /* file it stands in */
	unsigned line;
	enum hb_peak_kind kind;
	double tflops[HB_RATES]; /* 10^12 a second; 0: not known */
	double memory, link;	 /* 10^12 bytes a second; link: to other devices, one direction */
	unsigned sms;		 /* multiprocessors; 0: not known */
};

struct hb_peaks_text { /* peaks.tbl, made a part of the program at build time */
	const char *begin, *end;
};
extern const struct hb_peaks_text hb_peaks_text;

struct hb_peaks;

struct hb_peaks *hb_peaks__new(void); /* empty; NULL: out of memory */
void hb_peaks__free(struct hb_peaks *p);
int hb_peaks__add_builtin(struct hb_peaks *p, struct hb_error *e);
/* Rows before those that are there. -EINVAL with the place and what was expected; nothing is added then. */
int hb_peaks__add_text(struct hb_peaks *p, const char *name, const char *text, size_t size,
		       struct hb_error *e);
int hb_peaks__add_file(struct hb_peaks *p, const char *path, struct hb_error *e);

/* First row of this kind for a device of this name ("NVIDIA H200"); NULL: none. */
const struct hb_peak *hb_peaks__find(const struct hb_peaks *p, const char *device, enum hb_peak_kind k);
unsigned hb_peaks__count(const struct hb_peaks *p);
const struct hb_peak *hb_peaks__at(const struct hb_peaks *p, unsigned i);

#endif
