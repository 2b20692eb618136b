/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by elf.c (the file) and elf_syms.c (its symbols). */
#ifndef HB_ELF_PRIVATE_H
#define HB_ELF_PRIVATE_H

#include <gelf.h>
#include "capture/symbols/file_map.h"
#include "capture/symbols/symbols.h"

struct hb_segment { /* PT_LOAD */
	u64 vaddr, offset, filesz;
	bool exec;
};

struct hb_elf_syms; /* the index, built at first use */

struct hb_elf {
	const unsigned char *data;
	size_t size;
	struct hb_file_map *map; /* holds data; NULL: it is the caller's */
	Elf *elf;
	struct hb_segment *segs;
	u32 n_segs;
	bool has_symtab, has_fatbin;
	char build_id[129];
	struct hb_elf_syms *syms;
};

struct hb_elf_syms *hb_elf_syms__new(void);
void hb_elf_syms__free(struct hb_elf_syms *s);

/* Segment of the file that holds this virtual address; NULL when there is none. */
const struct hb_segment *hb_elf__segment(const struct hb_elf *f, u64 vaddr);

#endif
