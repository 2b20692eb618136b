/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `herschel-bpf import TRACE.json -o FILE.hbw`: another profiler's trace as a window. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "analysis/import/import.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/unfinished.h"

struct args {
	const char *file[HB_IMPORT_FILES], *output;
	unsigned n;
	bool force, quiet;
	struct hb_error error;
};

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "Window file to write", 0},
    {"force", 'F', NULL, 0, "Replace an existing file", 0},
    {"quiet", 'q', NULL, 0, "No warnings on the standard error", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 'o':
		a->output = arg;
		return 0;
	case 'F':
		a->force = true;
		return 0;
	case 'q':
		a->quiet = true;
		return 0;
	case ARGP_KEY_ARG:
		if (a->n == HB_IMPORT_FILES)
			return -hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
					      "import takes at most %u traces; \"%s\" is one too many",
					      HB_IMPORT_FILES, arg);
		a->file[a->n++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (a->n && a->output)
			return 0;
		return -hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
				      "import needs %s: herschel-bpf import TRACE.json[.gz].. -o FILE.hbw",
				      a->n ? "-o FILE.hbw" : "a trace");
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "TRACE.json[.gz]..",
    .doc = "Makes a window of a trace that PyTorch's profiler (Kineto) or Chrome's tracing wrote; - is the "
	   "standard "
	   "input. Several are those of one run, one for each rank: one window. Needs no root.\vWhat becomes "
	   "what, and what is left out: docs/import.md.",
};

/* A .part that is there before is somebody's: the import says so at once, and it is not touched. */
static int import(const struct args *a, struct hb_import_stats *s, struct hb_error *e)
{
	struct hb_import_opts o = {.path = a->file[0],
				   .more = a->file + 1,
				   .n_more = a->n - 1,
				   .output = a->output,
				   .force = a->force};
	char *part = NULL;
	int err;

	for (unsigned i = 0; i < a->n; i++) {
		if (hb_file__is_same(a->file[i], a->output))
			return hb_error__set(e, HB_EXIT_USAGE, -EINVAL,
					     "%s is the trace itself; give the window another name",
					     a->output);
		for (unsigned k = 0; k < i; k++)
			if (hb_file__is_same(a->file[i], a->file[k]))
				return hb_error__set(e, HB_EXIT_USAGE, -EINVAL, "%s is given twice",
						     a->file[i]);
	}
	if (asprintf(&part, "%s.part", a->output) < 0)
		return hb_error__nomem(e, "a file name");
	if (access(part, F_OK) != 0) {
		hb_unfinished__set(part);
		hb_unfinished__catch();
	}
	err = hb_import__run(&o, s, e);
	hb_unfinished__set(NULL);
	free(part);
	return err;
}

static void say(const struct args *a, const struct hb_import_stats *s)
{
	const struct {
		const char *what;
		u64 n;
	} parts[] = {{"calls", s->calls},
		     {"kernels", s->device[HB_DEVKIND_KERNEL]},
		     {"copies", s->device[HB_DEVKIND_MEMCPY]},
		     {"memsets", s->device[HB_DEVKIND_MEMSET]},
		     {"syncs", s->device[HB_DEVKIND_SYNC]},
		     {"operators and annotations", s->ops},
		     {"Python functions", s->python}};
	char n[32], bytes[32], span[32], traces[32];
	const char *before = "; ";

	if (a->n > 1)
		snprintf(traces, sizeof(traces), "%u traces", a->n);
	printf("%s: %s rows, %s\n", a->n > 1 ? traces : a->file[0], hb_text__count(n, sizeof(n), s->rows),
	       hb_text__bytes(bytes, sizeof(bytes), s->bytes));
	printf("%s: %s", a->output, hb_text__ns(span, sizeof(span), s->end_ns - s->start_ns));
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		if (!parts[i].n)
			continue;
		printf("%s%s %s", before, parts[i].what, hb_text__count(n, sizeof(n), parts[i].n));
		before = ", ";
	}
	putchar('\n');
	if (s->cut)
		hb_warn("%s is cut off: what came before is in the window",
			a->n > 1 ? "one of the traces" : a->file[0]);
	if (s->apart)
		hb_warn("the traces have no time in common: they are not of one run, or their clocks differ");
	if (s->far) {
		hb_text__ns(span, sizeof(span), s->hole.ns);
		hb_warn(
		    "%llu of its rows lie %s from all others: the window is longer by that, and shares of it "
		    "mean little",
		    (unsigned long long)s->far, span);
	}
	if (s->odd)
		hb_warn("odd rows: %llu; `herschel-bpf report %s` says how", (unsigned long long)s->odd,
			a->output);
}

static int run(int argc, char **argv)
{
	struct args a = {0};
	struct hb_import_stats s = {0};
	int rc = hb_cli__parse(&argp, argc, argv, &a, &a.error);

	if (rc != HB_CLI_GO)
		return rc;
	hb_quiet(a.quiet);
	if (import(&a, &s, &a.error))
		return hb_cli__fail(&a.error);
	say(&a, &s);
	return HB_EXIT_OK;
}

HB_COMMAND(import) = {
    .name = "import",
    .doc = "make a window of another profiler's trace",
    .run = run,
};
