/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How fast a window is read and reported: the window of made_window.h, then each reader over it, in turn.
 * usage: bench_report [MILLION_RECORDS] [FILE]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/model/model.h"
#include "analysis/report/report.h"
#include "bench.h"
#include "made_window.h"

/* ---- the readers, in turn ---- */

enum reader { READ, MODEL, REPORT, JSON, READERS };
static const char *const names[READERS] = {"read only", "model", "report", "report --json"};

static int read_with(enum reader reader, struct hb_window *w, FILE *null)
{
	struct hb_record r;
	u64 sum = 0;

	switch (reader) {
	case READ:
		while (hb_window__next(w, &r) > 0)
			sum += r.ts;
		return sum ? 0 : -1;
	case MODEL:
		hb_model__free(hb_model__build(w, NULL));
		return 0;
	case REPORT:
		return hb_report__text(w, null, &(struct hb_report_opts){.rows = 40}, NULL);
	default:
		return hb_report__json(w, null, NULL);
	}
}

/* Each reader opens the file for itself, as a command does. */
static int measure(const char *path, u64 n, struct bench_values *rate, struct hb_error *e)
{
	FILE *null = fopen("/dev/null", "w");
	int err = null ? 0 : -1;

	for (unsigned i = 0; !err && i < READERS; i++) {
		double cpu = bench__cpu_s(RUSAGE_SELF);
		struct hb_window *w = hb_window__open(path, e);

		err = w ? read_with(i, w, null) : -1;
		hb_window__close(w);
		bench__add(&rate[i], (double)n / (bench__cpu_s(RUSAGE_SELF) - cpu) / 1e6);
	}
	if (null)
		fclose(null);
	return err;
}

static void print(struct bench_values *rate, u64 n)
{
	double unit = bench__unit();
	struct rusage u;

	printf("a window of %.0f M records, %u rounds; unit: a bare getppid, %.0f ns\n", (double)n / 1e6,
	       rate[0].n, unit);
	for (unsigned i = 0; i < READERS; i++)
		printf("  %-13s %6.2f M records per CPU second [%.2f..%.2f], %5.2f units a record\n",
		       names[i], bench__at(&rate[i], .5), bench__at(&rate[i], 0), bench__at(&rate[i], 1),
		       1e3 / bench__at(&rate[i], .5) / unit);
	getrusage(RUSAGE_SELF, &u);
	printf("  peak RSS %.1f MiB\n", (double)u.ru_maxrss / 1024);
	bench__target("report of a window at 5 M records/s", bench__at(&rate[REPORT], .5) >= 5);
}

int main(int argc, char **argv)
{
	u64 n = (argc > 1 ? strtoull(argv[1], NULL, 10) : 10) * 1000000;
	const char *path = argc > 2 ? argv[2] : "/tmp/bench_report.hbw";
	struct bench_values rate[READERS] = {0};
	struct hb_error e = {0};
	int err = make_window(path, n, &e);

	for (int i = 0; !err && i < 3; i++)
		err = measure(path, n, rate, &e);
	if (err)
		fprintf(stderr, "bench_report: %s\n", e.text);
	else
		print(rate, n);
	unlink(path);
	return err != 0;
}
