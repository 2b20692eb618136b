/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes JSON to a FILE: one document, or one per line. Errors are sticky: write freely, look once at the
 * end, at what hb_json__free() says. Every string is cleaned (hb_text__clean): names from a target may be
 * given as they are. Integers are written exactly, all 64 bits; whoever reads them into doubles loses digits
 * beyond 2^53.
 */
#ifndef HB_BASE_JSON_H
#define HB_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct hb_json;

/* `pretty`: indented by two spaces. `out` stays the caller's. NULL: out of memory. */
struct hb_json *hb_json__new(FILE *out, bool pretty);
/* Writes what is buffered, frees. 0, or the first error: -EIO.. from the disk, -ENOMEM, -EINVAL for calls
 * that make no document (a value where a key belongs, unclosed or unopened braces, nested deeper than 120).
 */
int hb_json__free(struct hb_json *j);
/* The sticky error so far, 0 when none: for loops that want to stop early. */
int hb_json__error(const struct hb_json *j);

/* Containers; end() closes the innermost. */
void hb_json__object(struct hb_json *j);
void hb_json__array(struct hb_json *j);
void hb_json__end(struct hb_json *j);
/* Ends a finished document with a newline, so that another may follow (ndjson). */
void hb_json__newline(struct hb_json *j);

/* Values; inside an object each needs a key() before. */
void hb_json__key(struct hb_json *j, const char *key);
void hb_json__string(struct hb_json *j, const char *s); /* NULL: null */
void hb_json__u64(struct hb_json *j, uint64_t v);
void hb_json__s64(struct hb_json *j, int64_t v);
void hb_json__real(struct hb_json *j, double v, int decimals); /* null when not finite */
void hb_json__bool(struct hb_json *j, bool v);
void hb_json__null(struct hb_json *j);

/* Key and value, or key and opened container, in one call. */
void hb_json__kobject(struct hb_json *j, const char *key);
void hb_json__karray(struct hb_json *j, const char *key);
void hb_json__kstring(struct hb_json *j, const char *key, const char *s);
void hb_json__ku64(struct hb_json *j, const char *key, uint64_t v);
void hb_json__ks64(struct hb_json *j, const char *key, int64_t v);
void hb_json__kreal(struct hb_json *j, const char *key, double v, int decimals);
void hb_json__kbool(struct hb_json *j, const char *key, bool v);

#endif
