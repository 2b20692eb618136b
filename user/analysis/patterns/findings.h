/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How findings are kept while they are made, and what is done with all of them at the end. Inside of
 * patterns. */
#ifndef HB_FINDINGS_H
#define HB_FINDINGS_H

#include "analysis/model/hist.h"
#include "analysis/patterns/exposure.h"

#define HB_MAX_CUTS 1000000 /* of one finding; with more it is not replayed */

struct hb_draft {
	struct hb_finding f; /* first: handed out as it is */
	const struct hb_scene *s;
	struct hb_sets idle;   /* exposed; may overlap, until they are summed up */
	struct hb_ivs exposed; /* after that: what is known and likely */
	struct hb_ivs spans;   /* of occurrences that delay */
	struct hb_ivs device;  /* of those that cost device time, where causes are asked for */
	struct hb_ivs sampled; /* idle time around the samples that fell into it */
	u64 weight_sure, weight_likely, weight_maybe; /* of samples */
	u64 samples;
	u64 worst_delay;
	struct hb_hist len;
	struct hb_shrink *cut; /* occurrences that are intervals of threads */
	u32 n_cut, cap_cut;
	enum hb_confidence cap;
	const char *cap_why;
	bool pass; /* the gate */
	bool last; /* a symptom, beside what may be its cause */
	bool oom;
};

struct hb_findings {
	struct hb_draft **draft; /* those that passed: in order */
	u32 n;
	struct hb_ruled_out *out;
	u32 n_out;
	struct hb_ruled_out *low; /* those below the gate: they come last */
	u32 n_low;
	struct hb_not_checked *un;
	u32 n_un;
	u64 active; /* see hb_findings__active() */
	bool oom;
};

/* Append; oom is sticky. */
struct hb_draft *hb_findings__draft(struct hb_findings *f);
void hb_findings__add_out(struct hb_findings *f, const struct hb_ruled_out *r);
void hb_findings__add_un(struct hb_findings *f, const struct hb_not_checked *u);

/* After each pattern, for its drafts, from number `first` on: sums, the gate. */
void hb_findings__gate(struct hb_findings *f, u32 first, const struct hb_thresholds *t);
/* After the last one: causes and effects, order. */
void hb_findings__finish(struct hb_findings *f, const struct hb_scene *s, const struct hb_thresholds *t);

#endif
