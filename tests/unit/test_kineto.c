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
	    WITH_WINDOW(head),	WITH_WINDOW(calls),	   WITH_WINDOW(waits),
	    WITH_WINDOW(names), WITH_WINDOW(correlations), cmocka_unit_test(any_content),
	};

	return cmocka_run_group_tests_name("kineto", tests, NULL, NULL);
}
