/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* `herschel-bpf export FILE --format F -o OUT`: a window in another tool's format. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "analysis/export/export.h"
#include "analysis/export/output.h"
#include "analysis/model/decode.h"
#include "base/buf.h"
#include "base/file.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "cli/unfinished.h"

struct args {
	const char *file, *output;
	const struct hb_exporter *format;
	bool force, quiet;
	struct hb_error error;
};

static const struct argp_option options[] = {
    {"format", 'f', "FORMAT", 0, "Output format, see below", 0},
    {"output", 'o', "FILE", 0, "Output file; - is the standard output", 0},
    {"force", 'F', NULL, 0, "Replace an existing file", 0},
    {"quiet", 'q', NULL, 0, "No remarks on the standard error", 0},
    {0},
};

static int set_format(struct args *a, const char *name)
{
	struct hb_buf list = {0};

	a->format = hb_exporter__find(name);
	if (a->format)
		return 0;
	for (const struct hb_exporter *const *x = hb_exporters(); *x; x++)
		hb_buf__printf(&list, "%s%s", list.size ? ", " : "", (*x)->name);
	hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL, "there is no format \"%s\"; there are %s", name,
		      list.oom || !list.data ? "others" : list.data);
	hb_buf__free(&list);
	return EINVAL;
}

static int check(struct args *a)
{
	const char *missing = !a->file	   ? "a window file"
			      : !a->format ? "--format"
			      : !a->output ? "-o FILE (or -o -)"
					   : NULL;

	if (!missing)
		return 0;
	return -hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
			      "export needs %s: herschel-bpf export FILE.hbw --format FORMAT -o FILE",
			      missing);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct args *a = state->input;

	switch (key) {
	case 'f':
		return set_format(a, arg);
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
		if (a->file)
			return -hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
					      "export takes one window file; \"%s\" is one too many", arg);
		a->file = arg;
		return 0;
	case ARGP_KEY_END:
		return check(a);
	}
	return ARGP_ERR_UNKNOWN;
}

/* The formats are listed from the exporters themselves. argp frees what is returned. */
static char *help_filter(int key, const char *text, void *input)
{
	struct hb_buf b = {0};

	(void)input;
	if (key != ARGP_KEY_HELP_POST_DOC)
		return (char *)text;
	hb_buf__printf(&b, "Formats:");
	for (const struct hb_exporter *const *x = hb_exporters(); *x; x++)
		hb_buf__printf(&b, "\n  %-17s %s", (*x)->name, (*x)->doc);
	return b.data;
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .args_doc = "FILE.hbw",
    .doc = "Writes a window in another format. Needs no root and no traced process.\v",
    .help_filter = help_filter,
};

/* What a format has no place for is said beside it. */
static void remark(const struct hb_window *w)
{
	if (hb_decode__simulated(w))
		hb_note("device: %s", hb_decode__simulated(w));
	if (hb_window__damage(w))
		hb_warn("%s", hb_window__damage(w));
	for (unsigned c = 0; c < HB_LOSS_COUNT; c++)
		if (hb_window__loss_total(w, c))
			hb_warn("loss: %s %llu: %s", hb_word(HB_WORDS_LOSS, c),
				(unsigned long long)hb_window__loss_total(w, c), hb_decode__loss_doc(c));
}

static int export(struct hb_window *w, struct args *a)
{
	struct hb_output *o;
	int rc;

	if (hb_file__is_same(a->file, a->output)) {
		hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
			      "%s is the window itself; export into another file", a->output);
		return hb_cli__fail(&a->error);
	}
	o = hb_output__new(a->output, a->force, &a->error);
	if (!o)
		return hb_cli__fail(&a->error);
	hb_unfinished__set(hb_output__unfinished(o));
	hb_unfinished__catch();
	rc = a->format->run(w, hb_output__file(o), &a->error);
	if (rc)
		hb_output__abort(o);
	else
		rc = hb_output__commit(o, &a->error);
	hb_unfinished__set(NULL);
	if (rc && ferror(stdout)) /* main() says so */
		return HB_EXIT_FAILED;
	if (rc)
		hb_error__set(&a->error, HB_EXIT_FAILED, rc, "cannot write %s: %s", a->output, strerror(-rc));
	return rc ? hb_cli__fail(&a->error) : HB_EXIT_OK;
}

static int run(int argc, char **argv)
{
	struct args a = {0};
	int rc = hb_cli__parse(&argp, argc, argv, &a, &a.error);
	struct hb_window *w;

	if (rc != HB_CLI_GO)
		return rc;
	hb_quiet(a.quiet);
	signal(SIGPIPE, SIG_DFL); /* `export -o - | head`: a reader who has seen enough ends it */
	w = hb_window__open(a.file, &a.error);
	if (!w)
		return hb_cli__fail(&a.error);
	if (a.format->bare)
		remark(w);
	rc = export(w, &a);
	hb_window__close(w);
	return rc;
}

HB_COMMAND(export) = {
    .name = "export",
    .doc = "write a window file in another format",
    .run = run,
};
