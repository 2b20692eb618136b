/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses of a live process -> code locations: mapping, file offset, function. Keeps one ELF per (dev, ino)
 * open with an LRU bound, and remembers mappings of processes so that stacks still resolve after an exit.
 */
#ifndef HB_RESOLVE_H
#define HB_RESOLVE_H

#include "capture/target/target.h"

struct hb_resolve;

struct hb_code {	    /* strings live until the next call */
	const char *func;   /* demangled; NULL unknown */
	const char *module; /* path in the target; NULL unknown (JIT, anonymous) */
	u64 offset;	    /* file offset, or the address itself when module is NULL */
};

struct hb_resolve *hb_resolve__new(void);
void hb_resolve__free(struct hb_resolve *r);
/* Takes (a fresh copy of) the mappings of a process. Call at the start, after execs and library loads, and it
 * is called by hb_resolve__user when an address lies in no known mapping. 0 or -errno. */
int hb_resolve__learn(struct hb_resolve *r, u32 pid);
/* The same number for all addresses of one file, 0 unknown: whoever asks for many addresses asks file by
 * file, since few files' symbols are kept in memory. */
u64 hb_resolve__file(struct hb_resolve *r, u32 pid, u64 addr);
int hb_resolve__user(struct hb_resolve *r, u32 pid, u64 addr, struct hb_code *out);
int hb_resolve__kernel(struct hb_resolve *r, u64 addr, struct hb_code *out);

#endif
