/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fields of Python objects: what user space tells the kernel about where they lie, and what the kernel says
 * it has read. A field is a variable of a function and up to HB_PY_STEPS attributes from there: `self.a.b`.
 */
#ifndef HB_SCHEMA_PYFIELD_H
#define HB_SCHEMA_PYFIELD_H

#include "schema/schema.h"

#define HB_PY_FIELD_CODES 4096 /* functions with fields, over all processes */
#define HB_PY_FIELD_PLANS 16384
#define HB_PY_FIELDS	  32 /* in one window */
#define HB_PY_STEPS	  4  /* attributes in one path */
#define HB_PY_CODE_FIELDS 8  /* fields of one function */
#define HB_PY_SCAN	  64 /* entries of a dict that the kernel looks through */
#define HB_PY_FIELD_TEXT  64 /* bytes of a text */

/* How objects lie in memory, for the kernel; bytes. */
struct hb_py_heap_layout {
	u64 cell_type; /* PyCell_Type */
	s32 managed;   /* from the object: pointer to its dict, where the type manages it (3.11+) */
	u16 head;      /* of an object: the first byte behind its type */
	u16 ob_type;
	u16 locals; /* in a frame: the first variable */
	u16 str_state, str_length, str_ascii, str_compact;
	u8 str_kind_bit;
	u8 old_keys;   /* keys of a dict as up to 3.10 */
	u8 values_at;  /* in the values of a split dict: the first one */
	u8 tagged_int; /* size of an int: sign in the low bits (3.12+) */
	u8 tag;	       /* low bits that are no part of a variable (3.14) */
	u8 pad;
	u16 type_keys; /* in a class: the keys that its objects share */
	u16 pad2[3];
};
_Static_assert(sizeof(struct hb_py_heap_layout) == 40, "without holes");

/* Value of map `py_field_codes`: the fields that are read in calls of a function. */
struct hb_py_code_key {
	u64 code;
	u32 tgid, pad;
};
struct hb_py_field_code {
	struct hb_py_heap_layout heap;
	u64 code;
	u32 n, pad;
	struct {
		u16 field; /* index among --field options */
		u16 local; /* index of the variable in the frame */
		u8 steps;  /* attributes from there */
		u8 want;   /* enum hb_py_want */
		u8 pad[2];
	} field[HB_PY_CODE_FIELDS];
};

enum hb_py_want {
	HB_PY_ANY,
	HB_PY_WANT_STR,
	HB_PY_WANT_INT,
	HB_PY_WANT_FLOAT,
	HB_PY_WANT_BOOL,
	HB_PY_WANT_LEN
};

/* Value of map `py_field_plans`: where an attribute lies in objects of a type. */
struct hb_py_plan_key {
	u64 type;
	u32 tgid;
	u32 step; /* HB_PY_STEP(field, i), or HB_PY_VALUE: what objects of that type are as a value */
};
#define HB_PY_STEP(field, i) ((u32)(field)*8 + (i))
#define HB_PY_VALUE	     0xffffffffU

enum hb_py_how {
	HB_PY_HOW_ASK,	  /* user space has to look each time */
	HB_PY_HOW_SLOT,	  /* at `off` in the object */
	HB_PY_HOW_DICT,	  /* in the dict at `off` in the object */
	HB_PY_HOW_INLINE, /* values behind the object at `off` (3.13+), else the managed dict */
	HB_PY_HOW_VALUES, /* values at a pointer before the object (3.11), else the managed dict */
	HB_PY_HOW_EITHER, /* 3.12: one pointer before the object, to values or a dict */
	HB_PY_HOW_NEVER,  /* cannot be read, which has been said */
};
/* A type as a value (step HB_PY_VALUE): how is enum hb_py_is. */
enum hb_py_is {
	HB_PY_IS_OTHER,
	HB_PY_IS_NONE,
	HB_PY_IS_BOOL,
	HB_PY_IS_INT,
	HB_PY_IS_FLOAT,
	HB_PY_IS_STR,
	HB_PY_IS_SIZED
};

struct hb_py_plan {
	u64 mark;  /* of the type's name: another type lies there if this differs */
	u64 key;   /* address of the attribute's name, as it is in the dict, or in the slot's definition */
	u64 slot;  /* HB_PY_HOW_SLOT: address of its definition (PyMemberDef) */
	u64 owner; /* and of the class that it is a part of, 0: it stays (a type of C) */
	s32 off;   /* HB_PY_IS_SIZED: of the length */
	u16 index; /* among the values, or the class's slots; in a dict: where it was found, tried first */
	u8 how, pad;
};
_Static_assert(sizeof(struct hb_py_plan) == 40, "without holes");

/* From the address of a type's name and its first eight bytes. */
static inline __attribute__((always_inline)) u64 hb_py_type_mark(u64 name, u64 text)
{
	return (name ^ text * 0xff51afd7ed558ccdULL) * 0xc4ceb9fe1a85ec53ULL;
}

/* Message HB_WIRE_PY_FIELD. */
#define HB_PY_KIND_ASK 255 /* the rest is to be read by user space, from `object` and attribute `step` on */
struct hb_py_field_read {
	u64 call;   /* time of the call, see record py_field */
	u64 object; /* the value, or where the kernel could not go on */
	u64 num;
	u64 code;
	u16 field, bytes; /* of text */
	u8 step;
	u8 kind;  /* enum hb_pykind, or HB_PY_KIND_ASK */
	u8 width; /* bytes of one of the text's characters */
	u8 pad[5];
	u32 length; /* of the whole text, characters */
	u8 text[HB_PY_FIELD_TEXT];
};
_Static_assert(sizeof(struct hb_py_field_read) == 112, "without holes");

#endif
