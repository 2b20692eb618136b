/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Kernel functions by address, from /proc/kallsyms. */
#include "capture/symbols/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"

#define MAX_KSYMS (2u << 20)

struct ksym {
	u64 addr;
	u64 name; /* offset in names */
};

struct hb_ksyms {
	struct hb_buf syms, names;
	u32 n;
};

static int cmp(const void *a, const void *b)
{
	const struct ksym *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void take_line(struct hb_ksyms *k, char *line)
{
	struct ksym s;
	char *end, *name;

	s.addr = strtoull(line, &end, 16);
	if (*end != ' ' || !end[1] || end[2] != ' ' || !strchr("tTwW", end[1]))
		return;
	name = end + 3;
	name[strcspn(name, "\t\n")] = 0; /* a module's name follows a tab */
	if (!s.addr || !*name)
		return;
	s.name = k->names.size;
	hb_buf__add(&k->syms, &s, sizeof(s));
	hb_buf__add(&k->names, name, strlen(name) + 1);
	k->n++;
}

struct hb_ksyms *hb_ksyms__new(void)
{
	struct hb_ksyms *k = calloc(1, sizeof(*k));
	FILE *fp = k ? fopen("/proc/kallsyms", "re") : NULL;
	size_t cap = 0;
	char *line = NULL;

	if (!fp) {
		free(k);
		return NULL;
	}
	while (k->n < MAX_KSYMS && getline(&line, &cap, fp) > 0)
		take_line(k, line);
	free(line);
	fclose(fp);
	if (k->n == 0 || k->syms.oom || k->names.oom) { /* all addresses 0: kptr_restrict hides them */
		hb_ksyms__free(k);
		return NULL;
	}
	qsort(k->syms.data, k->n, sizeof(struct ksym), cmp);
	return k;
}

void hb_ksyms__free(struct hb_ksyms *k)
{
	if (!k)
		return;
	hb_buf__free(&k->syms);
	hb_buf__free(&k->names);
	free(k);
}

const char *hb_ksyms__at(const struct hb_ksyms *k, u64 addr)
{
	const struct ksym *s = (const struct ksym *)(const void *)k->syms.data;
	u32 lo = 0, hi = k->n;

	while (lo < hi) {
		u32 mid = lo + (hi - lo) / 2;

		if (s[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? k->names.data + s[lo - 1].name : NULL;
}
