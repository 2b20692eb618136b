/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SHA-256 (FIPS 180-4), for the name of a content that nobody can make another content for. */
#ifndef HB_BASE_SHA256_H
#define HB_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define HB_SHA256_TEXT 65

/* Digest of `size` bytes as 64 lower-case hexadecimal digits and a NUL. */
void hb_sha256(const void *data, size_t size, char text[HB_SHA256_TEXT]);

#endif
