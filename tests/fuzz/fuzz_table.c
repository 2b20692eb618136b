/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Any bytes as a probe table: refused with a sentence, or rows that can be printed and matched. */
#include <stdlib.h>
#include <string.h>
#include "capture/probes/probes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct hb_tables *t)
{
	char args[512], base[64];
	const struct hb_row *rows;
	u32 n;

	rows = hb_tables__rows(t, &n);
	for (u32 i = 0; i < n && i < 64; i++) {
		hb_row__args(&rows[i], args, sizeof(args));
		hb_symbol__base(rows[i].symbol, base, sizeof(base));
		hb_tables__match(t, rows[i].library, rows[i].symbol);
		if (rows[i].ret && !rows[i].nothrow)
			abort();
		for (unsigned k = 0; k < HB_SLOT_COUNT; k++) {
			const struct hb_arg *a = &rows[i].args[k];

			if (a->src > HB_SRC_CONST || (a->src == HB_SRC_REG && a->n > 5) || a->shift > 63)
				abort();
			if (a->src && a->width != 1 && a->width != 2 && a->width != 4 && a->width != 8)
				abort();
		}
	}
	hb_tables__match(t, "/usr/lib/libcudart-d0da41ae.so.12", "cudaMemcpyAsync_v2_ptsz");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hb_tables *t = hb_tables__new();
	struct hb_error e = {0};

	if (!t)
		return 0;
	if (hb_tables__add_text(t, "fuzz", (const char *)data, size, &e) != 0 && !e.text[0])
		abort();
	use(t);
	hb_tables__free(t);
	return 0;
}
