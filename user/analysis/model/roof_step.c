/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What annotations of engines tell of a step. */
#include <stdlib.h>
#include <string.h>

#include "analysis/model/roof_rule.h"

#define NUMBER_MOST 1000000000000ULL

static bool skip(const char **s, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(*s, word, n) != 0)
		return false;
	*s += n;
	return true;
}

static bool number(const char **s, double *v)
{
	char *end;
	unsigned long long n = strtoull(*s, &end, 10);

	if (**s < '0' || **s > '9' || n > NUMBER_MOST)
		return false;
	*s = end;
	*v = (double)n;
	return true;
}

/* "2(512)": sequences and tokens; or "2(sq512sk600sqsq131072sqsk150000)". */
static bool part(const char **s, struct hb_roof_part *p)
{
	if (!number(s, &p->seqs) || !skip(s, "("))
		return false;
	if (number(s, &p->q))
		return skip(s, ")");
	return skip(s, "sq") && number(s, &p->q) && skip(s, "sk") && number(s, &p->kv) && skip(s, "sqsq") &&
	       number(s, &p->self) && skip(s, "sqsk") && number(s, &p->pairs) && skip(s, ")");
}

static bool execute(const char *s, struct hb_roof_step *r)
{
	if (number(&s, &r->tokens) && !skip(&s, "_"))
		return false;
	if (!skip(&s, "context_") || !part(&s, &r->prefill) || !skip(&s, "_generation_") ||
	    !part(&s, &r->decode))
		return false;
	r->decode.self = 0; /* one query sees all that came before it, and itself */
	if (r->tokens < r->prefill.q + r->decode.q)
		r->tokens = r->prefill.q + r->decode.q;
	return true;
}

/* "DECODE bs=32]", "EXTEND bs=2 toks=1024]" */
static bool mode(const char *s, struct hb_roof_step *r)
{
	bool decode = skip(&s, "DECODE bs=");

	if (!decode && !skip(&s, "EXTEND bs="))
		return false;
	if (decode)
		return number(&s, &r->decode.seqs) && (r->tokens = r->decode.q = r->decode.seqs) > 0;
	if (!number(&s, &r->prefill.seqs))
		return false;
	return !skip(&s, " toks=") || (number(&s, &r->prefill.q) && (r->tokens = r->prefill.q) > 0);
}

bool hb_roof__step(const char *name, struct hb_roof_step *s)
{
	memset(s, 0, sizeof(*s));
	return (skip(&name, "execute_") && execute(name, s)) || (skip(&name, "step[") && mode(name, s));
}

static double at_most(double v, double most)
{
	return v > most ? most : v;
}

/* Keys that are read, at most: those in the window of a sequence's last query, and of each query before it
 * one more. The lengths of single sequences are not known: as if each had the window full, if that is less
 * than what all of them have. */
static void add(struct hb_roof_in *in, const struct hb_roof_part *p, double window)
{
	double earlier = p->q > p->seqs ? p->q - p->seqs : 0;
	bool all = !(window > 0);

	in->size[HB_ROOF_Q] += p->q;
	in->size[HB_ROOF_KV] += all ? p->kv : at_most(p->kv, window * p->seqs + earlier);
	in->size[HB_ROOF_PAIRS] += all ? p->pairs : at_most(p->pairs, window * p->q);
	in->size[HB_ROOF_SELF] += all ? p->self : at_most(p->self, window * p->q);
}

bool hb_roof__step_attention(const struct hb_roof_step *s, double window, struct hb_roof_in *in)
{
	if ((s->prefill.seqs > 0 && !(s->prefill.kv > 0)) || (s->decode.seqs > 0 && !(s->decode.kv > 0)))
		return false;
	add(in, &s->prefill, window);
	add(in, &s->decode, window);
	return in->size[HB_ROOF_Q] > 0;
}
