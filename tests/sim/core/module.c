/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "sim.h"
#include "image.h"

#define SHARED_DEFAULT 49152
#define SHARED_OPTIN   232448
#define BINARY_VERSION 90

struct hb_variable { /* in device memory from the first question for it on */
	struct hb_variable *next;
	char *name;
	u64 addr, size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

CUresult hb_module__load(const void *data, struct hb_module **m)
{
	struct hb_image *im = hb_image__read(data);

	if (!im)
		return CUDA_ERROR_INVALID_IMAGE;
	*m = hb_handle__new(HB_MODULE);
	if (!*m) {
		hb_image__free(im);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	(*m)->image = im;
	return CUDA_SUCCESS;
}

/* Its functions stay: graphs and the log of what still runs speak of them. */
CUresult hb_module__unload(struct hb_module *m)
{
	struct hb_variable *v = m->variables;

	while (v) {
		struct hb_variable *next = v->next;

		hb_memory__free(HB_MEM_DEVICE, v->addr);
		free(v->name);
		free(v);
		v = next;
	}
	hb_image__free(m->image);
	hb_handle__free(m);
	return CUDA_SUCCESS;
}

static struct hb_function *new_function(struct hb_module *m, const struct hb_symbol *s, const char *name)
{
	char *copy = strdup(name);
	struct hb_function *f = copy ? hb_handle__new(HB_FUNCTION) : NULL;

	if (!f) {
		free(copy);
		return NULL;
	}
	f->name = copy;
	f->collective = !strncmp(name, "ncclDevKernel", 13);
	f->module = m;
	f->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
	f->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] = (int)s->shared;
	f->attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] = (int)s->regs;
	f->attributes[CU_FUNC_ATTRIBUTE_PTX_VERSION] = BINARY_VERSION;
	f->attributes[CU_FUNC_ATTRIBUTE_BINARY_VERSION] = BINARY_VERSION;
	f->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] =
	    s->shared < SHARED_DEFAULT ? SHARED_DEFAULT - (int)s->shared : 0;
	f->next = m->functions;
	m->functions = f;
	return f;
}

CUresult hb_module__function(struct hb_module *m, const char *name, struct hb_function **out)
{
	CUresult r = CUDA_SUCCESS;
	struct hb_function *f;
	struct hb_symbol s;

	if (!name || !*name)
		return CUDA_ERROR_NOT_FOUND;
	pthread_mutex_lock(&lock);
	for (f = m->functions; f && strcmp(f->name, name); f = f->next)
		;
	if (!f && !hb_image__find(m->image, name, true, &s))
		r = CUDA_ERROR_NOT_FOUND;
	else if (!f)
		f = new_function(m, &s, name);
	pthread_mutex_unlock(&lock);
	if (!r && !f)
		r = CUDA_ERROR_OUT_OF_MEMORY;
	if (!r)
		*out = f;
	return r;
}

static CUresult new_variable(struct hb_module *m, const char *name, u64 size, struct hb_variable **out)
{
	struct hb_variable *v = calloc(1, sizeof(*v));
	CUresult r =
	    v ? hb_memory__alloc(HB_MEM_DEVICE, size ? size : 1, &v->addr) : CUDA_ERROR_OUT_OF_MEMORY;

	if (r || !(v->name = strdup(name))) {
		free(v);
		return r ? r : CUDA_ERROR_OUT_OF_MEMORY;
	}
	v->size = size;
	v->next = m->variables;
	m->variables = v;
	*out = v;
	return CUDA_SUCCESS;
}

CUresult hb_module__variable(struct hb_module *m, const char *name, u64 *addr, u64 *size)
{
	CUresult r = CUDA_SUCCESS;
	struct hb_variable *v;
	struct hb_symbol s;

	if (!name || !*name)
		return CUDA_ERROR_NOT_FOUND;
	pthread_mutex_lock(&lock);
	for (v = m->variables; v && strcmp(v->name, name); v = v->next)
		;
	if (!v)
		r = hb_image__find(m->image, name, false, &s) ? new_variable(m, name, s.size, &v)
							      : CUDA_ERROR_NOT_FOUND;
	pthread_mutex_unlock(&lock);
	if (r)
		return r;
	*addr = v->addr;
	*size = v->size;
	return CUDA_SUCCESS;
}

CUresult hb_function__set(struct hb_function *f, int attribute, int value)
{
	if (attribute < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
	    attribute > CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
		return CUDA_ERROR_INVALID_VALUE;
	if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
	    (value < 0 || value > SHARED_OPTIN - f->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES]))
		return CUDA_ERROR_INVALID_VALUE;
	f->attributes[attribute] = value;
	return CUDA_SUCCESS;
}

/* Blocks of a function that fit a multiprocessor by threads, registers, shared memory and number. */
int hb_function__occupancy(const struct hb_function *f, int threads, u64 dynamic)
{
	u64 shared = (u64)f->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES] + dynamic + 1024;
	int warps = (threads + 31) / 32, regs = (f->attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] + 7) / 8 * 8;
	int n = 64 / warps, by_regs = regs ? 65536 / (regs * 32 * warps) : n;
	u64 by_shared = 233472 / shared;

	if (threads > f->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] || dynamic > SHARED_OPTIN)
		return 0;
	if (n > 32)
		n = 32;
	if (n > by_regs)
		n = by_regs;
	return by_shared < (u64)n ? (int)by_shared : n;
}
