/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Kernels are compiled or tuned while requests wait. */
#include <errno.h>
#include <string.h>

#include "analysis/model/decode.h"
#include "analysis/patterns/frames.h"

enum { SHARE };

static const struct hb_param params[] = {
    [SHARE] = {"share", HB_UNIT_SHARE, 10000,
	       "compiling on a thread on the way to a launch, or in a compiler that it waits for, as a part "
	       "of the steps"},
    {0},
};

/* Not what calls compiled kernels: in TorchInductor's runtime, and in Triton's autotuner, that is each
 * launch. */
static const struct hb_frame_rule frames[] = {
    {"triton.compiler*", "*"},
    {"triton.runtime.jit*", "*compile*"},
    {"triton.runtime.autotuner*", "*bench*"},
    {"torch._inductor*", "*compile*"},
    {"torch._inductor*", "*benchmark*"},
    {"torch._inductor.codegen*", "*"},
    {"torch._inductor.graph*", "*"},
    {"torch._inductor.scheduler*", "*"},
    {"torch._dynamo.convert_frame*", "*"},
    {"torch._dynamo.symbolic_convert*", "*"},
    {"torch._dynamo.output_graph*", "*"},
    {"torch._dynamo.guards*", "CheckFunctionManager*"},
    {"tilelang*", "*compile*"},
    {"*", "*compile_and_load*"},
    {"*", "nvrtcCompileProgram*"},
    {"*", "cuLinkAddData*"},
    {"*", "*autotune*"},
    {NULL, NULL},
};

static const char *const compilers[] = {"ptxas", "nvcc",    "cicc", "cudafe++", "fatbinary", "nvlink",
					"clang", "clang++", "cc1",  "cc1plus",	"ld",	     "ld.lld",
					"as",	 "gcc",	    "g++",  NULL};

static bool is_compiler(const struct hb_scene *s, u32 t)
{
	const struct hb_tl_thread *th = hb_timeline__thread(s->tl, t);
	const char *comm = hb_decode__comm(s->w, th->task);
	const char *const *c = compilers;

	while (*c && strcmp(*c, comm) != 0)
		c++;
	return *c && th->task->target && th->born;
}

/* Compilers that were started in the window and that a launch waited for: from their birth to their end. */
static int each_compiler(const struct hb_scene *s, u64 *ns, u32 *top, struct hb_draft *d)
{
	int err = 0;

	*ns = 0;
	for (u32 t = 0; t < hb_timeline__threads(s->tl) && !err; t++) {
		const struct hb_tl_thread *th = hb_timeline__thread(s->tl, t);
		struct hb_case c = {.begin = th->born, .end = th->died ? th->died : s->end, .thread = t};

		if (!is_compiler(s, t) || !hb_scene__leads(s, t))
			continue;
		*ns += hb_scene__likely(s, t, c.begin, c.end);
		*top = t;
		if (d)
			err = hb_draft__add(d, &c);
	}
	return err;
}

static int look_at(struct hb_look *l, u32 t)
{
	const struct hb_scene *s = l->s;
	u32 pid = hb_timeline__thread(s->tl, t)->pid;
	struct hb_frames sum = {0};
	struct hb_draft *d;
	char who[64], frame[256];
	int err = hb_frames__each(s, t, frames, &sum, NULL);

	hb_look__subject(l);
	if (err || !sum.n || !hb_look__at_least(l, SHARE, hb_share(sum.ns, hb_scene__step_time(s, pid))))
		return err;
	hb_scene__frame_text(s, pid, sum.stack, frame, sizeof(frame));
	d = hb_look__find(l, "%s compiles or tunes kernels%s%s",
			  hb_scene__thread_text(s, t, who, sizeof(who)), *frame ? ", such as in " : "",
			  frame);
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, pid);
	sum = (struct hb_frames){0};
	return hb_frames__each(s, t, frames, &sum, d);
}

static int detect(struct hb_look *l)
{
	const struct hb_series *p = hb_steps__series(l->s->steps) ? hb_steps__at(l->s->steps, 0) : NULL;
	struct hb_draft *d;
	char who[64];
	u32 top = HB_NONE;
	u64 ns;
	int err = hb_look__threads(l, look_at);

	if (err || !p || each_compiler(l->s, &ns, &top, NULL) || top == HB_NONE)
		return err;
	hb_look__subject(l);
	if (!hb_look__at_least(l, SHARE, hb_share(ns, hb_scene__step_time(l->s, p->pid))))
		return 0;
	d = hb_look__find(l, "a launch waits for a compiler: %s",
			  hb_scene__thread_text(l->s, top, who, sizeof(who)));
	if (!d)
		return -ENOMEM;
	hb_draft__pid(d, p->pid);
	return each_compiler(l->s, &ns, &top, d);
}

HB_PATTERN(p12_jit) = {
    .id = "P12",
    .layer = "compiler",
    .title = "compilation or autotuning while serving",
    .rank = HB_RANK_INTERPRETER,
    .explains = "P11",
    .needs = HB_NEED_ACCEL | HB_NEED_STACK | HB_NEED_SAMPLE,
    .params = params,
    .rule = "a thread on the way to the next launch is below functions of a compiler or tuner, or waits for "
	    "a compiler that was "
	    "started in the window",
    .fix = "use every variant of a key in the warm-up, keep the tuning cache on disk",
    .ref =
	"vllm-project/vllm#43009, #45631 (a detector), #39822 (first request 31.3 to 2.9 s), #37188, #49903; "
	"vllm-project/vllm-ascend#14324 (a gap of 2.1 s)",
    .traps = "Triton compiles anew for an integer that is 1 or no multiple of 16, with equal shapes",
    .settle = "compare the keys of the cache before and after",
    .record = "calls=@stack",
    .detect = detect,
};
