/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the first window did not count. Its number is not made up: said are the price of one, from when on it
 * is dear, and a limit where the window has one. */
#include "analysis/patterns/settle_private.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define SECOND 1000000000ULL
#define DEAR                                                                                                 \
	(SECOND / 20)  /* 5 % of one core, from which on `analyze` warns that recording made steps longer */
#define SYSCALL_MAX 7U /* bare system calls: both ends of one in a target, as measured on two hosts */
#define IN_KERNEL                                                                                            \
	2 /* of a bare call at least one part in so many is spent in the kernel, where samples see it        \
	     (measured: 0.66) */

static u64 root(u64 n)
{
	u64 r = 0;

	while ((r + 1) * (r + 1) <= n)
		r++;
	return r;
}

/* CPU time in system calls per second, of what is traced, at most: where n samples fell there, the true mean
 * is hardly above n + 2 sqrt(n) + 3. False: the first window took no samples. */
static bool in_syscalls(const struct hb_settle *s, u64 *ns)
{
	u64 hz, n = 0, limit;
	u32 rows;
	const struct hb_kernel_stat *const *k = hb_model__kernel(s->in->model, &rows);

	if (!hb_settle__meta(s, "sample_hz", &hz) || !hz ||
	    !hb_model__totals(s->in->model)->by_type[HB_TYPE_sample])
		return false;
	for (u32 i = 0; i < rows; i++)
		n += k[i]->sysno == HB_SYSNO_NONE ? 0 : k[i]->samples;
	limit = n + 2 * root(n) + 3;
	*ns =
	    hb_settle__per_second(s, limit < UINT64_MAX / SECOND ? limit * SECOND / hz : UINT64_MAX / SECOND);
	return true;
}

/* A system call takes a bare one's time at least, so their number is limited by the time spent in them. That
 * all are bare ones is the worst case. */
static void of_syscalls(struct hb_settle *s)
{
	const struct hb_totals *t = hb_model__totals(s->in->model);
	u64 sleeps = hb_settle__per_second(s, t->by_type[HB_TYPE_offcpu]), bare = 0, spent = 0;
	struct hb_planfile_cost *c;
	char basis[400], a[32], b[32], limit[200] = "";
	bool priced = hb_settle__meta(s, "price_syscall_ns", &bare) && bare && bare < SECOND;
	bool limited = priced && in_syscalls(s, &spent);

	if (!hb_settle__changes(s, "syscalls", "syscalls") ||
	    strcmp(hb_planfile__get(s->p, "syscalls"), "all") != 0)
		return;
	if (priced)
		snprintf(limit, sizeof(limit),
			 "; both ends of one take up to %u bare calls' time, so %s a second are 5 %% of a "
			 "core%s%s",
			 SYSCALL_MAX, hb_text__count(a, sizeof(a), DEAR / (SYSCALL_MAX * bare)),
			 limited ? "; by its samples what is traced is in the kernel for them, at most, so "
				   "long a second: "
				 : "",
			 limited ? hb_text__ns(b, sizeof(b), spent) : "");
	snprintf(basis, sizeof(basis),
		 "the first window counted those that slept only, %llu sleeps a second%s; it slows every "
		 "process of the machine, by how much is measured when the window begins",
		 (unsigned long long)sleeps, limit);
	c = hb_settle__cost(s, "every system call", basis);
	if (!c || !priced)
		return;
	c->price_ns = SYSCALL_MAX * bare;
	c->most_ns_per_s = limited ? SYSCALL_MAX * IN_KERNEL * spent : 0;
}

/* The probe is on the interpreter: every call pays it, whatever functions are asked for. Which instruction it
 * will lie on is known when it is attached. */
static void of_calls(struct hb_settle *s, const char *what, const char *more)
{
	static const char *const keys[] = {"price_entry_nop5_ns", "price_entry_emulated_ns",
					   "price_entry_step_ns"};
	u64 least = UINT64_MAX, most = 0, price;
	struct hb_planfile_cost *c;
	char basis[400], a[32], b[32], x[32], y[32], limit[200] = "";

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
		if (!hb_settle__meta(s, keys[i], &price) || !price || price > SECOND)
			continue;
		least = price < least ? price : least;
		most = price > most ? price : most;
	}
	if (most)
		snprintf(limit, sizeof(limit),
			 "; every call of any Python function takes a probe, %s to %s here, so from %s to %s "
			 "calls a "
			 "second on it is 5 %% of a core",
			 hb_text__ns(a, sizeof(a), least), hb_text__ns(b, sizeof(b), most),
			 hb_text__count(x, sizeof(x), DEAR / most),
			 hb_text__count(y, sizeof(y), DEAR / least));
	snprintf(basis, sizeof(basis), "the first window did not count these calls%s%s", limit, more);
	c = hb_settle__cost(s, what, basis);
	if (c)
		c->price_ns = most;
}

static void of_python(struct hb_settle *s)
{
	u32 functions = 0, fields = 0;
	char what[96];

	for (u32 i = 0; i < s->p->n_options; i++) {
		if (hb_settle__had(s, s->p->option[i].name, s->p->option[i].value))
			continue;
		functions += strcmp(s->p->option[i].name, "calls") == 0;
		fields += strcmp(s->p->option[i].name, "field") == 0;
	}
	if (hb_settle__changes(s, "python", "python") &&
	    strcmp(hb_planfile__get(s->p, "python"), "calls") == 0)
		of_calls(s, "every call of a Python function", "");
	if (functions || fields) {
		snprintf(what, sizeof(what), "calls of Python functions (%u patterns, %u fields)", functions,
			 fields);
		of_calls(
		    s, what,
		    "; durations, from Python 3.11 on, take --py-hook eval_frame (docs/python.md): it is "
		    "not in the plan unless you put it there");
	}
	if (hb_settle__changes(s, "python", "python") &&
	    strcmp(hb_planfile__get(s->p, "python"), "stacks") == 0)
		hb_settle__cost(s, "Python stacks", "the first window took none");
}

void hb_settle__uncounted(struct hb_settle *s)
{
	of_syscalls(s);
	of_python(s);
	if (hb_settle__changes(s, "exceptions", "exceptions"))
		hb_settle__cost(s, "exceptions in more detail", "the first window did not read them so");
	if (hb_settle__changes(s, "layers", "layers"))
		hb_settle__cost(s, "calls of the other layer", "the first window did not probe it");
}
