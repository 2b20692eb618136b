/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* docs/patterns.md, and names of what a descriptor has. */
#include <ctype.h>
#include <string.h>

#include "analysis/patterns/gates.h"

const char *hb_rank__name(enum hb_rank r)
{
	static const char *const names[] = {
	    [HB_RANK_OS] = "operating system",	     [HB_RANK_INTERPRETER] = "interpreter",
	    [HB_RANK_IPC] = "messages and KV cache", [HB_RANK_CODE] = "own code",
	    [HB_RANK_API] = "use of the API",	     [HB_RANK_STRUCTURE] = "structure of the work",
	    [HB_RANK_SYMPTOM] = "symptom",	     [HB_RANK_OWN] = "beside the others",
	};

	return r < sizeof(names) / sizeof(*names) ? names[r] : "?";
}

const char *hb_confidence__name(enum hb_confidence c)
{
	static const char *const names[] = {"low", "medium", "high"};

	return c <= HB_CONFIDENCE_HIGH ? names[c] : "?";
}

static void lower(const char *id, char *buf, size_t size)
{
	size_t i = 0;

	for (; id[i] && i + 1 < size; i++)
		buf[i] = (char)tolower((unsigned char)id[i]);
	buf[i] = 0;
}

static void thresholds(const struct hb_pattern *p, FILE *out)
{
	char id[16], value[32];

	lower(p->id, id, sizeof(id));
	for (const struct hb_param *a = p->params; a && a->key; a++)
		fprintf(out, "| `%s.%s` | %s | %s |\n", id, a->key,
			hb_unit__text(a->unit, a->value, value, sizeof(value)), a->doc);
}

/* "- Head: text", broken at blanks. */
static void line(FILE *out, const char *head, const char *text)
{
	size_t column = 0;

	if (!text)
		return;
	column = (size_t)fprintf(out, "- %s:", head);
	while (*text) {
		size_t n = strcspn(text, " ");

		if (column + 1 + n > 120)
			column = (size_t)fprintf(out, "\n ") - 1;
		column += (size_t)fprintf(out, " %.*s", (int)n, text);
		text += n + strspn(text + n, " ");
	}
	fputc('\n', out);
}

static void needs(const struct hb_pattern *p, FILE *out)
{
	const char *sep = "";

	if (!p->needs)
		return;
	fprintf(out, "- Needs: ");
	for (u64 n = p->needs; n; n &= n - 1) {
		fprintf(out, "%s%s", sep, hb_need__text(n));
		sep = ", ";
	}
	fprintf(out, "%s\n", p->detect ? "" : ": it is reported as not checked");
}

static void one(const struct hb_pattern *p, FILE *out)
{
	fprintf(out, "## %s %s\n\n", p->id, p->title);
	fprintf(out, "%s; rank: %s.\n\n", p->layer, hb_rank__name(p->rank));
	line(out, "Is a cause of", p->explains);
	line(out, "Rule", p->rule);
	needs(p, out);
	line(out, "Fix", p->fix);
	line(out, "Reference", p->ref);
	line(out, "Looks alike", p->traps);
	line(out, "Settles it", p->settle);
	line(out, "A plan records", p->record);
	fputc('\n', out);
	if (!p->params || !p->detect)
		return;
	fprintf(out, "| threshold | default | meaning |\n|---|---|---|\n");
	thresholds(p, out);
	fputc('\n', out);
}

void hb_patterns__describe(FILE *out)
{
	fprintf(out, "## Gates\n\nA pattern that matches is a finding when it costs enough:\n\n"
		     "| threshold | default | meaning |\n|---|---|---|\n");
	thresholds(&hb_pattern_gates, out);
	fputc('\n', out);
	for (const struct hb_pattern *const *p = hb_patterns(); *p; p++)
		if (*p != &hb_pattern_gates)
			one(*p, out);
}
