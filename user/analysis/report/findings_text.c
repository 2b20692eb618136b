/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the catalogue of patterns found, for a person: what it costs, where, and what helps. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "analysis/report/analyze_private.h"
#include "base/buf.h"
#include "base/text.h"

#define INDENT 3
#define FRAMES 4 /* innermost functions of a stack that are named */

void hb_analysis__wrap(FILE *out, unsigned width, unsigned indent, const char *fmt, ...)
{
	struct hb_buf b = {0};
	unsigned column;
	char line[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	hb_text__clean(line);
	column = (unsigned)strspn(line, " ");
	hb_buf__printf(&b, "%*s", (int)column, "");
	for (const char *p = line + column; *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");
		bool first = p == line + strspn(line, " ");

		if (!first && column + n + 1 > width) {
			hb_buf__printf(&b, "\n%*s", (int)indent, "");
			column = indent;
			first = true;
		}
		hb_buf__printf(&b, "%s%.*s", first ? "" : " ", (int)n, p);
		column += (unsigned)n + !first;
		p += n;
	}
	if (!b.oom)
		fprintf(out, "%.*s\n", (int)b.size, b.data ? b.data : "");
	hb_buf__free(&b);
}

/* ---- pieces ---- */

struct text {
	const struct hb_analysis *a;
	FILE *out;
	unsigned width;
	char of[64]; /* what shares are of */
};

#define LINE(t, ...) hb_analysis__wrap((t)->out, (t)->width, INDENT, "   " __VA_ARGS__)

/* Where the window is far longer than what there was to do in it, that counts: see hb_findings__active(). */
static struct text text_of(const struct hb_analysis *a, FILE *out, unsigned width)
{
	struct text t = {.a = a, .out = out, .width = width, .of = "of the window"};
	u64 active = hb_findings__active(a->f);
	char ns[32];

	if (active < hb_model__totals(a->m)->wall_ns)
		snprintf(t.of, sizeof(t.of), "of the %s with work", hb_text__ns(ns, sizeof(ns), active));
	return t;
}

static double of_window(const struct text *t, u64 ns)
{
	u64 wall = hb_findings__active(t->a->f);

	return wall ? 100.0 * (double)ns / (double)wall : 0;
}

static void cost_text(const struct text *t, const struct hb_finding *f, char *buf, size_t size)
{
	char a[32], b[32], c[32];

	if (f->exposed_max && f->exposed_min == f->exposed_max)
		snprintf(buf, size, "%s of idle device (%.1f %% %s)",
			 hb_text__ns(a, sizeof(a), f->exposed_max), of_window(t, f->exposed_max), t->of);
	else if (f->exposed_max)
		snprintf(buf, size, "about %s of idle device (%.1f %% %s; at least %s, at most %s)",
			 hb_text__ns(a, sizeof(a), f->exposed_likely), of_window(t, f->exposed_likely), t->of,
			 hb_text__ns(b, sizeof(b), f->exposed_min),
			 hb_text__ns(c, sizeof(c), f->exposed_max));
	else if (f->delay_ns)
		snprintf(buf, size, "%s of delay to requests (%.1f %% %s)",
			 hb_text__ns(a, sizeof(a), f->delay_ns), of_window(t, f->delay_ns), t->of);
	else if (f->device_ns)
		snprintf(buf, size, "%s of device time (%.1f %% %s)", hb_text__ns(a, sizeof(a), f->device_ns),
			 of_window(t, f->device_ns), t->of);
	else
		snprintf(buf, size, "cost not known");
}

static void task_text(const struct text *t, const struct hb_task *k, char *buf, size_t size)
{
	const char *comm = hb_decode__comm(t->a->w, k);

	if (strcmp(comm, "?") == 0)
		snprintf(buf, size, "thread %u, gone before its name was read", k->tid);
	else
		snprintf(buf, size, "%s (%u)", comm, k->tid);
}

/* The innermost functions, Python's where there are some: those an engineer of the service knows. */
static void print_stack(const struct text *t, const char *what, u32 pid, u32 stack)
{
	struct hb_stack s = pid && stack ? hb_window__stack(t->a->w, pid, stack) : (struct hb_stack){0};
	bool python = false;
	struct hb_buf b = {0};
	unsigned shown = 0;
	char frame[256];

	for (u32 i = 0; i < s.n; i++) {
		const struct hb_loc *l = hb_window__loc(t->a->w, s.locs[i]);

		python |= l && l->lang == HB_LANG_PYTHON;
	}
	for (u32 i = s.n; i-- && shown < FRAMES;) {
		const struct hb_loc *l = hb_window__loc(t->a->w, s.locs[i]);

		if (!l || (python && l->lang != HB_LANG_PYTHON))
			continue;
		hb_buf__printf(&b, "%s%s", shown++ ? " < " : "",
			       hb_decode__frame(t->a->w, l, HB_FRAME_LINE, frame, sizeof(frame)));
	}
	if (shown && !b.oom)
		LINE(t, "%s %.*s", what, (int)b.size, b.data);
	hb_buf__free(&b);
}

/* "timer": what the last of a chain did, for who does not know the words of the model. */
static const char *did(const char *ending)
{
	static const char *const text[][2] = {{"timer", "it slept by its own clock"},
					      {"working", "it was working"},
					      {"waiting for a CPU", "it could run and had no CPU"},
					      {"network", "it waited for the network"},
					      {"disk", "it waited for the disk"},
					      {"device", "it waited for the device"},
					      {"stopped", "it was stopped"},
					      {"not traced", "what it did was not traced"}};

	for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++)
		if (!strcmp(ending, text[i][0]))
			return text[i][1];
	return "why it waited was not seen";
}

static void print_chain(const struct text *t, const struct hb_finding *f)
{
	const struct hb_instance *x = hb_finding__shown(f);
	const struct hb_hop *end = hb_finding__end(f);
	const struct hb_task *main = end ? hb_window__task_by_tid(t->a->w, end->task->pid) : NULL;
	char who[96], of[96] = "";

	/* Who could run and had no CPU waited for nobody; who held a GIL is told already. */
	if (!f->chain[0] || (!end && (f->hop[0].by == HB_WAKE_PREEMPTED || x->waker)))
		return;
	LINE(t, "waited for: %s", f->chain);
	if (!end)
		return;
	task_text(t, end->task, who, sizeof(who));
	if (main && main != end->task)
		task_text(t, main, of, sizeof(of));
	LINE(t, "in the end for: %s%s%s; %s", who, *of ? " of " : "", of, did(hb_hop__ending(end)));
	print_stack(t, "there:", end->task->pid, hb_hop__stack(hb_host__wake(t->a->h), end));
}

/* The function in which its thread was. */
static void print_ran(const struct text *t, u32 loc)
{
	const struct hb_loc *l = loc ? hb_window__loc(t->a->w, loc) : NULL;
	char frame[256];

	if (l)
		LINE(t, "meanwhile in: %s",
		     hb_decode__frame(t->a->w, l, HB_FRAME_LINE, frame, sizeof(frame)));
}

static void print_worst(const struct text *t, const struct hb_finding *f)
{
	const struct hb_instance *x = hb_finding__shown(f);
	char ns[32], at[32], thread[96], waker[96];
	u64 start = hb_window__info(t->a->w)->start_ts;

	if (!x)
		return;
	if (x->thread)
		task_text(t, x->thread, thread, sizeof(thread));
	if (x->waker)
		task_text(t, x->waker, waker, sizeof(waker));
	LINE(t, "worst: %s at %s into the window%s%s%s%s", hb_text__ns(ns, sizeof(ns), x->end - x->begin),
	     hb_text__ns(at, sizeof(at), x->begin > start ? x->begin - start : 0), x->thread ? ", " : "",
	     x->thread ? thread : "", x->waker ? "; ended or held up by " : "", x->waker ? waker : "");
	print_ran(t, x->ran);
	print_stack(t, x->thread && !x->launch ? "at:" : "launched at:", hb_finding__stack_pid(f, x),
		    x->stack);
	print_stack(t, "meanwhile:", x->waker ? x->waker->pid : 0, x->waker_stack);
	print_chain(t, f);
}

static void print_effects(const struct text *t, const struct hb_finding *cause)
{
	const struct hb_finding *f, *before;
	struct hb_buf b = {0};

	for (u32 i = 0; (f = hb_findings__at(t->a->f, i)); i++) {
		bool told = false;

		for (u32 k = 0; k < i && (before = hb_findings__at(t->a->f, k)); k++)
			told |= before->cause == cause && before->pattern == f->pattern;
		if (f->cause == cause && !told)
			hb_buf__printf(&b, "%s%s %s", b.size ? "; " : "", f->pattern->id, f->pattern->title);
	}
	if (b.size && !b.oom)
		LINE(t, "shows also as: %.*s", (int)b.size, b.data);
	hb_buf__free(&b);
}

static void print_finding(const struct text *t, const struct hb_finding *f, u32 number)
{
	char cost[200], a[32], b[32], c[32];

	cost_text(t, f, cost, sizeof(cost));
	fputc('\n', t->out);
	hb_analysis__wrap(t->out, t->width, INDENT, "%u. %s: %s (%s, %s)", number, f->pattern->title, cost,
			  f->pattern->id, f->pattern->layer);
	if (f->what[0])
		LINE(t, "%s", f->what);
	if (f->count > 1 && f->sampled)
		LINE(t, "seen in %" PRIu64 " CPU samples, each of which stands for up to %s", f->count,
		     hb_text__ns(a, sizeof(a), f->max_ns));
	else if (f->count > 1)
		LINE(t, "%" PRIu64 " times: half of them up to %s, 95 %% up to %s, the longest %s", f->count,
		     hb_text__ns(a, sizeof(a), f->p50_ns), hb_text__ns(b, sizeof(b), f->p95_ns),
		     hb_text__ns(c, sizeof(c), f->max_ns));
	print_worst(t, f);
	print_effects(t, f);
	LINE(t, "fix: %s", f->pattern->fix);
	if (f->pattern->ref)
		LINE(t, "seen before: %s", f->pattern->ref);
	if (f->gain_bound_ns)
		LINE(t, "worth at most: %s (%.1f %% %s)", hb_text__ns(a, sizeof(a), f->gain_bound_ns),
		     of_window(t, f->gain_bound_ns), t->of);
	if (f->has_what_if && f->what_if.min == f->what_if.max)
		LINE(t, "without it, all else the same: the steps end %s sooner",
		     hb_text__ns(a, sizeof(a), f->what_if.max));
	else if (f->has_what_if)
		LINE(t,
		     "without it, all else the same: the steps end about %s sooner (at least %s, at most %s)",
		     hb_text__ns(a, sizeof(a), f->what_if.likely), hb_text__ns(b, sizeof(b), f->what_if.min),
		     hb_text__ns(c, sizeof(c), f->what_if.max));
	if (f->confidence == HB_CONFIDENCE_HIGH)
		LINE(t, "confidence: high");
	else
		LINE(t, "confidence: %s%s%s%s%s", hb_confidence__name(f->confidence), f->why ? ", " : "",
		     f->why ? f->why : "", f->pattern->settle ? "; to settle it: " : "",
		     f->pattern->settle ? f->pattern->settle : "");
}

/* ---- the lists ---- */

/* Little was found where little was looked at. */
static void print_none(const struct text *t)
{
	u32 looked = 0, not_looked = 0;

	while (hb_findings__ruled_out(t->a->f, looked))
		looked++;
	while (hb_findings__not_checked(t->a->f, not_looked))
		not_looked++;
	if (!looked)
		hb_analysis__wrap(
		    t->out, t->width, 2,
		    "  none could be looked for: this window does not hold what the %u patterns need "
		    "(listed at the end)",
		    not_looked);
	else
		hb_analysis__wrap(t->out, t->width, 2,
				  "  none: of the %u patterns that could be looked for none costs enough to "
				  "be worth a change; %u "
				  "need what this window does not hold (both are listed at the end)",
				  looked, not_looked);
}

void hb_analysis__print_findings(const struct hb_analysis *a, FILE *out, unsigned width, unsigned rows)
{
	struct text t = text_of(a, out, width);
	const struct hb_finding *f;
	u32 shown = 0, more = 0, open = 0;

	fprintf(out, "\nFindings: causes by what they cost, symptoms after them\n");
	for (u32 i = 0; (f = hb_findings__at(a->f, i)); i++) {
		if (f->cause)
			continue; /* told with its cause */
		open += f->confidence != HB_CONFIDENCE_HIGH && f->pattern->record;
		if (rows && shown >= rows)
			more++;
		else
			print_finding(&t, f, ++shown);
	}
	if (!shown)
		print_none(&t);
	hb_analysis__print_unexplained(a, out, width);
	if (more)
		fprintf(out, "\n  ... and %u more (--rows 0 shows all)\n", more);
	if (shown) {
		fputc('\n', out);
		hb_analysis__wrap(out, width, 2,
				  "  (idle device: time in which the device had nothing to do and this is to "
				  "blame; worst: the one that "
				  "cost most, which need not be the longest; worth at most: no change can "
				  "gain more; the steps "
				  "end sooner: their critical paths replayed without it; waited for: from "
				  "who waited to who was "
				  "to blame, over which socket, pipe or lock)");
	}
	/* An imported window is of nothing that could be recorded again. */
	if (open && hb_window__meta(a->w, "boot_id"))
		fprintf(
		    out,
		    "\n  %u of them %s not sure: analyze with --plan-out PLAN writes what to record to be "
		    "surer\n",
		    open, open == 1 ? "is" : "are");
}

/* Those that need the same are told together. */
static void print_unchecked(const struct hb_analysis *a, FILE *out, unsigned width)
{
	const struct hb_not_checked *n, *k;

	for (u32 i = 0; (n = hb_findings__not_checked(a->f, i)); i++) {
		struct hb_buf ids = {0};
		bool told = false;

		for (u32 j = 0; (k = hb_findings__not_checked(a->f, j)); j++) {
			if (strcmp(k->text, n->text) != 0)
				continue;
			told |= j < i;
			hb_buf__printf(&ids, "%s%s %s", ids.size ? "; " : "", k->pattern->id,
				       k->pattern->title);
		}
		if (!told && !ids.oom)
			hb_analysis__wrap(out, width, 4, "  %s: %.*s", n->text, (int)ids.size, ids.data);
		hb_buf__free(&ids);
	}
}

/* "2.8 %, needs 15 % or more: gaps of 20 us and more, as a part of .." */
static void measure_text(const struct hb_measure *m, char *buf, size_t size)
{
	char value[40], threshold[40];

	snprintf(buf, size, m->at_most ? "%s, needs %s or less: %s" : "%s, needs %s or more: %s",
		 hb_unit__text(m->param->unit, m->value, value, sizeof(value)),
		 hb_unit__text(m->param->unit, m->threshold, threshold, sizeof(threshold)), m->param->doc);
}

static bool nothing_occurred(const struct hb_ruled_out *r)
{
	return !r->measure.param && strcmp(r->what, HB_NOTHING_OCCURRED) == 0;
}

static void print_ruled_out(FILE *out, unsigned width, const struct hb_ruled_out *r)
{
	char measure[320] = "";

	if (r->measure.param)
		measure_text(&r->measure, measure, sizeof(measure));
	hb_analysis__wrap(out, width, 4, "  %s %s: %s%s%s", r->pattern->id, r->pattern->title, r->what,
			  r->what[0] && measure[0] ? "; " : "", measure);
}

/* Most patterns have nothing to say most of the time: these go into one paragraph. */
static void print_nothing(const struct hb_analysis *a, FILE *out, unsigned width)
{
	const struct hb_ruled_out *r;
	struct hb_buf b = {0};

	for (u32 i = 0; (r = hb_findings__ruled_out(a->f, i)); i++)
		if (nothing_occurred(r))
			hb_buf__printf(&b, "%s%s %s", b.size ? "; " : "", r->pattern->id, r->pattern->title);
	if (b.size && !b.oom)
		hb_analysis__wrap(out, width, 4, "  " HB_NOTHING_OCCURRED ": %.*s", (int)b.size, b.data);
	hb_buf__free(&b);
}

void hb_analysis__print_rest(const struct hb_analysis *a, FILE *out, unsigned width)
{
	const struct hb_ruled_out *r;

	if (hb_findings__ruled_out(a->f, 0))
		fprintf(out, "\nLooked at, and not so: what was measured, and what the pattern needs\n");
	for (u32 i = 0; (r = hb_findings__ruled_out(a->f, i)); i++)
		if (!nothing_occurred(r))
			print_ruled_out(out, width, r);
	print_nothing(a, out, width);
	if (hb_findings__not_checked(a->f, 0))
		fprintf(out, "\nNot looked at: this window does not have what it takes\n");
	print_unchecked(a, out, width);
}

/* What a step goes from and to, for who does not know the words of the model. */
static const char *border(enum hb_step_source s)
{
	static const char *const text[] = {
	    [HB_STEPS_PYCALL] = "a call of the engine's step function",
	    [HB_STEPS_MARK] = "a span that the trace marks as a step",
	    [HB_STEPS_READBACK] = "from one copy of its results to the host to the next",
	    [HB_STEPS_SYNC] = "from one wait for the device to the next",
	    [HB_STEPS_GRAPH] = "from one launch of its graph to the next",
	    [HB_STEPS_PYCALLS] = "from one call of the engine's step function to the next",
	    [HB_STEPS_MARKS] = "from one span that the trace marks as a step to the next",
	};

	return (size_t)s < sizeof(text) / sizeof(*text) && text[s] ? text[s] : "of no known kind";
}

void hb_analysis__print_steps(const struct hb_analysis *a, FILE *out, unsigned width)
{
	const struct hb_steps *s = hb_host__steps(a->h);
	const struct hb_timeline *tl = hb_host__timeline(a->h);
	struct text t = {.a = a, .out = out, .width = width};
	char p50[32], p95[32], max[32], none[32], thread[96];

	if (hb_steps__series(s))
		fprintf(out,
			"\nSteps of the engine: one iteration each, from one batch of tokens to the next\n");
	for (u32 i = 0; i < hb_steps__series(s); i++) {
		const struct hb_series *x = hb_steps__at(s, i);

		task_text(&t, hb_timeline__thread(tl, x->thread)->task, thread, sizeof(thread));
		if (x->n == 1)
			hb_analysis__wrap(out, width, 4,
					  "  process %u, dispatched by %s: one step, %s, of %s", x->pid,
					  thread, border(x->source), hb_text__ns(max, sizeof(max), x->max));
		else if (x->n)
			hb_analysis__wrap(
			    out, width, 4,
			    "  process %u, dispatched by %s: %u steps, each %s; half of them up to %s, 95 "
			    "%% up to %s, the longest %s%s%s%s",
			    x->pid, thread, x->n, border(x->source), hb_text__ns(p50, sizeof(p50), x->p50),
			    hb_text__ns(p95, sizeof(p95), x->p95), hb_text__ns(max, sizeof(max), x->max),
			    x->no_load_ns ? "; not in them: " : "",
			    x->no_load_ns ? hb_text__ns(none, sizeof(none), x->no_load_ns) : "",
			    x->no_load_ns ? " in which all that is traced waited for data from outside (no "
					    "load, or the answer "
					    "of a process that is not traced)"
					  : "");
		else
			hb_analysis__wrap(out, width, 4, "  process %u, dispatched by %s: no steps: %s",
					  x->pid, thread, x->why);
	}
}
