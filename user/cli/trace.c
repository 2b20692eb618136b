/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `herschel-bpf trace`: records a window, with its progress, and says what is in it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/report/report.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/trace_args.h"
#include "cli/trace_plan.h"

/* ---- signals and progress ---- */

static volatile int stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = stop + 1;
}

static void catch_signals(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

struct progress {
	bool tty;
	u64 last_events, last_elapsed;
	struct hb_progress end;
};

static void show_progress(const struct hb_progress *p, void *arg)
{
	struct progress *st = arg;
	char events[32], rate[32], bytes[32], lost[32];
	u64 dt = p->elapsed - st->last_elapsed;

	st->end = *p;
	if (!st->tty || !dt)
		return;
	hb_text__count(events, sizeof(events), p->events);
	hb_text__count(rate, sizeof(rate), (p->events - st->last_events) * 1000000000ULL / dt);
	hb_text__bytes(bytes, sizeof(bytes), p->bytes);
	hb_text__count(lost, sizeof(lost), p->lost);
	fprintf(stderr, "\r\033[K%4.1fs of %.1fs  %s events  %s/s  %s  lost %s  %u processes",
		(double)p->elapsed / 1e9, (double)p->duration / 1e9, events, rate, bytes, lost, p->processes);
	st->last_events = p->events;
	st->last_elapsed = p->elapsed;
}

/* ---- result ---- */

/* Records lost. A tick that did not come is none: no sample is owed for a time at which nobody looked. */
static u64 total_loss(struct hb_window *w)
{
	u32 n;
	const struct hb_loss_row *rows = hb_window__losses(w, &n);
	u64 sum = 0;

	for (u32 i = 0; i < n; i++)
		if (rows[i].cause != HB_LOSS_MISSED || rows[i].type != HB_TYPE_sample)
			sum += rows[i].count;
	return sum;
}

static int summarise(const char *path, const struct hb_trace_args *a)
{
	struct hb_error e = {0};
	struct hb_summary_opts so = {0};
	struct hb_window *w = hb_window__open(path, &e);
	u64 records, lost;
	int rc = HB_EXIT_OK;

	if (!w)
		return hb_cli__fail(&e);
	if (hb_report__summary(w, stdout, &so)) {
		hb_error__set(&e, HB_EXIT_FAILED, -EIO,
			      "the summary could not be printed; the window is kept in %s", path);
		rc = hb_cli__fail(&e);
	}
	records = hb_window__info(w)->records;
	lost = total_loss(w);
	hb_window__close(w);
	if (rc == HB_EXIT_OK && a->strict >= 0 && (double)lost > a->strict * (double)(records + lost)) {
		fprintf(stderr, "herschel-bpf: %llu of %llu records were lost, more than --strict allows\n",
			(unsigned long long)lost, (unsigned long long)(records + lost));
		return HB_EXIT_LOSS;
	}
	return rc;
}

static int trace(struct hb_trace_args *a)
{
	struct progress st = {.tty = isatty(STDERR_FILENO) && !a->quiet};
	struct hb_session *s;
	char path[4096];
	int err;

	catch_signals();
	s = hb_session__new(&a->o, &a->error);
	if (!s)
		return hb_cli__fail(&a->error);
	snprintf(path, sizeof(path), "%s", hb_session__path(s));
	hb_note("tracing for %.1f s into %s", (double)a->o.duration / 1e9, path);
	err = hb_session__run(s, &stop, show_progress, &st, &a->error);
	if (st.tty)
		fputs("\r\033[K", stderr);
	if (hb_session__ended_by(s))
		hb_note("window closed: %s", hb_session__ended_by(s));
	hb_session__free(s);
	if (err)
		return hb_cli__fail(&a->error);
	return summarise(path, a);
}

static int run(int argc, char **argv)
{
	struct hb_trace_args a;
	struct hb_trace_plan *plan = NULL;
	int rc;

	hb_cli_trace__defaults(&a);
	rc = hb_cli_trace__parse(argc, argv, &a);
	if (rc == HB_CLI_GO) {
		hb_quiet(a.quiet);
		if (!a.plan && a.signers)
			hb_error__set(&a.error, HB_EXIT_USAGE, -EINVAL, "--signers is for --plan");
		else if (a.plan)
			plan = hb_trace_plan__take(&a);
		else
			hb_cli_trace__given_facts(&a);
		rc = a.error.err || hb_cli_trace__check(&a) ? hb_cli__fail(&a.error) : trace(&a);
	}
	hb_trace_plan__free(plan);
	hb_cli_trace__free(&a);
	return rc;
}

HB_COMMAND(trace) = {
    .name = "trace",
    .doc = "record a window of a live process and say what happened",
    .run = run,
};
