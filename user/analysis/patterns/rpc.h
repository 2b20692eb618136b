/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits for another process's answer, of the dispatch thread or of one that drives it. Inside of patterns:
 * P13 and P14.
 */
#ifndef HB_RPC_H
#define HB_RPC_H

#include "analysis/patterns/pattern.h"

struct hb_rpc {
	u64 begin, end; /* of the wait */
	u64 next;	/* begin of the next call that gives a device work, whoever makes it */
	u32 thread, stack;
	u32 server_pid;
	const struct hb_task *server; /* who answered */
	bool kv;		      /* see hb_rpcs__keep() */
	bool seen;		      /* the request was: our thread woke that process before it slept */
};

struct hb_rpcs {
	struct hb_rpc *v;
	u32 n, cap;
};

/* Waits of a thread of `least` ns and more on sockets, pipes and queues that a thread of another process
 * ended, which the thread had asked before (where that process is traced). Left out are processes that drive
 * ours (ancestors), and those that we drive: they give a device its work. 0 or -ENOMEM. */
int hb_rpcs__find(const struct hb_scene *s, u32 thread, u64 least, struct hb_rpcs *out);
void hb_rpcs__free(struct hb_rpcs *r);
/* How many steps have one; all of them count when there are no steps. */
u32 hb_rpcs__steps(const struct hb_series *p, const struct hb_rpcs *r);
/* The steps that the thread has a part in: those of its own process, else of the one whose path leads through
 * it most; NULL: none. */
const struct hb_series *hb_rpcs__series(const struct hb_scene *s, u32 thread);
/* Leaves those whose own code looks after the KV cache, or the others. 0 or -ENOMEM. */
int hb_rpcs__keep(const struct hb_scene *s, u32 thread, struct hb_rpcs *r, bool of_kv);

#endif
