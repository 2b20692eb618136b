/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Planted faults: HB_SIM_FAULTS=FILE names a control file that may come, change and go while the process
 * runs; it is looked at every 50 ms at most, from whatever call comes by. A line is "KIND key=value ...":
 *
 *   slow_rank rank=N [factor=F] [delay_us=US]	kernels of that rank take F times as long; it comes US late to
 *						each collective. A device's rank is that in the largest
 *						communicator made on it, before that its number
 *   clock_throttled factor=F [device=N]	kernels take F times as long
 *   pageable_copies				pinned host memory is treated as pageable
 *   blocking_d2h us=US [bytes=N]		the first wait of the host after kernels ends US later, for a
 *						copy to the host that the application did not ask for
 *   copy_contention factor=F			copies between host and device take F times as long
 *   slow_kernel glob=GLOB factor=F		kernels of that name take F times as long
 *   launch_stall us=US every=N			each Nth launch holds its caller up for US
 *   lost_event every=N [ms=MS]			each Nth event recorded completes MS (200) later
 *
 * '#' starts a comment. A line that is not understood is said on stderr and left out. Switching a line on or
 * off is a record of the truth log, and its header counts how often each kind took effect. Write the file
 * aside and rename it: half a file is read as what it says.
 */
#ifndef HB_SIM_FAULT_H
#define HB_SIM_FAULT_H

#include "sim.h"

enum hb_fault_kind {
	HB_FAULT_SLOW_RANK,
	HB_FAULT_CLOCK,
	HB_FAULT_PAGEABLE,
	HB_FAULT_BLOCKING_D2H,
	HB_FAULT_CONTENTION,
	HB_FAULT_SLOW_KERNEL,
	HB_FAULT_STALL,
	HB_FAULT_LOST_EVENT,
	HB_FAULTS
};

extern u32 hb_fault_kinds;   /* bit per kind that is on */
extern u64 hb_fault_look_at; /* when the file is looked at next; without HB_SIM_FAULTS never */

void hb_fault__read(u64 now);
static inline void hb_fault__look(u64 now)
{
	if (__builtin_expect(now >= hb_fault_look_at, 0))
		hb_fault__read(now);
}
static inline bool hb_fault__on(enum hb_fault_kind kind)
{
	return __builtin_expect(hb_fault_kinds & 1u << kind, 0);
}

/* With the core's lock held, except for the last two. */
double hb_fault__kernel(struct hb_function *f, int device); /* factor */
double hb_fault__copy(void);				    /* factor of a copy over the bus */
u64 hb_fault__late(int device);				    /* ns that it comes late to a collective */
u64 hb_fault__lost(void);				    /* ns that this event completes late */
bool hb_fault__d2h(u64 *ns, u64 *bytes);		    /* the copy to plant in this wait */
void hb_fault__rank(int device, u32 rank, u32 ranks);	    /* a communicator was made */
void hb_fault__stall(void);    /* a launch returns: holds it up if its turn has come */
bool hb_fault__pageable(void); /* is pinned memory pageable now? */

#endif
