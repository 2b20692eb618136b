/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Any words as what a runtime publishes about itself: refused, or offsets that keep the walk within a frame.
 */
#include <stdlib.h>
#include <string.h>
#include "capture/python/python.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u64 words[HB_PY_PUBLISHED_WORDS];
	size_t n = size / 8 < HB_PY_PUBLISHED_WORDS ? size / 8 : HB_PY_PUBLISHED_WORDS;
	struct hb_py_offsets o;

	memcpy(words, data, 8 * n);
	if (n)
		memcpy(words, "xdebugpy", 8); /* not worth finding */
	if (hb_py_offsets__published(words, n, &o))
		return 0;
	if (o.walk.frame_size > HB_PY_BLOCK || o.walk.back + 8 > o.walk.frame_size ||
	    o.walk.code + 8 > o.walk.frame_size || o.walk.instr + 8 > o.walk.frame_size ||
	    o.walk.owner >= o.walk.frame_size || o.walk.back % 8 || o.walk.code % 8 || o.walk.instr % 8)
		abort();
	return 0;
}
