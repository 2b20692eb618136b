/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Stubs of functions that a real library has and ours has not, for files that stubs.py writes:
 *
 *   HB_STUBS(S)        S(name) for each of them
 *   HB_STUB_LAYER      of the library
 *   HB_STUB_RESULT     its code for "not supported"
 *   HB_STUB_OF_DRIVER  in libcuda.so.1 itself: entries as the driver's, and a table for cuGetProcAddress
 *
 * A stub that is called is a gap of the simulator: it is named in the truth log from its first call on, each
 * call has its record, and with HB_SIM_GAPS set it is named on stderr once.
 */
#ifndef HB_SIM_STUB_H
#define HB_SIM_STUB_H

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include "front.h"

#define HB_STUB_NUMBER(name) STUB_##name,
enum { HB_STUBS(HB_STUB_NUMBER) N_STUBS };
#define HB_STUB_NAME(name) #name,
static const char *const stub_names[] = {HB_STUBS(HB_STUB_NAME)};
static u32 stub_ids[N_STUBS]; /* in the truth log; 0: not called yet */
static const struct hb_sim_core *stub_core;
static pthread_once_t stub_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t stub_lock = PTHREAD_MUTEX_INITIALIZER;

static void find_core(void)
{
#ifdef HB_STUB_OF_DRIVER
	stub_core = &hb_sim_core;
#else
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);

	stub_core = lib ? dlsym(lib, "hb_sim_core") : NULL;
#endif
}

static u32 stub_id(u32 n)
{
	u32 id = __atomic_load_n(&stub_ids[n], __ATOMIC_ACQUIRE);

	if (id)
		return id;
	pthread_mutex_lock(&stub_lock);
	if (!stub_ids[n]) {
		id = stub_core->register_names((u32)HB_STUB_LAYER | HB_STUB, &stub_names[n], 1);
		__atomic_store_n(&stub_ids[n], id, __ATOMIC_RELEASE);
		if (getenv("HB_SIM_GAPS"))
			fprintf(stderr, "simulated accelerator: %s is not simulated\n", stub_names[n]);
	}
	pthread_mutex_unlock(&stub_lock);
	return stub_ids[n];
}

static int __attribute__((noinline)) hb_stub(u32 n)
{
	struct hb_call c;

	pthread_once(&stub_once, find_core);
	if (!stub_core)
		return HB_STUB_RESULT;
	stub_core->enter(&c, stub_id(n));
	stub_core->leave(&c, HB_STUB_RESULT, 0, 0);
	return HB_STUB_RESULT;
}

#ifdef HB_STUB_OF_DRIVER
#define HB_STUB_FUNCTION(name)                                                                               \
	int hb_front_##name(void);                                                                           \
	int hb_front_##name(void)                                                                            \
	{                                                                                                    \
		return hb_stub(STUB_##name);                                                                 \
	}                                                                                                    \
	HB_ENTRY(name)                                                                                       \
	extern HB_EXPORT int name(void);
HB_STUBS(HB_STUB_FUNCTION)

#define HB_STUB_ENTRY(name) {#name, (void *)name, (void *)hb_front_##name},
const struct hb_entry hb_stub_table[] = {HB_STUBS(HB_STUB_ENTRY){NULL, NULL, NULL}};
#else
#define HB_STUB_FUNCTION(name)                                                                               \
	HB_EXPORT int name(void);                                                                            \
	int name(void)                                                                                       \
	{                                                                                                    \
		return hb_stub(STUB_##name);                                                                 \
	}
HB_STUBS(HB_STUB_FUNCTION)
#endif

#endif
