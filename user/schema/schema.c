/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "schema/schema.h"
#include "schema/sysno.h"

#include <stdio.h>
#include <string.h>

/* ---- record types ---- */

#define IS_SIGNED(t) _Generic((t *)0, s32 * : true, s64 * : true, default : false)
#define HB_FIELD(S, t, n, role, doc)                                                                         \
	{#n, #t, doc, offsetof(struct hb_rec_##S, n), sizeof(t), HB_ROLE_##role, IS_SIGNED(t)},
#define HB_FIELDS(id, n, size, since, FS) static const struct hb_field fields_##n[] = {FS(HB_FIELD, n)};
HB_RECORDS(HB_FIELDS)

/* Offset + 1 of the DUR member, as a sum over members of which at most one is not zero. */
#define HB_DUR(S, t, n, role, doc)                                                                           \
	+(HB_ROLE_##role == HB_ROLE_DUR ? (int)offsetof(struct hb_rec_##S, n) + 1 : 0)
/* One bit per 4-byte word that holds a STACK member. */
#define HB_STACKS(S, t, n, role, doc)                                                                        \
	| (HB_ROLE_##role == HB_ROLE_STACK ? 1ULL << (offsetof(struct hb_rec_##S, n) / 4) : 0)
#define LOW_BIT(mask) ((mask) ? 4 * __builtin_ctzll((mask) | 1ULL << 63) : -1)
#define REST(mask)    ((mask) & ((mask)-1))
#define N_ELEMS(a)    (sizeof(a) / sizeof(*(a)))

#define HB_INDEX(id, n, size, since, FS) INDEX_##n,
enum { HB_RECORDS(HB_INDEX) };

#define HB_TYPE(id, n, size, since, FS)                                                                      \
	{#n,                                                                                                 \
	 id,                                                                                                 \
	 size,                                                                                               \
	 since,                                                                                              \
	 N_ELEMS(fields_##n),                                                                                \
	 fields_##n,                                                                                         \
	 -1 FS(HB_DUR, n),                                                                                   \
	 {LOW_BIT(0ULL FS(HB_STACKS, n)), LOW_BIT(REST(0ULL FS(HB_STACKS, n)))}},
static const struct hb_type types[] = {HB_RECORDS(HB_TYPE)};

#define HB_BY_ID(id, n, size, since, FS) [id] = &types[INDEX_##n],
static const struct hb_type *const by_id[HB_TYPE_MAX] = {HB_RECORDS(HB_BY_ID)};

const struct hb_type *hb_schema__type(unsigned id)
{
	return id < HB_TYPE_MAX ? by_id[id] : NULL;
}

const struct hb_type *hb_schema__types(size_t *n)
{
	*n = N_ELEMS(types);
	return types;
}

static s64 extend(u64 v, unsigned size)
{
	unsigned shift = 64 - 8 * size;

	return (s64)(v << shift) >> shift;
}

s64 hb_field__int(const struct hb_field *f, const void *record)
{
	u64 v = 0;

	if (f->size > sizeof(v))
		return 0; /* a name */
	memcpy(&v, (const char *)record + f->offset, f->size);
	return f->is_signed ? extend(v, f->size) : (s64)v;
}

/* ---- words ---- */

#define W(id, N, w) [id] = (w),
static const char *const tstates[] = {HB_TSTATES(W)};
static const char *const wctxs[] = {HB_WCTXS(W)};
static const char *const chankinds[] = {HB_CHANKINDS(W)};
static const char *const cpumodes[] = {HB_CPUMODES(W)};
static const char *const hows[] = {HB_HOWS(W)};
static const char *const notelevels[] = {HB_NOTELEVELS(W)};
static const char *const classes[] = {HB_CLASSES(W)};
static const char *const layers[] = {HB_LAYERS(W)};
static const char *const handles[] = {HB_HANDLES(W)};
static const char *const losses[] = {HB_LOSSES(W)};
static const char *const pyends[] = {HB_PYENDS(W)};
static const char *const pykinds[] = {HB_PYKINDS(W)};
static const char *const devkinds[] = {HB_DEVKINDS(W)};
static const char *const copies[] = {HB_COPIES(W)};
static const char *const memkinds[] = {HB_MEMKINDS(W)};
static const char *const synckinds[] = {HB_SYNCKINDS(W)};
static const char *const opkinds[] = {HB_OPKINDS(W)};
#undef W

static const struct list {
	const char *const *words;
	size_t n;
} lists[] = {
#define LIST(id, a) [id] = {a, N_ELEMS(a)}
    LIST(HB_WORDS_TSTATE, tstates),	LIST(HB_WORDS_WCTX, wctxs),	LIST(HB_WORDS_CHANKIND, chankinds),
    LIST(HB_WORDS_CPUMODE, cpumodes),	LIST(HB_WORDS_HOW, hows),	LIST(HB_WORDS_NOTELEVEL, notelevels),
    LIST(HB_WORDS_CLASS, classes),	LIST(HB_WORDS_LAYER, layers),	LIST(HB_WORDS_HANDLE, handles),
    LIST(HB_WORDS_LOSS, losses),	LIST(HB_WORDS_PYEND, pyends),	LIST(HB_WORDS_PYKIND, pykinds),
    LIST(HB_WORDS_DEVKIND, devkinds),	LIST(HB_WORDS_COPY, copies),	LIST(HB_WORDS_MEMKIND, memkinds),
    LIST(HB_WORDS_SYNCKIND, synckinds), LIST(HB_WORDS_OPKIND, opkinds),
};

static const char *word_in(const char *const *words, size_t n, size_t id)
{
	return id < n ? words[id] : NULL;
}

static int id_in(const char *const *words, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (words[i] && strcmp(words[i], word) == 0)
			return (int)i;
	return -1;
}

const char *hb_word(enum hb_words list, unsigned id)
{
	const char *w = word_in(lists[list].words, lists[list].n, id);

	return w ? w : "?";
}

int hb_word__id(enum hb_words list, const char *word)
{
	return id_in(lists[list].words, lists[list].n, word);
}

const char *hb_word__all(enum hb_words list, char *buf, size_t size)
{
	size_t at = 0;

	if (size)
		*buf = 0;
	for (size_t i = 0; i < lists[list].n && at < size; i++)
		if (lists[list].words[i])
			at += (size_t)snprintf(buf + at, size - at, "%s%s", at ? ", " : "",
					       lists[list].words[i]);
	return buf;
}

static const char *const roles[] = {
#define ROLE(r) [HB_ROLE_##r] = #r
    ROLE(PAD),	     ROLE(NUM),	     ROLE(NS),	     ROLE(DUR),	    ROLE(BYTES),  ROLE(ADDR),	 ROLE(HANDLE),
    ROLE(GRID),	     ROLE(BLOCK),    ROLE(PROBE),    ROLE(RET),	    ROLE(SYSRET), ROLE(STACK),	 ROLE(KIND),
    ROLE(AFLAGS),    ROLE(CHAN),     ROLE(CHANKIND), ROLE(SOCK),    ROLE(ARG),	  ROLE(PID),	 ROLE(TID),
    ROLE(SYSNO),     ROLE(TSTATE),   ROLE(WCTX),     ROLE(CPUMODE), ROLE(HOW),	  ROLE(COMM),	 ROLE(STR),
    ROLE(NOTELEVEL), ROLE(LABEL),    ROLE(LOC),	     ROLE(PYEND),   ROLE(PYKIND), ROLE(DEVKIND), ROLE(COPY),
    ROLE(MEMKIND),   ROLE(SYNCKIND), ROLE(OPKIND),
};

const char *hb_role__name(unsigned role)
{
	const char *name = word_in(roles, N_ELEMS(roles), role);

	return name ? name : "?";
}

int hb_role__id(const char *name)
{
	return id_in(roles, N_ELEMS(roles), name);
}

/* ---- system calls ---- */

const char *hb_sysno__name(unsigned nr)
{
	return word_in(hb_sysnos, hb_n_sysnos, nr);
}

int hb_sysno__id(const char *name)
{
	return id_in(hb_sysnos, hb_n_sysnos, name);
}
