/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a record is. The structs here are shared by BPF programs, collector, window file and readers; they are
 * made from records.def and words.def. This header compiles for BPF (types from vmlinux.h) and for user
 * space.
 */
#ifndef HB_SCHEMA_H
#define HB_SCHEMA_H

#ifndef __bpf__
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
#endif

#include "schema/records.def"
#include "schema/words.def"

/* A thread name as the kernel keeps it: NUL-terminated within 16 bytes. */
typedef struct {
	char c[16];
} hb_comm;

/* The begin of a text that is read in place: NUL-terminated where it is shorter. */
#define HB_LABEL_SIZE 64
typedef struct {
	char c[HB_LABEL_SIZE];
} hb_label;

#define HB_WORD_ENUM(PREFIX, id, NAME) PREFIX##_##NAME = id,
#define HB_W_TSTATE(id, N, w)	       HB_WORD_ENUM(HB_TSTATE, id, N)
#define HB_W_WCTX(id, N, w)	       HB_WORD_ENUM(HB_WCTX, id, N)
#define HB_W_CHAN(id, N, w)	       HB_WORD_ENUM(HB_CHAN, id, N)
#define HB_W_CPU(id, N, w)	       HB_WORD_ENUM(HB_CPUMODE, id, N)
#define HB_W_HOW(id, N, w)	       HB_WORD_ENUM(HB_HOW, id, N)
#define HB_W_NOTE(id, N, w)	       HB_WORD_ENUM(HB_NOTE, id, N)
#define HB_W_CLASS(id, N, w)	       HB_WORD_ENUM(HB_CLASS, id, N)
#define HB_W_LAYER(id, N, w)	       HB_WORD_ENUM(HB_LAYER, id, N)
#define HB_W_HANDLE(id, N, w)	       HB_WORD_ENUM(HB_HANDLE, id, N)
#define HB_W_LOSS(id, N, w)	       HB_WORD_ENUM(HB_LOSS, id, N)
#define HB_W_OFLAG(id, N, w)	       HB_WORD_ENUM(HB_OFFCPU, id, N)
#define HB_W_PYKIND(id, N, w)	       HB_WORD_ENUM(HB_PYKIND, id, N)
#define HB_W_PYEND(id, N, w)	       HB_WORD_ENUM(HB_PYEND, id, N)
#define HB_W_PYFLAG(id, N, w)	       HB_WORD_ENUM(HB_PYCALL, id, N)
#define HB_W_AFLAG(id, N, w)	       HB_WORD_ENUM(HB_AFLAG, id, N)
#define HB_W_DEVKIND(id, N, w)	       HB_WORD_ENUM(HB_DEVKIND, id, N)
#define HB_W_COPY(id, N, w)	       HB_WORD_ENUM(HB_COPY, id, N)
#define HB_W_MEMKIND(id, N, w)	       HB_WORD_ENUM(HB_MEMKIND, id, N)
#define HB_W_SYNCKIND(id, N, w)	       HB_WORD_ENUM(HB_SYNCKIND, id, N)
#define HB_W_OPKIND(id, N, w)	       HB_WORD_ENUM(HB_OPKIND, id, N)
enum hb_tstate { HB_TSTATES(HB_W_TSTATE) };
enum hb_wctx { HB_WCTXS(HB_W_WCTX) };
enum hb_chankind { HB_CHANKINDS(HB_W_CHAN) };
enum hb_cpumode { HB_CPUMODES(HB_W_CPU) };
enum hb_how { HB_HOWS(HB_W_HOW) };
enum hb_notelevel { HB_NOTELEVELS(HB_W_NOTE) };
enum hb_class { HB_CLASSES(HB_W_CLASS) HB_CLASS_COUNT };
enum hb_layer { HB_LAYERS(HB_W_LAYER) };
enum hb_handle { HB_HANDLES(HB_W_HANDLE) };
enum hb_loss { HB_LOSSES(HB_W_LOSS) HB_LOSS_COUNT };
enum hb_aflag { HB_AFLAGS(HB_W_AFLAG) };
enum hb_oflag { HB_OFLAGS(HB_W_OFLAG) };
enum hb_pykind { HB_PYKINDS(HB_W_PYKIND) };
enum hb_pyend { HB_PYENDS(HB_W_PYEND) };
enum hb_pyflag { HB_PYFLAGS(HB_W_PYFLAG) };
enum hb_devkind { HB_DEVKINDS(HB_W_DEVKIND) HB_DEVKIND_COUNT };
enum hb_copy { HB_COPIES(HB_W_COPY) };
enum hb_memkind { HB_MEMKINDS(HB_W_MEMKIND) };
enum hb_synckind { HB_SYNCKINDS(HB_W_SYNCKIND) };
enum hb_opkind { HB_OPKINDS(HB_W_OPKIND) };

/* Record ids HB_TYPE_accel.. and structs hb_rec_accel.. */
#define HB_MEMBER(S, t, n, role, doc) t n;
#define HB_STRUCT(id, n, size, since, FS)                                                                    \
	enum { HB_TYPE_##n = (id) };                                                                         \
	struct hb_rec_##n {                                                                                  \
		FS(HB_MEMBER, )                                                                              \
	} __attribute__((packed, aligned(8)));                                                               \
	_Static_assert(sizeof(struct hb_rec_##n) == (size) && (size) % 8 == 0 && (size) <= HB_RECORD_MAX &&  \
			   (id) < HB_TYPE_MAX,                                                               \
		       "size of hb_rec_" #n);
HB_RECORDS(HB_STRUCT)

/* What travels in the rings: this header, then the record's struct (its size is known from the type). */
struct hb_wire {
	u64 ts;	 /* CLOCK_MONOTONIC ns when emitted; the END of a timed record */
	u32 pid; /* tgid in the initial pid namespace */
	u32 tid;
	u16 type;  /* HB_TYPE_* */
	u16 bytes; /* payload size */
	u16 cpu;
	u16 flags; /* 0 */
} __attribute__((packed, aligned(8)));
_Static_assert(sizeof(struct hb_wire) == 24, "wire header");

#define HB_SYSNO_NONE 0xffff

#ifndef __bpf__
#include <stdbool.h>
#include <stddef.h>

/* Roles: one enumerator per role name used in records.def. */
enum hb_role {
	HB_ROLE_PAD,
	HB_ROLE_NUM,
	HB_ROLE_NS,
	HB_ROLE_DUR,
	HB_ROLE_BYTES,
	HB_ROLE_ADDR,
	HB_ROLE_HANDLE,
	HB_ROLE_GRID,
	HB_ROLE_BLOCK,
	HB_ROLE_PROBE,
	HB_ROLE_RET,
	HB_ROLE_SYSRET,
	HB_ROLE_STACK,
	HB_ROLE_KIND,
	HB_ROLE_AFLAGS,
	HB_ROLE_CHAN,
	HB_ROLE_CHANKIND,
	HB_ROLE_SOCK,
	HB_ROLE_ARG,
	HB_ROLE_PID,
	HB_ROLE_TID,
	HB_ROLE_SYSNO,
	HB_ROLE_TSTATE,
	HB_ROLE_WCTX,
	HB_ROLE_CPUMODE,
	HB_ROLE_HOW,
	HB_ROLE_COMM,
	HB_ROLE_STR,
	HB_ROLE_NOTELEVEL,
	HB_ROLE_LABEL,
	HB_ROLE_LOC,
	HB_ROLE_PYEND,
	HB_ROLE_PYKIND,
	HB_ROLE_DEVKIND,
	HB_ROLE_COPY,
	HB_ROLE_MEMKIND,
	HB_ROLE_SYNCKIND,
	HB_ROLE_OPKIND,
};

/* One member of a record type. */
struct hb_field {
	const char *name;
	const char *ctype; /* "u8".."u64", "s32", "s64", "hb_comm" */
	const char *doc;
	u16 offset, size;
	u8 role; /* enum hb_role */
	bool is_signed;
};

/* One record type: as compiled in, or as described by a window file. */
struct hb_type {
	const char *name;
	u16 id, size, since, n_fields;
	const struct hb_field *fields;
	int dur_offset;	     /* offset of the u64 DUR member, -1 when untimed */
	int stack_offset[2]; /* offsets of u32 STACK members, -1 when none */
};

/* The type with this id, NULL when this version does not know it. */
const struct hb_type *hb_schema__type(unsigned id);
/* All types in order of id: *n is set. */
const struct hb_type *hb_schema__types(size_t *n);
/* Reads an integer member, sign-extended where signed. `record` holds at least offset+size bytes. */
s64 hb_field__int(const struct hb_field *f, const void *record);

/* Word of a number and number of a word, for the lists in words.def. */
enum hb_words {
	HB_WORDS_TSTATE,
	HB_WORDS_WCTX,
	HB_WORDS_CHANKIND,
	HB_WORDS_CPUMODE,
	HB_WORDS_HOW,
	HB_WORDS_NOTELEVEL,
	HB_WORDS_CLASS,
	HB_WORDS_LAYER,
	HB_WORDS_HANDLE,
	HB_WORDS_LOSS,
	HB_WORDS_PYEND,
	HB_WORDS_PYKIND,
	HB_WORDS_DEVKIND,
	HB_WORDS_COPY,
	HB_WORDS_MEMKIND,
	HB_WORDS_SYNCKIND,
	HB_WORDS_OPKIND,
};
/* "?" when the number has no word (a newer file). */
const char *hb_word(enum hb_words list, unsigned id);
/* -1 when the word is not in the list. */
int hb_word__id(enum hb_words list, const char *word);
/* The list's words for a message: "launch, graph, copy, ..." into buf. */
const char *hb_word__all(enum hb_words list, char *buf, size_t size);
/* Role name ("NS") and back (-1). */
const char *hb_role__name(unsigned role);
int hb_role__id(const char *name);
/* Name of an x86-64 system call, NULL when unknown. */
const char *hb_sysno__name(unsigned nr);
/* -1 when unknown. */
int hb_sysno__id(const char *name);
#endif /* !__bpf__ */

#endif
