/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Text that comes from outside (thread names, paths, symbols) and text that a person typed. */
#ifndef HB_BASE_TEXT_H
#define HB_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Replaces control characters (C0, DEL, C1 in UTF-8) and broken UTF-8 by '?', in place. Every name that came
 * from a target passes here before it is printed or written: an escape sequence in a thread name must not
 * reach an operator's terminal. Returns its argument. */
char *hb_text__clean(char *s);

/* Makes the text at most size - 1 bytes long, in place, by cutting its longest words (paths are) in the
 * middle: "cannot write /a/very…/w.hbw: No space left". Words separated by blanks; where that is not enough,
 * the middle of the text goes. Returns its argument. */
char *hb_text__fit(char *s, size_t size);

/* Glob match (fnmatch without path rules): '*' crosses '/', case sensitive. */
bool hb_text__glob(const char *pattern, const char *s);

/* Last path component; never NULL. */
const char *hb_text__basename(const char *path);

/* "30s", "500ms", "2m", "1h", "250us", "1000ns" -> nanoseconds. A unit is required; zero, negative, overflow
 * (> 24 h) and trailing text are refused with -EINVAL. */
int hb_text__duration(const char *s, uint64_t *ns);

/* "64KiB", "16MiB", "1GiB", "4096" (bytes), "10MB" -> bytes; -EINVAL when not a positive size. */
int hb_text__size(const char *s, uint64_t *bytes);

/* Formats for people, into `buf` (>= 32 bytes); return buf. 1.23 ms, 45.6 us, 12 ns; 1.2 MiB; 1,234,567. */
char *hb_text__ns(char *buf, size_t size, uint64_t ns);
char *hb_text__bytes(char *buf, size_t size, uint64_t bytes);
char *hb_text__count(char *buf, size_t size, uint64_t n);

#endif
