/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The longest path: each kind of link with numbers made up by hand, and a published trace with known ones. */
#include "import_rig.h"

#include <errno.h>

#include "analysis/model/host.h"
#include "analysis/model/longest.h"

#define US 1000ULL
/* Rows of one thread of one process, of its device; times in us. */
#define OP(name, at, dur)	  ROW("cpu_op", name, "10", "10", #at, #dur, "\"External id\":1")
#define CALL(name, at, dur, corr) CALL_OF("10", name, at, dur, corr)
#define CALL_OF(tid, name, at, dur, corr)                                                                    \
	ROW("cuda_runtime", name, "10", tid, #at, #dur, "\"correlation\":" #corr)
#define KERNEL(name, stream, at, dur, corr)                                                                  \
	ROW("kernel", name, "0", #stream, #at, #dur,                                                         \
	    "\"device\":0,\"stream\":" #stream ",\"correlation\":" #corr)
#define SYNC(name, stream, at, dur, corr, more)                                                              \
	ROW("cuda_sync", name, "0", #stream, #at, #dur,                                                      \
	    "\"device\":0,\"stream\":" #stream ",\"correlation\":" #corr more)

struct graph {
	struct hb_window *w;
	struct hb_devices *d;
	struct hb_host *h;
	struct hb_longest *l;
	const struct hb_longest_sum *sum;
};

static struct graph open_window(struct hb_window *w)
{
	struct hb_error e = {0};
	struct graph g = {.w = w};

	g.d = hb_devices__build(w, NULL, &e);
	g.h = g.d ? hb_host__build(w, g.d, &e) : NULL;
	if (!g.h)
		fail_msg("%s", e.text);
	return g;
}

static struct hb_longest *ask(const struct graph *g, const char *name, u32 instance, struct hb_error *e)
{
	const struct hb_longest_opts o = {.name = name, .instance = instance};

	memset(e, 0, sizeof(*e));
	return hb_longest__build(hb_host__timeline(g->h), g->d, hb_host__steps(g->h), &o, e);
}

static struct graph made(const char *trace, const char *name, u32 instance)
{
	struct graph g = open_window(rig_open(trace, 0));
	struct hb_error e;

	g.l = ask(&g, name, instance, &e);
	if (!g.l)
		fail_msg("%s", e.text);
	g.sum = hb_longest__sum(g.l);
	return g;
}

static void done(struct graph *g)
{
	hb_longest__free(g->l);
	hb_host__free(g->h);
	hb_devices__free(g->d);
	hb_window__close(g->w);
}

/* What must hold of every path: it hangs together, its links are its length, its parts too. */
static void assert_sound(const struct graph *g)
{
	u32 n;
	const struct hb_link *const *x = hb_longest__path(g->l, &n);
	u64 sum = 0, parts = 0;

	assert_int_equal(n, g->sum->links);
	for (u32 i = 0; i < n; sum += x[i++]->ns)
		if (i)
			assert_int_equal(x[i]->from, x[i - 1]->to);
	for (u32 i = 0; i < HB_CP_PARTS; i++)
		parts += g->sum->part[i];
	assert_int_equal(sum, g->sum->length);
	assert_int_equal(parts, g->sum->length);
}

/* ns of the k-th link between two events of these names, and its kind; -1: there is none. */
static s64 link_of(const struct graph *g, const char *from, const char *to, enum hb_link_kind kind, u32 k)
{
	u32 n;
	const struct hb_link *x = hb_longest__links(g->l, &n);

	for (u32 i = 0; i < n; i++)
		if (x[i].kind == kind && !strcmp(hb_longest__name(g->l, x[i].from / 2), from) &&
		    !strcmp(hb_longest__name(g->l, x[i].to / 2), to) && !k--)
			return (s64)x[i].ns;
	return -1;
}

/* Two kernels, the second given while the first waits, and the host waits for both. */
static void over_the_device_and_back(void **state)
{
	struct graph g =
	    made(TRACE(OP("a", 1000, 100) "," CALL("cudaLaunchKernel", 1010, 10, 1) "," CALL(
		     "cudaLaunchKernel", 1032, 6,
		     2) "," KERNEL("k1", 7, 1030, 20,
				   1) "," KERNEL("k2", 7, 1055, 25,
						 2) "," CALL("cudaStreamSynchronize", 1040, 50,
							     3) "," SYNC("Stream Sync", 7, 1041, 41,
									 3, ) "," OP("b", 1110, 20)),
		 NULL, 0);

	assert_sound(&g);
	assert_int_equal(g.sum->length, 110 * US);
	assert_int_equal(g.sum->part[HB_CP_HOST], 40 * US);
	assert_int_equal(g.sum->part[HB_CP_COMPUTE], 45 * US);
	assert_int_equal(g.sum->part[HB_CP_LAUNCH_DELAY], 20 * US);
	assert_int_equal(g.sum->part[HB_CP_KERNEL_DELAY], 5 * US);
	assert_int_equal(g.sum->links, 9);
	assert_int_equal(g.sum->nodes, 10);
	assert_int_equal(g.sum->events, 6);
	assert_int_equal(g.sum->all_events, 7);
	assert_int_equal(g.sum->syncs, 1);
	assert_int_equal(g.sum->forced, 0);
	/* the wait itself weighs nothing, the call that was given early neither */
	assert_int_equal(link_of(&g, "cudaStreamSynchronize", "cudaStreamSynchronize", HB_LINK_SPAN, 0), 0);
	assert_int_equal(link_of(&g, "cudaLaunchKernel", "k2", HB_LINK_LAUNCH, 0), 0);
	assert_int_equal(link_of(&g, "k2", "cudaStreamSynchronize", HB_LINK_SYNC, 0), 0);
	assert_int_equal(link_of(&g, "k1", "cudaStreamSynchronize", HB_LINK_SYNC, 0), -1);
	done(&g);
	(void)state;
}

/* An instance of a name, by begin: nothing of the other is in it. */
static void of_a_name(void **state)
{
	static const char trace[] =
	    TRACE(ROW("user_annotation", "Step#1", "10", "10", "100", "50",
		      "") "," OP("a", 110, 20) "," ROW("user_annotation", "Step#2", "10", "10", "200", "90",
						       "") "," OP("b", 210, 30) "," OP("c", 250, 9));
	struct graph g = made(trace, "Step#", 1);
	struct hb_cp_row *row;
	struct hb_error e;
	u32 n;

	assert_sound(&g);
	assert_int_equal(g.sum->length, 39 * US);
	assert_string_equal(hb_window__string(g.w, g.sum->of), "Step#2");
	assert_int_equal(g.sum->end - g.sum->begin, 90 * US);
	assert_int_equal(hb_longest__by_name(g.l, &row, &n), 0);
	assert_int_equal(n, 2);
	assert_string_equal(hb_longest__name(g.l, row[0].event), "b");
	assert_int_equal(row[0].ns, 30 * US);
	assert_int_equal(row[1].ns, 9 * US);
	free(row);
	assert_null(ask(&g, "Step#", 2, &e));
	assert_int_equal(e.err, -ENOENT);
	assert_non_null(strstr(e.text, "2 spans of this name"));
	assert_null(ask(&g, "nothing", 0, &e));
	assert_non_null(strstr(e.text, "\"nothing\""));
	assert_null(ask(&g, "step", 9, &e)); /* such a name is none, and so many steps there are not */
	assert_int_equal(e.err, -ENOENT);
	done(&g);
	(void)state;
}

/* 1.5 ms after the work before it, work did not wait for that. */
static void gap_between_kernels(void **state)
{
#define GAP(at)                                                                                              \
	TRACE(OP("a", 1000, 40) "," CALL("cudaLaunchKernel", 1010, 10, 1) "," CALL(                          \
	    "cudaLaunchKernel", 1032, 6, 2) "," KERNEL("k1", 7, 1030, 10, 1) "," KERNEL("k2", 7, at, 5, 2))
	struct graph g = made(GAP(2539), NULL, 0);

	assert_sound(&g);
	assert_int_equal(link_of(&g, "k1", "k2", HB_LINK_KERNEL, 0), 1499 * US);
	assert_int_equal(g.sum->length, (10 + 20 + 10 + 1499 + 5) * US);
	done(&g);
	g = made(GAP(2540), NULL, 0);
	assert_sound(&g);
	assert_int_equal(link_of(&g, "k1", "k2", HB_LINK_KERNEL, 0), -1);
	assert_int_equal(g.sum->length, 40 * US);
	done(&g);
	(void)state;
}

#define WAITS_FOR ",\"wait_on_stream\":7,\"wait_on_cuda_event_record_corr_id\":5"

/* Of two streams one waits for an event of the other; then the host for the same. */
static void over_an_event(void **state)
{
	struct graph g = made(
	    TRACE(OP("a", 1000, 50) "," CALL("cudaLaunchKernel", 1010, 10, 1) "," KERNEL("k1", 7, 1030, 70, 1) "," CALL(
		"cudaEventRecord", 1021,
		3,
		5) "," CALL("cudaStreamWaitEvent", 1025, 3,
			    6) "," SYNC("Stream Wait Event", 8, 1026, 1, 6,
					WAITS_FOR) "," CALL("cudaLaunchKernel", 1030, 5,
							    7) "," KERNEL("k2", 8, 1105, 45,
									  7) "," CALL("cudaEventSynchroni"
										      "ze",
										      1060, 45,
										      8) "," SYNC("Event "
												  "Sync",
												  7,
												  1061, 40, 8,
												  WAITS_FOR)),
	    NULL, 0);

	assert_sound(&g);
	assert_int_equal(link_of(&g, "k1", "k2", HB_LINK_SYNC, 0), 0);
	assert_int_equal(link_of(&g, "k1", "cudaEventSynchronize", HB_LINK_SYNC, 0), 0);
	assert_int_equal(link_of(&g, "cudaLaunchKernel", "k2", HB_LINK_LAUNCH, 0), 0);
	assert_int_equal(g.sum->all[HB_LINK_SYNC], 2);
	assert_int_equal(g.sum->length, (10 + 20 + 70 + 45) * US);
	assert_int_equal(g.sum->part[HB_CP_COMPUTE], 115 * US);
	done(&g);
	(void)state;
}

/* Who returns first had the lock: the allocation of the other thread waited for this one's launch. */
static void one_lock(void **state)
{
	struct graph g = made(TRACE(OP("a", 1000, 100) "," CALL("cudaLaunchKernel", 1010, 40, 1) "," CALL_OF(
				  "11", "cudaHostAlloc", 1005, 55, 2)),
			      NULL, 0);

	assert_sound(&g);
	assert_int_equal(link_of(&g, "cudaLaunchKernel", "cudaLaunchKernel", HB_LINK_SPAN, 0), 40 * US);
	assert_int_equal(link_of(&g, "cudaHostAlloc", "cudaHostAlloc", HB_LINK_SPAN, 0), -1);
	assert_int_equal(link_of(&g, "cudaHostAlloc", "cudaLaunchKernel", HB_LINK_ORDER, 0), 0);
	assert_int_equal(link_of(&g, "cudaLaunchKernel", "cudaHostAlloc", HB_LINK_ORDER, 0), 0);
	assert_int_equal(g.sum->length, 100 * US);
	done(&g);
	(void)state;
}

/* All operations of a graph launch are its work, and only the first waits for the call. */
static void graph_launch(void **state)
{
	struct graph g =
	    made(TRACE(OP("a", 1000, 25) "," CALL("cudaGraphLaunch", 1010, 10, 9) "," KERNEL(
		     "k1", 7, 1030, 10, 9) "," KERNEL("k2", 7, 1041, 9, 9) "," KERNEL("k3", 7, 1051, 9, 9)),
		 NULL, 0);

	assert_sound(&g);
	assert_int_equal(g.sum->length, (10 + 20 + 10 + 1 + 9 + 1 + 9) * US);
	assert_int_equal(g.sum->all[HB_LINK_LAUNCH], 3);
	assert_int_equal(link_of(&g, "cudaGraphLaunch", "k2", HB_LINK_LAUNCH, 0), 0);
	done(&g);
	(void)state;
}

/* A copy that is not asynchronous: its call waits, and ends with it. */
static void copy_that_waits(void **state)
{
	struct graph g = made(TRACE(OP("a", 1000, 100) "," CALL("cudaMemcpy", 1010, 50, 1) "," ROW(
				  "gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", "0", "7", "1030", "20",
				  "\"device\":0,\"stream\":7,\"correlation\":1,\"bytes\":4096")),
			      NULL, 0);

	assert_sound(&g);
	assert_int_equal(link_of(&g, "cudaMemcpy", "cudaMemcpy", HB_LINK_SPAN, 0), 0);
	assert_int_equal(g.sum->part[HB_CP_MEMCPY], 20 * US);
	assert_int_equal(g.sum->part[HB_CP_LAUNCH_DELAY], 20 * US);
	assert_int_equal(g.sum->length, (10 + 20 + 20 + 40) * US);
	done(&g);
	(void)state;
}

/* Times that contradict each other: what outlives its parent, and work before its call that the host waited
 * for before that call. */
static void against_time(void **state)
{
	struct graph g = made(TRACE(OP("a", 1000, 10) "," OP("b", 1005, 10) "," OP("c", 1020, 5)), NULL, 0);

	assert_sound(&g);
	assert_int_equal(g.sum->length, 20 * US);
	done(&g);
	g = made(TRACE(OP("a", 1000, 100) "," KERNEL("k", 7, 1001, 2, 1) "," CALL(
		     "cudaStreamSynchronize", 1005, 5,
		     3) "," SYNC("Stream Sync", 7, 1006, 2, 3, ) "," CALL("cudaLaunchKernel", 1050, 10, 1)),
		 NULL, 0);
	assert_sound(&g);
	assert_int_equal(g.sum->forced, 1);
	assert_int_equal(g.sum->length, 95 * US);
	done(&g);
	(void)state;
}

/* A window of nothing that is an event. */
static void nothing_there(void **state)
{
	struct graph g = made(TRACE(ROW("user_annotation", "x", "10", "10", "100", "50", "")), NULL, 0);
	u32 n;

	assert_sound(&g);
	assert_int_equal(g.sum->length, 0);
	assert_int_equal(g.sum->nodes, 0);
	hb_longest__path(g.l, &n);
	assert_int_equal(n, 0);
	done(&g);
	(void)state;
}

/* ---- a published trace ---- */

static struct hb_window *published(const char *name)
{
	struct hb_import_opts o = {.output = rig_out, .force = true};
	struct hb_error e = {0};
	struct hb_window *w;
	char path[128];

	snprintf(path, sizeof(path), "../shared/traces/%s", name);
	if (access(path, R_OK)) {
		print_message("skipped: %s is not here (run from the project's folder)\n", path);
		return NULL;
	}
	snprintf(rig_out, sizeof(rig_out), "/tmp/hb-longest-%d.hbw", (int)getpid());
	o.path = path;
	if (hb_import__run(&o, &rig_stats, &e))
		fail_msg("%s", e.text);
	w = hb_window__open(rig_out, &e);
	unlink(rig_out);
	if (!w)
		fail_msg("%s", e.text);
	return w;
}

static bool has(const struct graph *g, u32 node, const char *text)
{
	return strstr(hb_longest__name(g->l, node / 2), text) != NULL;
}

/* Links one after the other from here: how many weigh what is expected. */
static u32 chain(const struct graph *g, u32 node, const u64 *us, u32 n)
{
	u32 all, k = 0;
	const struct hb_link *x = hb_longest__links(g->l, &all);

	while (k < n) {
		u32 i = 0;

		while (i < all && !(x[i].from == node && x[i].kind == HB_LINK_SPAN))
			i++;
		if (i == all || x[i].ns != us[k] * US)
			break;
		node = x[i].to;
		k++;
	}
	return k;
}

static void alexnet(void **state)
{
	static const u64 relu[] = {15, 14, 17, 15, 32};
	struct hb_window *w = published("T11-a100-alexnet-1stream.json.gz");
	struct graph g;
	struct hb_error e;
	const struct hb_cp_event *event;
	const struct hb_link *x;
	u32 n, found = 0, delays = 0, kernels = 0, syncs = 0;

	if (!w)
		skip();
	g = open_window(w);
	g.l = ask(&g, "[param|pytorch.model.alex_net|0|0|0|measure|forward]", 1, &e);
	if (!g.l)
		fail_msg("%s", e.text);
	g.sum = hb_longest__sum(g.l);
	assert_sound(&g);
	assert_int_equal(g.sum->nodes, 315);
	assert_int_equal(g.sum->links, 314);
	assert_int_equal(g.sum->events, 159);
	assert_int_equal(g.sum->length, 241724 * US);
	assert_int_equal(g.sum->part[HB_CP_HOST], 241190 * US);
	assert_int_equal(g.sum->part[HB_CP_COMPUTE], 508 * US);
	assert_int_equal(g.sum->part[HB_CP_LAUNCH_DELAY], 17 * US);
	assert_int_equal(g.sum->part[HB_CP_KERNEL_DELAY], 9 * US);
	event = hb_longest__events(g.l, &n);
	for (u32 i = 0; i < n; i++)
		if (event[i].what == HB_CP_OPERATOR && has(&g, 2 * i, "aten::relu_"))
			found += chain(&g, HB_NODE_BEGIN(i), relu, 5) == 5;
	assert_int_equal(found, 1);
	x = hb_longest__links(g.l, &n);
	for (u32 i = 0; i < n; i++) {
		delays += x[i].kind == HB_LINK_LAUNCH && x[i].ns == 27 * US && has(&g, x[i].to, "fft");
		kernels += x[i].kind == HB_LINK_KERNEL && x[i].ns == 7 * US && has(&g, x[i].from, "fft") &&
			   has(&g, x[i].to, "ampere");
		syncs += x[i].kind == HB_LINK_SYNC && !x[i].ns && has(&g, x[i].to, "cudaDeviceSynchronize");
	}
	assert_true(delays >= 1);
	assert_true(kernels >= 1);
	assert_true(syncs >= 1);
	done(&g);
	(void)state;
}

static void event_sync(void **state)
{
	struct hb_window *w = published("T13-a100-event-sync.json.gz");
	struct graph g;
	struct hb_error e;

	if (!w)
		skip();
	g = open_window(w);
	g.l = ask(&g, "ProfilerStep", 0, &e);
	if (!g.l)
		fail_msg("%s", e.text);
	g.sum = hb_longest__sum(g.l);
	assert_sound(&g);
	assert_int_equal(g.sum->length, 2411 * US);
	assert_int_equal(g.sum->nodes, 40);
	done(&g);
	(void)state;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(over_the_device_and_back),
	    cmocka_unit_test(of_a_name),
	    cmocka_unit_test(gap_between_kernels),
	    cmocka_unit_test(over_an_event),
	    cmocka_unit_test(one_lock),
	    cmocka_unit_test(graph_launch),
	    cmocka_unit_test(copy_that_waits),
	    cmocka_unit_test(against_time),
	    cmocka_unit_test(nothing_there),
	    cmocka_unit_test(alexnet),
	    cmocka_unit_test(event_sync),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
