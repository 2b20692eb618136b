/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The ndjson exporter's description of itself; the exporter is reached through hb_exporter__find("ndjson").
 */
#ifndef HB_NDJSON_H
#define HB_NDJSON_H

#include <stdio.h>

/* Markdown tables of every record type and key, made from what the exporter really writes (docs/ndjson.md).
 */
void hb_ndjson__describe(FILE *out);

#endif
