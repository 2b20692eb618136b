/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The part of NCCL's binary interface that abi.h has not; checked against nccl.h where there is one. */
#ifndef HB_SIM_NCCL_ABI_H
#define HB_SIM_NCCL_ABI_H

#include "../abi.h"

#define HB_NCCL_VERSION	  22705	     /* of the wheels for CUDA 12.8; HB_SIM_NCCL_VERSION gives another */
#define HB_NCCL_MAGIC	  0xcafebeef /* of a configuration that was initialised */
#define HB_NCCL_SIM_MAGIC 0x74685283

#ifndef HB_SIM_REAL_NCCL
struct ncclConfig_st { /* later versions append */
	size_t size;
	unsigned int magic, version;
	int blocking;
};
typedef struct ncclWindow_st *ncclWindow_t;
typedef int ncclScalarResidence_t;
typedef struct {
	size_t size;
	unsigned int magic, version;
	float estimatedTime;
} ncclSimInfo_t;
enum { ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg, ncclNumOps };
enum { ncclFloat16 = 6, ncclFloat8e5m2 = 11, ncclNumTypes = 12 };
#define NCCL_SPLIT_NOCOLOR (-1)
#endif

HB_ABI_LAYOUT(ncclConfig_t, magic, 8)
HB_ABI_LAYOUT(ncclConfig_t, blocking, 16)
HB_ABI_LAYOUT(ncclSimInfo_t, estimatedTime, 16)
_Static_assert(ncclNumOps == 5 && ncclFloat16 == 6 && ncclFloat8e5m2 == 11 && ncclNumTypes == 12 &&
		   NCCL_SPLIT_NOCOLOR == -1,
	       "constants");

#endif
