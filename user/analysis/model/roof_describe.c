/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The tables of docs/roofline.md, from the tables of the program. */
#include "analysis/model/roof_rule.h"

static void sizes(FILE *out, uint64_t needs)
{
	const char *comma = "";

	for (unsigned z = 0; z < HB_ROOF_SIZE_COUNT; z++)
		if (needs & 1ULL << z) {
			fprintf(out, "%s`%s`", comma, hb_roof__size_name(z));
			comma = ", ";
		}
}

void hb_roof__describe(FILE *out)
{
	static const char *const docs[] = {
#define DOC(id, key, doc) doc,
	    HB_ROOF_SIZES(DOC)};
	enum hb_roof_kind kind;
	const char *op;

	fprintf(out,
		"### Formulas\n\n| model | sizes it cannot do without | what it says |\n|---|---|---|\n");
	for (unsigned k = 0; k < HB_ROOF_KINDS; k++) {
		const struct hb_roof_formula *f = hb_roof__formula(k);

		fprintf(out, "| `%s` | ", f->name);
		sizes(out, f->needs);
		fprintf(out, " | %s |\n", f->says);
	}
	fprintf(out, "\n### Sizes\n\n| key | meaning |\n|---|---|\n");
	for (unsigned z = 0; z < HB_ROOF_SIZE_COUNT; z++)
		fprintf(out, "| `%s` | %s |\n", hb_roof__size_name(z), docs[z]);
	fprintf(out, "\n### Operators\n\n| model | operators |\n|---|---|\n");
	for (unsigned k = 0; k < HB_ROOF_KINDS; k++) {
		const char *comma = "";
		bool any = false;

		for (unsigned i = 0; (op = hb_roof__rule_at(i, &kind)); i++) {
			if (kind != k)
				continue;
			if (!any)
				fprintf(out, "| `%s` | ", hb_roof__formula(k)->name);
			fprintf(out, "%s%s", comma, op);
			comma = ", ";
			any = true;
		}
		if (any)
			fprintf(out, " |\n");
	}
}
