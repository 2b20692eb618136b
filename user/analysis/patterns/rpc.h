/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waits of a dispatch thread for another process's answer. Inside of patterns: P13 and P14. */
#ifndef HB_RPC_H
#define HB_RPC_H

#include "analysis/patterns/pattern.h"

struct hb_rpc {
	u64 begin, end; /* of the wait */
	u64 next;	/* begin of the next call that gives the device work */
	u32 thread, stack;
	u32 server_pid;
	const struct hb_task *server; /* who answered */
	bool seen;		      /* the request was: our thread woke that process before it slept */
};

struct hb_rpcs {
	struct hb_rpc *v;
	u32 n;
};

/* Waits of the series' dispatch thread of `least` ns and more on sockets, pipes and queues that a thread of
 * another process ended, which the dispatch thread had asked before (where that process is traced), and which
 * does not drive our process itself (no ancestor of it). 0 or -ENOMEM. */
int hb_rpcs__find(const struct hb_scene *s, const struct hb_series *p, u64 least, struct hb_rpcs *out);
void hb_rpcs__free(struct hb_rpcs *r);
/* How many of its steps have one; all of them count when there are no steps. */
u32 hb_rpcs__steps(const struct hb_series *p, const struct hb_rpcs *r);
/* Does the wait's own code look after the KV cache? */
bool hb_rpc__is_kv(const struct hb_scene *s, u32 pid, const struct hb_rpc *r);

#endif
