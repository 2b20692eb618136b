/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How a library above the driver reaches it: libcuda.so.1 by dlopen, cuGetProcAddress_v2 by dlsym, the rest
 * by cuGetProcAddress, as the real ones do. The calls therefore arrive at the exported functions.
 */
#ifndef HB_SIM_DRIVER_H
#define HB_SIM_DRIVER_H

#include <dlfcn.h>
#include <pthread.h>
#include "front.h"

/* Asked for with this one, a plain name means its first form: later ones are asked for by their own names. */
#define OLD_VERSION 10000

struct hb_driver {
#define F(name, params, args, stream, bytes) CUresult(*name) params;
#include "cuda.def"
#undef F
};

static struct hb_driver drv;
static const struct hb_sim_core *core; /* NULL when libcuda.so.1 is not ours */
static bool have_driver;
static u32 first_id;
static pthread_once_t load_once = PTHREAD_ONCE_INIT;

/* The front's own: layer and names for the truth log. */
static u32 hb_front_register(const struct hb_sim_core *c);

static void load_driver(void)
{
	static const char *const names[] = {
#define F HB_NAME_
#include "cuda.def"
#undef F
	};
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
	CUresult (*get)(const char *, void **, int, uint64_t, CUdriverProcAddressQueryResult *);
	void **slot = (void **)&drv;

	if (!lib)
		return;
	core = dlsym(lib, "hb_sim_core");
	if (core)
		first_id = hb_front_register(core);
	*(void **)&get = dlsym(lib, "cuGetProcAddress_v2");
	if (!get)
		return;
	if (core)
		core->nest(1);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		get(names[i], &slot[i], OLD_VERSION, 0, NULL);
	if (core)
		core->nest(-1);
	have_driver = true;
}

static inline void hb_front_enter(struct hb_call *c, u32 function)
{
	pthread_once(&load_once, load_driver);
	if (core)
		core->enter(c, first_id + function);
}

static inline void hb_front_leave(struct hb_call *c, s32 result, u64 stream, u64 bytes)
{
	if (core)
		core->leave(c, result, stream, bytes);
}

#endif
