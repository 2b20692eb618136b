/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a hook costs on this machine, measured on ourselves right before a window (prices differ by an order
 * of magnitude between hosts, so a quoted number is worth nothing). A uprobe's price hangs on the instruction
 * under it: the kernel emulates some and single-steps the others.
 */
#ifndef HB_PRICE_H
#define HB_PRICE_H

#include "base/error.h"
#include "schema/schema.h"

enum hb_hook {
	HB_HOOK_STEP,	  /* single-stepped: sub, mov, cmp, endbr64 ... */
	HB_HOOK_EMULATED, /* push, short jumps, calls, 1-byte nop */
	HB_HOOK_NOP5,	  /* 5-byte nop: rewritten into a call by kernels >= 6.18 */
	HB_HOOK_COUNT,
};

struct hb_prices {
	u64 syscall;		  /* ns of a bare getppid: the unit in which costs travel between machines */
	u64 entry[HB_HOOK_COUNT]; /* ns of one entry probe */
	u64 ret;		  /* ns that a return probe adds */
	u64 detach;		  /* ns until the kernel has taken one entry probe away */
	bool measured; /* false: all are 0, nothing could be measured (say "unknown", not "free") */
};

/* Attaches one probe of (offset, with return) to a file in our own process for the time of a measurement. */
struct hb_price_ops {
	/* Returns a handle > 0 or -errno. */
	int (*attach)(void *arg, const char *path, u64 offset, bool ret);
	void (*detach)(void *arg, int handle);
	void *arg;
};

/* About 20 ms. 0 or -errno (prices stay unmeasured). */
int hb_prices__measure(struct hb_prices *p, const struct hb_price_ops *ops, struct hb_error *e);

/* ns of a bare getppid now: what a system call of any process costs at this moment. */
u64 hb_price__syscall(void);

/* Kind of the instruction at a file offset; HB_HOOK_STEP when it cannot be read. */
enum hb_hook hb_hook__at(const char *path, u64 offset);
/* Same from bytes. */
enum hb_hook hb_hook__of(const u8 *code, size_t size);

#endif
