/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/target_args.h"

int hb_cli__target_option(int key, char *arg, struct hb_selector *s)
{
	switch (key) {
	case 'p':
		s->pids = arg;
		return 0;
	case HB_KEY_CGROUP:
		s->cgroup = arg;
		return 0;
	case HB_KEY_NAME:
		s->name = arg;
		return 0;
	case HB_KEY_NO_CHILDREN:
		s->no_children = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

bool hb_cli__has_target(const struct hb_selector *s)
{
	return s->pids || s->cgroup || s->name;
}
