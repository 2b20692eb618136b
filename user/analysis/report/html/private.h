/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of the page: what its parts share. Not for others. */
#ifndef HB_HTML_PRIVATE_H
#define HB_HTML_PRIVATE_H

#include "analysis/report/html/html.h"
#include "analysis/report/html/lod.h"
#include "analysis/report/html/labels.h"

struct hb_page {
	const struct hb_html *in;
	struct hb_json *j;
	struct hb_labels *labels;
	u64 start, end; /* of the window; end > start */
};

/* A row of spans within a lane. */
enum hb_track_kind {
	HB_TRACK_LIST,	 /* one kind of a thread's intervals at one depth */
	HB_TRACK_STREAM, /* one stream of a device */
	HB_TRACK_GAPS,	 /* idle time of a device, by who is to blame */
	HB_TRACK_BUSY,	 /* what is known of a device from calls alone */
	HB_TRACK_PATH,	 /* critical path of a process */
	HB_TRACK_STEPS,
	HB_TRACK_LONGEST, /* the path that was asked for (--critical-path) */
};

struct hb_track {
	const char *what; /* "calls", "off-CPU", .. */
	u32 n;		  /* spans */
	u32 max;	  /* pieces it may have */
	u32 stream;	  /* STREAM: index */
	u8 kind;	  /* enum hb_track_kind */
	u8 list, depth;	  /* LIST: enum hb_tl_kind, and how deep */
	bool deeper;	  /* LIST: there are levels above or below, which are not shown */
};

#define HB_LANE_TRACKS 24
struct hb_lane {
	const char *kind; /* "device", "process", "thread" */
	u32 pid;
	u32 index; /* device: of hb_devices; process: of its series; thread: of the timeline */
	struct hb_track track[HB_LANE_TRACKS];
	u32 n;
};

struct hb_lanes {
	struct hb_lane *lane;
	u32 n, cap;
	u32 threads_left_out; /* that have records */
	bool oom;
};

/* Links with a weight of the longest path, if it is of this process: how many, and one of them (its number,
 * from which the next is looked for; HB_NONE at the end) with its time. */
u32 hb_page__longest(const struct hb_page *p, u32 pid);
u32 hb_page__longest_next(const struct hb_page *p, u32 from, u64 *begin, u64 *end);
/* "compute: gemm" into buf; returns it. */
const char *hb_page__longest_name(const struct hb_page *p, u32 link, char *buf, size_t size);

/* Which rows the page has, the most telling first, and how many pieces each may take. 0 or -ENOMEM. */
int hb_lanes__choose(const struct hb_page *p, struct hb_lanes *l);
void hb_lanes__free(struct hb_lanes *l);
/* The spans of a track in a new array (free() it), clipped to the window; NULL, *n = 0 when there are none;
 * NULL, *n > 0: out of memory. */
struct hb_lod_span *hb_track__spans(const struct hb_page *p, const struct hb_lane *lane,
				    const struct hb_track *t, u32 *n);
/* Number in p->labels of what a span is. */
u32 hb_track__name(const struct hb_page *p, const struct hb_lane *lane, const struct hb_track *t, u32 item);

/* Members of the open object: "lanes", "detail", ..; "flames"; 0 or -ENOMEM. */
int hb_page__timeline(struct hb_page *p);
int hb_page__flames(struct hb_page *p);

#endif
