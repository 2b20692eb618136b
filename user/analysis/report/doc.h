/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Parts that the JSON documents of `report` and `analyze` share: each is written in one way. */
#ifndef HB_DOC_H
#define HB_DOC_H

#include "analysis/model/dist.h"
#include "analysis/model/model.h"
#include "base/json.h"

struct hb_doc { /* a document being written; open and close it with hb_json */
	struct hb_window *w;
	const struct hb_model *m;
	struct hb_json *j;
	u64 wall; /* of the window, ns */
	u32 max;  /* rows of one table; 0 = all */
};

const char *hb_doc__str(const struct hb_doc *d, u32 id);

/* Members of the object that is open. */
void hb_doc__hist(struct hb_doc *d, const struct hb_hist *h); /* total_ns, min_ns, .. max_ns */
/* count, total, min, p50, p95, max, mean, std, each but the first with the unit behind its name. */
enum hb_doc_unit { HB_DOC_PLAIN, HB_DOC_NS };
void hb_doc__dist(struct hb_doc *d, const struct hb_dist *x, enum hb_doc_unit unit);
void hb_doc__proc(struct hb_doc *d, const struct hb_proc_stat *p); /* pid, comm */
void hb_doc__task(struct hb_doc *d, const char *key,
		  const struct hb_task *t);			   /* an object; nothing for NULL */
void hb_doc__share(struct hb_doc *d, u64 ns);			   /* share: of the window */
void hb_doc__known(struct hb_doc *d, const char *key, u32 string); /* nothing for string 0 */
/* How many of n rows are written. And where that is fewer, how many there are: member "KEY_rows". */
u32 hb_doc__shown(const struct hb_doc *d, u32 n);
void hb_doc__left(struct hb_doc *d, const char *key, u32 n);
/* `key`: an array with an object for each row. */
void hb_doc__table(struct hb_doc *d, const char *key, const void *const *rows, u32 n,
		   void (*put)(struct hb_doc *, const void *));

/* Values of the array that is open: a stack's frames as words, outermost first. */
void hb_doc__frames(struct hb_doc *d, u32 pid, u32 raw);
/*
 * `key`: a stack as in the exports (docs/ndjson.md): an array of {f, file, line, module, lang}, outermost
 * first, with "KEY_state" where it is truncated, broken or missing. Nothing for stack 0.
 */
void hb_doc__stack(struct hb_doc *d, const char *key, u32 pid, u32 raw);

/* Members of all tables of the report (docs/report-json.md); without the stacks where rows are limited. */
void hb_doc__tables(struct hb_doc *d);

/* Members with their key: "window", "loss", "receipt", "notes". */
void hb_doc__window(struct hb_doc *d);
void hb_doc__loss(struct hb_doc *d);
void hb_doc__receipt(struct hb_doc *d);
void hb_doc__notes(struct hb_doc *d);

#endif
