/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* SipHash-2-4 (Aumasson, Bernstein): who does not know the key cannot find the text of a hash by trying. */
#ifndef HB_BASE_SIPHASH_H
#define HB_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hb_siphash(const uint64_t key[2], const void *data, size_t size);

#endif
