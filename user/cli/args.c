/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/args.h"
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool asks_help(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-?") == 0 ||
		    strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

/* ---- what argp does not say: which option is wrong, and how ---- */

static bool is_end(const struct argp_option *o)
{
	return !o->name && !o->key && !o->doc && !o->group;
}

/* As getopt does: the exact name, else the only one that begins so. */
static const struct argp_option *find_long(const struct argp_option *o, const char *name, size_t n,
					   bool *ambiguous)
{
	const struct argp_option *found = NULL;

	*ambiguous = false;
	for (; o && !is_end(o); o++) {
		if (!o->name || strncmp(o->name, name, n) != 0)
			continue;
		if (strlen(o->name) == n)
			return o;
		*ambiguous = found != NULL;
		found = o;
	}
	return *ambiguous ? NULL : found;
}

static const struct argp_option *find_short(const struct argp_option *o, int key)
{
	for (; o && !is_end(o); o++)
		if (o->key == key && key < 256 && isprint(key))
			return o;
	return NULL;
}

static bool needs_value(const struct argp_option *o)
{
	return o->arg && !(o->flags & OPTION_ARG_OPTIONAL);
}

static int lacks_value(struct hb_error *e, const char *option)
{
	return hb_error__set(e, HB_EXIT_USAGE, -EINVAL, "option %s needs a value", option);
}

/* Returns how many words the option takes (1 or 2), or -EINVAL. */
static int check_long(const struct argp *argp, const char *word, bool last, struct hb_error *e)
{
	const char *name = word + 2, *eq = strchr(name, '=');
	size_t n = eq ? (size_t)(eq - name) : strlen(name);
	bool ambiguous;
	const struct argp_option *o = find_long(argp->options, name, n, &ambiguous);

	if (!o)
		return hb_error__set(e, HB_EXIT_USAGE, -EINVAL,
				     ambiguous ? "option \"%s\" is ambiguous" : "there is no option \"%s\"",
				     word);
	if (eq && !o->arg)
		return hb_error__set(e, HB_EXIT_USAGE, -EINVAL, "option --%s takes no value", o->name);
	if (eq || !needs_value(o))
		return 1;
	return last ? lacks_value(e, word) : 2;
}

static int check_short(const struct argp *argp, const char *word, bool last, struct hb_error *e)
{
	for (const char *c = word + 1; *c; c++) {
		const struct argp_option *o = find_short(argp->options, (unsigned char)*c);

		if (!o)
			return hb_error__set(e, HB_EXIT_USAGE, -EINVAL,
					     "there is no option \"-%c\" (in \"%s\")", *c, word);
		if (!o->arg)
			continue;
		if (c[1] || !needs_value(o))
			return 1;
		return last ? lacks_value(e, word) : 2;
	}
	return 1;
}

static int check(const struct argp *argp, int argc, char **argv, struct hb_error *e)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0;) {
		int n = 1;

		if (strncmp(argv[i], "--", 2) == 0)
			n = check_long(argp, argv[i], i + 1 == argc, e);
		else if (argv[i][0] == '-' && argv[i][1])
			n = check_short(argp, argv[i], i + 1 == argc, e);
		if (n < 0)
			return n;
		i += n;
	}
	return 0;
}

int hb_cli__parse(const struct argp *argp, int argc, char **argv, void *input, struct hb_error *e)
{
	if (asks_help(argc, argv)) {
		argp_help(argp, stdout, ARGP_HELP_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC, argv[0]);
		return HB_EXIT_OK;
	}
	if (check(argp, argc, argv, e) == 0 &&
	    argp_parse(argp, argc, argv, ARGP_NO_ERRS | ARGP_NO_EXIT | ARGP_NO_HELP, NULL, input) == 0 &&
	    !e->err)
		return HB_CLI_GO;
	hb_error__set(e, HB_EXIT_USAGE, -EINVAL, "wrong usage; see `%s --help`", argv[0]);
	return hb_cli__fail(e);
}
