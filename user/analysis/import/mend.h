/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Makes JSON of what is nearly JSON, in place and without moving a byte. */
#ifndef HB_IMPORT_MEND_H
#define HB_IMPORT_MEND_H

#include <stdbool.h>
#include <stddef.h>

struct hb_mend { /* all zero at the begin of a value */
	bool in_string, escaped;
};

/* Mends data[0..n): control characters and bad escapes in strings, words such as NaN outside of them (they
 * become an empty list, which no number is read from). Returns how much is done: a word at the end that may
 * go on in what follows is left, unless `last`. */
size_t hb_mend(struct hb_mend *m, char *data, size_t n, bool last, bool *changed);

#endif
