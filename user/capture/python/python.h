/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * CPythons of other processes: where they are, how their structs are laid out, and what a code object is
 * called. Nothing of them is run or changed; all is read from their memory, which may be anything and may
 * change while it is read: each number is checked, each loop and length is bounded.
 */
#ifndef HB_PYTHON_H
#define HB_PYTHON_H

#include "base/error.h"
#include "capture/target/target.h"
#include "schema/wire.h"

/* ---- how a CPython is laid out ---- */

enum hb_py_lines {
	HB_PY_LNOTAB,
	HB_PY_RANGES,
	HB_PY_LOCATIONS
}; /* 3.8 - 3.9, 3.10 (PEP 626), from 3.11 on */

/* Offsets in bytes; the first and last known versions are HB_PY_OLDEST and HB_PY_NEWEST. */
struct hb_py_offsets {
	u16 minor;		 /* of 3.x */
	u8 free_threaded, lines; /* enum hb_py_lines */
	u16 interpreters,
	    key; /* in _PyRuntime: first interpreter; int: pthread key of thread states, 0 unknown */
	u16 interp_next, interp_threads;
	u16 tstate_next;
	u16 ob_type, ob_size;
	u16 code_file, code_name, code_qualname; /* qualname: 0 before 3.11 */
	u16 code_firstline, code_lines;
	u16 str_state, str_length, str_ascii,
	    str_compact;  /* the latter two: characters of ASCII, of other text */
	u16 str_kind_bit; /* of state */
	u16 bytes_data;
	u16 code_locals, code_local_kinds; /* names of variables; kinds: 0 before 3.11 */
	u16 frame_locals;		   /* first variable in a frame */
	u16 type_keys;			   /* in a class: the keys its objects share */
	u16 tuple_items;
	struct hb_py_walk walk;
};
#define HB_PY_OLDEST 8
#define HB_PY_NEWEST 15

/* The row of the table; false when this version is not in it. */
bool hb_py_offsets__known(unsigned minor, bool free_threaded, struct hb_py_offsets *o);
/* What a runtime publishes about itself (3.13+): `n` words from the begin of _PyRuntime. Fills `o`, from the
 * table's row of that version where there is one. 0, or -EINVAL when these words are not such, or not
 * plausible. */
int hb_py_offsets__published(const u64 *words, size_t n, struct hb_py_offsets *o);
#define HB_PY_PUBLISHED_WORDS 128 /* as many as may be given */

/* Line of an instruction (byte offset) in a table of that kind; 0 when it has none. */
u32 hb_py_lines__at(enum hb_py_lines kind, const u8 *table, size_t size, u32 firstline, u32 at);

/* ---- the interpreters of a process ---- */

enum hb_py_state {
	HB_PY_WAITING, /* not started up yet, or no thread runs Python */
	HB_PY_READY,
	HB_PY_REFUSED, /* cannot be read for good */
};

struct hb_py_runtime {
	char path[256]; /* of the file it is in, in the process's mount namespace */
	u16 major, minor, micro;
	bool free_threaded, in_program; /* in the program itself, not in a libpython */
	bool published;			/* offsets are the runtime's own */
	bool exact;			/* micro is known */
	enum hb_py_state state;
	char why[256];	    /* a sentence, when not ready */
	char note[160];	    /* a sentence, "" when there is nothing to note */
	u32 wrong;	    /* times in a row that its frames made no sense */
	u32 threads;	    /* with a thread state, when it was looked at last */
	u64 file;	    /* inode */
	u64 address;	    /* of _PyRuntime */
	u64 code_type;	    /* address of PyCode_Type; 0 unknown */
	u64 cell_type;	    /* of PyCell_Type */
	u64 get_state;	    /* code that returns the current thread's state; 0 unknown */
	u64 eval, get_hook; /* code: what runs a frame, and what tells of another one that does; 0 unknown */
	struct hb_py_offsets off;
};

struct hb_python;
/* Looks for interpreters among what the process has mapped. NULL: out of memory. */
struct hb_python *hb_python__new(const struct hb_process *p);
void hb_python__free(struct hb_python *py);
const struct hb_py_runtime *hb_python__runtimes(const struct hb_python *py, u32 *n);
/* Looks again at those that wait. True when one is ready or refused now. */
bool hb_python__update(struct hb_python *py);
bool hb_python__waits(const struct hb_python *py);
/* One line for a person: version, file, what works and how, or why not. */
const char *hb_py_runtime__describe(const struct hb_py_runtime *r, char *buf, size_t size);
/* A file that holds an interpreter, by its name. */
bool hb_python__is_library(const char *path);
/* For the kernel's walker; false when none is ready. */
bool hb_python__kernel(const struct hb_python *py, struct hb_py_process *out);

/* Calls fn with the stack of each thread, as the kernel's walker would find it, and its thread pointer.
 * Threads run on meanwhile: only that of one that sleeps all the time is right. */
void hb_python__each_stack(const struct hb_python *py,
			   void (*fn)(u64 thread, const struct hb_stack_trace *t, void *arg), void *arg);

/* ---- names of code objects ---- */

struct hb_py_place { /* strings live as long as the object, until the next see() */
	const char *func, *file;
	u32 line; /* 0 unknown */
};

struct hb_py_names;
/* At most `max` functions. NULL: out of memory. Calls from several threads need a lock of the caller's. */
struct hb_py_names *hb_py_names__new(u32 max);
void hb_py_names__free(struct hb_py_names *n);
/* How to read that process; replaces what was known of it. 0 or -ENOMEM. */
int hb_py_names__process(struct hb_py_names *n, u32 pid, const struct hb_python *py);
/* The child is read as the parent is until more is known of it. */
int hb_py_names__fork(struct hb_py_names *n, u32 parent, u32 child);
/* Reads the code objects of a stack (schema/python.h) while they are there: ids[i] is the function of frame
 * i, 0 when it is not known. The stack's hash tells whether what is read is what the kernel saw: where a
 * function was replaced by another meanwhile it is not named, unless it had been read before. */
void hb_py_names__see_stack(struct hb_py_names *n, u32 pid, const struct hb_stack_trace *t, u32 *ids);
/* The same of single words, as the code objects are now. */
void hb_py_names__see(struct hb_py_names *n, u32 pid, const u64 *words, u32 n_words, u32 *ids);
/* Looks again at functions that were named in frames beyond hb_py_walk.marked, at most so many in one turn:
 * the kernel does not see there that another function lies where one was. */
void hb_py_names__check(struct hb_py_names *n, u32 most);
/* A process in which functions were found to be replaced, each once; 0: no further one. All frames of its
 * stacks shall be marked from now on. */
u32 hb_py_names__uneasy(struct hb_py_names *n);
/* None of its functions was found to be replaced. */
bool hb_py_names__steady(const struct hb_py_names *n, u32 pid);
/* False: the function occurs in frames that were not marked, and was gone when it was looked at again. Stacks
 * of later may have been given its name wrongly. */
bool hb_py_names__stayed(const struct hb_py_names *n, u32 id);
/* Where instruction at2 (HB_PY_AT2) of a function is; false for id 0. */
bool hb_py_names__place(const struct hb_py_names *n, u32 id, u32 at2, struct hb_py_place *out);
/* Code that the interpreter made for itself and that its own tracebacks hide: since 3.12 a frame of it lies
 * around each
 * __init__ that specialised code calls. It has neither name nor file, or one word for both. */
bool hb_py_place__is_shim(const struct hb_py_place *p);
/* How the first interpreter of a process is laid out; NULL: not known. Until the next process(). */
const struct hb_py_offsets *hb_py_names__layout(const struct hb_py_names *n, u32 pid);
u32 hb_py_names__functions(const struct hb_py_names *n);
u64 hb_py_names__overflow(const struct hb_py_names *n); /* functions that were not kept: more than max */

#endif
