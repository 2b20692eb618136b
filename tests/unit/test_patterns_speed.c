/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A device that gets slower, or has two speeds: told from kernels that ought to take equally long. */
#include "base/map.h"
#include "device_rig.h"

#define ROUND  (2 * MS) /* each: three kernels of 1 ms together, or more */
#define ROUNDS 400

struct round {
	u64 at;
	bool slow[3]; /* each of its kernels: by a fourth */
	const char *name[3];
	u32 blocks[3];
	bool beside; /* something else runs beside all of them */
};

static void one_round(struct pat *p, const struct round *r)
{
	static const u64 length[] = {200 * US, 500 * US, 300 * US};
	u64 t = r->at + 20 * US;

	for (u32 i = 0; i < 3; i++) {
		u64 ns = r->slow[i] ? length[i] * 5 / 4 : length[i];

		launch(p, Q_TIMED, r->at + 5 * US * i, 2 * US,
		       (struct op){.begin = t, .length = ns, .name = r->name[i], .blocks = r->blocks[i]});
		t += ns + US;
	}
	if (r->beside)
		launch(p, Q_TIMED, r->at + 16 * US, 2 * US,
		       (struct op){
			   .begin = r->at + 19 * US, .length = 1300 * US, .name = "beside", .stream = 9});
}

/* Rounds whose kernels are slow where `slow` says so. */
static struct pat rounds(const char *name, void (*slow)(u32 i, struct round *r))
{
	struct pat p = device_new(name);

	for (u32 i = 0; i < ROUNDS; i++) {
		struct round r = {.at = MS + i * ROUND, .name = {"norm", "gemm", "act"}};

		for (u32 k = 0; k < 3; k++)
			r.blocks[k] = 100 + k;
		slow(i, &r);
		one_round(&p, &r);
	}
	return p;
}

static void all(struct round *r, bool slow)
{
	r->slow[0] = r->slow[1] = r->slow[2] = slow;
}

static void later(u32 i, struct round *r)
{
	all(r, i >= ROUNDS / 2);
}

static void never(u32 i, struct round *r)
{
	all(r, false);
}

/* It was for longer, or for less long, than half of the window. */
static void soon(u32 i, struct round *r)
{
	all(r, i >= ROUNDS / 5);
}

static void at_last(u32 i, struct round *r)
{
	all(r, i >= ROUNDS * 4 / 5);
}

/* It was slow before as well: three tenths, as long as it was fast then. */
static void again(u32 i, struct round *r)
{
	all(r, i < ROUNDS * 3 / 10 || i >= ROUNDS * 6 / 10);
}

static void whenever(void **state)
{
	struct pat p = rounds("slower-soon", soon), q = rounds("slower-last", at_last),
		   r = rounds("slower-again", again);

	pat_run(&p);
	assert_int_equal(pat_get(&p, "P40f")->device_ns, ROUNDS * 4 / 5 * 250 * US - 75 * US);
	pat_silent(&p, "P47");
	pat_end(&p);
	pat_run(&q);
	assert_int_equal(pat_get(&q, "P40f")->device_ns, ROUNDS / 5 * 250 * US - 75 * US);
	pat_silent(&q, "P47");
	pat_end(&q);
	/* One change leaves nothing of the fast ones: the slow ones before are as many. */
	pat_run(&r);
	assert_int_equal(pat_get(&r, "P47")->device_ns, ROUNDS * 7 / 10 * 250 * US - 50 * US - 75 * US);
	pat_silent(&r, "P40f");
	pat_end(&r);
}

static void gets_slower(void **state)
{
	struct pat p = rounds("slower", later), q = rounds("same", never);
	const struct hb_finding *x;

	pat_run(&p);
	x = pat_get(&p, "P40f");
	assert_non_null(x);
	/* A fourth of 1 ms each; the very last kernel has no neighbour after it. */
	assert_int_equal(x->device_ns, ROUNDS / 2 * 250 * US - 75 * US);
	assert_int_equal(x->count, 3 * ROUNDS / 2 - 1);
	assert_non_null(strstr(x->what, "gemm: 500.0 us, then 625.0 us"));
	assert_int_equal(x->confidence, HB_CONFIDENCE_MEDIUM);
	pat_silent(&p, "P47"); /* it is one change, not two speeds */
	assert_string_equal(pat_ruled_out(&p, "P47")->measure.param->key, "once");
	pat_end(&p);
	pat_run(&q);
	pat_silent(&q, "P40f");
	pat_silent(&q, "P47");
	pat_end(&q);
}

/* One kernel alone has other work to do: nothing is wrong with the device. */
static void one_kernel_later(u32 i, struct round *r)
{
	r->slow[1] = i >= ROUNDS / 2;
}

/* All are slow, but next to them something else runs. */
static void beside_later(u32 i, struct round *r)
{
	later(i, r);
	r->beside = true;
}

/* These follow their data: longer contexts, other experts. */
static void by_data_later(u32 i, struct round *r)
{
	later(i, r);
	r->name[0] = "fused_moe_kernel";
	r->name[1] = "flash_fwd_kernel";
	r->name[2] = "paged_attention";
}

/* Larger work has larger grids: these are other kernels. */
static void larger_later(u32 i, struct round *r)
{
	later(i, r);
	for (u32 k = 0; k < 3; k++)
		r->blocks[k] += i >= ROUNDS / 2 ? 25 : 0;
}

/* As many blocks as the device has multiprocessors: they work off any size. */
static void whole_grids_later(u32 i, struct round *r)
{
	later(i, r);
	for (u32 k = 0; k < 3; k++)
		r->blocks[k] = 132;
}

/* Too few are left that can be compared ("cover"), or they are no such case. */
static void silent_by(void (*slow)(u32 i, struct round *r), const char *id, const char *key)
{
	struct pat p = rounds("guard", slow);

	hb_window_writer__meta(p.h.r.w, "device_0_sms", "132");
	pat_run(&p);
	assert_null(pat_get(&p, id));
	if (strcmp(key, "cover") == 0)
		assert_non_null(strstr(pat_not_checked(&p, id)->text, "record for longer"));
	else
		assert_string_equal(pat_ruled_out(&p, id)->measure.param->key, key);
	pat_end(&p);
}

static void guards_of_slower(void **state)
{
	silent_by(one_kernel_later, "P40f", "kinds");
	silent_by(beside_later, "P40f", "cover");
	silent_by(by_data_later, "P40f", "cover");
	silent_by(larger_later, "P40f", "cover");
	silent_by(whole_grids_later, "P40f", "cover");
}

/* ---- P47 ---- */

/* Slow for 40 ms of every 100. */
static void at_times(u32 i, struct round *r)
{
	all(r, i % 50 < 20);
}

static void two_speeds(void **state)
{
	struct pat p = rounds("two-speeds", at_times);
	const struct hb_finding *x;

	pat_run(&p);
	x = pat_get(&p, "P47");
	assert_non_null(x);
	/* The very first kernel has no neighbour before it. */
	assert_int_equal(x->device_ns, ROUNDS * 2 / 5 * 250 * US - 50 * US);
	assert_int_equal(x->count, 3 * ROUNDS * 2 / 5 - 1);
	assert_non_null(strstr(x->what, "40 % of their executions are slow"));
	assert_non_null(strstr(x->what, "gemm: 500.0 us or 625.0 us"));
	pat_silent(&p, "P40f");
	pat_end(&p);
}

static u32 dice(u32 i)
{
	return (u32)(hb_hash64(i + 1) >> 40) % 5;
}

/* Each kernel for itself: that is their work, not the device. */
static void apart(u32 i, struct round *r)
{
	for (u32 k = 0; k < 3; k++)
		r->slow[k] = dice(3 * i + k) < 2;
}

static void one_kernel_at_times(u32 i, struct round *r)
{
	r->slow[1] = i % 50 < 20;
}

static void beside_at_times(u32 i, struct round *r)
{
	at_times(i, r);
	r->beside = true;
}

/* A kernel that serves two layers, with sizes of their own: told apart by what runs before and after. */
static void two_layers(u32 i, struct round *r)
{
	all(r, i % 2);
	r->name[0] = i % 2 ? "norm" : "rope";
	r->name[2] = i % 2 ? "act" : "add";
}

static void guards_of_two_speeds(void **state)
{
	silent_by(apart, "P47", "together");
	silent_by(one_kernel_at_times, "P47", "kinds");
	silent_by(beside_at_times, "P47", "cover");
	silent_by(two_layers, "P47", "share");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(gets_slower),	    cmocka_unit_test(whenever),
	    cmocka_unit_test(guards_of_slower),	    cmocka_unit_test(two_speeds),
	    cmocka_unit_test(guards_of_two_speeds),
	};

	return cmocka_run_group_tests_name("patterns: speed of the device", tests, NULL, NULL);
}
