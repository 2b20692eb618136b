/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/trace_plan.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/cli.h"

/* Start times come from ticks of 10 ms and two clocks. */
#define SAME_START_NS 1000000000ULL

struct hb_trace_plan {
	struct hb_planfile *p;
	char hash[HB_SHA256_TEXT], who[HB_PLANFILE_WHO];
	struct hb_buf pids;
};

void hb_trace_plan__free(struct hb_trace_plan *t)
{
	if (!t)
		return;
	hb_planfile__free(t->p);
	hb_buf__free(&t->pids);
	free(t);
}

int hb_trace_plan__options(const struct hb_planfile *p, struct hb_trace_args *a)
{
	for (u32 i = 0; i < p->n_options && !a->error.err; i++) {
		int key = hb_cli_trace__key(p->option[i].name);

		if (key < 0 || hb_cli_trace__take(key, p->option[i].value, a))
			hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL, "the plan's --%s is not to be had",
				      p->option[i].name);
	}
	return a->error.err;
}

/* ---- what the command line says besides ---- */

static bool same_value(const char *name, const char *a, const char *b)
{
	u64 x, y;

	if (strcmp(name, "duration") == 0 && hb_text__duration(a, &x) == 0 && hb_text__duration(b, &y) == 0)
		return x == y;
	return strcmp(a, b) == 0;
}

static bool names_target(const struct hb_planfile *p, const char *pids)
{
	u32 n = 0;
	char *end;

	for (const char *s = pids; *s; s = *end ? end + 1 : end, n++) {
		unsigned long pid = strtoul(s, &end, 10);
		bool found = false;

		for (u32 i = 0; i < p->n_processes; i++)
			found |= p->process[i].pid == pid;
		if (!found || end == s || (*end && *end != ','))
			return false;
	}
	return n == p->n_processes;
}

static int check_given(const struct hb_planfile *p, int key, const char *arg, struct hb_trace_args *a)
{
	const char *name = hb_cli_trace__name(key), *value = arg ? arg : "", *other = NULL;

	if (hb_cli_trace__is_handling(key))
		return 0;
	if (key == 'p' && names_target(p, value))
		return 0;
	for (u32 i = 0; i < p->n_options; i++) {
		if (strcmp(p->option[i].name, name) != 0)
			continue;
		if (same_value(name, value, p->option[i].value))
			return 0;
		other = p->option[i].value;
	}
	if (other && key != hb_cli_trace__key("calls") && key != hb_cli_trace__key("field"))
		return hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
				     "--%s %s contradicts %s, which was approved with --%s %s", name, value,
				     a->plan, name, other);
	return hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
			     "--%s%s%s is not in %s: it is recorded as it was approved, without more or less",
			     name, *value ? " " : "", value, a->plan);
}

/* From the start: the plan's options, then those of the command line that are not about what is recorded. */
static int rebuild(struct hb_trace_plan *t, struct hb_trace_args *a)
{
	struct hb_trace_args *typed = malloc(sizeof(*typed));
	int err = 0;

	if (!typed)
		return hb_error__nomem(&a->error, "the plan");
	*typed = *a;
	hb_buf__free(&typed->rows);
	hb_cli_trace__defaults(a);
	a->plan = typed->plan;
	a->signers = typed->signers;
	for (unsigned i = 0; i < typed->n_given && !err; i++)
		err = check_given(t->p, typed->given[i].key, typed->given[i].arg, a);
	err = err ? err : hb_trace_plan__options(t->p, a);
	for (unsigned i = 0; i < typed->n_given && !err; i++)
		if (hb_cli_trace__is_handling(typed->given[i].key))
			err = hb_cli_trace__take(typed->given[i].key, typed->given[i].arg, a);
	free(typed);
	return a->error.err;
}

/* ---- the target ---- */

/* Alive, and no other process that was given its number. */
static bool is_there(const struct hb_planfile_process *want)
{
	struct hb_process *p = hb_process__read((u32)want->pid, NULL);
	u64 apart = !p				? UINT64_MAX
		    : p->start > want->start_ns ? p->start - want->start_ns
						: want->start_ns - p->start;
	bool there = p && p->state != 'Z' && apart < SAME_START_NS;

	hb_process__free(p);
	return there;
}

static int find_target(struct hb_trace_plan *t, struct hb_trace_args *a)
{
	const struct hb_planfile *p = t->p;
	const char *name = p->process[0].name;
	u32 found = 0;
	char boot[64];

	if (strcmp(hb_planfile__boot(boot, sizeof(boot)), p->boot) != 0)
		return hb_error__set(
		    &a->error, HB_EXIT_TARGET, -ESRCH,
		    "%s is for process %llu of %s, and not for this machine as it was started last; "
		    "record and analyse a window here",
		    a->plan, (unsigned long long)p->process[0].pid,
		    p->window_host ? p->window_host : "another machine");
	for (u32 i = 0; i < p->n_processes; i++)
		if (is_there(&p->process[i]))
			hb_buf__printf(&t->pids, "%s%llu", found++ ? "," : "",
				       (unsigned long long)p->process[i].pid);
	if (t->pids.oom)
		return hb_error__nomem(&a->error, "the plan");
	if (!found)
		return hb_error__set(
		    &a->error, HB_EXIT_TARGET, -ESRCH,
		    "process %llu%s%s, which %s is for, is gone; record and analyse a window of the "
		    "one that runs now",
		    (unsigned long long)p->process[0].pid, name ? " " : "", name ? name : "", a->plan);
	if (found < p->n_processes)
		hb_warn("%u of %u processes that the plan is for are gone; the others are recorded",
			p->n_processes - found, p->n_processes);
	a->o.target.pids = t->pids.data;
	return 0;
}

/* ---- all together ---- */

/* So that both windows can be read together, and whoever reads this one knows who wanted it. */
static int add_facts(struct hb_trace_plan *t, struct hb_trace_args *a)
{
	struct hb_buf patterns = {0};
	int err = 0;

	for (u32 i = 0; i < t->p->n_reasons; i++)
		hb_buf__printf(&patterns, "%s%s", i ? " " : "", t->p->reason[i].pattern);
	err = patterns.oom ? hb_error__nomem(&a->error, "the plan") : 0;
	err = err ? err : hb_cli_trace__fact(a, "plan_hash", t->hash);
	err = err ? err : hb_cli_trace__fact(a, "plan_approver", t->who);
	err = err ? err : hb_cli_trace__fact(a, "plan_window", t->p->window_id);
	err = err ? err : hb_cli_trace__fact(a, "plan_patterns", patterns.size ? patterns.data : "");
	for (u32 i = 0; i < t->p->n_options && !err; i++)
		err = hb_cli_trace__option_fact(a, t->p->option[i].name, t->p->option[i].value);
	hb_buf__free(&patterns);
	return err;
}

struct hb_trace_plan *hb_trace_plan__take(struct hb_trace_args *a)
{
	struct hb_trace_plan *t = calloc(1, sizeof(*t));
	struct hb_planfile_owner owner;
	int err;

	if (!t) {
		hb_error__nomem(&a->error, "the plan");
		return NULL;
	}
	t->p = hb_planfile__read(a->plan, &owner, &a->error);
	if (!t->p) {
		hb_trace_plan__free(t);
		return NULL;
	}
	err = hb_planfile__check(t->p, a->plan, &owner, a->signers, t->who, &a->error);
	if (!err && hb_planfile__hash(t->p, t->hash))
		err = hb_error__nomem(&a->error, "the plan");
	err = err ? err : rebuild(t, a);
	err = err ? err : find_target(t, a);
	err = err ? err : add_facts(t, a);
	if (!err) {
		hb_note("plan %s, approved by %s", a->plan, t->who);
		return t;
	}
	hb_trace_plan__free(t);
	return NULL;
}
