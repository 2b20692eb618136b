/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Images and audio are prepared one after the other, on one thread that does nothing else, and the device
 * waits.
 */
#include <errno.h>

#include "analysis/patterns/frames.h"

enum { BUSY, IDLE };

static const struct hb_param params[] = {
    [BUSY] = {"busy", HB_UNIT_SHARE, 800000, "time of one thread below such functions, of the window"},
    [IDLE] = {"idle", HB_UNIT_SHARE, 300000,
	      "meanwhile the device is idle, likely, for so much of the window"},
    {0},
};

static const struct hb_frame_rule frames[] = {
    {"*image_processing*", "*"},
    {"*image_transforms*", "*"},
    {"*feature_extraction*", "*"},
    {"*video_processing*", "*"},
    {"*video_utils*", "*"},
    {"*.multimodal.*", "*"},
    {"*multimodal_processor*", "*"},
    {"*mm_processor*", "*"},
    {"PIL.*", "*"},
    {"torchvision.transforms*", "*"},
    {"torchvision.io*", "*"},
    {"librosa*", "*"},
    {"soundfile*", "*"},
    {"decord*", "*"},
    {NULL, NULL},
};

/* The idle time of the device that has most to do. */
static const struct hb_sets *idle_of(const struct hb_scene *s)
{
	const struct hb_series *p = hb_steps__series(s->steps) ? hb_steps__at(s->steps, 0) : NULL;

	return p && p->dispatch != HB_NONE ? hb_scene__exposed(s, p->dispatch) : NULL;
}

struct adding {
	struct hb_draft *d;
	struct hb_ivs idle;
};

/* What of the device's idle time lies beside it: at most that is its fault. A sample stands for the time
 * around it. */
static int add(void *ctx, const struct hb_case *c)
{
	const struct adding *a = ctx;
	struct hb_case k = *c;

	if (c->weight) {
		k.begin = c->begin > c->weight / 2 ? c->begin - c->weight / 2 : 0;
		k.end = k.begin + c->weight;
		k.weight = 0;
	}
	return hb_draft__add_idle(a->d, &k, NULL, &a->idle);
}

static int by_thread(struct hb_look *l, u32 thread, const struct hb_sets *idle)
{
	const struct hb_scene *s = l->s;
	u32 pid = hb_timeline__thread(s->tl, thread)->pid;
	struct hb_frames sum = {0};
	struct adding a = {.d = NULL};
	char who[64], frame[256];
	int err = hb_frames__visit(s, thread, frames, &sum, NULL, NULL);

	hb_look__subject(l);
	if (err || !sum.n || !hb_look__at_least(l, BUSY, hb_share(sum.ns, s->wall)) ||
	    !hb_look__at_least(
		l, IDLE, hb_share(hb_ivs__length(&idle->sure) + hb_ivs__length(&idle->likely), s->wall)))
		return err;
	hb_scene__frame_text(s, pid, sum.stack, frame, sizeof(frame));
	a.d = hb_look__find(l, "%s prepares images or audio for %llu %% of the time%s%s: one after the other",
			    hb_scene__thread_text(s, thread, who, sizeof(who)),
			    (unsigned long long)(hb_share(sum.ns, s->wall) / 10000),
			    *frame ? ", such as in " : "", frame);
	if (!a.d)
		return -ENOMEM;
	hb_draft__pid(a.d, pid);
	hb_draft__confidence(
	    a.d, HB_CONFIDENCE_MEDIUM,
	    "that requests wait for it follows from how busy it is; requests are not recorded");
	sum = (struct hb_frames){0};
	err = hb_sets__all_likely(idle, &a.idle);
	err = err ? err : hb_frames__visit(s, thread, frames, &sum, add, &a);
	hb_ivs__free(&a.idle);
	return err;
}

static int detect(struct hb_look *l)
{
	const struct hb_sets *idle = idle_of(l->s);
	int err = 0;

	for (u32 t = 0; idle && t < hb_timeline__threads(l->s->tl) && !err; t++)
		err = by_thread(l, t, idle);
	return err;
}

HB_PATTERN(p20_multimodal) = {
    .id = "P20",
    .layer = "frontend",
    .title = "multimodal preprocessing in a row",
    .rank = HB_RANK_CODE,
    .needs = HB_NEED_STACK | HB_NEED_SAMPLE | HB_NEED_ACCEL,
    .params = params,
    .rule = "processors of images, video or audio keep one thread busy for 80 % of the window while the "
	    "device is "
	    "idle for 30 % of it: a thread as busy as that has requests waiting",
    .fix = "a pool of processes, preprocessing on the device",
    .ref = "vllm-project/vllm#58266 (2 threads +20 %, 6 threads -70 %), #49317; sgl-project/sglang#31438, "
	   "#35349",
    .traps = "more threads can make it worse (GIL)",
    .settle = "vary the number of workers",
    .record = "frequency=997; calls=@stack",
    .detect = detect,
};
