/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by tables.c (the set) and table_parse.c (the language). */
#ifndef HB_TABLES_PRIVATE_H
#define HB_TABLES_PRIVATE_H

#include <stdio.h>
#include "capture/probes/probes.h"

#define HB_TABLE_WORD 255 /* characters of one word */

/* Text -> rows. On failure nothing is handed out. Embedded tables end with a NUL that is not counted in size.
 */
int hb_table__parse(const char *name, const char *text, size_t size, struct hb_row **rows, u32 *n,
		    struct hb_error *e);
void hb_row_list__free(struct hb_row *rows, u32 n);

#endif
