/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "base/json.h"
#include "base/text.h"
#include "capture/session/survey.h"
#include "cli/args.h"
#include "cli/cli.h"

#include <pwd.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum key { KEY_JSON = 0x100 };

struct args {
	bool json;
	struct hb_error error;
};

static const struct argp_option options[] = {
    {"json", KEY_JSON, NULL, 0, "print JSON", 1},
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
		hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL, "\"%s\": ps takes no argument", arg);
		return EINVAL;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc = "Lists processes that use an accelerator library or Python, and what tracing would see of each.",
};

static const char *user_name(uid_t uid, char *buf, size_t size)
{
	const struct passwd *pw = getpwuid(uid);

	if (pw && pw->pw_name)
		snprintf(buf, size, "%s", pw->pw_name);
	else
		snprintf(buf, size, "%u", uid);
	return hb_text__clean(buf);
}

/* ---- text ---- */

static void print_library(const struct hb_survey_library *l)
{
	printf("        %s %s%s: ", l->api, l->path, l->deleted ? " (deleted)" : "");
	if (!l->visible)
		printf("no, %s\n", l->why);
	else if (l->probes)
		printf("%u probes\n", l->probes);
	else
		printf("nothing to probe (see below, or --layers)\n");
}

static void print_row(const struct hb_survey_row *r)
{
	const struct hb_process *p = r->p;
	char user[64], rss[32];

	printf("%7u %6u %-10.10s %-12.12s %7u %10s  %s%s%s\n", p->pid, p->nspid,
	       user_name(p->uid, user, sizeof(user)), p->container[0] ? p->container : "-", p->n_threads,
	       hb_text__bytes(rss, sizeof(rss), p->rss), p->comm, r->python[0] ? "  Python " : "", r->python);
	if (p->cmdline[0])
		printf("        %.100s\n", p->cmdline);
	for (u32 i = 0; i < r->n_libs; i++)
		print_library(&r->libs[i]);
	for (u32 i = 0; i < r->n_remarks; i++)
		printf("        %s\n", r->remarks[i]);
	if (r->stripped)
		printf("        the program is stripped: its native frames are shown as file and offset\n");
}

static void print_text(const struct hb_survey *s)
{
	u32 n, hidden = hb_survey__hidden(s);
	const struct hb_survey_row *rows = hb_survey__rows(s, &n);

	if (n)
		printf("%7s %6s %-10s %-12s %7s %10s  %s\n", "PID", "NSPID", "USER", "CONTAINER", "THREADS",
		       "RSS", "NAME");
	else
		printf("No process uses an accelerator library or Python.\n");
	for (u32 i = 0; i < n; i++)
		print_row(&rows[i]);
	if (hidden)
		hb_warn("%u process%s may not be inspected and may use an accelerator too: %s", hidden,
			hidden == 1 ? "" : "es", hb_process__denied_remedy());
}

/* ---- JSON ---- */

static void json_library(struct hb_json *j, const struct hb_survey_library *l)
{
	hb_json__object(j);
	hb_json__kstring(j, "api", l->api);
	hb_json__kstring(j, "layer", hb_word(HB_WORDS_LAYER, l->layer));
	hb_json__kstring(j, "path", l->path);
	hb_json__kbool(j, "deleted", l->deleted);
	hb_json__kbool(j, "visible", l->visible);
	hb_json__ku64(j, "probes", l->probes);
	if (l->why[0])
		hb_json__kstring(j, "why", l->why);
	hb_json__end(j);
}

static void json_identity(struct hb_json *j, const struct hb_process *p)
{
	char user[64];

	hb_json__ku64(j, "pid", p->pid);
	hb_json__ku64(j, "nspid", p->nspid);
	hb_json__ku64(j, "ppid", p->ppid);
	hb_json__ku64(j, "uid", p->uid);
	hb_json__kstring(j, "user", user_name(p->uid, user, sizeof(user)));
	hb_json__kstring(j, "comm", p->comm);
	hb_json__kstring(j, "exe", p->exe);
	hb_json__kstring(j, "cmdline", p->cmdline);
	hb_json__kstring(j, "cgroup", p->cgroup);
	hb_json__kstring(j, "container", p->container);
	hb_json__ku64(j, "threads", p->n_threads);
	hb_json__ku64(j, "rss", p->rss);
}

static void json_row(struct hb_json *j, const struct hb_survey_row *r)
{
	hb_json__object(j);
	json_identity(j, r->p);
	hb_json__kbool(j, "inspected", !r->p->denied);
	hb_json__kbool(j, "is_64bit", !r->p->is_32bit);
	hb_json__kbool(j, "seccomp", r->p->seccomp != 0);
	hb_json__kbool(j, "stripped", r->stripped);
	hb_json__kstring(j, "python", r->python[0] ? r->python : NULL);
	hb_json__karray(j, "libraries");
	for (u32 i = 0; i < r->n_libs; i++)
		json_library(j, &r->libs[i]);
	hb_json__end(j);
	hb_json__karray(j, "remarks");
	for (u32 i = 0; i < r->n_remarks; i++)
		hb_json__string(j, r->remarks[i]);
	hb_json__end(j);
	hb_json__end(j);
}

static int print_json(const struct hb_survey *s, struct hb_error *e)
{
	struct hb_json *j = hb_json__new(stdout, true);
	u32 n;
	const struct hb_survey_row *rows = hb_survey__rows(s, &n);

	if (!j)
		return hb_error__nomem(e, "the output");
	hb_json__object(j);
	hb_json__ku64(j, "hidden", hb_survey__hidden(s));
	hb_json__karray(j, "processes");
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
	struct hb_survey *s;

	if (rc != HB_CLI_GO)
		return rc;
	s = hb_survey__new(NULL, 0, &a.error);
	if (!s)
		return hb_cli__fail(&a.error);
	if (a.json)
		print_json(s, &a.error);
	else
		print_text(s);
	hb_survey__free(s);
	return a.error.err ? hb_cli__fail(&a.error) : HB_EXIT_OK;
}

HB_COMMAND(ps) = {
    .name = "ps",
    .doc = "processes worth tracing, and what would work on each",
    .run = run,
};
