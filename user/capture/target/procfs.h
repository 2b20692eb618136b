/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to capture/target and its tests: reading and parsing /proc. The parsers take text that the target
 * chose (thread names, paths), so none of them trusts a separator; all work on memory and can be fuzzed. */
#ifndef HB_TARGET_PROCFS_H
#define HB_TARGET_PROCFS_H

#include "capture/target/target.h"

/* The file /proc/PID/NAME (or "PID/task/TID/..."), NUL-terminated, at most `max` bytes of it; malloc'ed, size
 * set. NULL with *err = -errno. */
char *hb_procfs__read(u32 pid, const char *name, size_t max, size_t *size, int *err);
/* Target of the link /proc/PID/NAME into buf; 0 or -errno. */
int hb_procfs__link(u32 pid, const char *name, char *buf, size_t size);

struct hb_stat { /* what we want of /proc/PID/stat */
	char state;
	u32 ppid;
	u64 flags, threads, start_ticks, rss_pages;
};
/* False when the text is not a stat line. */
bool hb_procfs__stat(const char *text, struct hb_stat *out);

/* Number after "KEY:" in /proc/PID/status text; `last` takes the last of several (NSpid). False when absent.
 */
bool hb_procfs__status(const char *text, const char *key, bool last, u64 *out);

/* One line of /proc/PID/maps (without its newline, NUL-terminated). False when it is not an executable
 * mapping of a file; -ENOMEM leaves path NULL. The path is malloc'ed, \ooo escapes undone, control characters
 * replaced. */
bool hb_procfs__maps_line(const char *line, struct hb_mapping *out);

/* Id of the container that a cgroup path names, "" when none is recognised. */
void hb_procfs__container(const char *cgroup, char *buf, size_t size);
/* The most telling path in the text of /proc/PID/cgroup: v2 unless that is the root, else the longest. */
void hb_procfs__cgroup(const char *text, char *buf, size_t size);

/* starttime of a stat line -> CLOCK_MONOTONIC ns (stat counts CLOCK_BOOTTIME, which goes on in suspend). */
u64 hb_procfs__ticks_to_mono(u64 ticks);

/* Parses a plain decimal number that ends at NUL: digits only. False on anything else or overflow of 32 bits.
 */
bool hb_procfs__u32(const char *s, u32 *out);

#endif
