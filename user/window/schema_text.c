/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "window/schema_text.h"
#include "schema/schema.h"

#include <string.h>

static void write_type(struct hb_buf *out, const struct hb_type *t)
{
	hb_buf__printf(out, "%u %s %u %u", t->id, t->name, t->size, t->since);
	for (unsigned i = 0; i < t->n_fields; i++) {
		const struct hb_field *f = &t->fields[i];

		hb_buf__printf(out, " %s@%u:%s:%s", f->name, f->offset, f->ctype, hb_role__name(f->role));
	}
	hb_buf__printf(out, "\n");
}

static const struct {
	enum hb_words list;
	const char *name;
} lists[] = {
    {HB_WORDS_TSTATE, "TSTATE"},   {HB_WORDS_WCTX, "WCTX"},	    {HB_WORDS_CHANKIND, "CHANKIND"},
    {HB_WORDS_CPUMODE, "CPUMODE"}, {HB_WORDS_HOW, "HOW"},	    {HB_WORDS_NOTELEVEL, "NOTELEVEL"},
    {HB_WORDS_CLASS, "CLASS"},	   {HB_WORDS_LAYER, "LAYER"},	    {HB_WORDS_HANDLE, "HANDLE"},
    {HB_WORDS_LOSS, "LOSS"},	   {HB_WORDS_DEVKIND, "DEVKIND"},   {HB_WORDS_COPY, "COPY"},
    {HB_WORDS_MEMKIND, "MEMKIND"}, {HB_WORDS_SYNCKIND, "SYNCKIND"}, {HB_WORDS_OPKIND, "OPKIND"},
};

static void write_words(struct hb_buf *out, enum hb_words list, const char *name)
{
	hb_buf__printf(out, "words %s", name);
	for (unsigned id = 0; id < 64; id++)
		if (strcmp(hb_word(list, id), "?") != 0)
			hb_buf__printf(out, " %u=%s", id, hb_word(list, id));
	hb_buf__printf(out, "\n");
}

void hb_schema_text__write(struct hb_buf *out)
{
	size_t n;
	const struct hb_type *types = hb_schema__types(&n);

	hb_buf__printf(out, "# id name bytes since field@offset:ctype:ROLE...\n");
	for (size_t i = 0; i < n; i++)
		write_type(out, &types[i]);
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		write_words(out, lists[i].list, lists[i].name);
}
