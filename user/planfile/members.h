/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The members of a plan file, once for reader and writer. Inside of planfile. */
#ifndef HB_PLANFILE_MEMBERS_H
#define HB_PLANFILE_MEMBERS_H

#include <stddef.h>

#include "planfile/planfile.h"

enum hb_member_kind {
	HB_MEMBER_TEXT,
	HB_MEMBER_NUMBER, /* u64 */
	HB_MEMBER_BOOL,
	HB_MEMBER_LINES, /* a list of texts: the approval's signature */
};

struct hb_member {
	const char *object; /* it is a member of; "" the plan itself. A list of objects ends with "[]" */
	const char *name;
	enum hb_member_kind kind;
	bool must;     /* in every plan, in every object of a list */
	size_t offset; /* in hb_planfile, or in the list's element */
};

/* In the order of writing: members of one object stand together. Ends with a NULL name. */
extern const struct hb_member hb_planfile_members[];

struct hb_list {		    /* of objects */
	const char *object;	    /* "reasons[]" */
	size_t offset, count, size; /* of the elements and their number in hb_planfile; of one element */
	u32 max;
};
/* NULL when it is no list. */
const struct hb_list *hb_planfile__list(const char *object);

/* Name of the object that holds the options. */
#define HB_PLANFILE_RECORD "record"
/* Whether the i-th option is a list. */
bool hb_planfile__option_is_list(u32 i);

/* Canonical text of the plan, or all of it with the approval. 0 or -errno. */
int hb_planfile__emit(const struct hb_planfile *p, FILE *out, bool pretty, bool approval);

/* A text that may stand in a plan: not too long, without control characters. */
bool hb_planfile__text_ok(const char *s, size_t size);

#endif
