/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Another process's memory. */
#ifndef HB_PYTHON_MEMORY_H
#define HB_PYTHON_MEMORY_H

#include "schema/schema.h"

/* All of it or nothing: 0 or -errno. */
int hb_py_memory__read(u32 pid, u64 addr, void *to, size_t size);
/* As much as there is from the begin on: bytes, or -errno when there is nothing. */
long hb_py_memory__some(u32 pid, u64 addr, void *to, size_t size);
/* Items of one size from many places: ok[i] says which could be read. */
void hb_py_memory__many(u32 pid, const u64 *addr, u32 n, void *to, size_t size, bool *ok);

static inline bool hb_py_memory__word(u32 pid, u64 addr, u64 *to)
{
	return hb_py_memory__read(pid, addr, to, sizeof(*to)) == 0;
}

#endif
