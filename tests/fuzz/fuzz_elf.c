/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Any bytes as an ELF file: refused with a sentence, or symbols whose offsets lie inside the file. */
#include <stdlib.h>
#include <string.h>
#include "capture/symbols/symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	const struct hb_elf *f;
	size_t file_size;
	unsigned n;
};

static int look(const struct hb_sym *s, void *arg)
{
	struct seen *seen = arg;
	char name[256];
	struct hb_sym at;

	if (!s->name || (s->state == HB_SYM_OK) != (s->offset != 0))
		abort();
	if (s->state == HB_SYM_OK && (s->offset >= seen->file_size || s->size > seen->file_size - s->offset ||
				      !hb_elf__is_entry(seen->f, s->offset)))
		abort();
	hb_demangle(s->name, name, sizeof(name));
	if (s->offset && s->size && !hb_elf__at(seen->f, s->offset, &at))
		abort();
	hb_elf__find(seen->f, s->name, &at);
	return ++seen->n == 256;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hb_error e = {0};
	struct hb_elf *f = hb_elf__open_memory(data, size, &e);
	struct seen seen = {f, size, 0};
	struct hb_sym s;

	if (!f) {
		if (!e.text[0] || !e.err)
			abort();
		return 0;
	}
	hb_elf__each(f, "*", look, &seen);
	hb_elf__trim(f);
	for (size_t i = 0; i < size; i += size / 16 + 1)
		hb_elf__at(f, i, &s);
	hb_elf__needs(f, "libcudart*");
	hb_elf__static_runtime(f);
	hb_elf__close(f);
	return 0;
}
