/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/report/verdict.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "analysis/model/doing.h"
#include "base/text.h"

const char *hb_verdict__name(enum hb_verdict_kind k)
{
	static const char *const names[HB_VERDICT_KINDS] = {"unknown", "no load", "host", "communication",
							    "device busy"};

	return k < HB_VERDICT_KINDS ? names[k] : "?";
}

struct sums {		/* over all processes */
	u64 span, idle; /* of the time from the first operation to the last; none of its devices works */
	u64 host, dep;	/* of idle: before work that the host launched late; that waited for other work */
	u64 all, missing, comm, copies; /* over all devices: their spans; what cannot be called idle;
					 * communication and copies that nothing else runs beside */
	u64 first, last;
	u32 devices;
	bool together; /* a process has several devices */
};

static u64 of_gaps(const struct hb_device *v, bool host)
{
	u64 ns = 0;

	for (u32 i = 0; i < HB_GAP_SIZES; i++)
		ns += host ? v->gaps[i].host_ns + v->gaps[i].tail_ns + v->gaps[i].call_ns : v->gaps[i].dep_ns;
	return ns;
}

static void add_alone(struct sums *s, const struct hb_device *v)
{
	s->span += v->end - v->begin;
	s->idle += v->idle;
	s->host += of_gaps(v, true);
	s->dep += of_gaps(v, false);
}

/* A process with several devices waits when none of them works: seen from the one that works most. */
static void add_together(struct sums *s, const struct hb_devices *d, const struct hb_busy *busy, u32 first,
			 u32 n)
{
	const struct hb_device *v = hb_devices__at(d, first);
	u64 begin = v->begin, end = v->end;

	for (u32 i = first + 1; i < first + n; i++) {
		const struct hb_device *o = hb_devices__at(d, i);

		begin = o->begin < begin ? o->begin : begin;
		end = o->end > end ? o->end : end;
		v = o->busy > v->busy ? o : v;
	}
	s->together = true;
	s->span += end - begin;
	s->idle += hb_busy__idle_in(busy, v->pid, begin, end).max;
	for (u32 i = 0; i < v->n_gaps; i++) {
		u64 ns = hb_busy__idle_in(busy, v->pid, v->gap[i].begin, v->gap[i].end).min;

		s->host += v->gap[i].cause == HB_GAP_HOST ? ns : 0;
		s->dep += v->gap[i].cause == HB_GAP_DEP ? ns : 0;
	}
}

static struct sums sums_of(const struct hb_devices *d, const struct hb_host *h)
{
	struct sums s = {.first = UINT64_MAX};
	const struct hb_device *v;

	for (u32 i = 0, n; (v = hb_devices__at(d, i)); i += n) {
		const struct hb_device *o;

		for (n = 0; (o = hb_devices__at(d, i + n)) && o->pid == v->pid; n++) {
			s.devices += o->n_ops > 0;
			s.all += o->end - o->begin;
			s.missing += hb_ivs__length(o->not_known);
			s.comm += o->exposed_comm;
			s.copies += o->exposed_memcpy;
			s.first = o->begin < s.first ? o->begin : s.first;
			s.last = o->end > s.last ? o->end : s.last;
			if (!h)
				add_alone(&s, o);
		}
		if (h && n > 1)
			add_together(&s, d, hb_host__busy(h), i, n);
		else if (h)
			add_alone(&s, v);
	}
	return s;
}

static double percent(u64 part, u64 whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void say(struct hb_verdict *v, enum hb_verdict_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void say(struct hb_verdict *v, enum hb_verdict_kind kind, const char *fmt, ...)
{
	va_list ap;

	v->kind = kind;
	va_start(ap, fmt);
	vsnprintf(v->text, sizeof(v->text), fmt, ap);
	va_end(ap);
}

/* Idle time costs nobody anything when there is nothing to do. */
static const char *load_text(const struct hb_load *l, char *buf, size_t size)
{
	if (l->known)
		snprintf(buf, size, "there were requests for %.0f %% of the time",
			 100 - percent(l->none, l->known));
	else
		snprintf(buf, size, "whether requests were waiting is not known (no engine records)");
	return buf;
}

/* ---- from device records ---- */

static const char *who(const struct sums *s)
{
	return s->together	? "the devices of each process, taken together, are"
	       : s->devices > 1 ? "the devices are"
				: "the device is";
}

static void idle(const struct sums *s, const struct hb_load *l, struct hb_verdict *v)
{
	double part = percent(s->idle, s->span);
	char load[96];

	if (percent(s->host, s->idle) >= HB_VERDICT_HOSTS)
		say(v, HB_VERDICT_HOST,
		    "%s idle %.1f %% of the time, and for %.0f %% of that the next work had not been "
		    "launched "
		    "yet, or had only just been; %s",
		    who(s), part, percent(s->host, s->idle), load_text(l, load, sizeof(load)));
	else if (percent(s->dep, s->idle) >= 50)
		say(v, HB_VERDICT_UNKNOWN,
		    "%s idle %.1f %% of the time, mostly with work launched that waited for an event, "
		    "another stream or "
		    "another device",
		    who(s), part);
	else
		say(v, HB_VERDICT_UNKNOWN,
		    "%s idle %.1f %% of the time, for more than one reason (see the gaps)", who(s), part);
}

static void from_devices(const struct sums *s, const struct hb_load *l, struct hb_verdict *v)
{
	char ns[32], copies[96] = "";

	if (percent(s->copies, s->all) >= HB_VERDICT_COMM)
		snprintf(copies, sizeof(copies), "; %.1f %% of it is copies that no computation hides",
			 percent(s->copies, s->all));
	if (percent(s->missing, s->all) >= HB_VERDICT_MISSING)
		say(v, HB_VERDICT_UNKNOWN,
		    "device activity missing: for %s (%.1f %% of the time) the device looks idle and, by all "
		    "signs, was "
		    "not: work was launched and did not begin, as if other work were before it that is not "
		    "in this window",
		    hb_text__ns(ns, sizeof(ns), s->missing), percent(s->missing, s->all));
	else if (percent(s->idle, s->span) >= HB_VERDICT_IDLE)
		idle(s, l, v);
	else if (percent(s->comm, s->all) >= HB_VERDICT_COMM)
		say(v, HB_VERDICT_COMMUNICATION,
		    "%.1f %% of the devices' time is communication that no computation hides",
		    percent(s->comm, s->all));
	else
		say(v, HB_VERDICT_BUSY, "%s busy %.1f %% of the time%s", who(s),
		    100 - percent(s->idle, s->span), copies);
}

/* ---- what threads did ---- */

static void doing_text(const struct hb_host *h, const struct hb_doing *d, char *buf, size_t size)
{
	struct hb_window *w = hb_timeline__window(hb_host__timeline(h));
	const struct hb_did *most = hb_doing__most(d);
	const struct hb_loc *loc = most ? hb_window__loc(w, most->loc) : NULL;
	char frame[128];

	*buf = 0;
	if (loc)
		snprintf(buf, size, "; who launches was in %s for %.0f %% of that",
			 hb_decode__frame(w, loc, HB_FRAME_LINE, frame, sizeof(frame)),
			 percent(most->ns, hb_doing__sum(d).ns));
}

/* Where the device waits for the host, who launches may wait itself: by the names of functions that a trace
 * tells. Then it is not slow. */
static void add_waits(const struct hb_devices *devs, const struct hb_host *h, struct hb_verdict *v)
{
	struct hb_doing *d = hb_doing__new(hb_host__timeline(h));
	const struct hb_device *x;
	struct hb_doing_sum sum;
	char doing[192];
	int err = d ? 0 : -ENOMEM;

	for (u32 i = 0; (x = hb_devices__at(devs, i)) && !err; i++) {
		const struct hb_series *p = hb_steps__of_pid(hb_host__steps(h), x->pid);

		for (size_t k = 0; p && k < x->host_idle->n && !err; k++)
			err = hb_doing__add(d, p->dispatch, x->host_idle->v[k].begin, x->host_idle->v[k].end,
					    NULL);
	}
	sum = d ? hb_doing__sum(d) : (struct hb_doing_sum){0};
	if (!err && percent(sum.waited, sum.ns) >= HB_VERDICT_WAITS) {
		size_t n = strlen(v->text);

		doing_text(h, d, doing, sizeof(doing));
		snprintf(v->text + n, sizeof(v->text) - n,
			 "%s: it waited for requests, or for another thread", doing);
	}
	hb_doing__free(d);
}

/* ---- before the first and after the last operation ---- */

/* Were calls made there that give the device work? Then what came of them was not recorded. The call of the
 * first operation, and what is done in an instant, do not count. */
#define AT_ONCE 1000000
static bool called_outside(const struct hb_timeline *tl, u64 first, u64 last)
{
	for (u32 t = 0; t < hb_timeline__threads(tl); t++) {
		u32 n;
		const struct hb_tl_call *c = hb_timeline__calls(tl, t, &n);

		for (u32 i = 0; i < n && c[i].at.begin < first; i++)
			if (hb_call__is_work(&c[i]) && c[i].at.end + AT_ONCE < first)
				return true;
		for (u32 i = n; i-- && c[i].at.begin > last + AT_ONCE;)
			if (hb_call__is_work(&c[i]))
				return true;
	}
	return false;
}

/* What the threads that give the devices work did there. 0 or -ENOMEM. */
static int did_outside(const struct hb_host *h, const struct sums *s, struct hb_doing *d)
{
	const struct hb_timeline *tl = hb_host__timeline(h);
	const struct hb_steps *steps = hb_host__steps(h);
	int err = 0;

	for (u32 i = 0; i < hb_steps__series(steps) && !err; i++) {
		u32 thread = hb_steps__at(steps, i)->dispatch;

		err = hb_doing__add(d, thread, hb_timeline__start(tl), s->first, NULL);
		err = err ? err : hb_doing__add(d, thread, s->last, hb_timeline__end(tl), NULL);
	}
	return err;
}

/* The window may be far longer than what the devices did in it: a hang, a load before the first step, a stray
 * row of a trace. Where threads are seen to do something else then, that is what there is to say first. */
static void outside(const struct sums *s, const struct hb_host *h, struct hb_verdict *v)
{
	u64 start = hb_timeline__start(hb_host__timeline(h)), end = hb_timeline__end(hb_host__timeline(h));
	u64 before = s->first > start ? s->first - start : 0, after = end > s->last ? end - s->last : 0;
	struct hb_doing *d;
	struct hb_doing_sum sum;
	char a[32], b[32], doing[192], was[sizeof(v->text)];

	if (percent(before + after, end - start) < HB_VERDICT_OUTSIDE ||
	    called_outside(hb_host__timeline(h), s->first, s->last))
		return;
	d = hb_doing__new(hb_host__timeline(h));
	if (!d || did_outside(h, s, d)) {
		hb_doing__free(d);
		return;
	}
	doing_text(h, d, doing, sizeof(doing));
	sum = hb_doing__sum(d);
	hb_text__ns(a, sizeof(a), before);
	hb_text__ns(b, sizeof(b), after);
	snprintf(was, sizeof(was), "%s", v->text);
	if (sum.known * 2 > sum.ns)
		say(v, HB_VERDICT_UNKNOWN,
		    "for %.1f %% of the window (%s before the first operation of a device, %s after the last "
		    "one) nothing was launched%s. In the rest %s",
		    percent(before + after, end - start), a, b, doing, was);
	else
		say(v, v->kind,
		    "%s. That is of the %.1f %% of the window between the first operation of a device and "
		    "the "
		    "last; before it (%s) and after it (%s) nothing was launched",
		    was, 100 - percent(before + after, end - start), a, b);
	hb_doing__free(d);
}

/* ---- from calls alone ---- */

static u32 probes_of(const struct hb_host *h)
{
	return h ? hb_window__probes(hb_timeline__window(hb_host__timeline(h))) : 0;
}

static void without_devices(const struct hb_devices *d, u32 probes, const struct hb_load *l,
			    struct hb_verdict *v)
{
	const struct hb_device_counts *c = hb_devices__counts(d);
	char load[96];

	if (c->left_out)
		say(v, HB_VERDICT_UNKNOWN,
		    "no device operation has a call that launched it (--linked-only left all out)");
	else if (c->calls)
		say(v, HB_VERDICT_UNKNOWN,
		    "what the devices did was not recorded, only the calls that gave them work, and these do "
		    "not tell "
		    "whether they waited for the host");
	else if (probes && l->none < l->known)
		say(v, HB_VERDICT_UNKNOWN,
		    "not one accelerator call was made in this window, and calls were watched; yet %s: the "
		    "engine "
		    "hangs, or it calls what was not watched (the threads' sleeps and stacks in the report "
		    "say "
		    "where it is)",
		    load_text(l, load, sizeof(load)));
	else if (probes)
		say(v, HB_VERDICT_UNKNOWN,
		    "not one accelerator call was made in this window, and calls were watched: no request "
		    "came, or "
		    "the engine hangs (the threads' sleeps and stacks in the report say where)");
	else
		say(v, HB_VERDICT_UNKNOWN, "no accelerator calls and no device activity were recorded");
}

struct calls { /* each process that gives work stands for its device; of their windows: */
	u64 wall, busy;
	struct hb_range idle;
	u64 outside; /* of it (likely): everything traced waited for data from outside */
};

static u64 idle_outside(const struct hb_host *h, u32 pid)
{
	struct hb_ivs out = {0};
	u64 sum = 0;

	hb_path__outside(hb_host__path(h), pid, &out);
	for (size_t i = 0; i < out.n; i++)
		sum += hb_busy__idle_in(hb_host__busy(h), pid, out.v[i].begin, out.v[i].end).likely;
	hb_ivs__free(&out);
	return sum;
}

static struct calls by_calls(const struct hb_host *h)
{
	const struct hb_steps *steps = hb_host__steps(h);
	const struct hb_busy *busy = hb_host__busy(h);
	u64 start = hb_timeline__start(hb_host__timeline(h)), end = hb_timeline__end(hb_host__timeline(h));
	struct calls c = {0};

	for (u32 i = 0; i < hb_steps__series(steps); i++) {
		const struct hb_series *s = hb_steps__at(steps, i);
		struct hb_range idle;

		if (!s->all_ops)
			continue;
		idle = hb_busy__idle_in(busy, s->pid, start, end);
		c.wall += end - start;
		c.busy += hb_busy__sum(busy, s->pid).busy;
		c.idle.min += idle.min;
		c.idle.max += idle.max;
		c.idle.likely += idle.likely;
		c.outside += idle_outside(h, s->pid);
	}
	return c;
}

/* Requests, or answers of a service that is not traced: nobody here can tell them apart. */
#define OUTSIDE                                                                                              \
	"everything that is traced waited for data from outside: for requests, or for the answer of a "      \
	"process "                                                                                           \
	"that is not traced"

static void nothing_to_do(const struct calls *c, struct hb_verdict *v)
{
	say(v, HB_VERDICT_NO_LOAD,
	    "by all signs: for about %.1f %% of the window the device had nothing to do while " OUTSIDE
	    "; when it had requests it was busy for %.1f %% of the time or more",
	    percent(c->outside, c->wall), percent(c->busy, c->wall - c->outside));
}

static void from_calls(const struct calls *c, const struct hb_load *l, struct hb_verdict *v)
{
	double likely = percent(c->idle.likely - c->outside, c->wall), busy;
	char load[96], outside[256] = "";

	if (percent(c->outside, c->wall) >= HB_VERDICT_NO_REQUESTS &&
	    c->outside >= c->idle.likely - c->outside) {
		nothing_to_do(c, v);
		return;
	}
	if (percent(c->outside, c->wall) >= 1)
		snprintf(outside, sizeof(outside), "; for another %.1f %% " OUTSIDE,
			 percent(c->outside, c->wall));
	busy = percent(c->busy, c->wall - c->outside);
	if (likely >= HB_VERDICT_IDLE)
		say(v, HB_VERDICT_HOST,
		    "judged by the calls, the device had nothing to do for about %.1f %% of the window (at "
		    "least %.1f, at "
		    "most %.1f %%): all it had been given was done, and nothing new had come; %s%s",
		    likely, percent(c->idle.min > c->outside ? c->idle.min - c->outside : 0, c->wall),
		    percent(c->idle.max - c->outside, c->wall), load_text(l, load, sizeof(load)), outside);
	else if (percent(c->outside, c->wall) >= HB_VERDICT_IDLE)
		say(v, HB_VERDICT_UNKNOWN,
		    "judged by the calls, the device was busy for %.1f %% of the window or more%s. Trace who "
		    "is waited "
		    "for, too (the parent of what was traced, or the service), and it shows which",
		    percent(c->busy, c->wall), outside);
	else if (busy >= HB_VERDICT_BUSY_BY_CALLS)
		say(v, HB_VERDICT_BUSY,
		    "judged by the calls, the device was busy for %.1f %% of the window or more%s",
		    percent(c->busy, c->wall), outside);
	else
		say(v, HB_VERDICT_UNKNOWN,
		    "judged by the calls, the device was busy for at least %.1f %% of the window and idle "
		    "for at least "
		    "%.1f %%; of the rest nothing is known, as what it did was not recorded%s",
		    percent(c->busy, c->wall), percent(c->idle.min, c->wall), outside);
}

/* What a finding says against the calls: time in which they look busy may be its own. */
static void from_finding(const struct hb_finding *f, u64 wall, struct hb_verdict *v)
{
	double part = percent(f->exposed_likely, wall);

	if (v->kind != HB_VERDICT_HOST && !f->cause && part >= HB_VERDICT_IDLE)
		say(v, HB_VERDICT_HOST,
		    "the device had nothing to do for about %.1f %% of the window because of one cause: %s",
		    part, f->pattern->title);
}

/* ---- all of it ---- */

static void no_load(const struct hb_load *l, u64 wall, struct hb_verdict *v)
{
	say(v, HB_VERDICT_NO_LOAD,
	    "for %.0f %% of the time the engine had no request, neither running nor waiting: idle time then "
	    "costs nobody "
	    "anything",
	    percent(l->none, wall));
}

struct hb_verdict hb_verdict__of(const struct hb_verdict_input *in)
{
	struct sums s = sums_of(in->devices, in->host);
	struct hb_verdict v = {0};

	if (percent(in->load.none, in->wall) >= HB_VERDICT_NO_REQUESTS) {
		no_load(&in->load, in->wall, &v);
	} else if (s.devices && s.span) {
		from_devices(&s, &in->load, &v);
		if (in->host && v.kind == HB_VERDICT_HOST)
			add_waits(in->devices, in->host, &v);
		if (in->host)
			outside(&s, in->host, &v);
	} else {
		struct calls c = in->host ? by_calls(in->host) : (struct calls){0};

		if (!hb_devices__counts(in->devices)->records && percent(c.busy + c.idle.likely, c.wall) >= 1)
			from_calls(&c, &in->load, &v);
		else
			without_devices(in->devices, probes_of(in->host), &in->load, &v);
		if (in->findings && hb_findings__at(in->findings, 0))
			from_finding(hb_findings__at(in->findings, 0), in->wall, &v);
	}
	return v;
}
