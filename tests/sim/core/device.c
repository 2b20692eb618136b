/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <pthread.h>
#include "sim.h"

#define MAX_DEVICES 64
#define STACK_DEPTH 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialised;
static bool inherited; /* by fork: as in the real driver nothing works in such a child */
static struct hb_ctx *primaries[MAX_DEVICES];

static __thread struct {
	struct hb_ctx *ctx[STACK_DEPTH]; /* ctx[depth - 1] is current */
	u32 depth;
} stack;

void hb_lock(void)
{
	pthread_mutex_lock(&lock);
}

void hb_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static void forked(void)
{
	pthread_mutex_init(&lock, NULL);
	inherited = true;
}

CUresult hb_device__init(void)
{
	hb_costs__load();
	if (!hb_costs.devices)
		return CUDA_ERROR_NO_DEVICE;
	hb_lock();
	if (!initialised)
		initialised = !pthread_atfork(NULL, NULL, forked);
	hb_unlock();
	return hb_device__ready();
}

CUresult hb_device__ready(void)
{
	return initialised && !inherited ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

int hb_device__count(void)
{
	return (int)hb_costs.devices;
}

bool hb_device__valid(int device)
{
	return device >= 0 && device < (int)hb_costs.devices;
}

static const int attributes[][2] = {
#define A(name, number, value) {number, value},
#include "attributes.def"
#undef A
};
#ifdef HB_SIM_REAL_HEADERS
#define A(name, number, value) _Static_assert(CU_DEVICE_ATTRIBUTE_##name == (number), #name);
#include "attributes.def"
#undef A
#endif

/* Ordinal of a device on the simulated bus: 0000:04:00.0, 0000:05:00.0 and so on. */
#define FIRST_BUS 4

CUresult hb_device__attribute(int device, int attribute, int *value)
{
	if (!hb_device__valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value || attribute <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	*value = attribute == HB_ATTRIBUTE_PCI_BUS_ID ? FIRST_BUS + device : 0;
	for (size_t i = 0; i < sizeof(attributes) / sizeof(*attributes); i++)
		if (attributes[i][0] == attribute)
			*value = attributes[i][1];
	return CUDA_SUCCESS;
}

static struct hb_ctx *new_ctx(int device, u32 flags)
{
	struct hb_ctx *c = hb_handle__new(HB_CTX);
	struct hb_stream *s = c ? hb_handle__new(HB_STREAM) : NULL;

	if (!s) {
		if (c)
			hb_handle__free(c);
		return NULL;
	}
	c->device = device;
	c->flags = flags;
	c->legacy = s;
	s->ctx = c;
	return c;
}

struct hb_ctx *hb_ctx__primary(int device)
{
	return hb_device__valid(device) ? primaries[device] : NULL;
}

CUresult hb_ctx__retain(int device, struct hb_ctx **ctx)
{
	CUresult r = CUDA_SUCCESS;

	if (!hb_device__valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	hb_lock();
	if (!primaries[device]) {
		primaries[device] = new_ctx(device, 0);
		if (primaries[device])
			primaries[device]->primary = true;
	}
	*ctx = primaries[device];
	if (*ctx) {
		(*ctx)->refs++;
		(*ctx)->active = true;
	} else {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	hb_unlock();
	return r;
}

static void destroy_streams(struct hb_ctx *c)
{
	while (c->streams)
		hb_stream__destroy(c->streams);
}

CUresult hb_ctx__release(int device)
{
	struct hb_ctx *c = hb_ctx__primary(device);

	if (!hb_device__valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!c || !c->refs)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (--c->refs == 0) {
		destroy_streams(c);
		c->active = false;
	}
	return CUDA_SUCCESS;
}

CUresult hb_ctx__reset(int device)
{
	struct hb_ctx *c = hb_ctx__primary(device);

	if (!hb_device__valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (c)
		destroy_streams(c);
	return CUDA_SUCCESS;
}

CUresult hb_ctx__create(int device, u32 flags, struct hb_ctx **ctx)
{
	if (!hb_device__valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	*ctx = new_ctx(device, flags);
	if (!*ctx)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*ctx)->active = true;
	return hb_ctx__push(*ctx);
}

CUresult hb_ctx__destroy(struct hb_ctx *ctx)
{
	if (ctx->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	destroy_streams(ctx);
	if (hb_ctx__current() == ctx)
		stack.depth--;
	hb_handle__free(ctx->legacy);
	hb_handle__free(ctx);
	return CUDA_SUCCESS;
}

struct hb_ctx *hb_ctx__current(void)
{
	return stack.depth ? stack.ctx[stack.depth - 1] : NULL;
}

CUresult hb_ctx__set(struct hb_ctx *ctx)
{
	if (!ctx) {
		stack.depth -= stack.depth ? 1 : 0;
		return CUDA_SUCCESS;
	}
	if (!stack.depth)
		stack.depth = 1;
	stack.ctx[stack.depth - 1] = ctx;
	return CUDA_SUCCESS;
}

CUresult hb_ctx__push(struct hb_ctx *ctx)
{
	if (stack.depth == STACK_DEPTH)
		return CUDA_ERROR_INVALID_CONTEXT;
	stack.ctx[stack.depth++] = ctx;
	return CUDA_SUCCESS;
}

CUresult hb_ctx__pop(struct hb_ctx **ctx)
{
	if (!stack.depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	stack.depth--;
	if (ctx)
		*ctx = stack.ctx[stack.depth];
	return CUDA_SUCCESS;
}

CUresult hb_ctx__need(struct hb_ctx **ctx)
{
	CUresult r = hb_device__ready();

	if (r)
		return r;
	*ctx = hb_handle__get(hb_ctx__current(), HB_CTX);
	return *ctx ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}
