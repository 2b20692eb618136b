/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef HB_SIM_IMAGE_H
#define HB_SIM_IMAGE_H

#include "sim.h"

struct hb_image;
struct hb_symbol {
	const char *name;
	bool kernel; /* else a variable */
	u32 regs, shared;
	u64 size; /* of a variable */
};

/* An image of our own fronts begins so: it is open, like a fat binary. */
#define HB_IMAGE_OPEN "simulated"

/* NULL: neither cubin nor PTX nor fat binary, or out of memory. */
struct hb_image *hb_image__read(const void *data);
void hb_image__free(struct hb_image *im);
bool hb_image__find(const struct hb_image *im, const char *name, bool kernel, struct hb_symbol *out);

#endif
