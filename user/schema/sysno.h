/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Table made at build time from <asm/unistd.h>; NULL where a number has no call. */
#ifndef HB_SCHEMA_SYSNO_H
#define HB_SCHEMA_SYSNO_H
extern const char *const hb_sysnos[];
extern const unsigned hb_n_sysnos;
#endif
