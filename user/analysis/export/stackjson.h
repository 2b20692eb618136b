/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Stacks as JSON text, made once for each stack: millions of records share a few thousand. */
#ifndef HB_STACKJSON_H
#define HB_STACKJSON_H

#include "base/buf.h"
#include "window/window.h"

struct hb_stackjson;
struct hb_stackjson *hb_stackjson__new(struct hb_window *w); /* NULL: out of memory */
void hb_stackjson__free(struct hb_stackjson *s);

/*
 * Appends the array of frames, outermost first, of stack `raw` and then `kraw` (0 = none) as seen in process
 * `pid`; then ,"stack_state":".." when one of them is cut, broken, or was not kept ("missing"). Out of
 * memory: sticky in `b`.
 */
void hb_stackjson__array(struct hb_stackjson *s, struct hb_buf *b, u32 pid, u32 raw, u32 kraw);

#endif
