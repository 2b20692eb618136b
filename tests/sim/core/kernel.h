/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a kernel costs. Rows of a table, the first whose glob fits the kernel's name:
 *
 *   kernel GLOB NS				always NS
 *   kernel GLOB [ns=NS] [wave=NS] [bytes=N] [flops=N] [peak=bf16|fp8|fp32] [reach=PART]
 *	[result=zero]
 *
 * Time = ns + the longest of: waves of blocks * wave; bytes moved / bandwidth; operations / peak. bytes and
 * flops of a row are per thread; what a library hints (hb_hint__set) counts instead. Bandwidth and peaks are
 * settings (hbm_bps, bf16_flops, ...); a kernel with fewer blocks than the device has SMs reaches only its
 * share of them, and none more than PART (1) of either. result=zero: what the kernel leaves behind reads as 0
 *(result.h).
 *
 * Rows of HB_SIM_COSTS come first, then kernel_ns if it is set, then tests/sim/costs/h100.tbl, which is
 * compiled in.
 */
#ifndef HB_SIM_KERNEL_H
#define HB_SIM_KERNEL_H

#include "sim.h"

#define HB_KERNEL_BY_TABLE UINT64_MAX /* kernel_ns as it is when nobody sets it */

void hb_kernel__default(void);	/* reads the table that is compiled in; rows added before it come first */
bool hb_kernel__row(char *row); /* what follows "kernel"; false: not understood */
u64 hb_kernel__cost(struct hb_function *f, const struct hb_work *w);
bool hb_kernel__zero(const struct hb_function *f); /* after its cost was asked for */

#endif
