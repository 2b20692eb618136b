/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * JSON text appended to a buffer, for exporters that write millions of lines: keys are literals with their
 * comma and colon, so a field is one copy and one number. Nothing checks the structure; where speed does not
 * matter, base/json.h does.
 */
#ifndef HB_JBUF_H
#define HB_JBUF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* A literal as it is: hb_jbuf__lit(b, ",\"pid\":") */
#define hb_jbuf__lit(b, s) hb_buf__add(b, s, sizeof(s) - 1)

void hb_jbuf__u64(struct hb_buf *b, uint64_t v);
void hb_jbuf__s64(struct hb_buf *b, int64_t v);
/* "0x1f", in quotes: handles and addresses do not fit into a double. */
void hb_jbuf__hex(struct hb_buf *b, uint64_t v);
/* In quotes, escaped; control characters and broken UTF-8 become '?'. */
void hb_jbuf__str(struct hb_buf *b, const char *s);

#endif
