/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Private to capture/target: the processes of a control group, v1 or v2. */
#ifndef HB_TARGET_CGROUP_H
#define HB_TARGET_CGROUP_H

#include "base/buf.h"
#include "base/error.h"

/* Appends the pids (u32) of a cgroup and the cgroups below it; may hold duplicates. `path` is a folder with
 * cgroup.procs, or relative to (or "/..." as in /proc/PID/cgroup, below) the mount point of any hierarchy.
 * -ENOENT with a sentence when there is no such cgroup; an empty one adds nothing. */
int hb_cgroup__pids(const char *path, struct hb_buf *pids, struct hb_error *e);

#endif
