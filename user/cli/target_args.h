/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The TARGET options, the same for every command that takes one. */
#ifndef HB_CLI_TARGET_ARGS_H
#define HB_CLI_TARGET_ARGS_H

#include "capture/target/target.h"
#include "cli/args.h"

enum hb_target_key {
	HB_KEY_CGROUP = 0x400,
	HB_KEY_NAME,
	HB_KEY_NO_CHILDREN,
};

/* Rows for an argp_option array. */
#define HB_TARGET_OPTIONS(group)                                                                             \
	{"pid", 'p', "PID[,PID..]", 0, "these processes and their descendants", group},                      \
	    {"cgroup", HB_KEY_CGROUP, "PATH", 0, "every process of a cgroup", group},                        \
	    {"name", HB_KEY_NAME, "GLOB", 0, "processes whose name or program matches", group},              \
	{                                                                                                    \
		"no-children", HB_KEY_NO_CHILDREN, NULL, 0, "leave descendants out", group                   \
	}

/* 0 when the key is one of them and was taken, else ARGP_ERR_UNKNOWN. */
int hb_cli__target_option(int key, char *arg, struct hb_selector *s);
/* True when any of them was given. */
bool hb_cli__has_target(const struct hb_selector *s);

#endif
