/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A front is made of a table (NAME.def) and functions do_NAME. From a row
 *     F(name, (parameters), (arguments), stream, bytes)
 * come the exported function, its entry in the truth log and, for the driver, its place in cuGetProcAddress.
 */
#ifndef HB_SIM_FRONT_H
#define HB_SIM_FRONT_H

#include "../core/sim.h"

#define HB_EXPORT				    __attribute__((visibility("default")))
#define HB_ID_(name, params, args, stream, bytes)   ID_##name,
#define HB_NAME_(name, params, args, stream, bytes) #name,
#define HB_H(x)					    ((u64)(uintptr_t)(x))

/* Marks every window recorded from this library as simulated. */
#define HB_SIM_MARK                                                                                          \
	extern HB_EXPORT const char hb_simulated_accelerator[];                                              \
	const char hb_simulated_accelerator[] = "simulated accelerator";

#endif
