/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Truth log of the simulated accelerator: HB_SIM_TRUTH=DIR makes each process write DIR/PID.N.truth.
 *
 *   0        header (one page)
 *   4096     names: lines "id layer name[ stub]\n", NUL after the last
 *   1 MiB    records, 48 bytes each; a slot whose enter is 0 was not used (threads take slots by the block)
 *
 * The file is a shared mapping: what was written survives the death of the process at any moment. A record is
 * written at entry and completed at return; exit 0 means that the call had not returned.
 */
#ifndef HB_SIM_TRUTH_H
#define HB_SIM_TRUTH_H

#include "sim.h"

#define HB_TRUTH_MAGIC	 "HBTRUTH1"
#define HB_TRUTH_NAMES	 4096
#define HB_TRUTH_RECORDS (1u << 20)
#define HB_TRUTH_BLOCK	 1024 /* records a thread takes at once */

struct hb_truth_header {
	char magic[8];
	u32 record_size, block;
	u32 pid, pad;
	u64 start;   /* CLOCK_MONOTONIC ns */
	u64 blocks;  /* taken so far */
	u64 dropped; /* calls that found no room */
	u64 names_len;
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

#endif
