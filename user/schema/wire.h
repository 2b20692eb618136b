/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What BPF programs and user space agree on beside records: map values, probe descriptors, limits. */
#ifndef HB_WIRE_H
#define HB_WIRE_H

#include "schema/python.h"

#define HB_MAX_RINGS   64   /* rings are per CPU up to this, then shared by CPU modulo */
#define HB_MAX_PROBES  4096 /* rows in one plan */
#define HB_MAX_CLASSES 16   /* of operations (words.def), a power of two */
#define HB_MAX_TARGETS 4096 /* processes in one window */
#define HB_MAX_STACKS                                                                                        \
	16384 /* distinct stacks kept by the kernel in one window: 16 MiB; twice that with Python */
#define HB_MAX_EDGE_STACKS 16384 /* Python threads asleep when a window begins */
#define HB_STACK_DEPTH	   127	 /* frames, the kernel's own limit */

/* What comes through the rings and is no record: user space makes records of it. Ids above those of records,
 * each with its struct. */
#define HB_WIRE_FIRST	 48
#define HB_WIRE_MESSAGES 16
enum hb_wire_message {
	HB_WIRE_PY_FIELD = HB_WIRE_FIRST, /* struct hb_py_field_read */
	HB_WIRE_PY_CALL, /* struct hb_rec_py_call of a function that user space has not judged yet */
	HB_WIRE_PY_STACK = HB_WIRE_FIRST + 15, /* struct hb_py_stack_news */
};

/* A Python stack was seen for the first time: its functions shall be read while they are there. */
struct hb_py_stack_news {
	u32 id, pad;
};

/* Value of map `targets`, key: tgid in the initial pid namespace. */
struct hb_target_cfg {
	u32 flags; /* HB_TARGET_* */
	u32 nspid;
};
#define HB_TARGET_FOLLOW 1 /* children become targets at fork */

/* Where an argument comes from. */
enum hb_src {
	HB_SRC_NONE = 0,
	HB_SRC_REG = 1,	  /* n-th integer argument register (0..5), at entry */
	HB_SRC_STACK = 2, /* n-th 8-byte word above the return address: *(u64 *)(rsp + 8 + 8 * n) */
	HB_SRC_DEREF = 3, /* load of `width` bytes at (n-th argument register) + off */
	HB_SRC_CONST = 4, /* the number `off` */
};

/* Which member of struct hb_rec_accel an argument goes to. */
enum hb_slot {
	HB_SLOT_STREAM,
	HB_SLOT_HANDLE,
	HB_SLOT_BYTES,
	HB_SLOT_GX,
	HB_SLOT_GY,
	HB_SLOT_GZ,
	HB_SLOT_BX,
	HB_SLOT_BY,
	HB_SLOT_BZ,
	HB_SLOT_SHM,
	HB_SLOT_KIND,
	HB_SLOT_COUNT,
};

struct hb_arg {
	u8 src;	  /* enum hb_src */
	u8 n;	  /* register or stack word */
	u8 shift; /* take value >> shift ... */
	u8 width; /* ... truncated to this many bytes: 1, 2, 4, 8 */
	s32 off;  /* offset of a load, or the constant */
};

/* Value of array `probes`, index: the probe's id (attach cookie = id). */
struct hb_probe_desc {
	struct hb_arg args[HB_SLOT_COUNT];
	u8 cls, layer; /* enum hb_class, hb_layer */
	u8 timed;      /* a return probe belongs to it */
	u8 is_signed;  /* 0 */
	u32 flags;     /* HB_PROBE_* */
};
#define HB_PROBE_QUIET 1 /* counted, and its calls enclose others, but nothing is recorded */

/* Value of map `stacks`, key: the id in STACK members. */
struct hb_stack_trace {
	u64 hash; /* of the frames: tells two stacks with one id apart */
	u32 n;
	u16 state;		/* enum hb_trace_state */
	u16 marked;		/* of a Python stack: see struct hb_py_walk */
	u64 ip[HB_STACK_DEPTH]; /* innermost first; of a Python stack: schema/python.h */
};

/* How a walk ended that knows: that of the kernel's own walker (native stacks) always says WHOLE. */
enum hb_trace_state { HB_TRACE_WHOLE, HB_TRACE_TRUNCATED, HB_TRACE_BROKEN };

/* Value of map `stack_pairs`, key: the id in STACK members when it has this bit. A native and a Python stack
 * of one moment; either may be 0. */
#define HB_STACK_PAIR 0x80000000U
struct hb_stack_pair {
	u32 native, python;
};

/* Key of per-CPU array `losses`: cause * HB_TYPE_MAX + type. */
#define HB_LOSS_KEY(cause, type) ((cause)*HB_TYPE_MAX + (type))
#define HB_LOSS_KEYS		 (32 * HB_TYPE_MAX)

#endif
