/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef HB_SIM_HOSTFN_H
#define HB_SIM_HOSTFN_H

#include "sim.h"

/* Calls fn(arg) on the driver's own thread when the moment has come; functions run in the order queued. What
 * follows in the stream does not wait for its return. */
void hb_hostfn__queue(const struct hb_moment *when, CUhostFn fn, void *arg);

#endif
