/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers and words as they stand in a trace. Integers only: no time goes through a float. */
#ifndef HB_IMPORT_TEXT_H
#define HB_IMPORT_TEXT_H

#include "schema/schema.h"

/* A piece of text that is not NUL-terminated. */
struct hb_piece {
	const char *s;
	size_t n;
};

bool hb_piece__is(struct hb_piece p, const char *word);
/* Does it begin with `word`? Takes that off. */
bool hb_piece__skip(struct hb_piece *p, const char *word);

/* A decimal number ("12.345", "-1e3", up to a hundred digits) times 10^scale, rounded half up; false: no
 * number, or beyond 64 bits. Microseconds to nanoseconds: scale 3. */
bool hb_text__decimal(struct hb_piece p, int scale, s64 *out);
/* The whole text is an integer. */
bool hb_text__integer(struct hb_piece p, s64 *out);
/* The first run of digits in it. */
bool hb_text__digits(struct hb_piece p, s64 *out);

/* "torch/nn/module.py(17): forward" -> file, line, function; false when it is not of that form. */
bool hb_text__python(struct hb_piece p, struct hb_piece *file, u32 *line, struct hb_piece *func);

/* "Memcpy HtoD (Pageable -> Device)", "CopyHostToDevice", "Memset (Device)": direction and kinds of memory.
 */
void hb_text__copy(struct hb_piece p, u8 *copy, u8 *from, u8 *to);
/* "HtoD" -> HB_COPY_HTOD; HB_COPY_UNKNOWN. */
u8 hb_text__direction(struct hb_piece p);
/* "Stream Wait Event" -> HB_SYNCKIND_STREAM_WAIT. */
u8 hb_text__sync(struct hb_piece p);

#endif
