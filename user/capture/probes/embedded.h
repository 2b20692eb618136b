/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The .tbl files as bytes, made at build time; ends with a NULL name. */
#ifndef HB_PROBES_EMBEDDED_H
#define HB_PROBES_EMBEDDED_H
struct hb_embedded {
	const char *name, *begin, *end;
};
extern const struct hb_embedded hb_embedded_tables[];
#endif
