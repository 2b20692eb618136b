/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of the doctor: a check is a row of a table with a function. */
#ifndef HB_SESSION_DOCTOR_IMPL_H
#define HB_SESSION_DOCTOR_IMPL_H

#include "capture/session/doctor.h"
#include "capture/target/target.h"

struct ring_buffer;

/* What the checks share, so that a later one may build on what an earlier one made. */
struct hb_doctor_bench {
	int ring; /* fd of a ring buffer map; -1: there is none */
	struct ring_buffer *reader;
	u64 seen;   /* events that arrived */
	bool loads; /* BPF programs can be loaded at all */
	u64 caps;   /* effective capabilities */
	const struct hb_process *self;
};

struct hb_check {
	const char *id, *title, *needed_for, *remedy;
	enum hb_need need;
	/* Fills answer and detail; remedy only where the table's does not fit the cause. */
	void (*test)(struct hb_doctor_bench *b, struct hb_diagnosis *out);
};

extern const struct hb_check hb_checks_env[]; /* end with a NULL id */
extern const struct hb_check hb_checks_bpf[];

/* The two usual endings of a check. Return nothing useful: they fill `out`. */
void hb_check__yes(struct hb_diagnosis *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void hb_check__no(struct hb_diagnosis *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void hb_check__remedy(struct hb_diagnosis *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A new row for one process: NULL when out of memory. */
struct hb_diagnosis *hb_doctor__add(struct hb_doctor *d);
/* Appends what there is to say of one process. */
void hb_doctor__examine_process(struct hb_doctor *d, u32 pid);

/* Closes what the checks on BPF shared. */
void hb_doctor_bench__close(struct hb_doctor_bench *b);

#endif
