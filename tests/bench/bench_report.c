/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How fast a window is read, counted and exported: the window of made_window.h, then each reader over it.
 * usage: bench_report [MILLION_RECORDS] [FILE]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/export/export.h"
#include "analysis/model/model.h"
#include "analysis/report/report.h"
#include "base/clock.h"
#include "made_window.h"

static u64 began;

static void show(const char *what, u64 n)
{
	double s = (double)(hb_clock__read(CLOCK_PROCESS_CPUTIME_ID) - began) / 1e9;

	printf("%-14s %6.2f M records per CPU second (%.2f s)\n", what, (double)n / s / 1e6, s);
	began = hb_clock__read(CLOCK_PROCESS_CPUTIME_ID);
}

static void measure(struct hb_window *w, u64 n)
{
	FILE *null = fopen("/dev/null", "w");
	struct hb_record r;
	u64 sum = 0;

	began = hb_clock__read(CLOCK_PROCESS_CPUTIME_ID);
	while (hb_window__next(w, &r) > 0)
		sum += r.ts;
	show(sum ? "read only" : "nothing", n);
	hb_model__free(hb_model__build(w, NULL));
	show("model", n);
	hb_report__text(w, null, &(struct hb_report_opts){.rows = 40}, NULL);
	show("report", n);
	hb_exporter__find("ndjson")->run(w, null, NULL);
	show("ndjson", n);
	hb_exporter__find("folded")->run(w, null, NULL);
	show("folded", n);
	fclose(null);
}

int main(int argc, char **argv)
{
	u64 n = (argc > 1 ? strtoull(argv[1], NULL, 10) : 10) * 1000000;
	const char *path = argc > 2 ? argv[2] : "/tmp/bench_report.hbw";
	struct hb_error e = {0};
	struct hb_window *w = make_window(path, n, &e) ? NULL : hb_window__open(path, &e);

	if (w)
		measure(w, n);
	else
		fprintf(stderr, "bench_report: %s\n", e.text);
	hb_window__close(w);
	unlink(path);
	return !w;
}
