/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/cli.h"

#include <stdio.h>

int hb_cli__fail(const struct hb_error *e)
{
	fflush(stdout); /* keeps the order of answer and error when both go to one place */
	fprintf(stderr, "herschel-bpf: %s\n",
		e->text[0] ? e->text : "failed without saying why (please report this)");
	return e->exit ? e->exit : HB_EXIT_FAILED;
}
