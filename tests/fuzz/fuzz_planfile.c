/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Any bytes as a plan file: refused with a sentence, or a plan that is written and read again as the same. */
#include <stdlib.h>
#include <string.h>
#include "planfile/planfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct hb_planfile *p)
{
	char hash[HB_SHA256_TEXT], other[HB_SHA256_TEXT], *text = NULL;
	struct hb_planfile_owner owner = {0};
	struct hb_error e = {0};
	struct hb_planfile *q;
	size_t size = 0;
	char who[HB_PLANFILE_WHO];
	FILE *out = open_memstream(&text, &size);

	if (!out || hb_planfile__print(p, out) || fclose(out))
		abort();
	q = hb_planfile__parse("again", text, size, &e);
	if (!q || hb_planfile__hash(p, hash) || hb_planfile__hash(q, other) || strcmp(hash, other) != 0)
		abort();
	/* None that ssh-keygen would have to look at. */
	if (!p->approval.method || strcmp(p->approval.method, "ssh") != 0)
		if (hb_planfile__check(p, "fuzz", &owner, NULL, who, &e) && !e.text[0])
			abort();
	hb_planfile__free(q);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hb_error e = {0};
	struct hb_planfile *p = hb_planfile__parse("fuzz", (const char *)data, size, &e);

	if (!p && !e.text[0])
		abort();
	if (p)
		use(p);
	hb_planfile__free(p);
	return 0;
}
