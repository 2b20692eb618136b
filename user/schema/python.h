/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What user space tells the kernel's walker about the CPythons of a process, and what a frame of a Python
 * stack looks like in the table of stacks.
 */
#ifndef HB_SCHEMA_PYTHON_H
#define HB_SCHEMA_PYTHON_H

#include "schema/schema.h"

#define HB_PY_RUNTIMES 2    /* interpreters in one process that are walked */
#define HB_PY_BLOCK    128  /* bytes of a frame that are looked at, at most */
#define HB_PY_WINDOW   1024 /* bytes that are read at once: from 3.11 on frames lie one behind the other */

/* Offsets in bytes. A frame is read whole, from its begin to frame_size. */
struct hb_py_walk {
	s32 slot;	 /* the thread state is *(thread pointer + slot) ... */
	s32 slot_inner;	 /* ... or, if not negative, *(*(thread pointer + slot) + slot_inner) */
	s32 frame_inner; /* see frame */
	s32 pad0;
	u64 none;	/* address of None: the `code` of a frame that is none of Python's (3.13+) */
	u16 thread_id;	/* in the thread state: the thread pointer, as a proof that it is one */
	u16 frame;	/* in the thread state: the innermost frame; where frame_inner is not negative (3.11,
			 * 3.12), what has it at frame_inner */
	u16 frame_size; /* at most HB_PY_BLOCK */
	u16 back;	/* in a frame: the caller's frame */
	u16 code;	/* its code object */
	u16 instr;	/* instruction: a pointer, or an int (f_lasti) when code_bytes is 0 */
	u16 owner;	/* a byte; 0: there is none */
	u16 entry;	/* a byte: it was entered from C (3.11); 0: there is none */
	u16 code_bytes; /* in a code object: the first instruction */
	u16 code_mark; /* two words by which code objects that lay at one address differ: file and name ... */
	u16 code_name; /* its name */
	u16 str_hash;  /* ... and of a name, its hash; 0: code_mark is one word, with a number that no other
			  has */
	u8 lasti_bytes;	   /* bytes per unit of f_lasti */
	u8 shim_owner;	   /* frames of this owner and above are none of Python's */
	u8 tag;		   /* low bits that are no part of a reference (3.14) */
	u8 always_entered; /* every frame is entered from C (up to 3.10) */
	u16 gen_owner;	   /* in a frame: a byte, 1 when a generator or coroutine owns it (3.11) */
	u16 gen;	   /* bytes by which that one lies before its frame; where gen_owner is 0: in a frame,
			    * its address */
	u16 code_flags;	   /* in a code object */
	u16 marked;	   /* frames, innermost first, whose code objects' marks are read */
};
_Static_assert(sizeof(struct hb_py_walk) % 8 == 0, "without holes");

/* Key of map `edge_stacks`: a thread, by its thread pointer. */
struct hb_py_thread {
	u64 pointer;
	u32 tgid, pad;
};

/* Value of map `py_processes`, key: tgid. */
struct hb_py_process {
	u32 n, pad;
	struct hb_py_walk runtime[HB_PY_RUNTIMES];
};

/*
 * A frame of a Python stack: 44 bits code object >> 3, 1 bit "entered from C", 19 bits instruction / 2. Code
 * object 0 is the border itself: what is inside of it was entered from C.
 */
#define HB_PY_AT_BITS 19
#define HB_PY_AT_MAX                                                                                         \
	((1u << HB_PY_AT_BITS) - 1) /* not known, or further in than half a million instructions */
#define HB_PY_ENTERED  (1ULL << HB_PY_AT_BITS)
#define HB_PY_CODE_BIT (HB_PY_AT_BITS + 1)
#define HB_PY_BORDER   HB_PY_ENTERED

/*
 * Hash of a stack: its words, innermost first, each with the mark of its code object (0 for a border, and
 * beyond hb_py_walk.marked). User space makes it from what it reads to see whether that is what the kernel
 * saw.
 *
 * Each mark is a read of the target's memory, which together are most of what a walk costs. Code objects live
 * as long as their module but for those of code that is made as the program runs, so only the innermost
 * HB_PY_MARKED frames are marked, until user space finds that one has been replaced: then all are.
 */
#define HB_PY_MARKED	 2
#define HB_PY_NAMED	 8 /* frames of which the mark has the name, not only its place */
#define HB_PY_HASH_BEGIN 0x51afd7ed558ccd5bULL

static inline __attribute__((always_inline)) u64 hb_py_hash(u64 h, u64 word, u64 mark)
{
	h = (h ^ word) * 0xff51afd7ed558ccdULL;
	return (h ^ h >> 32 ^ mark) * 0xff51afd7ed558ccdULL;
}

static inline __attribute__((always_inline)) u64 hb_py_hash_end(u64 h, u32 state)
{
	return h ^ h << 29 ^ (u64)state << 32;
}

#define HB_PY_WORD(code, at2) (((u64)(code) >> 3 << HB_PY_CODE_BIT) | (at2))
#define HB_PY_CODE(word)      ((word) >> HB_PY_CODE_BIT << 3)
#define HB_PY_AT2(word)	      ((u32)(word)&HB_PY_AT_MAX)

#endif
