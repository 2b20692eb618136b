/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The first line of an analysis: what limits the service, as far as its devices tell, or the calls that give
 * them work.
 */
#ifndef HB_VERDICT_H
#define HB_VERDICT_H

#include "analysis/model/host.h"
#include "analysis/patterns/patterns.h"

enum hb_verdict_kind {
	HB_VERDICT_UNKNOWN,
	HB_VERDICT_NO_LOAD,	  /* nobody asked for anything */
	HB_VERDICT_HOST,	  /* the devices wait for the host */
	HB_VERDICT_COMMUNICATION, /* they wait for each other */
	HB_VERDICT_BUSY,	  /* they have work all the time */
	HB_VERDICT_KINDS,
};
const char *hb_verdict__name(enum hb_verdict_kind k); /* "unknown", "no load", "host", .. */

struct hb_verdict {
	enum hb_verdict_kind kind;
	char text[768]; /* a sentence or two for a person */
};

/* From these shares of the devices' spans on: idle time is worth a look; it cannot be called idle;
 * communication that nothing hides is the limit. And of the idle time, when it is the host's. In per cent.
 */
#define HB_VERDICT_IDLE	   15
#define HB_VERDICT_MISSING 10
#define HB_VERDICT_COMM	   15
#define HB_VERDICT_HOSTS   70
/* Of the host's part of it, in functions that wait: worth a word. */
#define HB_VERDICT_WAITS 50
/* Of the window, before the first operation of a device and after the last one: worth a word. */
#define HB_VERDICT_OUTSIDE 50
/* Without device records, of the window: known to be busy. */
#define HB_VERDICT_BUSY_BY_CALLS 85

/* With engine fields, of the window: known to be without any request. */
#define HB_VERDICT_NO_REQUESTS 50

struct hb_verdict_input {
	const struct hb_devices *devices;
	const struct hb_host *host;	    /* NULL: nothing is told from calls alone */
	const struct hb_findings *findings; /* NULL: none */
	struct hb_load load;
	u64 wall; /* of the window, ns */
};

struct hb_verdict hb_verdict__of(const struct hb_verdict_input *in);

#endif
