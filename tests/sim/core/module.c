/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <stdlib.h>
#include <string.h>
#include "sim.h"

/* Images are never read: kernels do nothing, only their names and costs matter. */
CUresult hb_module__load(struct hb_module **m)
{
	*m = hb_handle__new(HB_MODULE);
	return *m ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult hb_module__function(struct hb_module *m, const char *name, struct hb_function **f)
{
	char *copy;

	if (!name || !*name)
		return CUDA_ERROR_NOT_FOUND;
	copy = strdup(name);
	*f = copy ? hb_handle__new(HB_FUNCTION) : NULL;
	if (!*f) {
		free(copy);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	(*f)->name = copy;
	(*f)->collective = !strncmp(name, "ncclDevKernel", 13);
	m->functions++;
	return CUDA_SUCCESS;
}
