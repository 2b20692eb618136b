/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/json.h"
#include "base/text.h"
#include "capture/session/doctor.h"
#include "cli/cli.h"
#include "cli/target_args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

enum key { KEY_JSON = 0x100 };

struct args {
	struct hb_selector target;
	bool json;
	struct hb_error error;
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Target (optional, one of): what would work on these processes", 1},
    HB_TARGET_OPTIONS(1),
    {NULL, 0, NULL, 0, "Result:", 2},
    {"json", KEY_JSON, NULL, 0, "print JSON", 2},
    {0},
};

static int parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	if (key == KEY_JSON) {
		a->json = true;
		return 0;
	}
	if (key == ARGP_KEY_ARG) {
		hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
			      "\"%s\" is not an option; name a target with -p, --cgroup or --name", arg);
		return EINVAL;
	}
	return hb_cli__target_option(key, arg, &a->target);
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc = "Tries out whether tracing would work here, and says what to do about each \"no\".\v"
	   "Exit status: 0 when tracing would work, 4 when it would not.",
};

static const char *answer_word(const struct hb_diagnosis *d)
{
	static const char *const words[] = {
	    [HB_ANSWER_NO] = "no", [HB_ANSWER_YES] = "yes", [HB_ANSWER_UNTESTED] = "?"};

	return words[d->answer];
}

static void print_row(const struct hb_diagnosis *d)
{
	printf("  %-4s %s%s%s\n", answer_word(d), d->title, d->detail[0] ? ": " : "", d->detail);
	if (d->answer == HB_ANSWER_YES)
		return;
	printf("       needed for %s\n", d->needed_for);
	if (d->remedy[0])
		printf("       remedy: %s\n", d->remedy);
}

static void print_part(const struct hb_diagnosis *rows, u32 n, u32 pid, enum hb_need need,
		       const char *heading)
{
	bool any = false;

	for (u32 i = 0; i < n; i++) {
		if (rows[i].pid != pid || (!pid && rows[i].need != need))
			continue;
		if (!any)
			printf("%s\n", heading);
		any = true;
		print_row(&rows[i]);
	}
}

static void print_text(const struct hb_doctor *d)
{
	struct utsname u = {0};
	u32 n, last = 0;
	const struct hb_diagnosis *rows = hb_doctor__rows(d, &n);

	uname(&u);
	printf("herschel-bpf %s on Linux %s (%s)\n", HB_VERSION, u.release, u.machine);
	print_part(rows, n, 0, HB_NEED_MUST, "\nWithout these nothing can be traced:");
	print_part(rows, n, 0, HB_NEED_FEATURE, "\nWithout these something is missing or slower:");
	print_part(rows, n, 0, HB_NEED_FACT, "\nSettings that explain the above:");
	for (u32 i = 0; i < n; i++) {
		char heading[48];

		if (!rows[i].pid || rows[i].pid == last)
			continue;
		last = rows[i].pid;
		snprintf(heading, sizeof(heading), "\nProcess %u:", last);
		print_part(rows, n, last, HB_NEED_MUST, heading);
	}
	printf("\nTracing %s work here.\n", hb_doctor__usable(d) ? "would" : "would not");
}

static void json_row(struct hb_json *j, const struct hb_diagnosis *d)
{
	static const char *const needs[] = {
	    [HB_NEED_MUST] = "must", [HB_NEED_FEATURE] = "feature", [HB_NEED_FACT] = "fact"};
	static const char *const answers[] = {
	    [HB_ANSWER_NO] = "no", [HB_ANSWER_YES] = "yes", [HB_ANSWER_UNTESTED] = "untested"};

	hb_json__object(j);
	hb_json__kstring(j, "id", d->id);
	if (d->pid)
		hb_json__ku64(j, "pid", d->pid);
	hb_json__kstring(j, "title", d->title);
	hb_json__kstring(j, "answer", answers[d->answer]);
	hb_json__kstring(j, "need", needs[d->need]);
	hb_json__kstring(j, "needed_for", d->needed_for);
	hb_json__kstring(j, "detail", d->detail);
	if (d->remedy[0])
		hb_json__kstring(j, "remedy", d->remedy);
	hb_json__end(j);
}

static int print_json(const struct hb_doctor *d, struct hb_error *e)
{
	struct hb_json *j = hb_json__new(stdout, true);
	struct utsname u = {0};
	u32 n;
	const struct hb_diagnosis *rows = hb_doctor__rows(d, &n);

	if (!j)
		return hb_error__nomem(e, "the output");
	uname(&u);
	hb_json__object(j);
	hb_json__kstring(j, "version", HB_VERSION);
	hb_json__kstring(j, "kernel", u.release);
	hb_json__kstring(j, "machine", u.machine);
	hb_json__kbool(j, "usable", hb_doctor__usable(d));
	hb_json__karray(j, "checks");
	for (u32 i = 0; i < n; i++)
		json_row(j, &rows[i]);
	hb_json__end(j);
	hb_json__end(j);
	hb_json__newline(j);
	return hb_json__free(j); /* a failed write is told by main, once */
}

static int run(int argc, char **argv)
{
	struct args a = {0};
	int rc = hb_cli__parse(&argp, argc, argv, &a, &a.error);
	struct hb_doctor *d = NULL;
	u32 *pids = NULL, n = 0;

	if (rc != HB_CLI_GO)
		return rc;
	if (hb_cli__has_target(&a.target) && hb_selector__resolve(&a.target, &pids, &n, &a.error))
		return hb_cli__fail(&a.error);
	d = hb_doctor__run(pids, n, &a.error);
	free(pids);
	if (!d)
		return hb_cli__fail(&a.error);
	if (a.json)
		print_json(d, &a.error);
	else
		print_text(d);
	rc = a.error.err ? hb_cli__fail(&a.error) : hb_doctor__usable(d) ? HB_EXIT_OK : HB_EXIT_KERNEL;
	hb_doctor__free(d);
	return rc;
}

HB_COMMAND(doctor) = {
    .name = "doctor",
    .doc = "try out whether tracing would work here; every \"no\" with its remedy",
    .run = run,
};
