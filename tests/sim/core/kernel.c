/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernel.h"

#define MAX_ROWS     512
#define SM_THREADS   2048
#define SM_BLOCKS    32
#define SM_SHARED    233472
#define MEMORY_SHARE 2 /* half of the SMs are enough for the whole bandwidth */

struct row {
	char glob[120];
	u64 ns, wave;
	double bytes, flops; /* per thread */
	double reach;	     /* part of bandwidth and peak */
	u32 peak;
	bool zero;
};
static struct row rows[MAX_ROWS] = {{.reach = 1}}; /* rows[0]: kernel_ns, when that is set */
static u32 n_rows = 1, n_own;			   /* those before n_own are from HB_SIM_COSTS */

static const char table[] =
#include "h100.tbl.h"
    ;

enum { BF16, FP8, FP32, N_PEAKS };
static const char *const peak_names[N_PEAKS] = {"bf16", "fp8", "fp32"};

static u64 peak_of(u32 peak)
{
	const u64 flops[N_PEAKS] = {hb_costs.bf16_flops, hb_costs.fp8_flops, hb_costs.fp32_flops};

	return flops[peak];
}

static bool set_peak(struct row *r, const char *name)
{
	for (r->peak = 0; r->peak < N_PEAKS; r->peak++)
		if (!strcmp(name, peak_names[r->peak]))
			return true;
	return false;
}

static bool set(struct row *r, char *word)
{
	char *value = strchr(word, '=');
	const char *key = value ? word : "ns"; /* a number alone is nanoseconds */
	double v;

	if (value)
		*value++ = 0;
	else
		value = word;
	if (!strcmp(key, "peak"))
		return set_peak(r, value);
	if (!strcmp(key, "result"))
		return (r->zero = !strcmp(value, "zero"));
	if (!hb_settings__number(value, &v))
		return false;
	if (!strcmp(key, "ns"))
		r->ns = (u64)v;
	else if (!strcmp(key, "wave"))
		r->wave = (u64)v;
	else if (!strcmp(key, "bytes"))
		r->bytes = v;
	else if (!strcmp(key, "flops"))
		r->flops = v;
	else if (!strcmp(key, "reach") && v > 0 && v <= 1)
		r->reach = v;
	else
		return false;
	return true;
}

bool hb_kernel__row(char *text)
{
	struct row r = {.peak = FP32, .reach = 1};
	char *save = NULL, *word = strtok_r(text, " \t", &save);

	if (!word || strlen(word) >= sizeof(r.glob) || n_rows == MAX_ROWS)
		return false;
	snprintf(r.glob, sizeof(r.glob), "%s", word);
	word = strtok_r(NULL, " \t", &save);
	if (!word)
		return false;
	for (; word; word = strtok_r(NULL, " \t", &save))
		if (!set(&r, word))
			return false;
	rows[n_rows++] = r;
	return true;
}

void hb_kernel__default(void)
{
	char line[256];

	n_own = n_rows;
	for (const char *p = table; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(p, "#\n"), p);
		if (!strncmp(line, "kernel", 6) && !hb_kernel__row(line + 6))
			fprintf(stderr, "simulated accelerator: table of kernels: not understood: %s\n",
				line);
	}
	rows[0].ns = hb_costs.kernel_ns;
}

/* Once per function: names are long, and globs are many. */
static u16 find(const char *name)
{
	for (u32 i = 1; i < n_rows; i++) {
		if (i == n_own && hb_costs.kernel_ns != HB_KERNEL_BY_TABLE)
			return 0;
		if (!fnmatch(rows[i].glob, name, 0))
			return (u16)i;
	}
	return 0;
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

static double share(double blocks, double of)
{
	return blocks >= of ? 1 : blocks / of;
}

static u64 blocks_at_once(const struct hb_work *w, u64 threads)
{
	u64 n = SM_THREADS / (threads > SM_THREADS ? SM_THREADS : threads);

	if (n > SM_BLOCKS)
		n = SM_BLOCKS;
	if (w->shared && SM_SHARED / w->shared < n)
		n = SM_SHARED / w->shared;
	return (n ? n : 1) * hb_costs.sms;
}

static bool hinted(const struct hb_work *w)
{
	return w->bytes || w->flops;
}

u64 hb_kernel__cost(struct hb_function *f, const struct hb_work *w)
{
	u64 blocks = (u64)w->grid[0] * w->grid[1] * w->grid[2];
	u64 threads = (u64)w->block[0] * w->block[1] * w->block[2];
	const struct row *r;
	double ns = 0, bytes, flops;

	if (!f->row)
		f->row = (u16)(find(f->name) + 1);
	r = &rows[f->row - 1];
	bytes = hinted(w) ? (double)w->bytes : r->bytes * (double)(blocks * threads);
	flops = hinted(w) ? (double)w->flops : r->flops * (double)(blocks * threads);
	if (r->wave && !hinted(w))
		ns = (double)((blocks + blocks_at_once(w, threads) - 1) / blocks_at_once(w, threads) *
			      r->wave);
	if (bytes > 0)
		ns = larger(ns, bytes * 1e9 / (double)hb_costs.hbm_bps / r->reach /
				    share((double)blocks * MEMORY_SHARE, (double)hb_costs.sms));
	if (flops > 0)
		ns = larger(ns, flops * 1e9 / (double)peak_of(r->peak) / r->reach /
				    share((double)blocks, (double)hb_costs.sms));
	return r->ns + (u64)ns;
}

bool hb_kernel__zero(const struct hb_function *f)
{
	return f->row && rows[f->row - 1].zero;
}
