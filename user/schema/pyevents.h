/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What user space tells the kernel's side of Python's exceptions, of the GIL and of garbage collections in a
 * process, and how it is asked to count exceptions.
 */
#ifndef HB_SCHEMA_PYEVENTS_H
#define HB_SCHEMA_PYEVENTS_H

#include "schema/python.h"

/* What a probe of pyevents.bpf.c is on: the low byte of its attach cookie. */
enum hb_py_event {
	HB_PYEV_NONE,
	HB_PYEV_RAISE,	  /* PyTraceBack_Here */
	HB_PYEV_THROW,	  /* __cxa_throw */
	HB_PYEV_COLLECT,  /* the collector, entry and return; the generation is its n-th argument */
	HB_PYEV_GC_START, /* USDT gc__start; the generation is where the cookie says */
	HB_PYEV_GC_DONE,
	HB_PYEV_PENDING, /* _Py_HandlePending, entry and return */
};

/* The rest of a cookie: argument register n of a function; or, of a USDT probe, a register (the n-th
 * word of struct pt_regs), and when `deref` the 4 bytes at it + disp. */
#define HB_PYEV_COOKIE(event, reg, deref, disp)                                                              \
	((u32)(event) | (u32)(reg) << 8 | (u32)(deref) << 15 | (u32)(u16)(disp) << 16)
#define HB_PYEV_EVENT(cookie) ((cookie)&0xff)
#define HB_PYEV_REG(cookie)   ((cookie) >> 8 & 0x7f)
#define HB_PYEV_DEREF(cookie) ((cookie) >> 15 & 1)
#define HB_PYEV_DISP(cookie)  ((s16)((cookie) >> 16))

/* Offsets in bytes, of one runtime. */
struct hb_py_raise {
	u64 quiet[3];  /* classes that end iterations: never recorded; 0: unknown */
	u16 exc;       /* thread state: the exception under way, up to 3.11 its class ... */
	u16 exc_value; /* ... its value, and ... */
	u16 exc_tb;    /* ... its traceback; 0 from 3.12 on: the exception has it */
	u16 tb;	       /* exception: traceback */
	u16 args;      /* exception: tuple of its arguments */
	u16 frame;     /* frame object: its frame; 0: it is the frame */
	u16 ob_type, ob_size, tuple_items;
	u16 type_name, type_flags;
	u16 str_state, str_length, str_ascii, str_compact;
	u16 str_kind_bit;
	u16 eval_breaker; /* thread state; 0: not there (before 3.13) */
	u16 native_id;	  /* thread state: tid as the process itself sees it; 0: not there ... */
	u16 thread_tid;	  /* ... but where its thread_id points, so many bytes further; 0: not known */
	u16 gc_stats;	  /* interpreter: collections so far of each generation; 0: not known */
};
_Static_assert(sizeof(struct hb_py_raise) % 8 == 0, "without holes");

#define HB_PY_GILS 16 /* of one process */

/* Value of map `py_events`, key: tgid. runtime[] are those of struct hb_py_process, in the same order. */
struct hb_py_events {
	u32 n_gils, pad;
	u64 gil[HB_PY_GILS];	     /* address of struct _gil_runtime_state */
	u32 gil_runtime[HB_PY_GILS]; /* index of the runtime it is of */
	struct hb_py_raise runtime[HB_PY_RUNTIMES];
};

/* struct _gil_runtime_state, the same from 3.8 to 3.14: what is slept on lies in these stretches. */
#define HB_GIL_LAST_HOLDER 8
#define HB_GIL_TAKE	   32  /* condition and mutex of those that want it */
#define HB_GIL_GIVE	   120 /* those of the one who gave it away on request */
#define HB_GIL_SIZE	   208

/* struct gc_generation_stats: three numbers a generation, of which the first counts collections. */
#define HB_GC_GENERATIONS 3
#define HB_GC_STAT_WORDS  3
#define HB_TSTATE_INTERP  16

/* Exceptions of one class from one place. Map `py_raises`. */
struct hb_py_raise_key {
	u64 type;
	u32 tgid;
	u32 site; /* stack id */
};
struct hb_py_raise_count {
	u64 count;   /* all of them */
	u64 kept;    /* of which there is a record, or the loss of one was counted */
	u64 unwound; /* frames they went through after the first */
	u64 last;    /* when the last one was */
	u64 slot;    /* the budget: begin of its present tenth of a second, and ... */
	u32 in_slot; /* ... records in it */
	u32 origin;
	hb_label name;
};
#define HB_PY_RAISES	  16384 /* places and classes in one window */
#define HB_PY_RAISE_SLOT  100000000ULL
#define HB_PY_RAISE_SLOTS 10 /* records in one slot of one place and class */

enum hb_py_messages { HB_PY_MESSAGES_NONE, HB_PY_MESSAGES_HASH, HB_PY_MESSAGES_TEXT };

/* Flags of py_exception and py_gil records. */
#define HB_PYEXC_REST 1
#define HB_PYGIL_OPEN 2

#endif
