/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Symbols of a file, indexed by name and by file offset. */
#include "capture/symbols/elf_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "base/text.h"

#define MAX_SYMS (2u << 20) /* of one file; the largest framework libraries have half a million */
#define MAX_BACK 64	    /* functions looked at that begin before an offset and may still cover it */

/* Names are looked up when needed: reading those of a framework library would bring 100 MB of it into memory.
 */
enum name_place { DYNSTR, STRTAB, COPY };

struct sym {
	u64 value, size;
	u64 offset; /* also of a resolver's code, so that at() knows it */
	u32 name;   /* offset in a string table, or index of a copy */
	u8 place;   /* enum name_place */
	u8 state;
	bool dynamic;
};
_Static_assert(sizeof(struct sym) == 32, "half a million of them");

struct hb_elf_syms {
	bool loaded, named, placed; /* syms; by_name; by_offset */
	struct sym *syms;
	u32 n, cap;
	size_t strings[2]; /* section of the string table: DYNSTR, STRTAB */
	char **copies;	   /* names cut at '@' */
	u32 n_copies, cap_copies;
	u32 *by_name, *by_offset;
	u64 *reach; /* end of the furthest function among by_offset[0..i] */
	u32 n_by_name, n_by_offset;
};

struct hb_elf_syms *hb_elf_syms__new(void)
{
	return calloc(1, sizeof(struct hb_elf_syms));
}

static void clear(struct hb_elf_syms *s)
{
	for (u32 i = 0; i < s->n_copies; i++)
		free(s->copies[i]);
	free(s->copies);
	free(s->syms);
	free(s->by_name);
	free(s->by_offset);
	free(s->reach);
	memset(s, 0, sizeof(*s));
}

void hb_elf_syms__free(struct hb_elf_syms *s)
{
	if (s)
		clear(s);
	free(s);
}

/* What was read once to build an index need not stay in our memory; the page cache has it. */
static void drop_pages(const struct hb_elf *f)
{
	if (f->map)
		madvise((void *)f->data, f->size, MADV_DONTNEED);
}

void hb_elf__trim(struct hb_elf *f)
{
	clear(f->syms);
	drop_pages(f);
}

const char *hb_sym_state__why(enum hb_sym_state s)
{
	static const char *const why[] = {
	    [HB_SYM_OK] = "it can be probed",
	    [HB_SYM_UNDEFINED] = "it is undefined here: another library defines it",
	    [HB_SYM_IFUNC] = "it is an IFUNC: its address is that of a resolver, not of the function",
	    [HB_SYM_ZERO] = "its address is 0: a probe there would hit the file's header",
	    [HB_SYM_NOCODE] = "it does not lie in executable code of the file",
	    [HB_SYM_NOTFUNC] = "it is data, not a function",
	};

	return (unsigned)s < sizeof(why) / sizeof(*why) ? why[s] : "its state is unknown";
}

/* ---- loading ---- */

static bool grow(void **array, u32 *cap, u32 n, size_t item)
{
	u32 want = *cap ? *cap * 2 : 256;
	void *p;

	if (n < *cap)
		return true;
	p = reallocarray(*array, want, item);
	if (!p)
		return false;
	*array = p;
	*cap = want;
	return true;
}

/* The name without "@VERSION", which is in no string table: a copy is made at first use. "" when it cannot be
 * had. */
static const char *name_of(const struct hb_elf *f, struct sym *x)
{
	struct hb_elf_syms *s = f->syms;
	const char *name, *at;
	char *copy;

	if (x->place == COPY)
		return s->copies[x->name];
	name = elf_strptr(f->elf, s->strings[x->place], x->name);
	at = name ? strchr(name, '@') : NULL;
	if (!at)
		return name ? name : "";
	if (!grow((void **)&s->copies, &s->cap_copies, s->n_copies, sizeof(*s->copies)))
		return "";
	copy = strndup(name, (size_t)(at - name));
	if (!copy)
		return "";
	s->copies[s->n_copies] = copy;
	x->name = s->n_copies++;
	x->place = COPY;
	return copy;
}

/* Finds the code and says whether it can be probed. */
static void place_code(const struct hb_elf *f, const GElf_Sym *g, struct sym *s)
{
	unsigned type = GELF_ST_TYPE(g->st_info);
	const struct hb_segment *seg;
	u64 offset;

	s->state = HB_SYM_NOTFUNC;
	if (g->st_shndx == SHN_UNDEF)
		s->state = HB_SYM_UNDEFINED;
	if (g->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_GNU_IFUNC))
		return;
	s->state = HB_SYM_ZERO;
	if (g->st_value == 0)
		return;
	seg = hb_elf__segment(f, g->st_value);
	if (!seg || !seg->exec || g->st_shndx == SHN_ABS || g->st_shndx == SHN_COMMON) {
		s->state = HB_SYM_NOCODE;
		return;
	}
	offset = seg->offset + (g->st_value - seg->vaddr);
	if (offset == 0)
		return;
	if (s->size > seg->filesz - (g->st_value - seg->vaddr))
		s->size = seg->filesz - (g->st_value - seg->vaddr);
	s->offset = offset;
	s->state = type == STT_GNU_IFUNC ? HB_SYM_IFUNC : HB_SYM_OK;
}

static int load_table(const struct hb_elf *f, Elf_Scn *scn, const GElf_Shdr *sh)
{
	enum name_place place = sh->sh_type == SHT_DYNSYM ? DYNSTR : STRTAB;
	Elf_Data *d = elf_getdata(scn, NULL);
	size_t n = d ? d->d_size / sizeof(Elf64_Sym) : 0;
	struct hb_elf_syms *s = f->syms;
	GElf_Sym g;

	s->strings[place] = sh->sh_link;
	for (size_t i = 1; i < n && s->n < MAX_SYMS && gelf_getsym(d, (int)i, &g); i++) {
		if (GELF_ST_TYPE(g.st_info) == STT_SECTION || GELF_ST_TYPE(g.st_info) == STT_FILE ||
		    !g.st_name)
			continue;
		if (!grow((void **)&s->syms, &s->cap, s->n, sizeof(*s->syms)))
			return -ENOMEM;
		s->syms[s->n] = (struct sym){.name = g.st_name,
					     .place = (u8)place,
					     .value = g.st_value,
					     .size = g.st_size,
					     .dynamic = place == DYNSTR};
		place_code(f, &g, &s->syms[s->n++]);
	}
	return 0;
}

static int load_type(const struct hb_elf *f, GElf_Word type)
{
	GElf_Shdr sh;
	int rc = 0;

	/* One table of a kind is all that a linker makes; a file that claims thousands is not read thousands
	 * of times. */
	for (Elf_Scn *s = elf_nextscn(f->elf, NULL); s; s = elf_nextscn(f->elf, s))
		if (gelf_getshdr(s, &sh) && sh.sh_type == type)
			return load_table(f, s, &sh);
	return rc;
}

static int load(const struct hb_elf *f)
{
	struct hb_elf_syms *s = f->syms;
	int rc;

	if (s->loaded)
		return 0;
	rc = load_type(f, SHT_DYNSYM);
	if (!rc)
		rc = load_type(f, SHT_SYMTAB);
	if (rc)
		clear(s);
	s->loaded = rc == 0;
	return rc;
}

/* ---- by name ---- */

static int cmp_name(const void *a, const void *b, void *arg)
{
	const struct hb_elf *f = arg;
	struct sym *x = &f->syms->syms[*(const u32 *)a], *y = &f->syms->syms[*(const u32 *)b];
	int c = strcmp(name_of(f, x), name_of(f, y));

	if (c)
		return c;
	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return (int)y->dynamic - (int)x->dynamic; /* the dynamic one of equals survives */
}

static int index_names(const struct hb_elf *f)
{
	struct hb_elf_syms *s = f->syms;
	u32 n = 0;
	int rc = load(f);

	if (rc || s->named)
		return rc;
	s->by_name = calloc((size_t)s->n + 1, sizeof(u32));
	if (!s->by_name)
		return -ENOMEM;
	for (u32 i = 0; i < s->n; i++)
		s->by_name[i] = i;
	qsort_r(s->by_name, s->n, sizeof(u32), cmp_name, (void *)f);
	for (u32 i = 0; i < s->n; i++) {
		struct sym *x = &s->syms[s->by_name[i]], *last = n ? &s->syms[s->by_name[n - 1]] : NULL;

		if (!last || last->value != x->value || strcmp(name_of(f, last), name_of(f, x)) != 0)
			s->by_name[n++] = s->by_name[i];
	}
	s->n_by_name = n;
	s->named = true;
	drop_pages(f);
	return 0;
}

/* First index whose name is not below the `len` bytes of prefix. */
static u32 lower_bound(const struct hb_elf *f, const char *prefix, size_t len)
{
	const struct hb_elf_syms *s = f->syms;
	u32 lo = 0, hi = s->n_by_name;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (strncmp(name_of(f, &s->syms[s->by_name[mid]]), prefix, len) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void export_sym(const struct hb_elf *f, struct sym *s, struct hb_sym *out)
{
	*out = (struct hb_sym){.name = name_of(f, s),
			       .value = s->value,
			       .size = s->size,
			       .offset = s->state == HB_SYM_OK ? s->offset : 0,
			       .state = (enum hb_sym_state)s->state,
			       .dynamic = s->dynamic};
}

int hb_elf__each(const struct hb_elf *f, const char *glob, int (*cb)(const struct hb_sym *s, void *arg),
		 void *arg)
{
	const struct hb_elf_syms *s = f->syms;
	size_t len = strcspn(glob, "*?[\\");
	struct hb_sym out;
	int rc = index_names(f);

	for (u32 i = rc ? 0 : lower_bound(f, glob, len); !rc && i < s->n_by_name; i++) {
		struct sym *x = &s->syms[s->by_name[i]];

		if (strncmp(name_of(f, x), glob, len) != 0)
			break;
		if (!hb_text__glob(glob, name_of(f, x)))
			continue;
		export_sym(f, x, &out);
		rc = cb(&out, arg);
	}
	return rc;
}

int hb_elf__find(const struct hb_elf *f, const char *name, struct hb_sym *out)
{
	const struct hb_elf_syms *s = f->syms;
	struct sym *best = NULL;
	int rc = index_names(f);

	if (rc)
		return rc;
	for (u32 i = lower_bound(f, name, strlen(name) + 1); i < s->n_by_name; i++) {
		struct sym *x = &s->syms[s->by_name[i]];

		if (strcmp(name_of(f, x), name) != 0)
			break;
		if (!best || (best->state != HB_SYM_OK && x->state == HB_SYM_OK) ||
		    (best->state == x->state && x->dynamic && !best->dynamic))
			best = x;
	}
	if (!best)
		return -ENOENT;
	export_sym(f, best, out);
	return 0;
}

bool hb_elf__exports(const struct hb_elf *f, const char *name)
{
	const struct hb_elf_syms *s = f->syms;

	if (index_names(f) != 0)
		return false;
	for (u32 i = lower_bound(f, name, strlen(name) + 1); i < s->n_by_name; i++) {
		struct sym *x = &s->syms[s->by_name[i]];

		if (strcmp(name_of(f, x), name) != 0)
			break;
		if (x->dynamic && x->state != HB_SYM_UNDEFINED)
			return true;
	}
	return false;
}

/* ---- by offset ---- */

/* By offset; of equals those of .symtab first. Names are not compared here: that would bring the names of
 * half a million symbols into memory, while few are ever asked for. */
static int cmp_offset(const void *a, const void *b, void *arg)
{
	const struct hb_elf *f = arg;
	const struct sym *x = &f->syms->syms[*(const u32 *)a], *y = &f->syms->syms[*(const u32 *)b];

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->dynamic != y->dynamic)
		return (int)x->dynamic - (int)y->dynamic;
	return (x->value > y->value) - (x->value < y->value);
}

static int index_offsets(const struct hb_elf *f)
{
	struct hb_elf_syms *s = f->syms;
	u64 reach = 0;
	u32 n = 0;
	int rc = load(f);

	if (rc || s->placed)
		return rc;
	free(s->by_offset); /* left by an attempt that found no memory for the rest */
	s->by_offset = calloc((size_t)s->n + 1, sizeof(u32));
	free(s->reach);
	s->reach = calloc((size_t)s->n + 1, sizeof(u64));
	if (!s->by_offset || !s->reach)
		return -ENOMEM;
	for (u32 i = 0; i < s->n; i++)
		if (s->syms[i].offset)
			s->by_offset[n++] = i;
	qsort_r(s->by_offset, n, sizeof(u32), cmp_offset, (void *)f);
	for (u32 i = 0; i < n; i++) {
		const struct sym *x = &s->syms[s->by_offset[i]];

		if (x->offset + x->size > reach)
			reach = x->offset + x->size;
		s->reach[i] = reach;
	}
	s->n_by_offset = n;
	s->placed = true;
	drop_pages(f);
	return 0;
}

/* Number of functions that begin at or before the offset. */
static u32 upper_bound(const struct hb_elf_syms *s, u64 offset)
{
	u32 lo = 0, hi = s->n_by_offset;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (s->syms[s->by_offset[mid]].offset <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool better_name(const char *a, const char *b)
{
	if ((a[0] == '_') != (b[0] == '_'))
		return b[0] == '_';
	return strcmp(a, b) < 0;
}

/* Of several names of the code that by_offset[i] names: plain before "_" ones, then by alphabet. */
static struct sym *best_name(const struct hb_elf *f, u32 i, u64 offset)
{
	const struct hb_elf_syms *s = f->syms;
	struct sym *best = &s->syms[s->by_offset[i]];

	for (u32 k = 1; k < MAX_BACK && k <= i; k++) {
		struct sym *x = &s->syms[s->by_offset[i - k]];

		if (x->offset != best->offset || x->dynamic != best->dynamic)
			break;
		if ((x->size == best->size || offset - x->offset < x->size) &&
		    better_name(name_of(f, x), name_of(f, best)))
			best = x;
	}
	return best;
}

static void export_at(const struct hb_elf *f, struct sym *x, struct hb_sym *out)
{
	export_sym(f, x, out);
	out->offset = x->offset; /* a resolver's code is code, too */
}

bool hb_elf__at(const struct hb_elf *f, u64 offset, struct hb_sym *out)
{
	const struct hb_elf_syms *s = f->syms;
	u32 end;

	if (index_offsets(f) != 0)
		return false;
	end = upper_bound(s, offset);
	for (u32 i = end; i > 0 && end - i < MAX_BACK && s->reach[i - 1] > offset; i--) {
		const struct sym *x = &s->syms[s->by_offset[i - 1]];

		if (offset - x->offset < x->size) {
			export_at(f, best_name(f, i - 1, offset), out);
			return true;
		}
	}
	/* Assembly without .size: it covers all up to the next function. */
	if (end > 0 && s->syms[s->by_offset[end - 1]].size == 0) {
		export_at(f, best_name(f, end - 1, offset), out);
		return true;
	}
	return false;
}

static bool begins_at(const struct hb_elf_syms *s, u64 offset)
{
	u32 end = upper_bound(s, offset);

	return end > 0 && s->syms[s->by_offset[end - 1]].offset == offset;
}

bool hb_elf__is_entry(const struct hb_elf *f, u64 offset)
{
	static const unsigned char endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};

	if (offset == 0 || offset >= f->size || index_offsets(f) != 0)
		return false;
	if (begins_at(f->syms, offset))
		return true;
	return offset > 4 && memcmp(f->data + offset - 4, endbr64, 4) == 0 && begins_at(f->syms, offset - 4);
}
