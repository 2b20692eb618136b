/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A text table: columns as wide as they need, numbers to the right, one column that gives way when the line
 * is full. */
#ifndef HB_TABLE_H
#define HB_TABLE_H

#include <stdio.h>

struct hb_table;

/* `columns`: titles between '|'; a title that ends in '>' is right-aligned, one that ends in '~' is cut
 * first. */
struct hb_table *hb_table__new(const char *columns);
/* The next cell, row by row. Control characters are removed. Out of memory is remembered and told by print.
 */
void hb_table__cell(struct hb_table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
unsigned hb_table__rows(const struct hb_table *t);
/* Prints title line and rows, indented by two, then frees; `out` NULL only frees. 0 or -ENOMEM. */
int hb_table__print(struct hb_table *t, FILE *out, unsigned width);

#endif
