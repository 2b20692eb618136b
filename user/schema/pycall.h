/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of Python functions: what user space and bpf/pycall.bpf.c tell each other. */
#ifndef HB_SCHEMA_PYCALL_H
#define HB_SCHEMA_PYCALL_H

#include "schema/schema.h"

/* Where calls are seen, and what is in the registers there. Array `py_call_sites`, by the attach cookie. */
struct hb_py_call_site {
	u8 runtime;	  /* index into hb_py_process.runtime */
	u8 frame_arg;	  /* the frame is the first (0) or second (1) argument */
	u8 ends;	  /* a function that runs at a frame's end; else one that runs the frame */
	u8 timed;	  /* with a return probe */
	u8 owner;	  /* in a frame, a byte: 1 = of a generator; 0: there is none */
	u8 suspended;	  /* enum hb_py_suspended */
	u16 exception;	  /* in the thread state: not 0 while an exception unwinds */
	s32 suspended_at; /* in a frame, when it has been left: whether it goes on later */
	u8 inlined;	  /* ends: only of frames that run inside of another one's function */
	u8 pad[3];
};
#define HB_PY_CALL_SITES 64
enum hb_py_suspended {
	HB_PY_SUSPENDED_NONE,
	HB_PY_SUSPENDED_WORD,  /* a word that is not 0 */
	HB_PY_SUSPENDED_MINUS, /* a byte that is negative */
	HB_PY_SUSPENDED_GEN,   /* the same, of frames that a generator owns only */
};

/* Functions, and what user space thinks of them. LRU hash `py_functions`. */
struct hb_py_function_key {
	u64 code;
	u32 pid, pad;
};
struct hb_py_function {
	u64 mark;  /* of the code object when it was judged: another one lies there if this differs */
	u32 func;  /* location in the window */
	u32 flags; /* HB_PY_FUNCTION_* */
};
#define HB_PY_FUNCTION_RECORD 1 /* calls of it are recorded */
#define HB_PY_FUNCTION_FIELDS 2 /* and fields of objects are read in them */
#define HB_PY_FUNCTIONS	      65536

/* Of the word at code_mark and, where str_hash is not 0, the one at code_name. */
static inline u64 hb_py_function__mark(u64 mark, u64 name)
{
	return mark ^ (name << 17 | name >> 47);
}

#endif
