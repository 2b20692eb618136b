/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Speed and size of each export format: the synthetic window of made_window.h, or a real one. usage:
 * bench_export MILLION_RECORDS | FILE.hbw
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "analysis/export/export.h"
#include "base/clock.h"
#include "made_window.h"

static ssize_t count(void *cookie, const char *data, size_t size)
{
	*(u64 *)cookie += size;
	return (ssize_t)size;
}

static int measure(struct hb_window *w, const struct hb_exporter *x)
{
	u64 bytes = 0, n = hb_window__info(w)->records, began = hb_clock__read(CLOCK_PROCESS_CPUTIME_ID);
	FILE *out = fopencookie(&bytes, "w", (cookie_io_functions_t){.write = count});
	struct hb_error e = {0};
	struct rusage use;
	double s;
	int rc;

	if (!out)
		return 1;
	rc = x->run(w, out, &e);
	fclose(out);
	s = (double)(hb_clock__read(CLOCK_PROCESS_CPUTIME_ID) - began) / 1e9;
	getrusage(RUSAGE_SELF, &use);
	if (rc)
		fprintf(stderr, "%s: %s\n", x->name, e.text);
	else
		printf("%-10s %6.2f M records per CPU second, %6.1f bytes per record, peak memory so far %ld "
		       "MB\n",
		       x->name, (double)n / s / 1e6, (double)bytes / (double)n, use.ru_maxrss / 1024);
	return rc;
}

int main(int argc, char **argv)
{
	char *end, path[] = "/tmp/bench_export.XXXXXX";
	u64 n = strtoull(argc > 1 ? argv[1] : "3", &end, 10) * 1000000;
	struct hb_error e = {0};
	bool made = !*end && n;
	int rc = 0, fd = made ? mkstemp(path) : -1;
	struct hb_window *w = NULL;

	if (fd >= 0)
		close(fd);
	if (!made)
		w = hb_window__open(argv[1], &e);
	else if (fd >= 0 && !make_window(path, n, &e))
		w = hb_window__open(path, &e);
	if (!w)
		fprintf(stderr, "bench_export: %s\n", e.text);
	for (const struct hb_exporter *const *x = hb_exporters(); *x && w; x++)
		rc |= measure(w, *x);
	hb_window__close(w);
	if (fd >= 0)
		unlink(path);
	return !w || rc;
}
