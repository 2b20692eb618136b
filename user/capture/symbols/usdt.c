/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Static tracepoints: notes that name a place in the code, a counter that turns it on, and its arguments. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/symbols/elf_private.h"

#define NOTE_TYPE 3 /* NT_STAPSDT */

struct note {
	u64 where, base, counter; /* virtual addresses */
	const char *provider, *name, *args;
};

/* Three addresses, then three strings; whatever else the bytes may be, reading stays inside of them. */
static bool parse_note(const char *d, size_t size, struct note *n)
{
	const char **text[] = {&n->provider, &n->name, &n->args};
	const char *end = d + size;

	if (size < 24)
		return false;
	memcpy(&n->where, d, 8);
	memcpy(&n->base, d + 8, 8);
	memcpy(&n->counter, d + 16, 8);
	d += 24;
	for (unsigned i = 0; i < 3; i++) {
		size_t len = strnlen(d, (size_t)(end - d));

		if (len == (size_t)(end - d))
			return false;
		*text[i] = d;
		d += len + 1;
	}
	return true;
}

static u64 file_offset(const struct hb_elf *f, u64 vaddr)
{
	const struct hb_segment *s = vaddr ? hb_elf__segment(f, vaddr) : NULL;

	return s ? vaddr - s->vaddr + s->offset : 0;
}

/* A file that was moved after it was linked (prelink) tells by how much. */
static u64 moved_by(const struct hb_elf *f, const struct note *n)
{
	u64 vaddr, size;

	return n->base && hb_elf__section(f, ".stapsdt.base", &vaddr, &size) ? vaddr - n->base : 0;
}

static bool take(const struct hb_elf *f, const struct note *n, struct hb_usdt *out)
{
	u64 by = moved_by(f, n);

	out->offset = file_offset(f, n->where + by);
	out->counter = n->counter ? file_offset(f, n->counter + by) : 0;
	snprintf(out->args, sizeof(out->args), "%s", n->args);
	return out->offset && (!n->counter || out->counter);
}

static bool in_section(const struct hb_elf *f, Elf_Scn *scn, const char *provider, const char *name,
		       unsigned *nth, struct hb_usdt *out)
{
	Elf_Data *d = elf_getdata(scn, NULL);
	size_t at = 0, next, name_at, desc_at;
	struct note n;
	GElf_Nhdr h;

	while (d && (next = gelf_getnote(d, at, &h, &name_at, &desc_at)) > 0) {
		at = next;
		if (h.n_type != NOTE_TYPE || !parse_note((const char *)d->d_buf + desc_at, h.n_descsz, &n) ||
		    strcmp(n.provider, provider) != 0 || strcmp(n.name, name) != 0)
			continue;
		if ((*nth)-- == 0)
			return take(f, &n, out);
	}
	return false;
}

bool hb_elf__usdt(const struct hb_elf *f, const char *provider, const char *name, unsigned nth,
		  struct hb_usdt *out)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(f->elf, scn)) != NULL)
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_NOTE &&
		    in_section(f, scn, provider, name, &nth, out))
			return true;
	return false;
}

/* ---- where an argument is ---- */

/* Where struct pt_regs of x86-64 has a register, in words; -1: no such register. */
static int register_word(const char *s, size_t n)
{
	static const struct {
		char name[4];
		int word;
	} regs[] = {{"rax", 10}, {"eax", 10}, {"rcx", 11}, {"ecx", 11}, {"rdx", 12}, {"edx", 12},
		    {"rsi", 13}, {"esi", 13}, {"rdi", 14}, {"edi", 14}, {"rbp", 4},  {"ebp", 4},
		    {"rbx", 5},	 {"ebx", 5},  {"rsp", 19}, {"r8", 9},	{"r9", 8},   {"r10", 7},
		    {"r11", 6},	 {"r12", 3},  {"r13", 2},  {"r14", 1},	{"r15", 0}};

	if (n > 2 && s[0] == 'r' && s[1] <= '9' && (s[n - 1] == 'd' || s[n - 1] == 'w' || s[n - 1] == 'b'))
		n--; /* r12d: its lower half */
	for (unsigned i = 0; i < sizeof(regs) / sizeof(*regs); i++)
		if (strlen(regs[i].name) == n && strncmp(s, regs[i].name, n) == 0)
			return regs[i].word;
	return -1;
}

bool hb_usdt__place(const char *args, unsigned *reg, bool *deref, int *disp)
{
	const char *at = strchr(args, '@'), *percent = at ? strchr(at, '%') : NULL;
	size_t n = percent ? strspn(percent + 1, "abcdefghijklmnopqrstuvwxyz0123456789") : 0;
	int number = percent ? register_word(percent + 1, n) : -1;
	char *end;

	if (number < 0 || (strchr(args, ' ') && strchr(args, ' ') < percent))
		return false;
	*reg = (unsigned)number;
	*deref = percent > at + 1;
	*disp = *deref ? (int)strtol(at + 1, &end, 10) : 0;
	if (*deref && (*(percent - 1) != '(' || percent[1 + n] != ')' || *disp < -32768 || *disp > 32767))
		return false;
	return true;
}
