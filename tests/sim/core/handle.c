/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include "sim.h"

/* The arena is never given back: a stale handle must stay readable to be found stale. */
#define SLOTS (1u << 20)

_Static_assert(sizeof(struct hb_stream) <= HB_OBJ_SIZE && sizeof(struct hb_event) <= HB_OBJ_SIZE &&
		   sizeof(struct hb_ctx) <= HB_OBJ_SIZE && sizeof(struct hb_graph) <= HB_OBJ_SIZE &&
		   sizeof(struct hb_function) <= HB_OBJ_SIZE && sizeof(struct hb_pool) <= HB_OBJ_SIZE,
	       "an object fills one slot");

static char *arena;
static u32 used;
static u32 live[HB_KINDS];
static struct hb_obj *free_list;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool reserve(void)
{
	void *p;

	if (arena)
		return true;
	p = mmap(NULL, (size_t)SLOTS * HB_OBJ_SIZE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return false;
	__atomic_store_n(&arena, (char *)p, __ATOMIC_RELEASE);
	return true;
}

static struct hb_obj *take_slot(void)
{
	struct hb_obj *o = free_list;

	if (o)
		free_list = o->next;
	else if (reserve() && used < SLOTS)
		o = (struct hb_obj *)(arena + (size_t)used++ * HB_OBJ_SIZE);
	return o;
}

void *hb_handle__new(enum hb_kind kind)
{
	struct hb_obj *o;
	u32 generation;

	pthread_mutex_lock(&lock);
	o = take_slot();
	if (o) {
		generation = o->generation;
		memset(o, 0, HB_OBJ_SIZE);
		o->generation = generation + 1;
		__atomic_store_n(&o->kind, kind, __ATOMIC_RELEASE);
		live[kind]++;
	}
	pthread_mutex_unlock(&lock);
	return o;
}

void *hb_handle__get(const void *h, enum hb_kind kind)
{
	char *base = __atomic_load_n(&arena, __ATOMIC_ACQUIRE);
	size_t at = (size_t)((const char *)h - base);
	struct hb_obj *o = (struct hb_obj *)(uintptr_t)h;

	if (!base || !h || at >= (size_t)SLOTS * HB_OBJ_SIZE || at % HB_OBJ_SIZE)
		return NULL;
	return __atomic_load_n(&o->kind, __ATOMIC_ACQUIRE) == (u32)kind ? o : NULL;
}

u32 hb_handle__index(const void *obj)
{
	return (u32)((size_t)((const char *)obj - arena) / HB_OBJ_SIZE);
}

void *hb_handle__at(u32 index, enum hb_kind kind)
{
	return hb_handle__get(arena + (size_t)index * HB_OBJ_SIZE, kind);
}

void hb_handle__free(void *obj)
{
	struct hb_obj *o = obj;

	pthread_mutex_lock(&lock);
	live[o->kind]--;
	__atomic_store_n(&o->kind, HB_FREE, __ATOMIC_RELEASE);
	o->next = free_list;
	free_list = o;
	pthread_mutex_unlock(&lock);
}

u32 hb_handle__live(enum hb_kind kind)
{
	return __atomic_load_n(&live[kind], __ATOMIC_RELAXED);
}
