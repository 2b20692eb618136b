/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Prefills that hold up decoding requests: what steps hold is told by annotations, or by fields. And images
 * that are prepared in a row. */
#include "patterns_rig.h"

struct step {
	u64 length;
	u32 prefill, decode;
};

#define PLAIN_STEP (4 * MS)

/* One in ten of 100 steps is `other`; returns the end of the last one. */
static struct step nth(u32 i, struct step other)
{
	return i % 10 == 5 ? other : (struct step){PLAIN_STEP, 0, 32};
}

static void annotated(struct pat *p, struct step other)
{
	u64 t = MS;

	for (u32 i = 0; i < 100; i++) {
		struct step s = nth(i, other);
		struct hb_rec_op o = {.dur = s.length - 100 * US, .kind = HB_OPKIND_ANNOTATION};
		char name[96];

		snprintf(name, sizeof(name), "execute_context_%u(%u)_generation_%u(%u)", s.prefill > 0,
			 s.prefill, s.decode, s.decode);
		o.name = hb_window_writer__string(p->h.r.w, name);
		pat_put(p, t + s.length - 100 * US, p->h.main, HB_TYPE_op, &o);
		/* The same again, one inside the other: one step. */
		o.dur -= 20 * US;
		o.name = hb_window_writer__string(p->h.r.w, "step[DECODE bs=32]");
		pat_put(p, t + s.length - 110 * US, p->h.main, HB_TYPE_op, &o);
		t += s.length;
	}
	pat_run(p);
}

static void long_prefills(void **state)
{
	struct pat p = pat_new("prefill");
	const struct hb_finding *x;

	annotated(&p, (struct step){20 * MS, 8000, 31});
	x = pat_get(&p, "P37");
	assert_non_null(x);
	assert_int_equal(x->count, 10);
	assert_int_equal(x->delay_ns, 10 * 16 * MS); /* each 16 ms later than it would be */
	assert_non_null(strstr(x->what, "10 of 100 steps with decoding requests"));
	assert_non_null(strstr(x->what, "8000 prefill tokens beside 31 decoding requests"));
	pat_end(&p);
}

static void ruled_out_by_share(struct step other)
{
	struct pat p = pat_new("prefill-not");

	annotated(&p, other);
	pat_silent(&p, "P37");
	assert_string_equal(pat_ruled_out(&p, "P37")->measure.param->key, "share");
	pat_end(&p);
}

static void no_interference(void **state)
{
	ruled_out_by_share((struct step){20 * MS, 500, 31}); /* slow, but not for a long prefill */
	ruled_out_by_share((struct step){6 * MS, 8000, 31}); /* chunks that hold nobody up for long */
	ruled_out_by_share((struct step){20 * MS, 8000, 0}); /* nobody decodes meanwhile */
}

static void what_steps_hold_is_not_told(void **state)
{
	struct pat p = pat_new("prefill-none");

	pat_steps(&p);
	pat_run(&p);
	assert_null(pat_get(&p, "P37"));
	assert_non_null(strstr(pat_not_checked(&p, "P37")->text, "num_prefill_tokens"));
	pat_end(&p);
}

/* Steps of 10 ms; one in ten goes on for 40. */
static void by_fields(void **state)
{
	struct pat p = pat_new("prefill-fields");
	const struct hb_finding *x;
	u64 t = 0, longer = 0;

	for (u32 i = 0; t + 50 * MS < WALL; i++) {
		const char *const asked[] = {"attn:Builder.build self.num_prefill_tokens",
					     "attn:Builder.build self.num_decode_tokens"};
		bool slow = i % 10 == 5;

		for (u32 k = 0; k < 2; k++) {
			struct hb_rec_py_field r = {.call = START + t + 5 * MS,
						    .num = k	  ? 32
							   : slow ? 4096
								  : 0,
						    .field = hb_window_writer__string(p.h.r.w, asked[k]),
						    .kind = HB_PYKIND_INT};

			pat_put(&p, t + 5 * MS, p.h.main, HB_TYPE_py_field, &r);
		}
		PCALL(&p, p.h.main, Q_LAUNCH, t + IDLE, t + IDLE, .gx = 8, .handle = 7);
		PCALL(&p, p.h.main, Q_STREAM_SYNC, t + IDLE + 100 * US, t + (slow ? 40 : 10) * MS,
		      .flags = HB_AFLAG_RET, .stack = ST_DECODE);
		t += (slow ? 40 : 10) * MS;
		longer += slow;
	}
	pat_run(&p);
	x = pat_get(&p, "P37");
	assert_non_null(x);
	assert_int_equal(x->count, longer);
	assert_int_equal(x->delay_ns, longer * 30 * MS);
	pat_end(&p);
}

/* ---- P20 ---- */

enum { ST_IMAGE = 51 };

/* Each step leaves the device idle for 4 of 10 ms. The server prepares images for `part` of each 10 ms. */
static struct pat images(const char *name, const char *file, u64 part, u64 idle)
{
	struct pat p = pat_new(name);

	pat_stack(&p, 200, ST_IMAGE, file, "preprocess", "resize", NULL);
	for (u64 i = 0; i < STEPS; i++) {
		PCALL(&p, p.h.main, Q_LAUNCH, i * STEP + idle, i * STEP + idle, .gx = 8, .handle = 7);
		PCALL(&p, p.h.main, Q_STREAM_SYNC, i * STEP + idle + 100 * US, (i + 1) * STEP,
		      .flags = HB_AFLAG_RET, .stack = ST_DECODE);
		for (u64 t = 0; t < part; t += MS)
			pat_sample(&p, p.h.server, i * STEP + t + MS / 2, MS, ST_IMAGE, HB_SYSNO_NONE);
	}
	pat_run(&p);
	return p;
}

#define PROCESSOR "/usr/lib/python3/site-packages/transformers/models/qwen2_vl/image_processing_qwen2_vl.py"

static void images_in_a_row(void **state)
{
	struct pat p = images("images", PROCESSOR, 9 * MS, 4 * MS),
		   q = images("images-few", PROCESSOR, 5 * MS, 4 * MS),
		   r = images("images-hidden", PROCESSOR, 9 * MS, MS),
		   s = images("images-other", "/srv/engine/http.py", 9 * MS, 4 * MS);
	const struct hb_finding *x = pat_get(&p, "P20");

	assert_non_null(x);
	assert_int_equal(x->proc->pid, 200);
	assert_non_null(strstr(x->what, "kv-server (200) prepares images or audio for 90 % of the time"));
	assert_true(x->exposed_likely > 380 * MS && x->exposed_likely <= 400 * MS);
	pat_silent(&q, "P20");
	assert_string_equal(pat_ruled_out(&q, "P20")->measure.param->key, "busy");
	pat_silent(&r, "P20");
	assert_string_equal(pat_ruled_out(&r, "P20")->measure.param->key, "idle");
	pat_silent(&s, "P20");
	pat_end(&p);
	pat_end(&q);
	pat_end(&r);
	pat_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(long_prefills),
	    cmocka_unit_test(no_interference),
	    cmocka_unit_test(what_steps_hold_is_not_told),
	    cmocka_unit_test(by_fields),
	    cmocka_unit_test(images_in_a_row),
	};

	return cmocka_run_group_tests_name("patterns: what steps hold", tests, NULL, NULL);
}
