/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/roofline_args.h"

#include <errno.h>
#include <stdlib.h>

int hb_cli__roofline_init(struct hb_roofline_args *a, struct hb_error *e)
{
	int rc;

	*a = (struct hb_roofline_args){.peaks = hb_peaks__new()};
	rc = a->peaks ? hb_peaks__add_builtin(a->peaks, e) : hb_error__nomem(e, "peaks of devices");
	a->o.peaks = a->peaks;
	return rc;
}

void hb_cli__roofline_free(struct hb_roofline_args *a)
{
	hb_peaks__free(a->peaks);
	free(a->llm);
}

static int read_model(struct hb_roofline_args *a, const char *path, struct hb_error *e)
{
	if (!a->llm)
		a->llm = malloc(sizeof(*a->llm));
	a->o.llm = a->llm;
	return a->llm ? hb_llm__read(a->llm, path, e) : hb_error__nomem(e, "a model's configuration");
}

static int read_tp(struct hb_roofline_args *a, const char *arg, struct hb_error *e)
{
	char *end;
	long n = strtol(arg, &end, 10);

	if (*end || end == arg || n < 1 || n > 4096)
		return hb_error__set(e, HB_EXIT_USAGE, -EINVAL,
				     "--tp takes a number from 1 to 4096, not \"%s\"", arg);
	a->o.tp = (unsigned)n;
	return 0;
}

int hb_cli__roofline_option(int key, char *arg, struct hb_roofline_args *a, struct hb_error *e)
{
	switch (key) {
	case HB_KEY_PEAKS:
		return -hb_peaks__add_file(a->peaks, arg, e);
	case HB_KEY_GPU:
		a->o.gpu = arg;
		return 0;
	case HB_KEY_MODEL:
		return -read_model(a, arg, e);
	case HB_KEY_TP:
		return -read_tp(a, arg, e);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}
