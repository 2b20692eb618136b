/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options of `trace`. */
#include "cli/trace_args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/target_args.h"

enum key {
	KEY_LAYERS = 0x100,
	KEY_SYSCALLS,
	KEY_PYTHON,
	KEY_CALLS,
	KEY_FIELD,
	KEY_STRINGS,
	KEY_PY_HOOK,
	KEY_EVERY,
	KEY_FUNCTIONS,
	KEY_EXCEPTIONS,
	KEY_PROBES,
	KEY_FORCE,
	KEY_BUFFER,
	KEY_MAX_SIZE,
	KEY_STRICT,
	KEY_SINGLE,
	KEY_TIMED,
	KEY_PROBE,
	KEY_PLAN,
	KEY_SIGNERS,
};

static const struct argp_option options[] = {
    {NULL, 0, NULL, 0, "Target (one of):", 1},
    HB_TARGET_OPTIONS(1),
    {NULL, 0, NULL, 0, "Window:", 2},
    {"duration", 'd', "TIME", 0, "length, with a unit: 30s, 500ms, 2m (default 30s)", 2},
    {"output", 'o', "FILE", 0, "window file (default HOST-PID-TIME.hbw)", 2},
    {"force", KEY_FORCE, NULL, 0, "replace an existing file", 2},
    {"max-size", KEY_MAX_SIZE, "SIZE", 0, "end the window when the file gets this large", 2},
    {"buffer", KEY_BUFFER, "SIZE", 0, "ring buffer per CPU (default: 32MiB over all)", 2},
    {NULL, 0, NULL, 0, "What is recorded:", 3},
    {"layers", KEY_LAYERS, "auto|runtime|driver|both", 0, "where accelerator calls are probed (default auto)",
     3},
    {"syscalls", KEY_SYSCALLS, "none|blocking|all", 0,
     "blocking: those that sleep, at no cost to others (default); all: every one, slows every process of the "
     "machine; none: no waits either, nothing about time off the CPU and wakers",
     3},
    {"python", KEY_PYTHON, "off|stacks|calls", 0,
     "stacks: Python functions in the stacks of accelerator calls, waits and CPU samples (default); calls: "
     "each "
     "call of a Python function too, as far as `probes check` says",
     3},
    {"calls", KEY_CALLS, "[FILE:]NAME", 0,
     "record calls of these Python functions only: globs of file or module and of the qualified name, such "
     "as '*:Scheduler.schedule'; may be repeated",
     3},
    {"field", KEY_FIELD, "'[FILE:]NAME PATH'", 0,
     "read a field of an object in each call of these functions, such as "
     "'*:EngineCore.step self.scheduler.running:len' (types: str, int, float, bool, len); may be repeated",
     3},
    {"capture-strings", KEY_STRINGS, NULL, 0,
     "keep texts that --field reads (64 bytes of each); else only a hash of this window", 3},
    {"py-hook", KEY_PY_HOOK, "off|eval_frame|eval_frame!", 0,
     "eval_frame: calls of Python 3.11 and later are complete, by a word in its state that is set back at "
     "the end; refused where calls may nest deeper than is safe (with !: not refused for that)",
     3},
    {"stacks-every", KEY_EVERY, "CLASS=N,..", 0,
     "Python stack with every N-th accelerator call of a class, 0 = none (default: with each); CLASS as in "
     "`probes list`, or all",
     3},
    {"max-functions", KEY_FUNCTIONS, "N", 0,
     "Python functions that are named, and room for an eighth as many different stacks, a KiB each (default "
     "131072); what is beyond is counted",
     3},
    {"exceptions", KEY_EXCEPTIONS, "off|types|hash|text", 0,
     "Python's exceptions, and C++'s in Python programs: class and place (default), with a hash or the begin "
     "of the message",
     3},
    {"probes", KEY_PROBES, "FILE", 0, "further probe table; may be repeated", 3},
    {"probe", KEY_PROBE, "ROW", 0,
     "one row of a probe table, or its api line, which comes first; may be repeated", 3},
    {"timed", KEY_TIMED, "CLASS,..", 0,
     "both ends of the calls of these classes, so that their durations are known; CLASS as in `probes list`, "
     "or "
     "all",
     3},
    {"frequency", 'F', "HZ", 0, "CPU samples per second and CPU, 0 = none (default 99)", 3},
    {"single-uprobes", KEY_SINGLE, NULL, OPTION_HIDDEN, "do not use uprobe_multi links", 3},
    {NULL, 0, NULL, 0, "A plan (`analyze --plan-out`) instead of target and what is recorded:", 4},
    {"plan", KEY_PLAN, "FILE", 0, "record what it says, if `herschel-bpf plan approve` has said yes to it",
     4},
    {"signers", KEY_SIGNERS, "FILE", 0,
     "whose signatures count, as in ssh-keygen(1) (~/.ssh/allowed_signers)", 4},
    {NULL, 0, NULL, 0, "Result:", 5},
    {"strict", KEY_STRICT, "SHARE", OPTION_ARG_OPTIONAL,
     "exit 5 when more than this share of records was lost (default 0.1%; joined by =: --strict=5%)", 5},
    {"quiet", 'q', NULL, 0, "no progress, no notes", 5},
    {0},
};

static int bad(struct hb_trace_args *a, const char *what, const char *value, const char *expected)
{
	hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL, "%s: \"%s\" is not %s", what, value, expected);
	return EINVAL;
}

static int choice(const char *value, const char *const *words, int n)
{
	for (int i = 0; i < n; i++)
		if (strcmp(words[i], value) == 0)
			return i;
	return -1;
}

static int parse_share(const char *s, double *out)
{
	char *end;
	double v;

	if (!s) {
		*out = 0.001;
		return 0;
	}
	v = strtod(s, &end);
	if (end == s || v < 0 || (*end && strcmp(end, "%") != 0))
		return -EINVAL;
	*out = *end ? v / 100 : v;
	return *out <= 1 ? 0 : -EINVAL;
}

/* "launch=10,copy=0": into the array by class. */
static int parse_every(const char *s, u32 *every)
{
	while (*s) {
		const char *eq = strchr(s, '=');
		char word[32], *end;
		unsigned long n;
		int c;

		if (!eq || (size_t)(eq - s) >= sizeof(word))
			return -EINVAL;
		snprintf(word, sizeof(word), "%.*s", (int)(eq - s), s);
		n = strtoul(eq + 1, &end, 10);
		c = hb_word__id(HB_WORDS_CLASS, word);
		if (end == eq + 1 || (*end && *end != ',') || n > 1000000 || eq[1] == '-')
			return -EINVAL;
		if (c < 0 && strcmp(word, "all") != 0)
			return -EINVAL;
		for (int i = 0; i < HB_CLASS_COUNT; i++)
			if (c < 0 || i == c)
				every[i] = (u32)n;
		s = *end ? end + 1 : end;
	}
	return 0;
}

static int parse_number(const char *s, long least, long most, u32 *out)
{
	char *end;
	long v = strtol(s, &end, 10);

	if (end == s || *end || v < least || v > most)
		return -EINVAL;
	*out = (u32)v;
	return 0;
}

/* "launch,graph": bits of classes. */
static int parse_timed(const char *s, u32 *bits)
{
	*bits = 0;
	while (*s) {
		size_t n = strcspn(s, ",");
		char word[32];
		int c;

		if (!n || n >= sizeof(word))
			return -EINVAL;
		snprintf(word, sizeof(word), "%.*s", (int)n, s);
		c = hb_word__id(HB_WORDS_CLASS, word);
		if (c < 0 && strcmp(word, "all") != 0)
			return -EINVAL;
		*bits |= c < 0 ? (1U << HB_CLASS_COUNT) - 1 : 1U << c;
		s += n + (s[n] != 0);
	}
	return *bits ? 0 : -EINVAL;
}

/* A table of its own: the session reads them behind the files. */
static int add_row(struct hb_trace_args *a, const char *row)
{
	if (strchr(row, '\n'))
		return bad(a, "--probe", row, "one row");
	hb_buf__printf(&a->rows, "%s\n", row);
	return a->rows.oom ? -hb_error__nomem(&a->error, "--probe") : 0;
}

static int parse_recorded(int key, const char *arg, struct hb_trace_args *a)
{
	static const char *const layers[] = {"auto", "runtime", "driver", "both"};
	static const char *const python[] = {"off", "stacks", "calls"};
	static const char *const exceptions[] = {"off", "types", "hash", "text"};
	static const char *const calls[] = {"none", "blocking", "all"};
	static const char *const hooks[] = {"off", "eval_frame", "eval_frame!"};
	int i;

	switch (key) {
	case KEY_LAYERS:
		i = choice(arg, layers, 4);
		a->o.layers = (enum hb_layers)i;
		return i < 0 ? bad(a, "--layers", arg, "auto, runtime, driver or both") : 0;
	case KEY_SYSCALLS:
		i = choice(arg, calls, 3);
		a->o.syscalls = (enum hb_syscalls)i;
		return i < 0 ? bad(a, "--syscalls", arg, "none, blocking or all") : 0;
	case KEY_PYTHON:
		i = choice(arg, python, 3);
		a->o.python = (enum hb_python_mode)i;
		return i < 0 ? bad(a, "--python", arg, "off, stacks or calls") : 0;
	case KEY_CALLS:
		if (a->o.n_calls == HB_TRACE_PATTERNS)
			return bad(a, "--calls", arg, "allowed: at most 64 patterns");
		return -hb_py_pattern__parse(arg, &a->calls[a->o.n_calls++], &a->error);
	case KEY_FIELD:
		if (a->o.n_fields == HB_PY_FIELDS)
			return bad(a, "--field", arg, "allowed: at most 32 fields");
		return -hb_py_field__parse(arg, &a->fields[a->o.n_fields++], &a->error);
	case KEY_STRINGS:
		a->o.capture_strings = true;
		return 0;
	case KEY_PY_HOOK:
		i = choice(arg, hooks, 3);
		a->o.py_hook = (enum hb_py_hook_mode)i;
		return i < 0 ? bad(a, "--py-hook", arg, "off, eval_frame or eval_frame!") : 0;
	case KEY_EXCEPTIONS:
		i = choice(arg, exceptions, 4);
		a->o.exceptions = (enum hb_exceptions)i;
		return i < 0 ? bad(a, "--exceptions", arg, "off, types, hash or text") : 0;
	case KEY_EVERY:
		return parse_every(arg, a->o.stacks_every)
			   ? bad(a, "--stacks-every", arg, "a list such as launch=10,copy=0 or all=100")
			   : 0;
	case KEY_FUNCTIONS:
		return parse_number(arg, 1024, 1 << 24, &a->o.max_functions)
			   ? bad(a, "--max-functions", arg, "a number from 1024 to 16777216")
			   : 0;
	case KEY_PROBES:
		if (a->n_tables == HB_TRACE_TABLES)
			return bad(a, "--probes", arg, "allowed: at most 16 tables");
		a->tables[a->n_tables++] = arg;
		return 0;
	case KEY_PROBE:
		return add_row(a, arg);
	case KEY_TIMED:
		return parse_timed(arg, &a->o.timed)
			   ? bad(a, "--timed", arg, "a list of classes, such as launch,graph")
			   : 0;
	case 'F':
		return parse_number(arg, 0, 5000, &a->o.freq)
			   ? bad(a, "-F", arg, "a number of samples per second from 0 to 5000")
			   : 0;
	case KEY_SINGLE:
		a->o.single = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int parse_window(int key, const char *arg, struct hb_trace_args *a)
{
	switch (key) {
	case 'd':
		return hb_text__duration(arg, &a->o.duration)
			   ? bad(a, "-d", arg,
				 "a duration: a positive number with a unit, such as 30s, 500ms or 2m")
			   : 0;
	case 'o':
		a->o.output = arg;
		return strcmp(arg, "-") == 0
			   ? bad(a, "-o", arg, "a file: a window needs one that can be written at any place")
			   : 0;
	case KEY_FORCE:
		a->o.force = true;
		return 0;
	case KEY_MAX_SIZE:
		return hb_text__size(arg, &a->o.max_size) || a->o.max_size < (64U << 10)
			   ? bad(a, "--max-size", arg, "a size of at least 64KiB, such as 100MiB")
			   : 0;
	case KEY_BUFFER:
		return hb_text__size(arg, &a->o.buffer) || a->o.buffer < 4096
			   ? bad(a, "--buffer", arg, "a size of at least 4KiB, such as 1MiB")
			   : 0;
	case KEY_STRICT:
		return parse_share(arg, &a->strict)
			   ? bad(a, "--strict", arg, "a share of records, such as 0.1%")
			   : 0;
	case 'q':
		a->quiet = true;
		return 0;
	case KEY_PLAN:
		a->plan = arg;
		return 0;
	case KEY_SIGNERS:
		a->signers = arg;
		return 0;
	default:
		return parse_recorded(key, arg, a);
	}
}

/* An optional value is joined to its option by "="; after a blank it arrives here. */
static int stray(struct hb_trace_args *a, const char *arg)
{
	double share;

	if (a->strict < 0 || parse_share(arg, &share))
		return bad(a, "argument", arg,
			   "expected here: name the target with -p PID, --cgroup or --name");
	hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
		      "argument: \"%s\" is not expected here: a share is joined to its option, --strict=%s",
		      arg, arg);
	return EINVAL;
}

int hb_cli_trace__take(int key, const char *arg, struct hb_trace_args *a)
{
	return hb_cli__target_option(key, (char *)arg, &a->o.target) == 0 ? 0 : parse_window(key, arg, a);
}

/* Kept as typed: a plan must not say anything else. */
static int note_given(struct hb_trace_args *a, int key, const char *arg)
{
	if (a->n_given == HB_TRACE_GIVEN)
		return bad(a, "trace", hb_cli_trace__name(key), "possible: at most 256 options");
	a->given[a->n_given].key = key;
	a->given[a->n_given++].arg = arg;
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct hb_trace_args *a = state->input;
	int err;

	if (key == ARGP_KEY_ARG)
		return stray(a, arg);
	err = hb_cli_trace__take(key, arg, a);
	return err ? err : note_given(a, key, arg);
}

static const struct argp argp = {
    .options = options,
    .parser = parse,
    .doc = "Records a bounded window of a live process and keeps it in a file.\v"
	   "The target keeps running; everything is detached at the end. Ctrl-C ends the window early, and "
	   "it is kept.",
};

/* ---- for plans ---- */

int hb_cli_trace__key(const char *name)
{
	for (const struct argp_option *o = options; o->name || o->doc; o++)
		if (o->name && strcmp(o->name, name) == 0)
			return o->key;
	return -1;
}

const char *hb_cli_trace__name(int key)
{
	for (const struct argp_option *o = options; o->name || o->doc; o++)
		if (o->name && o->key == key)
			return o->name;
	return NULL;
}

bool hb_cli_trace__is_handling(int key)
{
	static const int keys[] = {'o', KEY_FORCE,  KEY_MAX_SIZE,  KEY_BUFFER, KEY_STRICT,
				   'q', KEY_SINGLE, KEY_FUNCTIONS, KEY_PLAN,   KEY_SIGNERS};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (keys[i] == key)
			return true;
	return false;
}

/* ---- all together ---- */

void hb_cli_trace__defaults(struct hb_trace_args *a)
{
	*a = (struct hb_trace_args){.o = {.duration = 30000000000ULL,
					  .syscalls = HB_SYSCALLS_BLOCKING,
					  .python = HB_PYTHON_STACKS,
					  .exceptions = HB_EXCEPTIONS_TYPES,
					  .max_functions = 1 << 17,
					  .freq = 99},
				    .strict = -1};
	for (int i = 0; i < HB_CLASS_COUNT; i++)
		a->o.stacks_every[i] = 1;
	a->o.probe_files = a->tables;
	a->o.calls = a->calls;
	a->o.fields = a->fields;
}

int hb_cli_trace__fact(struct hb_trace_args *a, const char *key, const char *value)
{
	char *k = strdup(key), *v = strdup(value);

	if (!k || !v || a->n_facts == HB_TRACE_FACTS) {
		free(k);
		free(v);
		return hb_error__nomem(&a->error, "what the window says of itself");
	}
	a->fact_text[a->n_fact_texts++] = k;
	a->fact_text[a->n_fact_texts++] = v;
	a->facts[a->n_facts++] = (struct hb_session_fact){k, v};
	a->o.facts = a->facts;
	a->o.n_facts = a->n_facts;
	return 0;
}

int hb_cli_trace__option_fact(struct hb_trace_args *a, const char *name, const char *value)
{
	char key[32], text[1200];

	snprintf(key, sizeof(key), "option.%u", a->n_facts + 1);
	snprintf(text, sizeof(text), "%s%s%s", name, *value ? " " : "", value);
	return hb_cli_trace__fact(a, key, text);
}

/* Where the next row of a table begins that says something, and its length; NULL at the end. */
static const char *next_row(const char *s, size_t *n)
{
	for (; *s; s += *n + (s[*n] != 0)) {
		s += strspn(s, " \t");
		*n = strcspn(s, "\n");
		if (*n && *s != '#')
			return s;
	}
	return NULL;
}

/*
 * The rows of a table, so that a plan of a further window can probe the same. A table of more rows than there
 * is place for, or one that cannot be read (the session says so), leaves its name only.
 */
static int table_facts(struct hb_trace_args *a, const char *path)
{
	struct hb_error unread = {0};
	struct hb_buf b = {0};
	unsigned rows = 0;
	const char *row;
	char text[1024];
	size_t n = 0;
	int err = 0;

	if (hb_file__read(path, HB_TRACE_ROWS * sizeof(text), "a probe table", &b, &unread))
		return 0;
	hb_buf__add(&b, "", 1);
	for (row = b.oom ? "" : b.data; (row = next_row(row, &n)); row += n)
		rows++;
	row = rows && rows + a->n_rows <= HB_TRACE_ROWS ? b.data : "";
	for (; !err && (row = next_row(row, &n)); row += n) {
		snprintf(text, sizeof(text), "%.*s", (int)n, row);
		err = hb_cli_trace__option_fact(a, "probe", text);
		a->n_rows++;
	}
	hb_buf__free(&b);
	return err;
}

int hb_cli_trace__given_facts(struct hb_trace_args *a)
{
	int err = 0;

	for (unsigned i = 0; i < a->n_given && !err; i++) {
		int key = a->given[i].key;

		if (!hb_cli_trace__is_handling(key) && hb_cli_trace__name(key))
			err = hb_cli_trace__option_fact(a, hb_cli_trace__name(key),
							a->given[i].arg ? a->given[i].arg : "");
		if (!err && key == KEY_PROBES)
			err = table_facts(a, a->given[i].arg);
	}
	return err;
}

void hb_cli_trace__free(struct hb_trace_args *a)
{
	for (unsigned i = 0; i < a->n_fact_texts; i++)
		free(a->fact_text[i]);
	hb_buf__free(&a->rows);
}

int hb_cli_trace__parse(int argc, char **argv, struct hb_trace_args *a)
{
	return hb_cli__parse(&argp, argc, argv, a, &a->error);
}

/* Before anything is touched, or a plan with them is approved. */
static int check_rows(struct hb_trace_args *a)
{
	struct hb_tables *t = a->rows.size ? hb_tables__new() : NULL;
	int err = 0;

	if (a->rows.size && !t)
		return hb_error__nomem(&a->error, "--probe");
	if (t)
		err = hb_tables__add_text(t, "--probe", a->rows.data, a->rows.size, &a->error);
	hb_tables__free(t);
	return err;
}

/* Options that only make sense together. */
int hb_cli_trace__check(struct hb_trace_args *a)
{
	bool off = a->o.python == HB_PYTHON_OFF;

	if (off && a->o.n_fields)
		hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
			      "--field needs Python: not with --python off");
	else if (a->o.capture_strings && !a->o.n_fields)
		hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
			      "--capture-strings is for texts that --field reads");
	else if (off && a->o.n_calls)
		hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
			      "--calls needs Python: not with --python off");
	else if (a->o.py_hook && !hb_session__wants_calls(&a->o))
		hb_error__set(&a->error, HB_EXIT_USAGE, -EINVAL,
			      "--py-hook is for calls: use it with --python calls, --calls or --field");
	a->o.probe_rows = a->rows.size ? a->rows.data : NULL;
	return a->error.err ? a->error.err : check_rows(a);
}
