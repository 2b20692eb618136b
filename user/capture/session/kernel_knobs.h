/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Facts about the running kernel that BPF programs cannot find out by themselves: read from its BTF before
 * load. */
#ifndef HB_SESSION_KERNEL_KNOBS_H
#define HB_SESSION_KERNEL_KNOBS_H

#include "schema/schema.h"

struct hb_kernel_knobs {
	s64 preempt_off;     /* -> .rodata hb_preempt_off; 0: context of wake-ups stays unknown */
	u32 preempt_hardirq; /* -> .rodata hb_preempt_hardirq: bits of the count that say "in an interrupt" */
	bool switch_has_state; /* -> .rodata hb_switch_has_state */
};

/* Always fills *k; what the BTF does not tell stays 0. 0 or -errno when there is no BTF. */
int hb_kernel_knobs__read(struct hb_kernel_knobs *k);

#endif
