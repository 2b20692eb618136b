/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Work on devices, for windows of patterns_rig.h. */
#ifndef HB_DEVICE_RIG_H
#define HB_DEVICE_RIG_H

#include "patterns_rig.h"

enum { Q_TIMED = 30, Q_WAIT_EVENT };

static inline struct pat device_new(const char *name)
{
	struct pat p = pat_new(name);

	rig_probe(&p.h.r, Q_TIMED, "cudaLaunchKernel", "cuda-runtime", HB_CLASS_LAUNCH, 1, HB_HANDLE_FUNCTION,
		  1);
	rig_probe(&p.h.r, Q_WAIT_EVENT, "cudaStreamWaitEvent", "cuda-runtime", HB_CLASS_EVENT, 1,
		  HB_HANDLE_EVENT, 1);
	return p;
}

struct op {
	u64 begin, length;
	const char *name;
	u32 stream, blocks;
	u8 kind, src, dst;
	u64 bytes;
	u32 device;
	u16 task; /* whose; 0: the main thread */
};

/* A call of `span` at `at`, and what it starts on the device. */
static inline void launch(struct pat *p, u32 probe, u64 at, u64 span, struct op o)
{
	static u64 number;
	struct hb_rec_device d = {.dur = o.length,
				  .stream = o.stream ? o.stream : 7,
				  .correlation = ++number,
				  .bytes = o.bytes,
				  .name = hb_window_writer__string(p->h.r.w, o.name),
				  .context = 1,
				  .device = o.device,
				  .gx = o.blocks ? o.blocks : 200,
				  .gy = 1,
				  .gz = 1,
				  .bx = 128,
				  .by = 1,
				  .bz = 1,
				  .kind = o.kind,
				  .srcmem = o.src,
				  .dstmem = o.dst,
				  .copy = o.kind == HB_DEVKIND_MEMCPY ? HB_COPY_DTOH : HB_COPY_UNKNOWN};

	PCALL(p, o.task ? o.task : p->h.main, probe, at, at + span, .correlation = number, .gx = 1,
	      .bytes = o.bytes, .kind = o.kind == HB_DEVKIND_MEMCPY ? 2 : 0);
	pat_put(p, o.begin + o.length, o.task ? o.task : p->h.main, HB_TYPE_device, &d);
}

#endif
