/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a call is, by its name: the words of the probe tables, which are turned into hb_api_names at build
 * time. */
#ifndef HB_IMPORT_API_H
#define HB_IMPORT_API_H

#include "schema/schema.h"

struct hb_api_name { /* one row of a probe table */
	const char *name, *api, *cls, *layer, *handle;
};
extern const struct hb_api_name hb_api_names[];
extern const unsigned hb_n_api_names;

struct hb_api {
	const char *api; /* cuda-driver, cuda-runtime, hip, .. */
	u8 cls, layer, handle;
};

/* Fills *a for a function, and into `base` (>= 2 bytes) its name without the suffix of a version. A name that
 * no table has is of class `other`, and of the API that its first letters tell, in the layer that the trace
 * put it into. */
void hb_api__find(const char *symbol, enum hb_layer layer, char *base, size_t size, struct hb_api *a);

#endif
