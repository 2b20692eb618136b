/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Plausible words of both layouts: each an offset that fits into its struct. */
#include <stdio.h>
#include <string.h>
#include "capture/python/python.h"

static int write_words(const char *folder, const char *name, unsigned minor, size_t n)
{
	u64 words[HB_PY_PUBLISHED_WORDS];
	char path[4096];
	FILE *f;

	for (size_t i = 0; i < HB_PY_PUBLISHED_WORDS; i++)
		words[i] = 64;
	memcpy(words, "xdebugpy", 8);
	words[1] = 3u << 24 | minor << 16;
	words[2] = 0;
	/* sizes of structs: interpreter, thread, frame, code */
	words[6] = words[n == 73 ? 19 : 22] = words[n == 73 ? 28 : 31] = words[n == 73 ? 34 : 39] = 512;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	if (!f)
		return 1;
	fwrite(words, 8, n, f);
	return fclose(f) != 0;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	return write_words(argv[1], "3.13", 13, 73) || write_words(argv[1], "3.14", 14, 95);
}
