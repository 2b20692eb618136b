/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/import/api.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct hb_api_name *find(const char *name)
{
	for (unsigned i = 0; i < hb_n_api_names; i++)
		if (strcmp(hb_api_names[i].name, name) == 0)
			return &hb_api_names[i];
	return NULL;
}

/* Cuts one suffix off: _v2, _v11060, _ptsz, _ptds, _spt. */
static bool cut_suffix(char *name)
{
	static const char *const words[] = {"_ptsz", "_ptds", "_spt"};
	char *last = strrchr(name, '_');

	if (!last || last == name)
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
		if (strcmp(last, words[i]) == 0) {
			*last = 0;
			return true;
		}
	if (last[1] != 'v' || !last[2] || last[2 + strspn(last + 2, "0123456789")])
		return false;
	*last = 0;
	return true;
}

static u8 number(enum hb_words list, const char *word)
{
	int id = hb_word__id(list, word);

	return id < 0 ? 0 : (u8)id;
}

/* cudaFoo, cuFoo, hipFoo, ncclFoo ..: of names that no table has. */
static const char *guess(const char *name, enum hb_layer layer)
{
	static const struct {
		const char *prefix, *api;
	} apis[] = {{"cuda", "cuda-runtime"}, {"cublas", "cublas"}, {"cu", "cuda-driver"},
		    {"hip", "hip"},	      {"nccl", "nccl"},	    {"ze", "level-zero"},
		    {"ur", "level-zero"},     {"cl", "opencl"},	    {"acl", "ascend"}};

	for (size_t i = 0; i < sizeof(apis) / sizeof(*apis); i++) {
		size_t n = strlen(apis[i].prefix);

		if (strncmp(name, apis[i].prefix, n) == 0 && isupper((unsigned char)name[n]))
			return apis[i].api;
	}
	return layer == HB_LAYER_DRIVER ? "driver" : layer == HB_LAYER_RUNTIME ? "runtime" : "library";
}

void hb_api__find(const char *symbol, enum hb_layer layer, char *base, size_t size, struct hb_api *a)
{
	const struct hb_api_name *row = find(symbol);

	snprintf(base, size, "%s", symbol);
	while (!row && cut_suffix(base))
		row = find(base);
	if (row) {
		*a =
		    (struct hb_api){row->api, number(HB_WORDS_CLASS, row->cls),
				    number(HB_WORDS_LAYER, row->layer), number(HB_WORDS_HANDLE, row->handle)};
		return;
	}
	*a = (struct hb_api){.api = guess(base, layer), .layer = (u8)layer};
}
