/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * JSON text appended to a buffer, for exporters that write millions of lines: keys are literals with their
 * comma and colon, so a field is one copy and one number. (A generator library that checks state and escapes
 * each key took five times as long for each line.)
 */
#ifndef HB_EXPORT_JSON_H
#define HB_EXPORT_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* A literal as it is: hb_json__lit(b, ",\"pid\":") */
#define hb_json__lit(b, s) hb_buf__add(b, s, sizeof(s) - 1)

void hb_json__u64(struct hb_buf *b, uint64_t v);
void hb_json__s64(struct hb_buf *b, int64_t v);
/* "0x1f", in quotes: handles and addresses do not fit into a double. */
void hb_json__hex(struct hb_buf *b, uint64_t v);
/* In quotes, escaped; control characters and broken UTF-8 become '?'. */
void hb_json__str(struct hb_buf *b, const char *s);

#endif
