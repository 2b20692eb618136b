/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis_rig.h"

#include <yajl/yajl_tree.h>

#include "analysis/export/export.h"

static struct rig rig;
static char *text;
static yajl_val root;

static void load(struct hb_window *w)
{
	struct hb_error e = {0};
	char why[256];
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (hb_exporter__find("kineto")->run(w, f, &e))
		fail_msg("%s", e.text);
	fclose(f);
	root = yajl_tree_parse(text, why, sizeof(why));
	if (!root)
		fail_msg("no JSON: %s", why);
}

static int setup(void **state)
{
	struct hb_window *w = rig_window(&rig, "kineto");

	load(w);
	rig_close(&rig, w);
	return 0;
}

static int teardown(void **state)
{
	yajl_tree_free(root);
	free(text);
	return 0;
}

static yajl_val get(yajl_val v, const char *key)
{
	const char *path[] = {key, NULL};

	return yajl_tree_get(v, path, yajl_t_any);
}

static const char *str(yajl_val v, const char *key)
{
	yajl_val x = get(v, key);

	return x && YAJL_IS_STRING(x) ? YAJL_GET_STRING(x) : "(absent)";
}

/* Numbers as they are written: a double would hide a lost digit. */
static const char *num(yajl_val v, const char *key)
{
	yajl_val x = get(v, key);

	return x && YAJL_IS_NUMBER(x) ? YAJL_GET_NUMBER(x) : "(absent)";
}

static unsigned rows(const char *cat, const char *name)
{
	yajl_val all = get(root, "traceEvents");
	unsigned n = 0;

	for (size_t i = 0; i < all->u.array.len; i++)
		n += !strcmp(str(all->u.array.values[i], "cat"), cat) &&
		     !strcmp(str(all->u.array.values[i], "name"), name);
	return n;
}

static yajl_val row(const char *name, unsigned k)
{
	yajl_val all = get(root, "traceEvents");

	for (size_t i = 0; i < all->u.array.len; i++)
		if (!strcmp(str(all->u.array.values[i], "name"), name) && !k--)
			return all->u.array.values[i];
	fail_msg("no row %s", name);
	return NULL;
}

static void head(void **state)
{
	static const char *const keys[] = {"schemaVersion",   "deviceProperties",    "distributedInfo",
					   "displayTimeUnit", "baseTimeNanoseconds", "traceEvents",
					   "traceName"};
	yajl_val ours = get(root, "herschel");

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		assert_non_null(get(root, keys[i]));
	assert_non_null(strstr(text, "\"rank\": 0")); /* a reader looks for it as text */
	assert_string_equal(num(ours, "monotonic_base_ns"), "5000000000");
	assert_string_equal(num(get(ours, "loss"), "ring_full"), "12");
	assert_string_equal(str(ours, "device"), "simulated accelerator");
}

static void calls(void **state)
{
	yajl_val launch = row("cuLaunchKernel", 3), sync = row("cudaStreamSynchronize", 6);

	assert_int_equal(rows("cuda_driver", "cuLaunchKernel"), 10);
	assert_int_equal(rows("cuda_driver", "cuGraphLaunch"), 3);
	assert_int_equal(rows("cuda_driver", "cuMemcpyHtoDAsync"), 1);
	assert_int_equal(rows("cuda_runtime", "cudaMemcpyAsync"), 1);
	assert_int_equal(rows("cuda_runtime", "cudaStreamSynchronize"), 100);
	assert_int_equal(rows("user_annotation", "ncclAllReduce"), 1);
	assert_string_equal(str(launch, "ph"), "X");
	assert_string_equal(num(launch, "ts"), "10000.003"); /* not a nanosecond is lost */
	assert_string_equal(num(launch, "dur"), "0.000");
	assert_string_equal(num(launch, "pid"), "100");
	assert_string_equal(num(launch, "tid"), "100");
	assert_string_equal(num(get(launch, "args"), "correlation"), "4");
	assert_string_equal(str(get(launch, "args"), "api"), "cuda-driver");
	assert_int_equal(get(get(launch, "args"), "grid")->u.array.len, 3);
	assert_null(get(get(launch, "args"), "stream")); /* it would make it a device row */
	assert_null(get(get(launch, "args"), "External id"));
	assert_string_equal(num(sync, "ts"), "39993.007");
	assert_string_equal(num(sync, "dur"), "7.000");
	assert_string_equal(num(get(sync, "args"), "ret"), "700");
	assert_string_equal(str(get(row("cudaMemcpyAsync", 0), "args"), "kind"), "DtoH");
	assert_string_equal(num(get(row("cudaMemcpyAsync", 0), "args"), "bytes"), "4096");
	assert_string_equal(num(get(row("ncclAllReduce", 0), "args"), "bytes"), "2000");
	assert_string_equal(str(get(row("ncclAllReduce", 0), "args"), "dtype"), "bfloat16");
}

static void waits(void **state)
{
	assert_int_equal(rows("offcpu", "off-CPU epoll_wait"), 3);
	assert_int_equal(rows("offcpu", "off-CPU read"), 1);
	assert_int_equal(rows("offcpu", "preempted"), 1);
	assert_int_equal(rows("syscall", "read"), 1);
	assert_string_equal(num(get(row("off-CPU epoll_wait", 0), "args"), "waker_tid"), "200");
	assert_null(get(get(row("off-CPU read", 0), "args"), "waker_tid")); /* a bystander */
	assert_string_equal(str(get(row("off-CPU epoll_wait", 0), "args"), "chan"),
			    "unix 11 -> 22 /run/engine.sock");
}

static void names(void **state)
{
	assert_string_equal(str(get(row("process_name", 0), "args"), "name"),
			    "ev?[31mil?\"\\ (simulated accelerator)");
	assert_string_equal(str(get(row("thread_name", 1), "args"), "name"), "worker");
	for (const char *c = text; *c; c++)
		assert_true((unsigned char)*c >= 0x20 || *c == '\n');
}

/* Each call has a correlation of its own. */
static void correlations(void **state)
{
	yajl_val all = get(root, "traceEvents");
	unsigned char seen[256] = {0};
	unsigned n = 0;

	for (size_t i = 0; i < all->u.array.len; i++) {
		yajl_val args = get(all->u.array.values[i], "args");
		long long c;

		if (!args || !get(args, "correlation"))
			continue;
		c = YAJL_GET_INTEGER(get(args, "correlation"));
		assert_in_range(c, 1, 255);
		assert_int_equal(seen[c]++, 0);
		n++;
	}
	assert_int_equal(n, 10 + 3 + 2 + 100 + 2);
}

/* ---- devices ---- */

static void put_device(struct rig *r, u64 at, const char *name, struct hb_rec_device d)
{
	d.name = hb_window_writer__string(r->w, name);
	d.dur = 1000;
	rig_put(r, at, r->main, HB_TYPE_device, &d);
}

static unsigned flows(char ph, const char *id)
{
	yajl_val all = get(root, "traceEvents");
	const char want[2] = {ph, 0};
	unsigned n = 0;

	for (size_t i = 0; i < all->u.array.len; i++)
		n += !strcmp(str(all->u.array.values[i], "ph"), want) &&
		     !strcmp(num(all->u.array.values[i], "id"), id);
	return n;
}

static struct hb_window *device_window(struct rig *r)
{
	struct hb_rec_accel a = {.probe = P_GRAPH, .correlation = 7, .flags = HB_AFLAG_TIMED, .dur = 500};
	struct hb_rec_op o = {.dur = 9000, .kind = HB_OPKIND_CPU_OP, .external = 5, .seq = 1};

	*r = rig_new("kineto");
	rig_tables(r);
	hb_window_writer__meta(r->w, "device_2_name", "H100");
	hb_window_writer__meta(r->w, "device_2_sms", "132");
	hb_window_writer__meta(r->w, "rank", "4");
	rig_put(r, 1000, r->main, HB_TYPE_accel, &a);
	a.correlation = 8; /* it started nothing */
	rig_put(r, 2000, r->main, HB_TYPE_accel, &a);
	put_device(r, 3001, "k",
		   (struct hb_rec_device){
		       .device = 2, .stream = 9, .correlation = 7, .gx = 3, .gy = 2, .gz = 1, .regs = 40});
	put_device(r, 4000, "k",
		   (struct hb_rec_device){.device = 2, .stream = 9, .correlation = 7, .graph = 6, .node = 1});
	put_device(
	    r, 5000, "Memcpy DtoH (Device -> Pinned)",
	    (struct hb_rec_device){
		.kind = HB_DEVKIND_MEMCPY, .device = 2, .stream = 9, .bytes = 64, .copy = HB_COPY_DTOH});
	put_device(r, 6000, "Event Sync",
		   (struct hb_rec_device){.kind = HB_DEVKIND_SYNC,
					  .device = 2,
					  .stream = UINT32_MAX,
					  .correlation = 8,
					  .waits = 3,
					  .sync = HB_SYNCKIND_EVENT,
					  .wstream = 9});
	o.name = hb_window_writer__string(r->w, "aten::mm");
	o.shapes = hb_window_writer__string(r->w, "[[2,3],[]]");
	o.types = hb_window_writer__string(r->w, "no list");
	o.values = hb_window_writer__string(r->w, "{\"collective\":\"allreduce\",\"in\":1024,\"seq\":\"3\"}");
	rig_put(r, 9000, r->main, HB_TYPE_op, &o);
	return rig_open(r);
}

static void devices_and_operators(void **state)
{
	struct rig r;
	struct hb_window *w = device_window(&r);
	yajl_val k, args;

	load(w);
	k = row("k", 0);
	args = get(k, "args");
	assert_string_equal(str(k, "cat"), "kernel");
	assert_string_equal(num(k, "pid"), "2"); /* the device */
	assert_string_equal(num(k, "tid"), "9"); /* the stream */
	assert_string_equal(num(k, "ts"), "2.001");
	assert_string_equal(num(args, "correlation"), "7");
	assert_string_equal(num(args, "registers per thread"), "40");
	assert_int_equal(get(args, "grid")->u.array.len, 3);
	assert_string_equal(num(get(row("k", 1), "args"), "graph node id"), "1");
	assert_string_equal(str(get(row("Memcpy DtoH (Device -> Pinned)", 0), "args"), "kind"), "DtoH");
	args = get(row("Event Sync", 0), "args");
	assert_string_equal(num(args, "stream"), "-1");
	assert_string_equal(num(args, "wait_on_stream"), "9");
	assert_string_equal(num(args, "wait_on_cuda_event_record_corr_id"), "3");
	/* Calls keep their own numbers; arrows go to what ran, not to what was waited for. */
	assert_string_equal(num(get(row("cuGraphLaunch", 1), "args"), "correlation"), "8");
	assert_int_equal(flows('s', "7"), 1);
	assert_int_equal(flows('f', "7"), 2);
	assert_int_equal(flows('s', "8") + flows('f', "8"), 0);
	args = get(row("aten::mm", 0), "args");
	assert_string_equal(num(args, "External id"), "5");
	assert_string_equal(num(args, "Sequence number"), "0");
	assert_int_equal(get(args, "Input Dims")->u.array.len, 2);
	assert_null(get(args, "Input type"));
	assert_string_equal(str(args, "Collective name"), "allreduce");
	assert_string_equal(num(args, "In msg nelems"), "1024");
	assert_string_equal(str(args, "Seq"), "3");
	assert_string_equal(str(get(root, "deviceProperties")->u.array.values[0], "name"), "H100");
	assert_string_equal(num(get(root, "deviceProperties")->u.array.values[0], "numSms"), "132");
	assert_non_null(strstr(text, "\"rank\": 4"));
	rig_close(&r, w);
	teardown(state);
}

static void any_content(void **state)
{
	struct rig r = rig_new("kineto");
	u16 task = rig_task(&r, 5, 5, "\xff\xfe\x01", true);
	unsigned char junk[HB_RECORD_MAX];
	size_t n;
	const struct hb_type *types = hb_schema__types(&n);
	struct hb_window *w;

	memset(junk, 0xff, sizeof(junk));
	for (size_t i = 0; i < 2 * n; i++)
		rig_put(&r, i, i % 2 ? task : 0, types[i % n].id, junk);
	w = rig_open(&r);
	load(w);
	assert_int_equal(rows("user_annotation", "?"), 2);
	assert_int_equal(rows("syscall", "?"), 2);
	rig_close(&r, w);
	teardown(state);
}

int main(void)
{
#define WITH_WINDOW(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    WITH_WINDOW(head),
	    WITH_WINDOW(calls),
	    WITH_WINDOW(waits),
	    WITH_WINDOW(names),
	    WITH_WINDOW(correlations),
	    cmocka_unit_test(devices_and_operators),
	    cmocka_unit_test(any_content),
	};

	return cmocka_run_group_tests_name("kineto", tests, NULL, NULL);
}
