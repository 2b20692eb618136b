/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* One link between a loaded program and places in a file: the kernel's two ways. Internal to probes/. */
#ifndef HB_ATTACH_LINK_H
#define HB_ATTACH_LINK_H

#include "base/error.h"
#include "schema/wire.h"

struct hb_places { /* parallel arrays */
	const u64 *offsets, *cookies;
	const u64 *counters; /* offsets of USDT counters, 0: none; NULL: none at all */
	u32 n;
};

/* A uprobe_multi link over all places of one file in one process: fd or -errno. All or nothing: one bad
 * offset fails the whole. libbpf before 1.3 has no call for it. */
int hb_link__multi(int prog, const char *path, const struct hb_places *at, bool ret, u32 pid);
/* The same for a program that runs at the entry and, where it returns 0 there, at the return. */
int hb_link__session(int prog, const char *path, const struct hb_places *at, u32 pid);
/* A single uprobe, at the first of the places, with its program: fd of the link, which owns the perf event,
 * or -errno. */
int hb_link__single(int prog, const char *path, const struct hb_places *at, bool ret, u32 pid);

/* Closes fds from as many threads as needed (closing waits for grace periods, one after another otherwise)
 * and waits for them until the deadline; those then still untouched are inherited by a child process that
 * outlives us. Takes the array over (it is freed). deadline 0: do not wait, close in the background.
 * `serial`: links of single uprobes, of which the kernel closes one at a time anyway. */
void hb_fds__close(int *fds, u32 n, bool serial, u64 deadline);

/* ---- trying things out on ourselves ---- */

/* A program that counts its runs in a map, of one of the two kinds: fd or -errno; *map gets the map's fd. */
int hb_trial__load(bool many, int *map);
u64 hb_trial__count(int map);
/* A function of this program to probe, and its offset in /proc/self/exe (0: not found). */
int hb_trial__function(int x);
u64 hb_trial__offset(void);

#endif
