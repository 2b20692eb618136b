/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Whether two windows can be compared at all: target, options, machine, loss, length, what was recorded. */
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "analysis/report/compare_private.h"
#include "base/map.h"
#include "base/text.h"

const char *hb_caution__name(enum hb_caution_kind k)
{
	static const char *const names[HB_CAUTIONS] = {"target", "options", "machine", "loss",	"length",
						       "damage", "records", "load",    "slices"};

	return k < HB_CAUTIONS ? names[k] : "?";
}

void hb_compare__caution(struct hb_compare *c, enum hb_caution_kind kind, bool breaks, const char *fmt, ...)
{
	struct hb_caution *x = &c->caution[c->n_cautions];
	va_list args;

	if (c->n_cautions == HB_COMPARE_CAUTIONS)
		return;
	c->n_cautions++;
	x->kind = (u8)kind;
	x->breaks = breaks;
	va_start(args, fmt);
	vsnprintf(x->text, sizeof(x->text), fmt, args);
	va_end(args);
	hb_text__clean(x->text);
}

static char letter(int k)
{
	return (char)('A' + k);
}

/* ---- the target ---- */

/* Appends s, numbers as one "#": they are ports, pids and folders of the day. */
static void add_word(char *buf, size_t size, const char *s, size_t len)
{
	size_t n = strlen(buf);

	if (n && n + 1 < size)
		buf[n++] = ' ';
	for (size_t i = 0; i < len && n + 1 < size; i++) {
		bool digit = s[i] >= '0' && s[i] <= '9';

		if (!digit)
			buf[n++] = s[i];
		else if (!n || buf[n - 1] != '#')
			buf[n++] = '#';
	}
	buf[n] = 0;
}

static const char *command_of(const struct hb_window *w, const struct hb_proc_stat *p)
{
	const char *s = p->info && p->info->cmdline ? hb_window__string(w, p->info->cmdline) : "";

	return *s ? s : hb_decode__comm(w, p->main);
}

static void whole_command(const struct hb_window *w, const struct hb_proc_stat *p, char *buf, size_t size)
{
	const char *s = command_of(w, p);

	*buf = 0;
	add_word(buf, size, s, strlen(s));
}

/* The program and, of an interpreter, its script or module, without their folders. */
static void program_of(const struct hb_window *w, const struct hb_proc_stat *p, char *buf, size_t size)
{
	const char *s = command_of(w, p),
		   *exe = p->info && p->info->exe ? hb_window__string(w, p->info->exe) : "";
	bool module = false;

	*buf = 0;
	exe = hb_text__basename(exe);
	add_word(buf, size, exe, strlen(exe));
	while (*s) {
		size_t len = strcspn(s, " "), from = len;

		while (from && s[from - 1] != '/')
			from--;
		if (module || (len > 3 && !memcmp(s + len - 3, ".py", 3)) || !*exe) {
			add_word(buf, size, s + from, len - from);
			return;
		}
		module = len == 2 && !memcmp(s, "-m", 2);
		s += len + strspn(s + len, " ");
	}
}

typedef void (*role_fn)(const struct hb_window *w, const struct hb_proc_stat *p, char *buf, size_t size);

/* Processes of one window whose role none in the other has; *first: one of them. */
static u32 without_partner(const struct hb_compare *c, int k, role_fn role, const struct hb_proc_stat **first)
{
	char mine[1024], other[1024];
	u32 n, m, gone = 0;
	const struct hb_proc_stat *const *all = hb_model__procs(c->x[k]->m, &n);
	const struct hb_proc_stat *const *others = hb_model__procs(c->x[!k]->m, &m);

	for (u32 i = 0; i < n; i++) {
		bool found = false;

		role(c->x[k]->w, all[i], mine, sizeof(mine));
		for (u32 o = 0; o < m && !found; o++) {
			role(c->x[!k]->w, others[o], other, sizeof(other));
			found = strcmp(mine, other) == 0;
		}
		if (!found && !gone++)
			*first = all[i];
	}
	return gone;
}

static void say_target(struct hb_compare *c, int k, role_fn role, const char *what, bool strict)
{
	const struct hb_proc_stat *first = NULL;
	u32 n, gone = without_partner(c, k, role, &first);
	char text[1024];

	hb_model__procs(c->x[k]->m, &n);
	if (!gone)
		return;
	snprintf(text, sizeof(text), "%s", command_of(c->x[k]->w, first));
	hb_text__clean(text);
	hb_text__fit(text, 200);
	hb_compare__caution(c, HB_CAUTION_TARGET, strict && gone == n, "%c: %u of %u processes run %s: %s",
			    letter(k), gone, n, what, text);
}

static void check_target(struct hb_compare *c)
{
	const struct hb_proc_stat *p;
	bool other = without_partner(c, 0, program_of, &p) || without_partner(c, 1, program_of, &p);

	for (int k = 0; k < 2; k++)
		say_target(c, k, other ? program_of : whole_command,
			   other ? "a program that the other window has not" : "with arguments of their own",
			   other);
}

/* Kernels tell what ran where no command does, as in imported traces. Below this part in common it was
 * another thing. In per cent. */
#define IN_COMMON 50

/* Time of the kernels of one window that the other has, too, of all of their time; 100 where nothing is
 * known. */
static double in_common(const struct hb_compare *c, int k, bool *oom)
{
	u32 n, m;
	const struct hb_kernel *const *mine = hb_devices__kernels(c->x[k]->d, &n);
	const struct hb_kernel *const *others = hb_devices__kernels(c->x[!k]->d, &m);
	struct hb_map *names = hb_map__new();
	u64 all = 0, common = 0;

	*oom |= !names;
	for (u32 i = 0; i < m && names; i++) {
		const char *s = hb_window__string(c->x[!k]->w, others[i]->name);

		*oom |= hb_map__put(names, hb_hash_bytes(s, strlen(s)), 1) != 0;
	}
	for (u32 i = 0; i < n && names; i++) {
		const char *s = hb_window__string(c->x[k]->w, mine[i]->name);

		all += mine[i]->dur.total;
		if (hb_map__get(names, hb_hash_bytes(s, strlen(s)), NULL))
			common += mine[i]->dur.total;
	}
	hb_map__free(names);
	return all && m ? 100.0 * (double)common / (double)all : 100;
}

static void check_work(struct hb_compare *c)
{
	bool oom = false;

	for (int k = 0; k < 2; k++) {
		double part = in_common(c, k, &oom);

		if (part < IN_COMMON && !oom)
			hb_compare__caution(
			    c, HB_CAUTION_TARGET, false,
			    "%c: only %.0f %% of the time of its kernels is in kernels that the other "
			    "window has, too: another model or engine ran",
			    letter(k), part);
	}
}

/* ---- what the tool was told ---- */

static const char *meta(const struct hb_compare *c, int k, const char *key)
{
	const char *s = hb_window__meta(c->x[k]->w, key);

	return s ? s : "";
}

static void check_meta(struct hb_compare *c)
{
	static const struct {
		const char *key;
		enum hb_caution_kind kind;
		bool breaks;
	} keys[] = {{"profile", HB_CAUTION_OPTIONS, false},    {"layers", HB_CAUTION_OPTIONS, false},
		    {"syscalls", HB_CAUTION_OPTIONS, false},   {"python", HB_CAUTION_OPTIONS, false},
		    {"exceptions", HB_CAUTION_OPTIONS, false}, {"sample_hz", HB_CAUTION_OPTIONS, false},
		    {"tool", HB_CAUTION_OPTIONS, false},       {"simulated", HB_CAUTION_MACHINE, true},
		    {"host", HB_CAUTION_MACHINE, false},       {"kernel", HB_CAUTION_MACHINE, false},
		    {"machine", HB_CAUTION_MACHINE, false},    {"cpus", HB_CAUTION_MACHINE, false}};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		const char *a = meta(c, 0, keys[i].key), *b = meta(c, 1, keys[i].key);

		if (strcmp(a, b) != 0)
			hb_compare__caution(c, keys[i].kind, keys[i].breaks, "%s: A %s, B %s", keys[i].key,
					    *a ? a : "none", *b ? b : "none");
	}
}

/* Which processes, and for how long: told elsewhere. */
static bool is_of_target(const char *option)
{
	static const char *const names[] = {"duration", "pid", "cgroup", "name"};
	size_t n = strcspn(option, " ");

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (n == strlen(names[i]) && !memcmp(option, names[i], n))
			return true;
	return false;
}

/* Options as typed are facts of the window, one each: option.1 = "timed allocations". The i-th; NULL at the
 * end. */
static const char *option_at(const struct hb_window *w, u32 i)
{
	const char *key, *value;

	for (u32 k = 0; hb_window__meta_at(w, k, &key, &value); k++)
		if (!strncmp(key, "option.", 7) && !is_of_target(value) && !i--)
			return value;
	return NULL;
}

static bool has_option(const struct hb_window *w, const char *option)
{
	const char *x;

	for (u32 i = 0; (x = option_at(w, i)); i++)
		if (strcmp(x, option) == 0)
			return true;
	return false;
}

static void check_options(struct hb_compare *c)
{
	enum { SAID = 6 }; /* of one window */
	const char *x;

	for (int k = 0; k < 2; k++) {
		u32 said = 0;

		for (u32 i = 0; said < SAID && (x = option_at(c->x[k]->w, i)); i++) {
			if (has_option(c->x[!k]->w, x))
				continue;
			hb_compare__caution(c, HB_CAUTION_OPTIONS, false, "only %c was recorded with --%s",
					    letter(k), x);
			said++;
		}
	}
}

/* ---- what was recorded ---- */

static const struct {
	const char *what;
	enum hb_usage_kind kind;
	bool always; /* a service that runs has some: none of them means not recorded */
} recorded[] = {{"accelerator calls", HB_USAGE_CALL, true},
		{"scheduler events", HB_USAGE_WAIT, true},
		{"CPU samples", HB_USAGE_CPU, true},
		{"CPU samples", HB_USAGE_FUNCTION, true},
		{"device records", HB_USAGE_KERNEL, true},
		{"device times", HB_USAGE_DEVICE, true},
		{"operators", HB_USAGE_OP, true},
		{"waits for the GIL", HB_USAGE_GIL, false},
		{"garbage collections", HB_USAGE_GC, false},
		{"exceptions", HB_USAGE_EXCEPTION, false},
		{"Python calls", HB_USAGE_PYCALL, true},
		{"system calls", HB_USAGE_SYSCALL, true}};
#define N_RECORDED (sizeof(recorded) / sizeof(*recorded))

static bool same_python(const struct hb_compare *c)
{
	return strcmp(meta(c, 0, "python"), meta(c, 1, "python")) == 0 &&
	       strcmp(meta(c, 0, "exceptions"), meta(c, 1, "exceptions")) == 0;
}

bool hb_compare__recorded(const struct hb_compare *c, enum hb_usage_kind kind)
{
	u64 a = hb_usage__records(c->usage[0], kind), b = hb_usage__records(c->usage[1], kind);
	/* Busy times from device records and those guessed from calls are not the same thing. */
	bool device = kind == HB_USAGE_DEVICE && !hb_usage__records(c->usage[0], HB_USAGE_KERNEL) !=
						     !hb_usage__records(c->usage[1], HB_USAGE_KERNEL);

	if (device)
		return false;
	for (size_t i = 0; i < N_RECORDED; i++)
		if (recorded[i].kind == kind)
			return (a && b) || (!recorded[i].always && same_python(c));
	return true;
}

static void check_records(struct hb_compare *c)
{
	for (size_t i = 0; i < N_RECORDED; i++) {
		u64 a = hb_usage__records(c->usage[0], recorded[i].kind);
		u64 b = hb_usage__records(c->usage[1], recorded[i].kind);

		if (recorded[i].kind != HB_USAGE_FUNCTION && recorded[i].kind != HB_USAGE_DEVICE &&
		    !a != !b && !hb_compare__recorded(c, recorded[i].kind))
			hb_compare__caution(c, HB_CAUTION_RECORDS, false,
					    "%c has no %s: they are not compared", letter(a ? 1 : 0),
					    recorded[i].what);
	}
}

/* ---- length, loss, damage ---- */

static u64 wall(const struct hb_compare *c, int k)
{
	return hb_model__totals(c->x[k]->m)->wall_ns;
}

static void check_length(struct hb_compare *c)
{
	u64 a = wall(c, 0), b = wall(c, 1), longer = a > b ? a : b, shorter = a > b ? b : a;
	char x[32], y[32];

	if (longer > shorter + shorter / 4)
		hb_compare__caution(
		    c, HB_CAUTION_LENGTH, false,
		    "the windows last %s and %s: what is rare is seen more often in the longer one",
		    hb_text__ns(x, sizeof(x), a), hb_text__ns(y, sizeof(y), b));
	if (shorter < 1000000000ULL)
		hb_compare__caution(
		    c, HB_CAUTION_LENGTH, false,
		    "%s is short: its slices are a few milliseconds, in which chance is large",
		    hb_text__ns(x, sizeof(x), shorter));
}

/* Records that are missing, not parts of them; a tick that did not come is no loss of what happened. */
static u64 lost(const struct hb_window *w)
{
	const u64 causes = 1ULL << HB_LOSS_RING_FULL | 1ULL << HB_LOSS_NESTING | 1ULL << HB_LOSS_NO_STORAGE |
			   1ULL << HB_LOSS_LATE | 1ULL << HB_LOSS_DISK | 1ULL << HB_LOSS_TASKS |
			   1ULL << HB_LOSS_MISSED | 1ULL << HB_LOSS_DAMAGED | 1ULL << HB_LOSS_IMPORT_ODD |
			   1ULL << HB_LOSS_IMPORT_CUT;
	u32 rows;
	const struct hb_loss_row *r = hb_window__losses(w, &rows);
	u64 n = 0;

	for (u32 i = 0; i < rows; i++)
		if (r[i].cause < 64 && causes >> r[i].cause & 1 && r[i].type != HB_TYPE_sample)
			n += r[i].count;
	return n;
}

static void check_whole(struct hb_compare *c)
{
	for (int k = 0; k < 2; k++) {
		const struct hb_window *w = c->x[k]->w;
		u64 n = lost(w), all = hb_model__totals(c->x[k]->m)->records;

		if (!hb_window__info(w)->complete)
			hb_compare__caution(c, HB_CAUTION_DAMAGE, false,
					    "%c was not finished: how much is missing is not known",
					    letter(k));
		else if (hb_window__damage(w))
			hb_compare__caution(c, HB_CAUTION_DAMAGE, false, "%c: %s", letter(k),
					    hb_window__damage(w));
		if (n && n >= all / 1000)
			hb_compare__caution(
			    c, HB_CAUTION_LOSS, n > all / 20,
			    "%c lost %llu records beside the %llu it has (%.1f %%): its counts and "
			    "times are too small",
			    letter(k), (unsigned long long)n, (unsigned long long)all,
			    100.0 * (double)n / (double)(n + all));
	}
}

/* ---- load ---- */

/* Of the time that the targets wanted to run: without a CPU; negative: not known. */
static double waited_for_cpu(const struct hb_compare *c, int k)
{
	const struct hb_timeline *tl = hb_host__timeline(c->x[k]->h);
	u64 ran = 0, ready = 0, start = hb_timeline__start(tl), end = hb_timeline__end(tl);

	if (!hb_timeline__count(tl, HB_TL_SLEEP))
		return -1;
	for (u32 i = 0; i < hb_timeline__threads(tl); i++) {
		const struct hb_tl_thread *t = hb_timeline__thread(tl, i);
		struct hb_use u;
		u32 sleeps;

		hb_timeline__sleeps(tl, i, &sleeps);
		if (!sleeps) /* it ran all the time, or was not watched */
			continue;
		u = hb_timeline__use(tl, i, t->born ? t->born : start, t->died ? t->died : end);
		ran += u.running;
		ready += u.ready;
	}
	return ran + ready ? (double)ready / (double)(ran + ready) : -1;
}

static void check_cpus(struct hb_compare *c)
{
	double a = waited_for_cpu(c, 0), b = waited_for_cpu(c, 1);

	if (a > 0.1 || b > 0.1)
		hb_compare__caution(
		    c, HB_CAUTION_MACHINE, false,
		    "the targets waited for a CPU for %.0f %% (A) and %.0f %% (B) of the time they wanted "
		    "to run: whoever ran instead is part of these numbers",
		    100 * fmax(a, 0), 100 * fmax(b, 0));
}

static double steps_per_second(const struct hb_compare *c, int k)
{
	const struct hb_slices *s = &c->slices[k];
	u64 steps = 0;

	for (u32 i = 0; i < s->n; i++)
		steps += s->steps[i];
	return s->bound[s->n] > s->bound[0] ? (double)steps * 1e9 / (double)(s->bound[s->n] - s->bound[0])
					    : 0;
}

static void check_load(struct hb_compare *c)
{
	double a = steps_per_second(c, 0), b = steps_per_second(c, 1);

	if (!c->by_step) {
		hb_compare__caution(
		    c, HB_CAUTION_SLICES, false,
		    "no steps to compare by (at least %d in both): numbers are per second, so another "
		    "load looks like a change",
		    HB_SLICES_LEAST);
		return;
	}
	if (fabs(a - b) > 0.1 * fmax(a, b))
		hb_compare__caution(
		    c, HB_CAUTION_LOAD, false,
		    "%.1f steps a second in A, %.1f in B: numbers are per step, but another load makes "
		    "other steps too",
		    a, b);
}

void hb_compare__ground(struct hb_compare *c)
{
	check_target(c);
	check_work(c);
	check_meta(c);
	check_options(c);
	check_records(c);
	check_length(c);
	check_whole(c);
	check_load(c);
	check_cpus(c);
}
