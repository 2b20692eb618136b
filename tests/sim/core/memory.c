/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "sim.h"

#define USER_SPACE   (1ull << 56) /* no address of a process is above, on any architecture */
#define DEVICE_ALIGN (2u << 20)	  /* of large device blocks, as the real allocator's granularity */

static struct hb_range *ranges; /* sorted by start */
static size_t n_ranges, cap_ranges;
static u64 device_used;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;

/* Index of the first range that starts above addr. */
static size_t above(u64 addr)
{
	size_t lo = 0, hi = n_ranges;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (ranges[mid].start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static struct hb_range *covering(u64 addr)
{
	size_t i = above(addr);

	return i && addr - ranges[i - 1].start < ranges[i - 1].size ? &ranges[i - 1] : NULL;
}

static bool insert(const struct hb_range *r)
{
	size_t i;

	if (n_ranges == cap_ranges) {
		size_t cap = cap_ranges ? cap_ranges * 2 : 256;
		struct hb_range *p = realloc(ranges, cap * sizeof(*p));

		if (!p)
			return false;
		ranges = p;
		cap_ranges = cap;
	}
	i = above(r->start);
	memmove(ranges + i + 1, ranges + i, (n_ranges - i) * sizeof(*ranges));
	ranges[i] = *r;
	n_ranges++;
	return true;
}

static void take_out(struct hb_range *r)
{
	size_t i = (size_t)(r - ranges);

	memmove(ranges + i, ranges + i + 1, (n_ranges - i - 1) * sizeof(*ranges));
	n_ranges--;
}

static void *map_aligned(u64 size, u64 align)
{
	u64 total = size + (align > 4096 ? align : 0), head;
	char *p =
	    mmap(NULL, total, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (total == size)
		return p;
	head = (align - (u64)(uintptr_t)p % align) % align;
	if (head)
		munmap(p, head);
	munmap(p + head + size, total - size - head);
	return p + head;
}

static u64 rounded(enum hb_space space, u64 size)
{
	u64 unit = space == HB_MEM_DEVICE && size >= DEVICE_ALIGN / 2 ? DEVICE_ALIGN : 4096;

	return (size + unit - 1) / unit * unit;
}

CUresult hb_memory__alloc(enum hb_space space, u64 size, u64 *addr)
{
	struct hb_ctx *ctx = hb_ctx__current();
	struct hb_range r = {.space = space, .device = ctx ? ctx->device : 0, .ours = true};
	u64 since = hb_now();
	CUresult rc = CUDA_SUCCESS;
	void *p = NULL;

	if (!addr || !size)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > 1ull << 46)
		return CUDA_ERROR_OUT_OF_MEMORY;
	r.size = rounded(space, size);
	pthread_rwlock_wrlock(&lock);
	if (space != HB_MEM_DEVICE || r.size <= hb_costs.memory - device_used)
		p = map_aligned(r.size, r.size >= DEVICE_ALIGN ? DEVICE_ALIGN : 4096);
	r.start = (u64)(uintptr_t)p;
	if (!p || !insert(&r))
		rc = CUDA_ERROR_OUT_OF_MEMORY;
	else if (space == HB_MEM_DEVICE)
		device_used += r.size;
	pthread_rwlock_unlock(&lock);
	if (p && rc)
		munmap(p, r.size);
	else
		*addr = r.start;
	hb_costs__spin(since, hb_costs.alloc_ns);
	return rc;
}

CUresult hb_memory__free(enum hb_space space, u64 addr)
{
	struct hb_range *r, gone = {0};

	if (!addr)
		return CUDA_SUCCESS;
	pthread_rwlock_wrlock(&lock);
	r = covering(addr);
	/* Managed memory is freed by the device's free. */
	if (r && r->start == addr && r->ours &&
	    (r->space == space || (space == HB_MEM_DEVICE && r->space == HB_MEM_MANAGED))) {
		gone = *r;
		take_out(r);
		if (gone.space == HB_MEM_DEVICE)
			device_used -= gone.size;
	}
	pthread_rwlock_unlock(&lock);
	if (!gone.size)
		return CUDA_ERROR_INVALID_VALUE;
	munmap((void *)(uintptr_t)gone.start, gone.size);
	return CUDA_SUCCESS;
}

CUresult hb_memory__register(u64 addr, u64 size)
{
	struct hb_range r = {.start = addr, .size = size, .space = HB_MEM_PINNED};
	CUresult rc = CUDA_SUCCESS;

	if (!addr || !size || addr + size < addr)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_rwlock_wrlock(&lock);
	if (covering(addr) || covering(addr + size - 1))
		rc = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	else if (!insert(&r))
		rc = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_rwlock_unlock(&lock);
	return rc;
}

CUresult hb_memory__unregister(u64 addr)
{
	struct hb_range *r;
	CUresult rc = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;

	pthread_rwlock_wrlock(&lock);
	r = covering(addr);
	if (r && r->start == addr && !r->ours && !r->physical) {
		take_out(r);
		rc = CUDA_SUCCESS;
	}
	pthread_rwlock_unlock(&lock);
	return rc;
}

bool hb_memory__find(u64 addr, struct hb_range *out)
{
	struct hb_range *r;

	pthread_rwlock_rdlock(&lock);
	r = covering(addr);
	if (r)
		*out = *r;
	pthread_rwlock_unlock(&lock);
	return r != NULL;
}

bool hb_memory__inside(u64 addr, u64 size, enum hb_space *space)
{
	struct hb_range r;

	*space = HB_MEM_PAGEABLE;
	if (!addr || addr >= USER_SPACE || size > USER_SPACE - addr)
		return false;
	if (!hb_memory__find(addr, &r))
		return !hb_virtual__reserved(addr);
	*space = r.space;
	while (size > r.size - (addr - r.start)) {
		/* Allocations laid side by side over one reserved range are one span to the caller. */
		if (!r.physical)
			return false;
		size -= r.size - (addr - r.start);
		addr = r.start + r.size;
		if (!hb_memory__find(addr, &r) || !r.physical)
			return false;
	}
	return true;
}

CUresult hb_memory__charge(u64 bytes)
{
	CUresult r = CUDA_SUCCESS;

	pthread_rwlock_wrlock(&lock);
	if (bytes > hb_costs.memory - device_used)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	else
		device_used += bytes;
	pthread_rwlock_unlock(&lock);
	return r;
}

void hb_memory__uncharge(u64 bytes)
{
	pthread_rwlock_wrlock(&lock);
	device_used -= bytes;
	pthread_rwlock_unlock(&lock);
}

CUresult hb_memory__lay(const struct hb_range *r)
{
	CUresult rc = CUDA_SUCCESS;
	size_t i;

	pthread_rwlock_wrlock(&lock);
	i = above(r->start + r->size - 1);
	if (i && ranges[i - 1].start + ranges[i - 1].size > r->start)
		rc = CUDA_ERROR_INVALID_VALUE; /* something is there already */
	else if (!insert(r))
		rc = CUDA_ERROR_OUT_OF_MEMORY;
	pthread_rwlock_unlock(&lock);
	return rc;
}

bool hb_memory__lift(u64 start, u64 size, struct hb_range *out)
{
	bool found = false;
	size_t i;

	pthread_rwlock_wrlock(&lock);
	i = above(start + size - 1);
	if (i && ranges[i - 1].start >= start && ranges[i - 1].physical &&
	    ranges[i - 1].start + ranges[i - 1].size <= start + size) {
		*out = ranges[i - 1];
		take_out(&ranges[i - 1]);
		found = true;
	}
	pthread_rwlock_unlock(&lock);
	return found;
}

void hb_memory__info(u64 *free_bytes, u64 *total)
{
	*total = hb_costs.memory;
	pthread_rwlock_rdlock(&lock);
	*free_bytes = hb_costs.memory - device_used;
	pthread_rwlock_unlock(&lock);
}

/* Large zero fills give pages back instead of touching them, or a KV cache would become resident. */
static u64 drop_pages(u64 addr, u64 bytes)
{
	u64 first = (addr + 4095) & ~4095ull, last = (addr + bytes) & ~4095ull;
	struct hb_range r;

	if (bytes < 1u << 20 || !hb_memory__find(addr, &r) || !(r.ours || r.physical) || last <= first)
		return 0;
	if (madvise((void *)(uintptr_t)first, last - first, MADV_DONTNEED))
		return 0;
	memset((void *)(uintptr_t)addr, 0, first - addr);
	memset((void *)(uintptr_t)last, 0, addr + bytes - last);
	return bytes;
}

static void fill_row(u64 addr, u32 value, u32 width, u64 count)
{
	char *p = (char *)(uintptr_t)addr;

	if (!value && drop_pages(addr, count * width))
		return;
	if (width == 1 || !value) {
		memset(p, (int)value, count * width);
		return;
	}
	for (u64 i = 0; i < count; i++)
		memcpy(p + i * width, &value, width);
}

void hb_memory__fill(const struct hb_work *w)
{
	u64 rows = w->rows ? w->rows : 1;

	for (u64 i = 0; i < rows; i++)
		fill_row(w->dst + i * w->dst_pitch, (u32)w->src, w->width, w->bytes / rows);
}

void hb_memory__copy(const struct hb_work *w)
{
	u64 rows = w->rows ? w->rows : 1;

	for (u64 i = 0; i < rows; i++)
		memmove((void *)(uintptr_t)(w->dst + i * w->dst_pitch),
			(void *)(uintptr_t)(w->src + i * w->src_pitch), w->bytes / rows);
}
