/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Any bytes as what the roofline reads: a file of peaks, a model's configuration, the texts of an operator,
 * the name of a step. The first byte says which. What is refused has a sentence or a reason; what is taken
 * has numbers. */
#include <stdlib.h>
#include <string.h>

#include "analysis/model/llm.h"
#include "analysis/model/peaks.h"
#include "analysis/model/roof_rule.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void peaks(const char *text, size_t size)
{
	struct hb_peaks *p = hb_peaks__new();
	struct hb_error e = {0};

	if (!p)
		return;
	if (hb_peaks__add_text(p, "fuzz", text, size, &e) && !e.text[0])
		abort();
	for (unsigned i = 0; i < hb_peaks__count(p); i++) {
		const struct hb_peak *k = hb_peaks__at(p, i);

		if (!*k->device || !k->line || !(k->memory >= 0) || k->kind >= HB_PEAK_KINDS)
			abort();
		for (unsigned t = 0; t < HB_RATES; t++)
			if (!(k->tflops[t] >= 0))
				abort();
	}
	hb_peaks__find(p, "NVIDIA H100 80GB HBM3", HB_PEAK_SHEET);
	hb_peaks__free(p);
}

static void model(const char *text, size_t size)
{
	static struct hb_llm m;
	struct hb_error e = {0};

	if (hb_llm__parse(&m, "fuzz", text, size, &e)) {
		if (!e.text[0])
			abort();
		return;
	}
	if (!m.layers || m.layers > HB_LLM_LAYERS || !m.hidden || !m.act)
		abort();
}

static void numbers(enum hb_roof_kind kind, const struct hb_roof_in *in)
{
	double f = hb_roof__formula(kind)->flops(in), b = hb_roof__formula(kind)->bytes(in);

	if (f != f || b != b || b < 0)
		abort();
}

/* Three texts with zeros between them, for every operator that has a rule. */
static void operators(char *text)
{
	const char *shapes = text, *types = shapes + strlen(shapes) + 1, *values = types + strlen(types) + 1,
		   *op;
	struct hb_roof_operands o;
	struct hb_roof_step step;
	enum hb_roof_kind kind;
	struct hb_roof_in in;

	if (!hb_roof__operands(shapes, types, values, &o))
		return;
	hb_roof__step("execute_context_1(sq8sk100sqsq64sqsk800)_generation_31(sq31sk3100sqsq31sqsk3100)",
		      &step);
	for (unsigned i = 0; (op = hb_roof__rule_at(i, &kind)); i++)
		if (hb_roof__fill(hb_roof__rule(op), &o, values, &step, &kind, &in) == HB_ROOF_MODELLED)
			numbers(kind, &in);
}

static void step(const char *text)
{
	struct hb_roof_in in = {0};
	struct hb_roof_step s;

	if (hb_roof__step(text, &s) && hb_roof__step_attention(&s, 128, &in) &&
	    !(in.size[HB_ROOF_Q] > 0 && in.size[HB_ROOF_KV] >= 0 && in.size[HB_ROOF_PAIRS] >= 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	text = calloc(1, size + 3);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	switch (data[0] % 4) {
	case 0:
		peaks(text, size - 1);
		break;
	case 1:
		model(text, size - 1);
		break;
	case 2:
		operators(text);
		break;
	default:
		step(text);
	}
	free(text);
	return 0;
}
