/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ELF files of a target: what functions they export, at which file offset, and which function an offset lies in.
 * Foreign data: every field is checked, a broken file is an error sentence and never a crash (fuzzed).
 */
#ifndef HB_SYMBOLS_H
#define HB_SYMBOLS_H

#include "base/error.h"
#include "schema/schema.h"

struct hb_elf;

/* Opens by path (or /proc/PID/map_files/.., /proc/PID/root/..). Only ELF64 little endian of this machine. */
struct hb_elf *hb_elf__open(const char *path, struct hb_error *e);
/* Same from memory (fuzzer, vdso); the bytes must outlive the object. */
struct hb_elf *hb_elf__open_memory(const void *data, size_t size, struct hb_error *e);
void hb_elf__close(struct hb_elf *f);

/* Hex build-id, "" when there is none. */
const char *hb_elf__build_id(const struct hb_elf *f);
bool hb_elf__has_symtab(const struct hb_elf *f); /* .symtab, not only .dynsym: not stripped */
/* x86-64 EM_X86_64; a 32-bit file is refused by open with its own sentence. */

enum hb_sym_state {
	HB_SYM_OK = 0,
	HB_SYM_UNDEFINED, /* imported here, defined elsewhere */
	HB_SYM_IFUNC,	  /* resolver, not the function */
	HB_SYM_ZERO,	  /* value or file offset 0 */
	HB_SYM_NOCODE,	  /* not in an executable segment */
	HB_SYM_NOTFUNC,	  /* data */
};
/* Why a symbol in that state cannot be probed, as words for a refusal ("it is undefined here: ..."). */
const char *hb_sym_state__why(enum hb_sym_state s);

struct hb_sym {
	const char *name;    /* without @VERSION */
	u64 value;	     /* virtual address in the file */
	u64 size;
	u64 offset;	     /* file offset of the code: what a uprobe wants; 0 unless state is OK */
	enum hb_sym_state state;
};

/* Every symbol whose name matches the glob ('*'), dynamic ones first, then .symtab; equal (name, value) once.
 * Stops when cb returns non-zero and returns that. */
int hb_elf__each(const struct hb_elf *f, const char *glob, int (*cb)(const struct hb_sym *s, void *arg), void *arg);
/* Exact name; -ENOENT when absent. */
int hb_elf__find(const struct hb_elf *f, const char *name, struct hb_sym *out);
/* Function that covers a file offset; false when none is known. Binary search, built at first use. `start` of the
 * function is out->offset. */
bool hb_elf__at(const struct hb_elf *f, u64 offset, struct hb_sym *out);

/* True when rsp points at the return address at this file offset, i.e. it is a function's very first instruction
 * (endbr64 included) so a return probe there is sound. */
bool hb_elf__is_entry(const struct hb_elf *f, u64 offset);

/* Name for people: C++ demangled into buf when it is mangled, else the name itself. */
const char *hb_demangle(const char *name, char *buf, size_t size);

/* ---- kernel symbols ---- */
struct hb_ksyms;
struct hb_ksyms *hb_ksyms__new(void);		      /* NULL when /proc/kallsyms is unreadable or hidden */
void hb_ksyms__free(struct hb_ksyms *k);
const char *hb_ksyms__at(const struct hb_ksyms *k, u64 addr); /* NULL when unknown */

#endif
