/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Logs, metrics, files: a thread on the way to the next launch waits for storage. */
#include <errno.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "analysis/patterns/pattern.h"
#include "base/text.h"

enum { SHARE, SINGLE };

static const struct hb_param params[] = {
    [SHARE] = {"share", HB_UNIT_SHARE, 10000,
	       "time in such calls of one thread on the way to a launch, as a part of the steps"},
    [SINGLE] = {"single", HB_UNIT_NS, 10000000, "one call that takes so long"},
    {0},
};

/* Those that always go to storage, and those that do when their descriptor is a file. */
static const char *const always[] = {"fsync",  "fdatasync", "msync",	 "sync_file_range", "sync",
				     "syncfs", "openat",    "open",	 "unlink",	    "unlinkat",
				     "rename", "renameat2", "ftruncate", "fallocate",	    NULL};
static const char *const by_file[] = {"write", "writev",  "pwrite64", "pwritev",  "pwritev2",	     "read",
				      "readv", "pread64", "preadv",   "sendfile", "copy_file_range", NULL};
static const char *const to_socket[] = {"sendto", "sendmsg", NULL};

enum io { NONE, ALWAYS, BY_FILE, TO_SOCKET };
static const char *const *const lists[] = {
    [ALWAYS - 1] = always, [BY_FILE - 1] = by_file, [TO_SOCKET - 1] = to_socket, [TO_SOCKET] = NULL};

/* A path, not "socket:[7]" or "pipe:[7]" or a terminal. */
static bool is_file(const char *text)
{
	return text && text[0] == '/' && strncmp(text, "/dev/", 5) != 0 && strncmp(text, "/proc/", 6) != 0;
}

static bool is_io(const struct hb_scene *s, enum io io, u32 pid, u64 fd, u64 chan, bool on_file)
{
	const char *text;

	switch (io) {
	case ALWAYS:
		return true;
	case BY_FILE:
		return on_file || is_file(hb_window__fd(s->w, pid, (u32)fd, chan));
	case TO_SOCKET:
		text = hb_window__fd(s->w, pid, (u32)fd, chan);
		return text && strstr(text, "/dev/log");
	default:
		return false;
	}
}

#define SAME_CALL 500000 /* ns: a call that runs for longer between two sleeps does more than file I/O */

struct sums {
	u64 count, total, exposed, max;
	u64 fd, chan; /* of the longest */
	unsigned sysno;
	struct hb_sysnos known;
};

static int one(const struct hb_scene *s, u32 t, const struct hb_span *at, unsigned sysno, u64 fd, u64 chan,
	       struct sums *sum, struct hb_draft *d)
{
	u64 dur = at->end - at->begin;
	struct hb_case c = {.begin = at->begin, .end = at->end, .thread = t, .stack = at->stack};

	if (d)
		return hb_draft__add(d, &c);
	sum->count++;
	sum->total += dur;
	sum->exposed += hb_scene__likely(s, t, at->begin, at->end);
	if (dur > sum->max) {
		sum->max = dur;
		sum->fd = fd;
		sum->chan = chan;
		sum->sysno = sysno;
	}
	return 0;
}

static bool waits_for_file(const struct hb_scene *s, struct hb_sysnos *known, u32 pid,
			   const struct hb_tl_sleep *z)
{
	const struct hb_tl_place *p;
	enum io io;

	if (z->state == HB_TSTATE_RUNNING || z->sysno == HB_SYSNO_NONE)
		return false;
	io = hb_sysnos__of(known, z->sysno, lists);
	if (io == NONE)
		return false;
	p = hb_timeline__place(s->tl, z);
	return is_io(s, io, pid, p->a0, p->chan, z->chankind == HB_CHAN_FILE || z->state == HB_TSTATE_DISK);
}

static bool same_call(const struct hb_scene *s, const struct hb_tl_sleep *a, const struct hb_tl_sleep *b)
{
	const struct hb_tl_place *x = hb_timeline__place(s->tl, a), *y = hb_timeline__place(s->tl, b);

	return a->sysno == b->sysno && x->a0 == y->a0 && x->a1 == y->a1 &&
	       b->at.begin - a->at.end < SAME_CALL;
}

/* One call sleeps several times, and may lose its CPU in between: the last of its sleeps. Two are of one call
 * when they have its arguments and nothing else of the thread lies between. */
static u32 end_of_call(const struct hb_scene *s, u32 t, const struct hb_tl_sleep *z, u32 n, u32 i)
{
	while (i + 1 < n && same_call(s, &z[i], &z[i + 1]) &&
	       hb_timeline__from(s->tl, t, HB_TL_CALL, z[i].at.end) ==
		   hb_timeline__from(s->tl, t, HB_TL_CALL, z[i + 1].at.begin))
		i++;
	return i;
}

/* Where every call was recorded their whole time counts; else what slept. Sums, or with `d` cases. */
static int each(const struct hb_scene *s, u32 t, struct sums *sum, struct hb_draft *d)
{
	u32 pid = hb_timeline__thread(s->tl, t)->pid, n, n_calls;
	const struct hb_tl_sleep *z = hb_timeline__sleeps(s->tl, t, &n);
	const struct hb_tl_syscall *c = hb_timeline__syscalls(s->tl, t, &n_calls);
	int err = 0;

	for (u32 i = 0; i < n_calls && !err; i++)
		if (is_io(s, hb_sysnos__of(&sum->known, c[i].sysno, lists), pid, c[i].a0, 0, false))
			err = one(s, t, &c[i].at, c[i].sysno, c[i].a0, 0, sum, d);
	for (u32 i = 0; i < n && !n_calls && !err; i++) {
		struct hb_span at = z[i].at;
		u32 last;

		if (!waits_for_file(s, &sum->known, pid, &z[i]))
			continue;
		last = end_of_call(s, t, z, n, i);
		at.end = z[last].at.end;
		err = one(s, t, &at, z[i].sysno, hb_timeline__place(s->tl, &z[i])->a0,
			  hb_timeline__place(s->tl, &z[i])->chan, sum, d);
		i = last;
	}
	return err;
}

static int look_at(struct hb_look *l, u32 t)
{
	const struct hb_tl_thread *th = hb_timeline__thread(l->s->tl, t);
	struct sums sum = {0};
	struct hb_draft *d;
	char who[64], call[24], longest[32];
	const char *path;
	u64 share;

	each(l->s, t, &sum, NULL);
	if (!sum.count)
		return 0;
	share = hb_share(sum.total, hb_scene__step_time(l->s, th->pid));
	hb_look__subject(l);
	if (!hb_look__either(l, SHARE, share, SINGLE, sum.max))
		return 0;
	path = hb_window__fd(l->s->w, th->pid, (u32)sum.fd, sum.chan);
	d = hb_look__find(l, "%s waits for files %llu times; the longest: %s%s%s, %s",
			  hb_scene__thread_text(l->s, t, who, sizeof(who)), (unsigned long long)sum.count,
			  hb_decode__syscall(sum.sysno, call, sizeof(call)), path ? " on " : "",
			  path ? path : "", hb_text__ns(longest, sizeof(longest), sum.max));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, th->pid);
	return each(l->s, t, &sum, d);
}

static int detect(struct hb_look *l)
{
	return hb_look__threads(l, look_at);
}

HB_PATTERN(p27_file_io) = {
    .id = "P27",
    .layer = "app",
    .title = "logging, metrics or file I/O on the hot path",
    .rank = HB_RANK_CODE,
    .needs = HB_NEED_SLEEP | HB_NEED_ACCEL,
    .params = params,
    .rule = "a thread on the way to the next launch sleeps in writes, syncs or other calls on files for a "
	    "good part of the "
	    "steps, or long at once",
    .fix = "write from another thread by a queue, sample, build statistics outside of the engine core",
    .ref = "vllm-project/vllm#11962 (design note); no strong public incident is known",
    .traps = "writes into the page cache are cheap until write-back; loading weights at start-up",
    .settle = "send that descriptor to /dev/null and compare",
    .record = "syscalls=all",
    .detect = detect,
};
