/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of the kineto exporter: rows of the host and the file (kineto.c), of devices and operators
 * (kineto_device.c). */
#ifndef HB_KINETO_PRIVATE_H
#define HB_KINETO_PRIVATE_H

#include "base/buf.h"
#include "base/map.h"
#include "window/window.h"

struct hb_kineto {
	struct hb_window *w;
	struct hb_buf out;
	u64 base;		/* monotonic ns: time 0 of the file */
	u64 correlation;	/* of the last call: numbered in order of their end, from 1 */
	bool own_numbers;	/* calls carry correlations of their own */
	struct hb_map *work;	/* (process, correlation) of what ran on a device */
	struct hb_map *devices; /* numbers of devices -> process */
	struct hb_map *owner;	/* correlation -> process of the first call with it */
	struct hb_map *numbers; /* process with such numbers -> its place among those, from 1 */
	bool shared;		/* two processes have the same: they are told apart by hb_kineto__number() */
	bool first;
};

/* Where a row is drawn: a thread of a process, or a stream of a device, which readers take for such. */
struct hb_kineto_place {
	u64 pid, tid;
};

/* A row up to the brace of its arguments, and from there to its end. */
void hb_kineto__begin(struct hb_kineto *c, const char *cat, const char *name, struct hb_kineto_place at,
		      const struct hb_record *r);
void hb_kineto__end(struct hb_kineto *c);
/* Arguments of the row. */
void hb_kineto__text(struct hb_kineto *c, const char *key, const char *s);
void hb_kineto__u64(struct hb_kineto *c, const char *key, u64 v);
void hb_kineto__s64(struct hb_kineto *c, const char *key, s64 v);
void hb_kineto__three(struct hb_kineto *c, const char *key, u64 x, u64 y, u64 z);
/* Half of an arrow between two rows: `ph` s or f. */
void hb_kineto__flow(struct hb_kineto *c, char ph, u64 id, struct hb_kineto_place at, u64 ts);
/* A row that names a process or thread. */
void hb_kineto__name(struct hb_kineto *c, const char *what, struct hb_kineto_place at, const char *key,
		     const char *text);

/* ---- kineto_device.c ---- */

/* Looks at a record in the pass before the rows are written. 0 or -ENOMEM. */
int hb_kineto__note_work(struct hb_kineto *c, const struct hb_record *r);
/* Notes the number of a call. 0 or -ENOMEM. */
int hb_kineto__note_call(struct hb_kineto *c, u32 pid, u64 correlation);
/* A process's number of a call as it goes into the file, where one list holds all processes. */
u64 hb_kineto__number(const struct hb_kineto *c, u32 pid, u64 correlation);
/* Did the call with this correlation lead to something on a device? */
bool hb_kineto__has_work(const struct hb_kineto *c, u32 pid, u64 correlation);
void hb_kineto__device(struct hb_kineto *c, const struct hb_record *r);
void hb_kineto__op(struct hb_kineto *c, const struct hb_record *r);
/* Names of devices as processes; their properties, as far as the window has them, as a list. */
void hb_kineto__device_names(struct hb_kineto *c);
void hb_kineto__properties(struct hb_kineto *c);

#endif
