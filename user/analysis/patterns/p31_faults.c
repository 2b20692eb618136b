/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Page faults and the lock of the address space hold a thread up. */
#include <string.h>

#include "analysis/patterns/pattern.h"

enum { SHARE };

static const struct hb_param params[] = {
    [SHARE] = {"share", HB_UNIT_SHARE, 10000,
	       "sleeps in page faults and mapping calls of one thread on the way to a launch, as a part of "
	       "the steps"},
    {0},
};

static const char *const calls[] = {"mmap", "munmap", "madvise", "mprotect", "mremap", "brk", NULL};
static const char *const *const lists[] = {calls, NULL};

static bool is_fault(const struct hb_tl_sleep *z, struct hb_sysnos *known)
{
	if (z->state != HB_TSTATE_DISK && z->state != HB_TSTATE_SLEEPING)
		return false;
	if (z->sysno == HB_SYSNO_NONE)
		return z->chankind == HB_CHAN_NONE;
	return hb_sysnos__of(known, z->sysno, lists);
}

/* Sum and number of them, or with `d` cases. */
static int each(const struct hb_scene *s, u32 t, u64 *total, u64 *count, struct hb_draft *d)
{
	u32 n;
	const struct hb_tl_sleep *z = hb_timeline__sleeps(s->tl, t, &n);
	struct hb_sysnos known = {0};
	int err = 0;

	for (u32 i = 0; i < n && !err; i++) {
		struct hb_case c;

		if (!is_fault(&z[i], &known))
			continue;
		c = (struct hb_case){
		    .begin = z[i].at.begin, .end = z[i].at.end, .thread = t, .stack = z[i].at.stack};
		*total += c.end - c.begin;
		(*count)++;
		if (d)
			err = hb_draft__add(d, &c);
	}
	return err;
}

static int look_at(struct hb_look *l, u32 t)
{
	const struct hb_tl_thread *th = hb_timeline__thread(l->s->tl, t);
	u64 total = 0, count = 0;
	struct hb_draft *d;
	char who[64];

	each(l->s, t, &total, &count, NULL);
	if (!count)
		return 0;
	hb_look__subject(l);
	if (!hb_look__at_least(l, SHARE, hb_share(total, hb_scene__step_time(l->s, th->pid))))
		return 0;
	d = hb_look__find(l, "%s slept %llu times in page faults or for its address space's lock",
			  hb_scene__thread_text(l->s, t, who, sizeof(who)), (unsigned long long)count);
	if (!d)
		return -1;
	hb_draft__pid(d, th->pid);
	return each(l->s, t, &total, &count, d);
}

static int detect(struct hb_look *l)
{
	return hb_look__threads(l, look_at);
}

HB_PATTERN(p31_faults) = {
    .id = "P31",
    .layer = "OS",
    .title = "page faults and mmap_lock",
    .rank = HB_RANK_OS,
    .needs = HB_NEED_SLEEP | HB_NEED_ACCEL,
    .params = params,
    .rule = "a thread on the way to the next launch sleeps in page faults or in mmap, munmap, madvise for a "
	    "good part of the "
	    "steps. Minor faults that do not sleep are not recorded",
    .fix = "touch memory before it is needed, reuse buffers, huge pages",
    .ref = "ROCm/mori#679 (242 to 98 s of registration); ikawrakow/ik_llama.cpp#1988, #2010 (twice as fast "
	   "on one host, five "
	   "times slower on another)",
    .traps = "start-up only",
    .settle = "compare transparent huge pages never and madvise",
    .record = "syscalls=all",
    .detect = detect,
};
