/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a loaded image holds, as far as a driver that runs nothing must know: the names of its kernels, how
 * many registers and how much shared memory they take, and the sizes of its variables. Compiled kernels
 * (cubin) and PTX are read; of a fat binary the contents stay closed, and any name is taken to be in it.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include "sim.h"
#include "image.h"

#define MACHINE_CUDA   190
#define FATBIN_MAGIC   0xba55ed50u
#define FATBIN_WRAPPER 0x466243b1u
#define DEFAULT_REGS   32
#define OPEN_VARIABLE  65536 /* of which nothing is known */
#define SYSTEM_SHARED  1024  /* of a block, from sm_90 on */

#define RESERVED ".nv.shared.reserved.0"

struct hb_image {
	bool open; /* any name is taken to be in it */
	struct hb_symbol *symbols;
	u32 n;
};

static struct hb_symbol *add(struct hb_image *im, const char *name, size_t len, bool kernel)
{
	struct hb_symbol *p;

	for (u32 i = 0; i < im->n; i++)
		if (im->symbols[i].kernel == kernel && !strncmp(im->symbols[i].name, name, len) &&
		    !im->symbols[i].name[len])
			return &im->symbols[i];
	p = realloc(im->symbols, (im->n + 1) * sizeof(*p));
	if (!p)
		return NULL;
	im->symbols = p;
	p += im->n;
	*p = (struct hb_symbol){.name = strndup(name, len), .kernel = kernel, .regs = DEFAULT_REGS};
	if (!p->name)
		return NULL;
	im->n++;
	return p;
}

/* Section names say it all: .text.KERNEL (registers in the top byte of sh_info), .nv.shared.KERNEL. The
 * latter begins with what the system keeps for itself, which is not the kernel's own, where the image has a
 * section for that: Triton's kernels launch with 48 KiB more. */
static void read_section(struct hb_image *im, const Elf64_Shdr *s, const char *name, u32 system)
{
	struct hb_symbol *k;

	if (!strncmp(name, ".text.", 6)) {
		k = add(im, name + 6, strlen(name + 6), true);
		if (k && s->sh_info >> 24)
			k->regs = s->sh_info >> 24;
	} else if (!strncmp(name, ".nv.shared.", 11) && strcmp(name, RESERVED)) {
		k = add(im, name + 11, strlen(name + 11), true);
		if (k)
			k->shared = s->sh_size > system ? (u32)s->sh_size - system : 0;
	}
}

static void read_variables(struct hb_image *im, const char *base, const Elf64_Shdr *s, const char *names)
{
	const Elf64_Sym *sym = (const Elf64_Sym *)(base + s->sh_offset);

	for (u64 i = 0; i < s->sh_size / sizeof(*sym); i++) {
		const char *name = names + sym[i].st_name;
		struct hb_symbol *v;

		if (ELF64_ST_TYPE(sym[i].st_info) != STT_OBJECT ||
		    ELF64_ST_BIND(sym[i].st_info) == STB_LOCAL || !*name)
			continue;
		v = add(im, name, strlen(name), false);
		if (v)
			v->size = sym[i].st_size;
	}
}

static bool read_cubin(struct hb_image *im, const char *base)
{
	const Elf64_Ehdr *e = (const Elf64_Ehdr *)base;
	const Elf64_Shdr *s = (const Elf64_Shdr *)(base + e->e_shoff);
	u32 system = 0;

	if (e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_machine != MACHINE_CUDA || !e->e_shoff ||
	    e->e_shentsize != sizeof(*s) || e->e_shstrndx >= e->e_shnum)
		return false;
	for (u32 i = 0; i < e->e_shnum; i++)
		if (!strcmp(base + s[e->e_shstrndx].sh_offset + s[i].sh_name, RESERVED))
			system = SYSTEM_SHARED;
	for (u32 i = 0; i < e->e_shnum; i++) {
		read_section(im, &s[i], base + s[e->e_shstrndx].sh_offset + s[i].sh_name, system);
		if (s[i].sh_type == SHT_SYMTAB && s[i].sh_link < e->e_shnum)
			read_variables(im, base, &s[i], base + s[s[i].sh_link].sh_offset);
	}
	return true;
}

static const char *blank(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

static bool read_ptx(struct hb_image *im, const char *text)
{
	const char *start = blank(text);

	if (strncmp(start, "//", 2) && strncmp(start, ".version", 8))
		return false;
	if (!strstr(start, ".version"))
		return false;
	for (const char *p = strstr(start, ".entry"); p; p = strstr(p, ".entry")) {
		size_t n;

		p = blank(p + 6);
		n = strcspn(p, " \t\r\n(");
		if (n)
			add(im, p, n, true);
	}
	return true;
}

struct hb_image *hb_image__read(const void *data)
{
	struct hb_image *im = calloc(1, sizeof(*im));
	const char *p = data;
	u32 magic = 0;

	if (!im)
		return NULL;
	for (size_t i = 0; i < sizeof(magic) && (!i || p[i - 1]); i++)
		((char *)&magic)[i] = p[i];
	im->open = magic == FATBIN_MAGIC || magic == FATBIN_WRAPPER || !strcmp(data, HB_IMAGE_OPEN);
	if (im->open)
		return im;
	if (!memcmp(&magic, ELFMAG, SELFMAG) ? read_cubin(im, data) : read_ptx(im, data))
		return im;
	hb_image__free(im);
	return NULL;
}

void hb_image__free(struct hb_image *im)
{
	for (u32 i = 0; im && i < im->n; i++)
		free((char *)(uintptr_t)im->symbols[i].name);
	if (im)
		free(im->symbols);
	free(im);
}

bool hb_image__find(const struct hb_image *im, const char *name, bool kernel, struct hb_symbol *out)
{
	for (u32 i = 0; i < im->n; i++)
		if (im->symbols[i].kernel == kernel && !strcmp(im->symbols[i].name, name)) {
			*out = im->symbols[i];
			return true;
		}
	*out =
	    (struct hb_symbol){.name = name, .kernel = kernel, .regs = DEFAULT_REGS, .size = OPEN_VARIABLE};
	return im->open;
}
