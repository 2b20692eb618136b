/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Virtual memory management (reserve, create, map, set access) and pools. A reserved range is address space
 * without pages; mapping lays a range of device memory over it; the pages come with access and go with the
 * mapping. What was in physical memory does not survive its mapping, and one can be mapped at one place at a
 * time.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "sim.h"

#define MAX_DEVICES 64

struct reservation {
	struct reservation *next;
	u64 start, size;
};
static struct reservation *reservations;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool aligned(u64 a, u64 b)
{
	return !(a % HB_GRANULARITY) && !(b % HB_GRANULARITY);
}

/* With the lock held. */
static struct reservation *reservation_of(u64 addr, u64 size)
{
	struct reservation *r = reservations;

	while (r && !(addr >= r->start && addr - r->start <= r->size && size <= r->size - (addr - r->start)))
		r = r->next;
	return r;
}

CUresult hb_virtual__reserve(u64 size, u64 align, u64 wish, u64 *addr)
{
	struct reservation *r;
	u64 start, total;
	char *p;

	if (!size || size > 1ull << 46 || !aligned(size, 0) || (align & (align - 1)))
		return CUDA_ERROR_INVALID_VALUE;
	align = align < HB_GRANULARITY ? HB_GRANULARITY : align;
	total = size + align;
	r = malloc(sizeof(*r));
	p = mmap((void *)(uintptr_t)wish, total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
		 0);
	if (!r || p == MAP_FAILED) {
		free(r);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	start = ((u64)(uintptr_t)p + align - 1) / align * align;
	if (start > (u64)(uintptr_t)p)
		munmap(p, start - (u64)(uintptr_t)p);
	munmap((void *)(uintptr_t)(start + size), (u64)(uintptr_t)p + total - start - size);
	pthread_mutex_lock(&lock);
	*r = (struct reservation){.next = reservations, .start = start, .size = size};
	reservations = r;
	pthread_mutex_unlock(&lock);
	*addr = start;
	return CUDA_SUCCESS;
}

CUresult hb_virtual__free(u64 addr, u64 size)
{
	struct reservation **p, *r;

	pthread_mutex_lock(&lock);
	for (p = &reservations; *p && ((*p)->start != addr || (*p)->size != size); p = &(*p)->next)
		;
	r = *p;
	if (r)
		*p = r->next;
	pthread_mutex_unlock(&lock);
	if (!r)
		return CUDA_ERROR_INVALID_VALUE;
	hb_virtual__unmap(addr, size);
	munmap((void *)(uintptr_t)addr, size);
	free(r);
	return CUDA_SUCCESS;
}

bool hb_virtual__reserved(u64 addr)
{
	bool found;

	pthread_mutex_lock(&lock);
	found = reservation_of(addr, 1) != NULL;
	pthread_mutex_unlock(&lock);
	return found;
}

CUresult hb_virtual__create(u64 size, int device, struct hb_physical **p)
{
	CUresult r;

	if (!size || !aligned(size, 0))
		return CUDA_ERROR_INVALID_VALUE;
	r = hb_memory__charge(size);
	if (r)
		return r;
	*p = hb_handle__new(HB_PHYSICAL);
	if (!*p) {
		hb_memory__uncharge(size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	(*p)->size = size;
	(*p)->device = device;
	(*p)->refs = 1;
	return CUDA_SUCCESS;
}

CUresult hb_virtual__release(struct hb_physical *p)
{
	if (__atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL))
		return CUDA_SUCCESS;
	hb_memory__uncharge(p->size);
	hb_handle__free(p);
	return CUDA_SUCCESS;
}

CUresult hb_virtual__map(u64 addr, u64 size, u64 offset, struct hb_physical *p)
{
	struct hb_range range = {
	    .start = addr, .size = size, .space = HB_MEM_DEVICE, .device = p->device, .physical = p};
	CUresult r = CUDA_SUCCESS;

	if (!aligned(addr, size) || offset || size != p->size)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	if (!reservation_of(addr, size))
		r = CUDA_ERROR_INVALID_VALUE;
	else if (p->mapped)
		r = CUDA_ERROR_NOT_SUPPORTED;
	else
		r = hb_memory__lay(&range);
	if (!r) {
		p->mapped = true;
		__atomic_add_fetch(&p->refs, 1, __ATOMIC_ACQ_REL);
	}
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult hb_virtual__unmap(u64 addr, u64 size)
{
	struct hb_range r;
	bool any = false;

	while (hb_memory__lift(addr, size, &r)) {
		any = true;
		if (mmap((void *)(uintptr_t)r.start, r.size, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
			return CUDA_ERROR_UNKNOWN;
		r.physical->mapped = false;
		hb_virtual__release(r.physical);
	}
	return any ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult hb_virtual__access(u64 addr, u64 size, bool write)
{
	struct hb_range r;

	for (u64 at = addr; at < addr + size; at = r.start + r.size)
		if (!hb_memory__find(at, &r) || !r.physical)
			return CUDA_ERROR_INVALID_VALUE;
	if (mprotect((void *)(uintptr_t)addr, size, write ? PROT_READ | PROT_WRITE : PROT_READ))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* ---- pools: freed memory goes back at once, so a pool is its settings and counters ---- */

static struct hb_pool *defaults[MAX_DEVICES], *current[MAX_DEVICES];

CUresult hb_pool__create(int device, struct hb_pool **p)
{
	if (!hb_device__valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*p = hb_handle__new(HB_POOL);
	if (!*p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*p)->device = device;
	for (int i = 1; i < CU_MEMPOOL_ATTR_RELEASE_THRESHOLD; i++)
		(*p)->attributes[i] = 1;
	return CUDA_SUCCESS;
}

CUresult hb_pool__default(int device, struct hb_pool **p)
{
	CUresult r = CUDA_SUCCESS;

	if (!hb_device__valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if (!defaults[device])
		r = hb_pool__create(device, &defaults[device]);
	*p = defaults[device];
	if (!r)
		(*p)->is_default = true;
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult hb_pool__current(int device, struct hb_pool **p)
{
	if (hb_device__valid(device) && hb_handle__get(current[device], HB_POOL)) {
		*p = current[device];
		return CUDA_SUCCESS;
	}
	return hb_pool__default(device, p);
}

CUresult hb_pool__choose(int device, struct hb_pool *p)
{
	if (!hb_device__valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (p->device != device)
		return CUDA_ERROR_INVALID_VALUE;
	current[device] = p;
	return CUDA_SUCCESS;
}

CUresult hb_pool__destroy(struct hb_pool *p)
{
	if (p->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	if (current[p->device] == p)
		current[p->device] = NULL;
	hb_handle__free(p);
	return CUDA_SUCCESS;
}

CUresult hb_pool__alloc(struct hb_pool *p, u64 size, u64 *addr)
{
	return hb_memory__alloc(HB_MEM_DEVICE, size, addr);
}
