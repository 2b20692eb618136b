/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ELF files of a target: what functions they export, at which file offset, and which function an offset lies
 * in. Foreign data: every field is checked, a broken file is an error sentence and never a crash (fuzzed).
 * One object is used by one thread at a time: look-ups build indexes. What is cut off a file while it is open
 * reads as zeros.
 */
#ifndef HB_SYMBOLS_H
#define HB_SYMBOLS_H

#include "base/demangle.h"
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

/* Virtual address of what lies at a file offset, as the loader maps it (a mapping's begin may lie up to a
 * page before its segment); false when the file has no such place. */
bool hb_elf__vaddr(const struct hb_elf *f, u64 offset, u64 *vaddr);
/* Virtual address and size of a section; false when there is none. */
bool hb_elf__section(const struct hb_elf *f, const char *name, u64 *vaddr, u64 *size);

/* A static tracepoint (USDT). */
struct hb_usdt {
	u64 offset;    /* in the file */
	u64 counter;   /* in the file: what turns it on; 0: always on */
	char args[96]; /* "-4@112(%rsp) 8@%rax" */
};
/* The n-th place of that name, from 0; false when there is none. */
bool hb_elf__usdt(const struct hb_elf *f, const char *provider, const char *name, unsigned nth,
		  struct hb_usdt *out);
/* Where the first argument is: in a register (which word of struct pt_regs), or, `deref`, in memory `disp`
 * bytes from where it points. False when it is none of these. */
bool hb_usdt__place(const char *args, unsigned *reg, bool *deref, int *disp);

/* A DT_NEEDED entry whose name matches the glob, e.g. "libcudart*". */
bool hb_elf__needs(const struct hb_elf *f, const char *glob);

/* A CUDA runtime linked statically into this file (nvcc's default; also libcublas, libnccl): its calls never
 * reach a libcudart.so, but still the driver. */
enum hb_static_runtime {
	HB_STATIC_NONE = 0,
	HB_STATIC_NAMED,    /* with names in .symtab: its functions can be probed here */
	HB_STATIC_STRIPPED, /* without names: only the driver layer sees its calls */
};
enum hb_static_runtime hb_elf__static_runtime(const struct hb_elf *f);

enum hb_sym_state {
	HB_SYM_OK = 0,
	HB_SYM_UNDEFINED, /* imported here, defined elsewhere */
	HB_SYM_IFUNC,	  /* resolver, not the function */
	HB_SYM_ZERO,	  /* value or file offset 0 */
	HB_SYM_NOCODE,	  /* not in an executable segment of the file */
	HB_SYM_NOTFUNC,	  /* data */
};
/* Why a symbol in that state cannot be probed, as words for a refusal ("it is undefined here: ..."). */
const char *hb_sym_state__why(enum hb_sym_state s);

struct hb_sym {
	const char *name; /* without @VERSION */
	u64 value;	  /* virtual address in the file */
	u64 size;
	u64 offset; /* file offset of the code: what a uprobe wants; 0 unless state is OK */
	enum hb_sym_state state;
	bool dynamic; /* from .dynsym: other files can call it */
};

/* Every symbol of .dynsym and .symtab whose name matches the glob ('*'), in order of name (a dynamic one
 * before one of .symtab); equal (name, value) once. Stops when cb returns non-zero and returns that. The
 * index behind this and behind find and at is built at first use; -ENOMEM when there is no memory for it. */
int hb_elf__each(const struct hb_elf *f, const char *glob, int (*cb)(const struct hb_sym *s, void *arg),
		 void *arg);
/* Exact name, one that can be probed before one that cannot; -ENOENT when absent. */
int hb_elf__find(const struct hb_elf *f, const char *name, struct hb_sym *out);
/* Defined in .dynsym. */
bool hb_elf__exports(const struct hb_elf *f, const char *name);
/* Gives the index's memory back; it is built again when needed. Names handed out before are no longer valid.
 */
void hb_elf__trim(struct hb_elf *f);
/* Function that covers a file offset; false when none is known. Binary search, built at first use. `start` of
 * the function is out->offset. */
bool hb_elf__at(const struct hb_elf *f, u64 offset, struct hb_sym *out);

/* True when rsp points at the return address at this file offset, i.e. it is a function's very first
 * instruction (endbr64 included) so a return probe there is sound. */
bool hb_elf__is_entry(const struct hb_elf *f, u64 offset);

/* ---- kernel symbols ---- */
struct hb_ksyms;
struct hb_ksyms *hb_ksyms__new(void); /* NULL when /proc/kallsyms is unreadable or hidden */
void hb_ksyms__free(struct hb_ksyms *k);
const char *hb_ksyms__at(const struct hb_ksyms *k, u64 addr); /* NULL when unknown */

#endif
