/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `herschel-bpf analyze FILE..`: why it is slow, in words or as JSON. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/export/output.h"
#include "analysis/model/longest.h"
#include "analysis/patterns/patterns.h"
#include "analysis/report/analyze.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/roofline_args.h"

struct args {
	char **files; /* as typed */
	int n_files;
	bool json, force;
	const char *html, *plan; /* files to write */
	struct hb_analysis_opts o;
	struct hb_thresholds *thresholds; /* those of `o`, to change */
	struct hb_roofline_args roofline; /* the same */
	struct hb_longest_opts critical;
	char *critical_name;
	struct hb_analysis_page page;
	struct hb_error error;
};

enum { LINKED_ONLY = 256, THRESHOLDS, HTML, PLAN_OUT, CRITICAL };

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Print JSON (always complete)", 0},
    {"html", HTML, "FILE", 0, "Write a page for a browser, complete in itself; - is the standard output", 0},
    {"plan-out", PLAN_OUT, "FILE", 0,
     "Write a plan of what a further window should record, where findings rest on too little (docs/plans.md)",
     0},
    {"force", 'F', NULL, 0, "Replace an existing page or plan", 0},
    {"rows", 'r', "N", 0, "Rows of one table, most expensive first; 0 = all (default 15)", 0},
    {"linked-only", LINKED_ONLY, NULL, 0,
     "Leave out device operations that no call in the window launched, as other analyzers do", 0},
    {"threshold", 't', "ID.KEY=VALUE", 0,
     "Another threshold for a pattern, as in p21.wait_share=10%; may be repeated (docs/patterns.md)", 0},
    {"thresholds", THRESHOLDS, "FILE", 0, "The same from a file, one a line", 0},
    {"critical-path", CRITICAL, "NAME[:N]", OPTION_ARG_OPTIONAL,
     "The longest chain of operators, calls and device work of the N-th (from 0) operator or annotation with "
     "NAME "
     "in its name; of engine step N with \"step\"; without a name, of the window (docs/host-model.md)",
     0},
    HB_ROOFLINE_OPTIONS(0),
    {0},
};

static int parse_rows(struct args *a, const char *arg)
{
	char *end;
	long n = strtol(arg, &end, 10);

	if (*end || end == arg || n < 0 || n > 1000000)
		return -hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
				      "--rows takes a number from 0 (all) to 1000000, not \"%s\"", arg);
	a->page.rows = (unsigned)n;
	return 0;
}

/* "aten::mm:3" is the fourth aten::mm; the name of an operator may have colons of its own. */
static int parse_critical(struct args *a, const char *arg)
{
	char *name = strdup(arg ? arg : ""), *colon, *end;
	unsigned long n;

	free(a->critical_name);
	a->critical_name = name;
	if (!name)
		return -hb_error__nomem(&a->error, "a name");
	a->critical = (struct hb_longest_opts){.name = name};
	a->o.critical = &a->critical;
	colon = strrchr(name, ':');
	if (!colon || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1))
		return 0;
	errno = 0;
	n = strtoul(colon + 1, &end, 10);
	if (errno || n >= UINT32_MAX || colon == name)
		return -hb_error__set(
		    &a->error, HB_EXIT_USAGE, -EINVAL,
		    "--critical-path takes NAME or NAME:N, as in ProfilerStep:2, not \"%s\"", arg);
	*colon = '\0';
	a->critical.instance = (u32)n;
	return 0;
}

static int check(struct args *a)
{
	if (a->plan && a->n_files > 1)
		return -hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
				      "--plan-out makes a plan of one window; run it once for each of the %d",
				      a->n_files);
	for (int i = 0; i < a->n_files; i++)
		if ((a->html && hb_file__is_same(a->files[i], a->html)) ||
		    (a->plan && hb_file__is_same(a->files[i], a->plan)))
			return -hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
					      "%s is the window itself; give what is written another name",
					      a->files[i]);
	if (!a->html)
		return 0;
	if (a->json)
		return -hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
				      "--html and --json are two outputs; take one of them");
	if (a->n_files > 1)
		return -hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
				      "--html makes one page of one window; run it once for each of the %d",
				      a->n_files);
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case HTML:
		a->html = arg;
		return 0;
	case PLAN_OUT:
		a->plan = arg;
		return 0;
	case 'F':
		a->force = true;
		return 0;
	case 'r':
		return parse_rows(a, arg);
	case LINKED_ONLY:
		a->o.linked_only = true;
		return 0;
	case CRITICAL:
		return parse_critical(a, arg);
	case 't':
		return -hb_thresholds__set(a->thresholds, arg, &a->error);
	case THRESHOLDS:
		return -hb_thresholds__read(a->thresholds, arg, &a->error);
	case ARGP_KEY_ARGS: /* all files at once */
		a->files = state->argv + state->next;
		a->n_files = state->argc - state->next;
		return check(a);
	case ARGP_KEY_NO_ARGS:
		return -hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
				      "analyze needs a window file: herschel-bpf analyze FILE.hbw");
	}
	return hb_cli__roofline_option(key, arg, &a->roofline, &a->error);
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "FILE.hbw..",
    .doc = "Says why it is slow: a verdict, what was found with its cost, and what the devices did. Several "
	   "files are "
	   "analysed one by one. Needs no root and no traced process.",
};

/* A page appears whole or not at all. */
static int write_page(struct args *a, const char *file, const struct hb_analysis *analysis)
{
	struct hb_output *o = hb_output__new(a->html, a->force, &a->error);
	int rc;

	if (!o)
		return a->error.err;
	rc = hb_analysis__html(analysis, file, hb_output__file(o), &a->error);
	if (rc)
		hb_output__abort(o);
	else
		rc = hb_output__commit(o, &a->error);
	if (!rc && strcmp(a->html, "-") != 0)
		hb_note("the page is %s", a->html);
	return rc;
}

static int write_plan(struct args *a, const char *file, const struct hb_analysis *analysis)
{
	u32 n_open = 0;
	struct hb_planfile *p = hb_analysis__plan(analysis, file, &n_open, &a->error);
	int rc = a->error.err;

	if (p)
		rc = hb_planfile__write(p, a->plan, a->force, &a->error);
	if (p && !rc)
		hb_note("the plan is %s: look at it with `herschel-bpf plan show %s`", a->plan, a->plan);
	else if (!rc && n_open)
		hb_note("no plan is written: %u %s less than sure, but nothing that `trace` can record would "
			"settle %s",
			n_open, n_open == 1 ? "finding is" : "findings are", n_open == 1 ? "it" : "them");
	else if (!rc)
		hb_note("no plan is written: nothing is open that a further window could settle");
	hb_planfile__free(p);
	return rc;
}

static int print(struct args *a, const char *file, struct hb_window *w)
{
	struct hb_analysis *analysis = hb_analysis__new(w, &a->o, &a->error);
	int rc;

	if (!analysis)
		return hb_cli__fail(&a->error);
	if (a->html)
		rc = write_page(a, file, analysis);
	else if (a->json)
		rc = hb_analysis__json(analysis, file, stdout, &a->error);
	else
		rc = hb_analysis__text(analysis, stdout, &a->page, &a->error);
	if (!rc && a->plan)
		rc = write_plan(a, file, analysis);
	hb_analysis__free(analysis);
	if (rc && ferror(stdout)) /* main() says so */
		return HB_EXIT_FAILED;
	if (rc)
		hb_error__set(&a->error, HB_EXIT_FAILED, rc, "the analysis could not be written: %s",
			      strerror(-rc));
	return rc ? hb_cli__fail(&a->error) : HB_EXIT_OK;
}

/* One that cannot be analysed does not keep the others from it; the first failure is the exit status. */
static int analyze(struct args *a)
{
	int rc = HB_EXIT_OK;

	for (int i = 0; i < a->n_files && !ferror(stdout); i++) {
		struct hb_window *w = hb_window__open(a->files[i], &a->error);
		int one;

		if (w && a->n_files > 1 && !a->json)
			printf("%s== %s\n", i ? "\n" : "", a->files[i]);
		one = w ? print(a, a->files[i], w) : hb_cli__fail(&a->error);
		hb_window__close(w);
		hb_error__clear(&a->error);
		rc = rc ? rc : one;
	}
	return rc;
}

static int run(int argc, char **argv)
{
	/* A pipe or a file has no width: what is looked for there (grep) must not be cut. */
	struct args a = {.page.rows = 15, .page.wide = !isatty(STDOUT_FILENO)};
	int rc;

	a.thresholds = hb_thresholds__new();
	if (!a.thresholds) {
		hb_error__nomem(&a.error, "the thresholds");
		return hb_cli__fail(&a.error);
	}
	a.o.thresholds = a.thresholds;
	a.o.roofline = &a.roofline.o;
	if (hb_cli__roofline_init(&a.roofline, &a.error)) {
		hb_thresholds__free(a.thresholds);
		return hb_cli__fail(&a.error);
	}
	rc = hb_cli__parse(&argp, argc, argv, &a, &a.error);
	if (rc == HB_CLI_GO) {
		signal(SIGPIPE, SIG_DFL); /* `analyze | head`: a reader who has seen enough ends it */
		rc = analyze(&a);
	}
	hb_cli__roofline_free(&a.roofline);
	hb_thresholds__free(a.thresholds);
	free(a.critical_name);
	return rc;
}

HB_COMMAND(analyze) = {
    .name = "analyze",
    .doc = "say why it is slow: verdict, findings, devices",
    .run = run,
};
