/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/import/head.h"

#include <stdio.h>
#include <string.h>

static void set(char *to, size_t size, struct hb_piece v)
{
	snprintf(to, size, "%.*s", (int)(v.n < size ? v.n : size - 1), v.s);
}

static void take_device(struct hb_head *h, const char *key, unsigned item, struct hb_piece v)
{
	if (item >= HB_HEAD_DEVICES)
		return;
	if (item >= h->n_devices)
		h->n_devices = item + 1;
	if (strcmp(key, "id") == 0)
		set(h->device[item].id, sizeof(h->device[item].id), v);
	else if (strcmp(key, "name") == 0)
		set(h->device[item].name, sizeof(h->device[item].name), v);
	else if (strcmp(key, "numSms") == 0)
		set(h->device[item].sms, sizeof(h->device[item].sms), v);
	else if (strcmp(key, "totalGlobalMem") == 0)
		set(h->device[item].memory, sizeof(h->device[item].memory), v);
}

int hb_head__take(struct hb_head *h, const char *path, unsigned item, struct hb_piece v)
{
	static const char devices[] = "deviceProperties.";
	s64 base;

	if (strncmp(path, devices, sizeof(devices) - 1) == 0)
		take_device(h, path + sizeof(devices) - 1, item, v);
	else if (strcmp(path, "baseTimeNanoseconds") == 0 && hb_text__decimal(v, 0, &base) && base > 0)
		h->base_ns = base;
	else if (strcmp(path, "schemaVersion") == 0)
		h->kineto = true;
	else if (strcmp(path, "traceName") == 0)
		set(h->name, sizeof(h->name), v);
	else if (strcmp(path, "distributedInfo.rank") == 0)
		set(h->rank, sizeof(h->rank), v);
	else if (strcmp(path, "distributedInfo.world_size") == 0)
		set(h->world, sizeof(h->world), v);
	else if (strcmp(path, "herschel.tool") == 0)
		h->ours = true;
	else if (strcmp(path, "herschel.device") == 0)
		h->simulated = true;
	return 0;
}

static void meta(struct hb_window_writer *w, const char *key, const char *value)
{
	if (*value)
		hb_window_writer__meta(w, key, value);
}

static bool has_device(const struct hb_head *const *h, unsigned n, const char *id)
{
	for (unsigned k = 0; k < n; k++)
		for (unsigned i = 0; i < h[k]->n_devices; i++)
			if (strcmp(h[k]->device[i].id, id) == 0)
				return true;
	return false;
}

static void write_devices(const struct hb_head *h, const struct hb_head *const *before, unsigned n,
			  struct hb_window_writer *w)
{
	char key[48];

	for (unsigned i = 0; i < h->n_devices; i++) {
		const char *id = h->device[i].id;

		if (!*id || has_device(before, n, id))
			continue;
		snprintf(key, sizeof(key), "device_%s_name", id);
		meta(w, key, h->device[i].name);
		snprintf(key, sizeof(key), "device_%s_sms", id);
		meta(w, key, h->device[i].sms);
		snprintf(key, sizeof(key), "device_%s_memory", id);
		meta(w, key, h->device[i].memory);
	}
}

void hb_head__write(const struct hb_head *h, struct hb_window_writer *w, s64 shift)
{
	char number[32];

	snprintf(number, sizeof(number), "%lld", (long long)(h->base_ns - shift));
	meta(w, "realtime_offset_ns", number);
	meta(w, "imported_from", h->ours ? "herschel-bpf" : h->kineto ? "PyTorch profiler" : "Chrome trace");
	meta(w, "simulated", h->simulated ? "1" : "0");
	meta(w, "trace_name", h->name);
	meta(w, "rank", h->rank);
	meta(w, "world_size", h->world);
	write_devices(h, NULL, 0, w);
}

void hb_head__write_more(const struct hb_head *h, const struct hb_head *const *before, unsigned n,
			 struct hb_window_writer *w)
{
	write_devices(h, before, n, w);
}
