/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CPU samples: one software cpu-clock event on every CPU that runs a BPF program at each tick. A timer and
 * not the cycle counter, because virtual machines often have no counters.
 */
#ifndef HB_SESSION_SAMPLING_H
#define HB_SESSION_SAMPLING_H

#include "base/error.h"
#include "schema/schema.h"

#define HB_SAMPLING_MAX_FREQ 10000

struct hb_sampling;

/* Period in ns of a frequency: what the program's hb_sample_period is set to before load. */
u64 hb_sampling__period(unsigned freq);
/* Starts ticks, `freq` (1..HB_SAMPLING_MAX_FREQ) per second and CPU, on all CPUs that are online. prog_fd is
 * a loaded program of type perf_event. NULL with a sentence: no permission, bad frequency. */
struct hb_sampling *hb_sampling__new(int prog_fd, unsigned freq, struct hb_error *e);
/* CPUs that tick. */
unsigned hb_sampling__cpus(const struct hb_sampling *s);
void hb_sampling__free(struct hb_sampling *s); /* stops; NULL is fine */

#endif
