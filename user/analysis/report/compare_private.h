/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of compare: compare.c builds it, compare_ground.c asks whether it may be, the others print. */
#ifndef HB_COMPARE_PRIVATE_H
#define HB_COMPARE_PRIVATE_H

#include "analysis/model/stats.h"
#include "analysis/model/usage.h"
#include "analysis/report/analyze_private.h"
#include "analysis/report/compare.h"

/* From this level on, after Holm's correction, a difference is no chance. */
#define HB_COMPARE_LEVEL 0.01
#define HB_COMPARE_LEAST 0.05
#define HB_COMPARE_FEW	 12 /* events in both windows together: fewer tell nothing */

enum hb_change {
	HB_CHANGE_CHANCE, /* within noise: as different as two windows of the same are */
	HB_CHANGE_SMALL,  /* sure, and smaller than asked for */
	HB_CHANGE_DRIFT,  /* within what one of the windows shows between its own quarters */
	HB_CHANGE_MORE,
	HB_CHANGE_LESS,
	HB_CHANGE_FEW,		/* too few slices or events to tell */
	HB_CHANGE_NOT_COMPARED, /* not recorded in one of them */
	HB_CHANGES,
};
const char *hb_change__name(enum hb_change c); /* "within noise", "more", .. */

enum hb_metric { HB_METRIC_RATE, HB_METRIC_TIME, HB_METRIC_LENGTH, HB_METRICS };
const char *hb_metric__name(enum hb_metric m); /* "count", "time", "each" */

struct hb_number {    /* one comparison */
	bool present; /* it means something for this row */
	bool tested;
	struct hb_spread a, b; /* per slice */
	struct hb_interval difference;
	double p;  /* corrected when all are there */
	u8 change; /* enum hb_change */
};

struct hb_pair { /* what both windows have by one name */
	u8 kind; /* enum hb_usage_kind; HB_USAGE_KINDS: a finding */
	char name[256];
	u64 count[2], ns[2]; /* in the slices */
	struct hb_number number[HB_METRICS];
	bool changed;
	double weight; /* |change of time per unit|, ns; for order */
};

enum hb_caution_kind {
	HB_CAUTION_TARGET,
	HB_CAUTION_OPTIONS,
	HB_CAUTION_MACHINE,
	HB_CAUTION_LOSS,
	HB_CAUTION_LENGTH,
	HB_CAUTION_DAMAGE,
	HB_CAUTION_RECORDS, /* a kind was recorded in one only */
	HB_CAUTION_LOAD,
	HB_CAUTION_SLICES,
	HB_CAUTIONS,
};
const char *hb_caution__name(enum hb_caution_kind k);
struct hb_caution {
	u8 kind;
	bool breaks; /* what is compared is not the same thing */
	char text[512];
};
#define HB_COMPARE_CAUTIONS 32

struct hb_found {			    /* a finding in one or both */
	const struct hb_finding *f[2];	    /* NULL: not found */
	const struct hb_finding *low[2];    /* where it was not: its conditions hold, it costs too little */
	const struct hb_not_checked *un[2]; /* why it could not be, where it was not found */
	const struct hb_ruled_out *out[2];  /* or the condition that failed, if it nearly held; NULL */
	s32 pair;			    /* of its exposed time, index; -1: none */
};

struct hb_compare {
	struct hb_analysis *x[2];
	struct hb_findings *low[2]; /* findings without a gate */
	const char *name[2];
	double least;
	struct hb_slices slices[2];
	const struct hb_series *series[2]; /* the one that is compared; NULL: none */
	struct hb_usage *usage[2];
	bool by_step;
	struct hb_pair *pair; /* changed ones first, by weight */
	u32 n, cap;
	struct hb_found *found; /* by cost */
	u32 n_found;
	u32 n_changed, n_numbers; /* pairs; numbers that were tested */
	struct hb_caution caution[HB_COMPARE_CAUTIONS];
	u32 n_cautions;
	bool oom;
};

void hb_compare__caution(struct hb_compare *c, enum hb_caution_kind kind, bool breaks, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Same target, same options, whole windows of about one length? */
void hb_compare__ground(struct hb_compare *c);
/* True when what is behind a kind was recorded in both windows. */
bool hb_compare__recorded(const struct hb_compare *c, enum hb_usage_kind kind);
/* "finding" for HB_USAGE_KINDS. */
const char *hb_pair__kind(const struct hb_pair *p);

#endif
