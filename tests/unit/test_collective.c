/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Collectives of two ranks: which belongs to which, what is dropped, who is late. */
#include "host_rig.h"

enum { Q_REDUCE = 20, Q_GATHER };
enum { COMM_A = 0x1000, COMM_B = 0x2000 }; /* handles of the two ranks */

static struct host_rig begin(const char *name)
{
	struct host_rig h = host_new(name);

	rig_probe(&h.r, Q_REDUCE, "ncclAllReduce", "nccl", HB_CLASS_COLLECTIVE, 0, HB_HANDLE_COMM, 1);
	rig_probe(&h.r, Q_GATHER, "ncclAllGather", "nccl", HB_CLASS_COLLECTIVE, 0, HB_HANDLE_COMM, 1);
	return h;
}

static void coll(struct host_rig *h, u16 task, u64 comm, u32 probe, u64 at, u64 elements)
{
	CALL(h, task, probe, AT(at), AT(at + 10000), .handle = comm, .bytes = elements, .kind = 9);
}

/* The i-th step of a rank: three collectives, 200 us apart. */
static void step(struct host_rig *h, u16 task, u64 comm, u64 at)
{
	coll(h, task, comm, Q_REDUCE, at, 4096);
	coll(h, task, comm, Q_REDUCE, at + 200000, 4096);
	coll(h, task, comm, Q_GATHER, at + 400000, 128);
}

struct built {
	struct host_rig *h;
	struct hb_window *w;
	struct hb_host *host;
	const struct hb_collectives *c;
};

static struct built build(struct host_rig *h)
{
	struct built b = {.h = h, .w = host_open(h)};

	b.host = host_build(b.w);
	b.c = hb_host__collectives(b.host);
	return b;
}

static void done(struct built *b)
{
	hb_host__free(b->host);
	rig_close(&b->h->r, b->w);
}

static void one_is_late(void **state)
{
	struct host_rig h = begin("coll-late");
	const struct hb_coll_group *g;
	struct built b;

	for (u64 i = 0; i < 10; i++) {
		step(&h, h.main, COMM_A, MS + i * 10 * MS);
		step(&h, h.server, COMM_B, 4 * MS + i * 10 * MS); /* longer than collectives are apart */
	}
	b = build(&h);
	assert_int_equal(hb_collectives__groups(b.c), 1);
	g = hb_collectives__at(b.c, 0);
	assert_int_equal(g->n_ranks, 2);
	assert_int_equal(g->n, 30);
	assert_int_equal(g->dropped, 0);
	for (u32 i = 0; i < g->n; i++) {
		assert_int_equal(g->coll[i].last - g->coll[i].first, 3 * MS);
		assert_int_equal(g->rank[g->coll[i].late].pid, 200);
		assert_int_equal(hb_coll__call(b.c, g, i, 0, NULL)->bytes, i % 3 == 2 ? 128 : 4096);
	}
	assert_null(hb_collectives__at(b.c, 1));
	done(&b);
}

/* One rank's first calls lie before the window: the others are matched all the same. */
static void edges(void **state)
{
	struct host_rig h = begin("coll-edges");
	const struct hb_coll_group *g;
	struct built b;

	coll(&h, h.main, COMM_A, Q_REDUCE, MS / 2, 4096);
	coll(&h, h.main, COMM_A, Q_GATHER, MS / 2 + 100000, 128);
	for (u64 i = 0; i < 6; i++) {
		step(&h, h.main, COMM_A, MS + i * 10 * MS);
		step(&h, h.server, COMM_B, MS + 50000 + i * 10 * MS);
	}
	b = build(&h);
	g = hb_collectives__at(b.c, 0);
	assert_non_null(g);
	assert_int_equal(g->n, 18);
	assert_int_equal(g->dropped, 2);
	assert_int_equal(g->coll[0].last - g->coll[0].first, 50000);
	done(&b);
}

static void differing_tail(void **state)
{
	struct host_rig h = begin("coll-tail");
	const struct hb_coll_group *g;
	struct built b;

	for (u64 i = 0; i < 30; i++) {
		step(&h, h.main, COMM_A, MS + i * 10 * MS);
		if (i < 25)
			step(&h, h.server, COMM_B, MS + i * 10 * MS + 20000);
		else
			coll(&h, h.server, COMM_B, Q_GATHER, MS + i * 10 * MS + 20000, 77);
	}
	b = build(&h);
	g = hb_collectives__at(b.c, 0);
	assert_non_null(g);
	assert_int_equal(g->n, 75);
	assert_int_equal(g->dropped, 15);
	done(&b);
}

/* Not ranks of one group: other sizes; or the same, but not at the same time. */
static void strangers(void **state)
{
	struct host_rig h = begin("coll-strangers");
	struct built b;

	for (u64 i = 0; i < 10; i++) {
		step(&h, h.main, COMM_A, MS + i * 10 * MS);
		coll(&h, h.server, COMM_B, Q_REDUCE, MS + i * 10 * MS, 512);
	}
	for (u64 i = 0; i < 10; i++)
		step(&h, h.server, COMM_B + 1, 600 * MS + i * 10 * MS);
	b = build(&h);
	assert_int_equal(hb_collectives__groups(b.c), 0);
	done(&b);
}

/* What graphs hold is no call: their launches stand for it, where the processes have collectives at all. */
static void graphs(void **state)
{
	struct host_rig h = begin("coll-graphs");
	const struct hb_coll_group *g = NULL;
	struct built b;

	coll(&h, h.main, COMM_A, Q_REDUCE, MS / 2, 4096);
	coll(&h, h.server, COMM_B, Q_REDUCE, MS / 2, 4096);
	for (u64 i = 0; i < 20; i++) {
		CALL(&h, h.main, Q_GRAPH, AT(MS + i * 5 * MS), AT(MS + i * 5 * MS + 1000), .handle = 5);
		CALL(&h, h.server, Q_GRAPH, AT(2 * MS + i * 5 * MS), AT(2 * MS + i * 5 * MS + 1000),
		     .handle = 6);
	}
	b = build(&h);
	for (u32 i = 0; i < hb_collectives__groups(b.c); i++)
		if (hb_collectives__at(b.c, i)->source == HB_COLL_GRAPH)
			g = hb_collectives__at(b.c, i);
	assert_non_null(g);
	assert_int_equal(g->n, 20);
	assert_int_equal(g->coll[3].last - g->coll[3].first, MS);
	assert_int_equal(g->rank[g->coll[3].late].pid, 200);
	done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(one_is_late), cmocka_unit_test(edges),  cmocka_unit_test(differing_tail),
	    cmocka_unit_test(strangers),   cmocka_unit_test(graphs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
