/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of settle. */
#ifndef HB_SETTLE_PRIVATE_H
#define HB_SETTLE_PRIVATE_H

#include "analysis/patterns/settle.h"

struct hb_settle {
	const struct hb_settle_input *in;
	struct hb_planfile *p;
	u64 wall; /* of the window, never 0 */
	bool oom;
};

/* The options that the first window was recorded with. */
void hb_settle__begin(struct hb_settle *s);
/* Adds one. True when the plan records more by it than the first window did. Never less: both are to be
 * compared. */
bool hb_settle__ask(struct hb_settle *s, const char *option, const char *value);
/* This option was given for the first window, with this value. */
bool hb_settle__had(const struct hb_settle *s, const char *option, const char *value);

/* A class is in a list such as "launch,graph", or all are. */
bool hb_settle__names(const char *list, const char *word);

/* Appends a line to the plan's predicted cost; takes no ownership. A full list drops it, and says so in the
 * last. */
struct hb_planfile_cost *hb_settle__cost(struct hb_settle *s, const char *what, const char *basis);
/* A number in the window's meta; false when it is not there. */
bool hb_settle__meta(const struct hb_settle *s, const char *key, u64 *v);
/* n in all of the first window, as a rate. */
u64 hb_settle__per_second(const struct hb_settle *s, u64 n);
/* What the first window did not count: the price of one where it is known, and what can be said of their
 * number.
 */
void hb_settle__uncounted(struct hb_settle *s);
/* The plan changes this option, whose value the first window has in its meta. */
bool hb_settle__changes(const struct hb_settle *s, const char *option, const char *key);

/* All of them, once the options are complete. */
void hb_settle__costs(struct hb_settle *s);

#endif
