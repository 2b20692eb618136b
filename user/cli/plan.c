/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `herschel-bpf plan show|approve FILE`: what a further window would record and cost, and who says yes to it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/trace_plan.h"
#include "planfile/planfile.h"

struct args {
	const char *file, *signers, *key, *name;
	bool json, yes;
	struct hb_error error;
};

static int take_file(struct args *a, const char *arg)
{
	if (a->file)
		return -hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
				      "one plan at a time; \"%s\" is one too many", arg);
	a->file = arg;
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 'j':
		a->json = true;
		return 0;
	case 's':
		a->signers = arg;
		return 0;
	case 'k':
		a->key = arg;
		return 0;
	case 'y':
		a->yes = true;
		return 0;
	case 'a':
		a->name = arg;
		return 0;
	case ARGP_KEY_ARG:
		return take_file(a, arg);
	case ARGP_KEY_END:
		return a->file ? 0
			       : -hb_error__set(
				     &a->error, HB_EXIT_USAGE, -EINVAL,
				     "name the plan: a file that `analyze --plan-out FILE` has written");
	}
	return ARGP_ERR_UNKNOWN;
}

/* ---- show ---- */

static const struct argp_option show_options[] = {
    {"json", 'j', NULL, 0, "Print the plan as JSON", 0},
    {"signers", 's', "FILE", 0,
     "Whose signatures count, as in ssh-keygen(1) (default ~/.ssh/allowed_signers)", 0},
    {0},
};

static const struct argp show_argp = {
    .options = show_options,
    .parser = parse,
    .args_doc = "FILE",
    .doc = "Prints what a plan records, why, for how much, and whether it is approved. Needs no root.",
};

/* As a shell takes it. */
static void print_quoted(const char *s)
{
	if (!s[strcspn(s, " \t'\"\\$`*?[]{}()<>|&;!#~")] && *s) {
		fputs(s, stdout);
		return;
	}
	putchar('\'');
	for (; *s; s++) {
		if (*s == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*s);
	}
	putchar('\'');
}

static void print_option(const struct hb_planfile_option *o)
{
	printf("--%s", o->name);
	if (*o->value) {
		putchar(' ');
		print_quoted(o->value);
	}
}

static void print_target(const struct hb_planfile *p)
{
	printf("Target:   ");
	for (u32 i = 0; i < p->n_processes; i++)
		printf("%s%llu%s%s", i ? ", " : "", (unsigned long long)p->process[i].pid,
		       p->process[i].name ? " " : "", p->process[i].name ? p->process[i].name : "");
	printf("%s\n", hb_planfile__get(p, "no-children") ? "" : " (and descendants)");
}

static void print_window(const struct hb_planfile *p)
{
	char len[32];
	u64 ns = p->window_end_ns > p->window_start_ns ? p->window_end_ns - p->window_start_ns : 0;

	printf("Window:   %s%s%s%s%s\n", p->window_file ? p->window_file : p->window_id,
	       p->window_host ? " of " : "", p->window_host ? p->window_host : "", ns ? ", " : "",
	       ns ? hb_text__ns(len, sizeof(len), ns) : "");
}

static void print_reasons(const struct hb_planfile *p)
{
	printf("\nWhy\n");
	for (u32 i = 0; i < p->n_reasons; i++) {
		const struct hb_planfile_reason *r = &p->reason[i];

		printf("  %s %s%s%s%s\n", r->pattern, r->title ? r->title : "",
		       r->confidence ? " (confidence " : "", r->confidence ? r->confidence : "",
		       r->confidence ? ")" : "");
		if (r->why)
			printf("      open:    %s\n", r->why);
		if (r->records)
			printf("      records: %s\n", r->records);
		if (r->settle)
			printf("      then:    %s\n", r->settle);
	}
	if (!p->n_reasons)
		printf("  no reason is given\n");
}

/* Sums what is known; the rest is said to be unknown, not taken for nothing. */
/* "<= 120 ms" where only a limit is known. */
static void cost_text(const struct hb_planfile_cost *c, char *buf, size_t size)
{
	char t[32];

	if (c->known)
		hb_text__ns(buf, size, c->ns_per_s);
	else if (c->most_ns_per_s)
		snprintf(buf, size, "<= %s", hb_text__ns(t, sizeof(t), c->most_ns_per_s));
	else
		snprintf(buf, size, "unknown");
}

static void print_sum(const struct hb_planfile *p)
{
	u64 sum = 0, most = 0;
	u32 unknown = 0, limited = 0;
	char a[32], b[32], rest[64] = "";

	for (u32 i = 0; i < p->n_costs; i++) {
		const struct hb_planfile_cost *c = &p->cost[i];

		unknown += !c->known && !c->most_ns_per_s;
		limited += !c->known && c->most_ns_per_s;
		if (c->known && __builtin_add_overflow(sum, c->ns_per_s, &sum))
			sum = UINT64_MAX;
		if (!c->known && __builtin_add_overflow(most, c->most_ns_per_s, &most))
			most = UINT64_MAX;
	}
	if (__builtin_add_overflow(sum, most, &most))
		most = UINT64_MAX;
	if (unknown)
		snprintf(rest, sizeof(rest), ": %u %s not known", unknown,
			 unknown == 1 ? "part is" : "parts are");
	hb_text__ns(a, sizeof(a), sum);
	hb_text__ns(b, sizeof(b), most);
	if (!p->n_costs)
		printf("  unknown: the first window told no price\n");
	else if (unknown && !sum && !limited)
		printf("  no part of it is known\n");
	else if (unknown && limited)
		printf("  %s at least, with what is limited %s%s\n", a, b, rest);
	else if (unknown)
		printf("  %s at least%s\n", a, rest);
	else if (limited)
		printf("  %s to %s in all\n", a, b);
	else
		printf("  %s in all\n", a);
}

static void print_cost(const struct hb_planfile *p)
{
	char text[48], price[32], rate[32];

	printf("\nPredicted cost, CPU time per second of the window\n");
	for (u32 i = 0; i < p->n_costs; i++) {
		const struct hb_planfile_cost *c = &p->cost[i];

		cost_text(c, text, sizeof(text));
		printf("  %-12s  %s", text, c->what);
		if (c->known && c->rate && c->price_ns)
			printf(": %s a second of %s each", hb_text__count(rate, sizeof(rate), c->rate),
			       hb_text__ns(price, sizeof(price), c->price_ns));
		printf("%s%s%s\n", c->basis ? " (" : "", c->basis ? c->basis : "", c->basis ? ")" : "");
	}
	print_sum(p);
}

static void print_by_hand(const struct hb_planfile *p)
{
	printf("\nThe same by hand\n  herschel-bpf trace -p ");
	for (u32 i = 0; i < p->n_processes; i++)
		printf("%s%llu", i ? "," : "", (unsigned long long)p->process[i].pid);
	for (u32 i = 0; i < p->n_options; i++) {
		putchar(' ');
		print_option(&p->option[i]);
	}
	putchar('\n');
}

static int show_text(const struct hb_planfile *p, const struct args *a, const struct hb_planfile_owner *owner)
{
	char hash[HB_SHA256_TEXT], who[HB_PLANFILE_WHO];
	struct hb_error why = {0};

	if (hb_planfile__hash(p, hash))
		return -ENOMEM;
	printf("Plan:     %s, sha256 %s\n", a->file, hash);
	print_window(p);
	print_target(p);
	if (hb_planfile__check(p, a->file, owner, a->signers, who, &why) == 0)
		printf("Approved: by %s\n", who);
	else if (!p->approval.plan)
		printf("Approved: no; `herschel-bpf plan approve` does it\n");
	else
		printf("Approved: no: %s\n", why.text);
	printf("\nRecords\n");
	for (u32 i = 0; i < p->n_options; i++) {
		printf("  ");
		print_option(&p->option[i]);
		putchar('\n');
	}
	print_reasons(p);
	print_cost(p);
	print_by_hand(p);
	return 0;
}

static int show(int argc, char **argv)
{
	struct args a = {0};
	struct hb_planfile_owner owner;
	int rc = hb_cli__parse(&show_argp, argc, argv, &a, &a.error);
	struct hb_planfile *p;

	if (rc != HB_CLI_GO)
		return rc;
	p = hb_planfile__read(a.file, &owner, &a.error);
	if (!p)
		return hb_cli__fail(&a.error);
	rc = a.json ? hb_planfile__print(p, stdout) : show_text(p, &a, &owner);
	hb_planfile__free(p);
	if (!rc || ferror(stdout)) /* main() says so */
		return rc ? HB_EXIT_FAILED : HB_EXIT_OK;
	hb_error__set(&a.error, HB_EXIT_FAILED, rc, "the plan could not be printed: %s", strerror(-rc));
	return hb_cli__fail(&a.error);
}

/* ---- approve ---- */

static const struct argp_option approve_options[] = {
    {"key", 'k', "KEY", 0,
     "Sign with this SSH key (a private one, or a public one that ssh-agent has the other of)", 0},
    {"yes", 'y', NULL, 0, "Approve without a key: valid on this machine, until its next start", 0},
    {"as", 'a', "NAME", 0, "Who approves (default: the user)", 0},
    {0},
};

static const struct argp approve_argp = {
    .options = approve_options,
    .parser = parse,
    .args_doc = "FILE",
    .doc = "Says yes to a plan as it is now, so that `trace --plan FILE` records it. Who and when is kept in "
	   "the file; "
	   "any "
	   "later change of it voids the approval.\vdocs/plans.md",
};

/* Nobody shall approve what cannot be recorded. */
static int check_options(const struct hb_planfile *p, struct hb_error *e)
{
	struct hb_trace_args *t = malloc(sizeof(*t));

	if (!t)
		return hb_error__nomem(e, "the plan");
	hb_cli_trace__defaults(t);
	if (hb_trace_plan__options(p, t) == 0)
		hb_cli_trace__check(t);
	if (t->error.err)
		hb_error__set(e, HB_EXIT_USAGE, -EINVAL, "the plan cannot be recorded: %s", t->error.text);
	hb_cli_trace__free(t);
	free(t);
	return e->err;
}

static int approve(int argc, char **argv)
{
	struct args a = {0};
	int rc = hb_cli__parse(&approve_argp, argc, argv, &a, &a.error);
	struct hb_planfile_by by = {0};
	struct hb_planfile *p;

	if (rc != HB_CLI_GO)
		return rc;
	if (!a.key == !a.yes) {
		hb_error__set(&a.error, HB_EXIT_USAGE, -EINVAL,
			      "say how to approve: --key KEY signs it, --yes is for this machine only%s",
			      a.key ? "; not both" : "");
		return hb_cli__fail(&a.error);
	}
	by.key = a.key;
	by.name = a.name;
	p = hb_planfile__read(a.file, NULL, &a.error);
	if (p && check_options(p, &a.error) == 0 && hb_planfile__approve(p, &by, &a.error) == 0 &&
	    hb_planfile__write(p, a.file, true, &a.error) == 0)
		printf("approved by %s%s: sha256 %s\nnow: herschel-bpf trace --plan %s\n", p->approval.by,
		       a.key ? ", signed" : ", on this machine until its next start", p->approval.plan,
		       a.file);
	hb_planfile__free(p);
	return a.error.err ? hb_cli__fail(&a.error) : HB_EXIT_OK;
}

/* ---- which one ---- */

static const struct {
	const char *name, *full, *doc;
	int (*run)(int argc, char **argv);
} verbs[] = {
    {"show", "herschel-bpf plan show", "print what a plan records, why, what it costs, who approved it",
     show},
    {"approve", "herschel-bpf plan approve", "say yes to a plan", approve},
};
#define N_VERBS (sizeof(verbs) / sizeof(*verbs))

static int help(void)
{
	printf("Usage: herschel-bpf plan show|approve FILE [OPTION...]\n\n");
	for (size_t i = 0; i < N_VERBS; i++)
		printf("  %-8s %s\n", verbs[i].name, verbs[i].doc);
	printf("\n`herschel-bpf analyze WINDOW.hbw --plan-out FILE` writes a plan, `herschel-bpf trace "
	       "--plan FILE` "
	       "records "
	       "it.\n`herschel-bpf plan show --help` and so on print the options.\n");
	return HB_EXIT_OK;
}

static int run(int argc, char **argv)
{
	struct hb_error e = {0};
	const char *verb = argc > 1 ? argv[1] : "";

	if (strcmp(verb, "--help") == 0 || strcmp(verb, "-h") == 0 || strcmp(verb, "-?") == 0)
		return help();
	for (size_t i = 0; i < N_VERBS; i++) {
		if (strcmp(verb, verbs[i].name) != 0)
			continue;
		argv[1] = (char *)verbs[i].full;
		return verbs[i].run(argc - 1, argv + 1);
	}
	hb_error__set(&e, HB_EXIT_USAGE, -EINVAL, "%s%s%s; expected `herschel-bpf plan show` or `approve`",
		      *verb ? "\"" : "", *verb ? verb : "nothing to do",
		      *verb ? "\" is no subcommand of plan" : "");
	return hb_cli__fail(&e);
}

HB_COMMAND(plan) = {"plan", "look at what a further window would record, and approve it", run};
