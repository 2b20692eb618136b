/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Objects of another process's CPython and their attributes, as its own lookup would find them, but without
 * running any code: what is computed (properties, __getattr__) cannot be had. All is read while the program
 * runs, so a type is looked at again after what was read by it.
 */
#ifndef HB_PYTHON_HEAP_H
#define HB_PYTHON_HEAP_H

#include "capture/python/python.h"
#include "schema/pyfield.h"

/* One interpreter's. */
struct hb_py_heap {
	u32 pid;
	struct hb_py_offsets off;
	u64 cell_type;
};

void hb_py_heap__layout(const struct hb_py_heap *h, struct hb_py_heap_layout *out);
u64 hb_py_heap__type(const struct hb_py_heap *h, u64 object); /* 0: unreadable */
/* "module.Class" of a type into buf. */
const char *hb_py_heap__class(const struct hb_py_heap *h, u64 type, char *buf, size_t size);

/* That of the interpreter a code object belongs to (names.c). False: it is none of a known one. */
bool hb_py_names__heap(const struct hb_py_names *n, u32 pid, u64 code, struct hb_py_heap *out);

/* That of a process's first interpreter, and the address of its _PyRuntime. False: none is known. */
bool hb_py_names__interpreter(const struct hb_py_names *n, u32 pid, struct hb_py_heap *out, u64 *runtime);

/* ---- dicts (dict.c) ---- */

struct hb_py_entry {
	u64 key, value; /* value 0: there is a place for it, but it is not set */
	u32 index;
};
/* By the text of a key. 0, -ENOENT, or another -errno when the dict cannot be read. */
int hb_py_dict__find(const struct hb_py_heap *h, u64 dict, const char *name, struct hb_py_entry *out);
/* The same in a keys object alone; value 0 in one that is shared. */
int hb_py_keys__find(const struct hb_py_heap *h, u64 keys, const char *name, struct hb_py_entry *out);

/* ---- attributes (attribute.c) ---- */

enum hb_py_found {
	HB_PY_FOUND,
	HB_PY_NOT_SET,	  /* the class has it, this object has no value */
	HB_PY_UNKNOWN,	  /* neither class nor object has it */
	HB_PY_COMPUTED,	  /* a property, or what else runs code */
	HB_PY_NATIVE,	  /* a member of a C struct that is no object */
	HB_PY_UNREADABLE, /* memory is not there, or changed meanwhile */
};
/* The attribute of an object: *value, and in *plan how to find it in others of its type. */
enum hb_py_found hb_py_attribute__find(const struct hb_py_heap *h, u64 object, const char *name, u64 *value,
				       struct hb_py_plan *plan);

/* ---- values (value.c) ---- */

struct hb_py_value {
	enum hb_pykind kind;
	u64 num;			     /* an int, a double's bits, a length */
	u32 length;			     /* of the whole text, characters */
	char text[4 * HB_PY_FIELD_TEXT + 4]; /* UTF-8 of its first HB_PY_FIELD_TEXT bytes */
};
/* What objects of a type are as values. False when the type cannot be read. */
bool hb_py_value__is(const struct hb_py_heap *h, u64 type, struct hb_py_plan *is);
/* Kind OBJECT: it is no such value as is wanted. */
void hb_py_value__read(const struct hb_py_heap *h, u64 object, enum hb_py_want want, struct hb_py_value *out);
/* Of bytes that were read elsewhere: the text, UTF-8. */
void hb_py_value__text(const u8 *bytes, u32 n, unsigned width, char *buf);

/* ---- variables (variable.c) ---- */

/* Index in the frame of a code object's variable. 0, -ENOENT, or -errno. `all`: its variables, for a message.
 */
int hb_py_variable__find(const struct hb_py_heap *h, u64 code, const char *name, u16 *index, char *all,
			 size_t size);

/* ---- paths (path.c) ---- */

#define HB_PY_NAME_MAX 64

/* "self.scheduler.running:len" */
struct hb_py_path {
	char variable[HB_PY_NAME_MAX];
	char attribute[HB_PY_STEPS][HB_PY_NAME_MAX];
	u8 steps, want; /* want: enum hb_py_want */
};
int hb_py_path__parse(const char *text, struct hb_py_path *p, struct hb_error *e);

/* Called for each attribute that was found, or cannot be: where it lies in objects of `type`. */
typedef void (*hb_py_plan_fn)(u64 type, u32 step, const struct hb_py_plan *plan, void *arg);
/* From attribute `step` of `object` on to the value. False when there is none: `why` is a sentence, or "" for
 * what may be there the next time (not set, or changed while it was read). */
bool hb_py_path__follow(const struct hb_py_heap *h, const struct hb_py_path *p, unsigned step, u64 object,
			struct hb_py_value *value, hb_py_plan_fn fn, void *arg, char *why, size_t size);

#endif
