/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Truth log of the simulated accelerator: HB_SIM_TRUTH=DIR makes each process write DIR/PID.N.truth.
 *
 *   0        header (one page)
 *   4096     names: lines "id layer name[ stub]\n", NUL after the last
 *   4 MiB    blocks of HB_TRUTH_BLOCK slots of 48 bytes
 *
 * A block holds the calls of one thread, a slot each, or device operations, two slots each: its first slot's
 * layer says which (HB_DEVICE). A slot whose first word is 0 was not used. The file is a shared mapping: what
 * was written survives the death of the process at any moment. A call is written at entry and completed at
 * return; exit 0 means that it had not returned. An operation is written when it is enqueued, for its times
 * are known then, unless it waits for a collective that other ranks have not reached: it is flagged
 * unresolved until that is known.
 *
 * HB_SIM_TRUTH_SKIP=NAME,... leaves calls of these functions out (they are counted in the header);
 * HB_SIM_TRUTH_MAX=BYTES bounds the file: what comes later is counted as dropped.
 */
#ifndef HB_SIM_TRUTH_H
#define HB_SIM_TRUTH_H

#include "fault.h"
#include "sim.h"

#define HB_TRUTH_MAGIC	 "HBTRUTH2"
#define HB_TRUTH_NAMES	 4096
#define HB_TRUTH_RECORDS (4u << 20)
#define HB_TRUTH_BLOCK	 1024 /* slots that are taken at once */

struct hb_truth_header {
	char magic[8];
	u32 record_size, block;
	u32 pid, operation_size;
	u64 start;   /* CLOCK_MONOTONIC ns */
	u64 blocks;  /* taken so far */
	u64 dropped; /* calls that found no room */
	u64 names_len;
	u64 skipped;		/* calls left out by HB_SIM_TRUTH_SKIP */
	u64 dropped_operations; /* operations that found no room */
	u64 unnamed;		/* functions and kernels that found no room among the names */
	u64 applied[HB_FAULTS]; /* how often a planted fault of each kind took effect */
};

struct hb_truth_record {
	u64 enter, exit; /* CLOCK_MONOTONIC ns */
	u64 stream, bytes;
	s32 result;
	u32 tid;
	u16 function;
	u8 layer;
	u8 depth;	 /* 0: called by the application */
	u32 correlation; /* driver and runtime: shared by a runtime call and the driver calls within it */
};
_Static_assert(sizeof(struct hb_truth_record) == 48, "truth record");

struct hb_operation {	/* its first 42 bytes are laid out as those of a call */
	u64 start, end; /* device time, which is CLOCK_MONOTONIC ns */
	u64 stream, bytes;
	u32 flags; /* HB_OPERATION_* */
	u32 tid;   /* thread that enqueued it */
	u16 name;
	u8 layer;	 /* HB_DEVICE */
	u8 kind;	 /* enum hb_operation_kind */
	u32 correlation; /* of the call that enqueued it */
	u32 exec, node;	 /* of a graph launch: id of the executable graph and of the node; else 0 */
	u32 device, shared;
	u32 grid[3], block[3];
	u64 queued; /* when it was enqueued */
};
_Static_assert(sizeof(struct hb_operation) == 2 * sizeof(struct hb_truth_record), "truth operation");

#define HB_OPERATION_UNRESOLVED 1u /* the times are lower bounds */
#define HB_OPERATION_PLANTED	2u /* made by a planted fault, not by the application */
#define HB_OPERATION_BROKEN	4u /* its communicator was aborted */
#define HB_OPERATION_ON		8u /* of a fault: switched on, else off */

enum hb_operation_kind {
	HB_KIND_KERNEL = 1,
	HB_KIND_H2D,
	HB_KIND_D2H,
	HB_KIND_D2D,
	HB_KIND_MEMSET,
	HB_KIND_COLLECTIVE,
	HB_KIND_EVENT,
	HB_KIND_HOST,
	HB_KIND_FAULT, /* no operation: a planted fault is switched, its name is the line */
};

/* Room for one operation, or NULL: no log, or full (counted). With the core's lock held. */
struct hb_operation *hb_truth__operation(void);
bool hb_truth__open(void); /* is there a log? */
u32 hb_truth__tid(void);
void hb_truth__applied(enum hb_fault_kind kind); /* counts */

#endif
