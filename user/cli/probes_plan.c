/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `herschel-bpf probes show` and `check`: the plan for real processes, printed; and tried. */
#include "cli/probes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/clock.h"
#include "base/text.h"
#include "capture/python/calls.h"
#include "capture/python/events.h"
#include "cli/cli.h"
#include "cli/target_args.h"

#define DETACH_NS 300000000ULL

enum { KEY_LAYERS = 0x500, KEY_SINGLE, KEY_ALL };

struct look {
	struct hb_selector target;
	const char *files[HB_CLI_MAX_TABLES + 1];
	unsigned n_files;
	struct hb_plan_opts plan;
	bool single;
	struct hb_error error;
};

static const struct argp_option options[] = {
    HB_TARGET_OPTIONS(0),
    {"layers", KEY_LAYERS, "LAYERS", 0, "auto (default), runtime, driver or both", 0},
    {"probes", 'P', "FILE", 0, "Put a table of your own before the built-in ones (may be repeated)", 0},
    {"all", KEY_ALL, NULL, 0, "Rows that are off by default too", 0},
    {"single-uprobes", KEY_SINGLE, NULL, 0, "Without uprobe_multi links, as on kernels before 6.6", 0},
    {0},
};

static int parse_layers(struct look *l, const char *word)
{
	static const char *const words[] = {"auto", "runtime", "driver", "both"};

	for (int i = 0; i < 4; i++)
		if (!strcmp(word, words[i])) {
			l->plan.layers = (enum hb_layers)i;
			return 0;
		}
	return -hb_error__set(&l->error, HB_EXIT_USAGE, -EINVAL,
			      "unknown --layers \"%s\"; expected auto, runtime, driver or both", word);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct look *l = state->input;

	switch (key) {
	case KEY_LAYERS:
		return parse_layers(l, arg);
	case KEY_SINGLE:
		l->single = true;
		return 0;
	case KEY_ALL:
		l->plan.all_rows = true;
		return 0;
	case 'P':
		if (l->n_files == HB_CLI_MAX_TABLES)
			return -hb_error__set(&l->error, HB_EXIT_USAGE, -EINVAL,
					      "more than %d times --probes", HB_CLI_MAX_TABLES);
		l->files[l->n_files++] = arg;
		return 0;
	case ARGP_KEY_ARG:
		return -hb_error__set(
		    &l->error, HB_EXIT_USAGE, -EINVAL,
		    "unexpected argument \"%s\"; processes are named by -p, --name or --cgroup", arg);
	default:
		return hb_cli__target_option(key, arg, &l->target);
	}
}

static const struct argp show_argp = {
    options, parse, "",	 "Print what would be probed in these processes. Nothing is attached.",
    NULL,    NULL,  NULL};
static const struct argp check_argp = {
    options,
    parse,
    "",
    "Attach the plan to these processes for a moment with a program that does nothing, "
    "and print what would not attach and why.",
    NULL,
    NULL,
    NULL};

/* ---- one process ---- */

struct seen { /* what has been said, so that the next process adds only what is new */
	u32 remarks, refusals, kernel_refusals;
};

static void print_process(const struct hb_process *proc)
{
	char comm[17] = "";

	memcpy(comm, proc->comm, 16);
	printf("process %u (%s)\n", proc->pid, hb_text__clean(comm));
}

static void print_python_events(const struct hb_process *proc, const struct hb_py_runtime *r)
{
	const struct hb_mapping *m = hb_py_runtime__mapping(r, proc);
	struct hb_py_image image;
	char line[400];

	if (r->state != HB_PY_REFUSED && m && !hb_py_image__read(proc, m, r, &image))
		printf("  %s\n", hb_py_events__describe(proc->pid, r, &image, line, sizeof(line)));
}

static void print_python(const struct hb_process *proc)
{
	char calls[2000];
	struct hb_python *py = hb_python__new(proc);
	const struct hb_py_runtime *r;
	char line[900];
	u32 n = 0;

	r = py ? hb_python__runtimes(py, &n) : NULL;
	for (u32 i = 0; i < n; i++) {
		printf("  %s\n%s", hb_py_runtime__describe(&r[i], line, sizeof(line)),
		       hb_py_calls__describe(proc, &r[i], calls, sizeof(calls)));
		print_python_events(proc, &r[i]);
	}
	hb_python__free(py);
}

static void print_file(const struct hb_plan_file *f, const struct hb_process *proc)
{
	char args[512];
	int width = 8;

	if (!hb_plan_file__mapping(f, proc))
		return;
	printf("  %s\n", f->path);
	for (u32 i = 0; i < f->n_sites; i++)
		width = (int)strlen(f->sites[i].symbol) > width ? (int)strlen(f->sites[i].symbol) : width;
	for (u32 i = 0; i < f->n_sites; i++) {
		const struct hb_site *s = &f->sites[i];

		printf("    %-10s  %-7s  %-6s  %-*s  +0x%-8llx  %s\n", hb_word(HB_WORDS_CLASS, s->row->cls),
		       hb_word(HB_WORDS_LAYER, s->row->layer), s->ret ? "return" : "entry", width, s->symbol,
		       (unsigned long long)s->offset, hb_row__args(s->row, args, sizeof(args)));
	}
}

static void print_remarks(const struct hb_plan *p, struct seen *seen)
{
	u32 n;
	const char *const *r = hb_plan__remarks(p, &n);

	for (; seen->remarks < n; seen->remarks++)
		printf("  note: %s\n", r[seen->remarks]);
}

static void print_refusals(const struct hb_refusal *r, u32 n, u32 *from)
{
	for (; *from < n; (*from)++)
		printf("  refused: %s in %s: %s\n", r[*from].symbol, r[*from].file, r[*from].why);
}

static void show_process(struct hb_plan *p, const struct hb_process *proc, struct seen *seen)
{
	u32 n, n_ref;
	const struct hb_plan_file *const *files = hb_plan__files_of(p, proc->pid, &n);
	const struct hb_refusal *refusals;

	print_process(proc);
	print_python(proc);
	for (u32 i = 0; i < n; i++)
		print_file(files[i], proc);
	if (!n)
		printf("  nothing to probe: no library of the probe tables is mapped\n");
	print_remarks(p, seen);
	refusals = hb_plan__refusals(p, &n_ref);
	print_refusals(refusals, n_ref, &seen->refusals);
}

static void check_file(struct hb_attach *a, struct hb_plan *p, const struct hb_plan_file *f,
		       const struct hb_process *proc)
{
	const struct hb_mapping *m = hb_plan_file__mapping(f, proc);
	const char *absent = hb_plan__absent(p, f);
	struct hb_error why = {0};
	u32 before = hb_attach__links(a);
	int n;

	if (!m)
		return;
	n = hb_attach__file(a, proc, m, f, &why);
	if (n < 0)
		printf("  %s: nothing attaches: %s\n", f->path, why.err ? why.text : strerror(-n));
	else
		printf("  %s: %d of %u functions attach, %u links\n", f->path, n, f->n_sites,
		       hb_attach__links(a) - before);
	if (*absent)
		printf("  not in this version of %s: %s\n", hb_text__basename(f->path), absent);
}

static void check_process(struct hb_attach *a, struct hb_plan *p, const struct hb_process *proc,
			  struct seen *seen)
{
	const struct hb_plan_file *files[64];
	u32 n, n_ref;
	const struct hb_plan_file *const *chosen = hb_plan__files_of(p, proc->pid, &n);
	const struct hb_refusal *refusals;

	print_process(proc);
	print_python(proc);
	if (!n)
		printf("  nothing to probe: no library of the probe tables is mapped\n");
	n = n < 64 ? n : 64;
	memcpy(files, chosen, n * sizeof(*files));
	for (u32 i = 0; i < n; i++)
		check_file(a, p, files[i], proc);
	refusals = hb_attach__refusals(a, &n_ref);
	print_refusals(refusals, n_ref, &seen->kernel_refusals);
	refusals = hb_plan__refusals(p, &n_ref);
	print_refusals(refusals, n_ref, &seen->refusals);
	print_remarks(p, seen);
}

/* ---- all of them ---- */

static int each(struct look *l, const u32 *pids, u32 n, struct hb_plan *p, struct hb_attach *a)
{
	struct seen seen = {0};
	u32 done = 0;

	for (u32 i = 0; i < n; i++) {
		struct hb_error e = {0};
		struct hb_process *proc = hb_process__read(pids[i], &e);
		int err = proc ? hb_plan__add_process(p, proc, &e) : e.err;

		if (proc && err >= 0 && a)
			check_process(a, p, proc, &seen);
		else if (proc && err >= 0)
			show_process(p, proc, &seen);
		else if (n == 1 || err != -ESRCH) /* one of many that is gone meanwhile is no news */
			return hb_error__set(&l->error, (enum hb_exit)e.exit, err, "%s", e.text);
		done += proc != NULL;
		hb_process__free(proc);
	}
	if (!done)
		return hb_error__set(&l->error, HB_EXIT_TARGET, -ESRCH,
				     "every one of these processes has exited");
	return 0;
}

static int look(int argc, char **argv, const struct argp *argp, bool attach)
{
	struct look l = {0};
	int rc = hb_cli__parse(argp, argc, argv, &l, &l.error);
	struct hb_attach *a = NULL;
	struct hb_tables *t = NULL;
	struct hb_plan *p = NULL;
	u32 *pids = NULL, n = 0;

	if (rc != HB_CLI_GO)
		return rc;
	if (!hb_cli__has_target(&l.target))
		hb_error__set(&l.error, HB_EXIT_USAGE, -EINVAL,
			      "which process? give -p PID, --name GLOB or --cgroup PATH");
	else if (!hb_selector__resolve(&l.target, &pids, &n, &l.error))
		t = hb_cli_probes__tables(l.files, &l.error);
	if (t && !(p = hb_plan__new(t, &l.plan)))
		hb_error__nomem(&l.error, "the plan");
	if (p && attach)
		a = hb_attach__new_trial(l.single, &l.error);
	if (!l.error.err)
		each(&l, pids, n, p, a);
	if (a)
		hb_attach__detach(a, hb_clock__now() + DETACH_NS);
	hb_attach__free(a);
	hb_plan__free(p);
	hb_tables__free(t);
	free(pids);
	return l.error.err ? hb_cli__fail(&l.error) : HB_EXIT_OK;
}

int hb_cli_probes__show(int argc, char **argv)
{
	return look(argc, argv, &show_argp, false);
}

int hb_cli_probes__check(int argc, char **argv)
{
	return look(argc, argv, &check_argp, true);
}
