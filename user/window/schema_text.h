/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The schema of this version as the text that goes into a window file. Internal to window/. */
#ifndef HB_WINDOW_SCHEMA_TEXT_H
#define HB_WINDOW_SCHEMA_TEXT_H

#include "base/buf.h"

/* One line per record type: "id name size since field@offset:ctype:ROLE ..."; then one per list of words:
 * "words LIST id=word ...". */
void hb_schema_text__write(struct hb_buf *out);

#endif
