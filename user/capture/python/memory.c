/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/python/memory.h"

#include <errno.h>
#include <sys/uio.h>

#define AT_ONCE 128

long hb_py_memory__some(u32 pid, u64 addr, void *to, size_t size)
{
	struct iovec here = {to, size}, there = {(void *)(uintptr_t)addr, size};
	ssize_t n = process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0);

	return n < 0 ? -errno : n;
}

int hb_py_memory__read(u32 pid, u64 addr, void *to, size_t size)
{
	long n = hb_py_memory__some(pid, addr, to, size);

	if (n < 0)
		return (int)n;
	return (size_t)n == size ? 0 : -EFAULT;
}

/* Some of the items, in one call; the number read whole before the first that could not be. */
static u32 read_run(u32 pid, const u64 *addr, u32 n, char *to, size_t size)
{
	struct iovec here = {to, n * size}, there[AT_ONCE];
	ssize_t got;

	for (u32 i = 0; i < n; i++)
		there[i] = (struct iovec){(void *)(uintptr_t)addr[i], size};
	got = process_vm_readv((pid_t)pid, &here, 1, there, n, 0);
	return got < 0 ? 0 : (u32)((size_t)got / size);
}

void hb_py_memory__many(u32 pid, const u64 *addr, u32 n, void *to, size_t size, bool *ok)
{
	u32 i = 0;

	while (i < n) {
		u32 want = n - i < AT_ONCE ? n - i : AT_ONCE;
		u32 got = read_run(pid, addr + i, want, (char *)to + i * size, size);

		for (u32 k = 0; k < got; k++)
			ok[i + k] = true;
		i += got;
		if (got < want)
			ok[i++] = false;
	}
}
