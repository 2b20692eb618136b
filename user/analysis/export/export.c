/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/export/export.h"

#include <string.h>

const struct hb_exporter *hb_exporter__find(const char *name)
{
	const struct hb_exporter *const *x = hb_exporters();

	while (*x && strcmp((*x)->name, name) != 0)
		x++;
	return *x;
}
