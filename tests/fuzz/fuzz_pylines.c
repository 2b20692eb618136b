/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Any bytes as the line table of a code object: a line for each instruction, in time that its length bounds.
 */
#include <stdlib.h>
#include <string.h>
#include "capture/python/python.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u32 first, at;

	if (size < 9)
		return 0;
	memcpy(&first, data + 1, sizeof(first));
	memcpy(&at, data + 5, sizeof(at));
	for (u32 i = 0; i < 64; i++)
		if (hb_py_lines__at(data[0] % 3, data + 9, size - 9, first, 2 * i) > INT32_MAX)
			abort();
	hb_py_lines__at(data[0] % 3, data + 9, size - 9, first, at);
	return 0;
}
