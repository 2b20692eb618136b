/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <yajl/yajl_tree.h>

#include "analysis/export/export.h"
#include "analysis/export/jbuf.h"
#include "analysis/export/ndjson.h"
#include "analysis/export/output.h"

#define MAX_LINES 400

static struct rig rig;
static struct hb_window *w;

static int setup(void **state)
{
	w = rig_window(&rig, "export");
	return 0;
}

static int teardown(void **state)
{
	rig_close(&rig, w);
	return 0;
}

static char *exported(const char *format)
{
	const struct hb_exporter *x = hb_exporter__find(format);
	struct hb_error e = {0};
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(x);
	assert_non_null(f);
	if (x->run(w, f, &e))
		fail_msg("%s", e.text);
	fclose(f);
	return text;
}

/* ---- ndjson ---- */

struct lines {
	yajl_val v[MAX_LINES];
	size_t n;
};

static struct lines parsed(char *text)
{
	struct lines l = {.n = 0};
	char error[256], *save = NULL;

	for (char *p = strtok_r(text, "\n", &save); p; p = strtok_r(NULL, "\n", &save)) {
		assert_true(l.n < MAX_LINES);
		for (char *c = p; *c; c++)
			assert_true((unsigned char)*c >= 0x20);
		l.v[l.n] = yajl_tree_parse(p, error, sizeof(error));
		if (!l.v[l.n] || !YAJL_IS_OBJECT(l.v[l.n]))
			fail_msg("not an object: %s", p);
		l.n++;
	}
	free(text);
	return l;
}

static void drop(struct lines *l)
{
	while (l->n)
		yajl_tree_free(l->v[--l->n]);
}

static yajl_val get(yajl_val v, const char *key)
{
	const char *path[] = {key, NULL};

	return yajl_tree_get(v, path, yajl_t_any);
}

static const char *text_of(yajl_val v, const char *key)
{
	yajl_val x = get(v, key);

	return x && YAJL_IS_STRING(x) ? YAJL_GET_STRING(x) : "(absent)";
}

static long long number(yajl_val v, const char *key)
{
	yajl_val x = get(v, key);

	if (!x || !YAJL_IS_INTEGER(x))
		fail_msg("no number %s in a %s", key, text_of(v, "type"));
	return YAJL_GET_INTEGER(x);
}

/* The i-th line of a type, where `name` (may be NULL) is its name. */
static yajl_val line(const struct lines *l, const char *type, const char *name, unsigned i)
{
	for (size_t k = 0; k < l->n; k++)
		if (!strcmp(text_of(l->v[k], "type"), type) &&
		    (!name || !strcmp(text_of(l->v[k], "name"), name)) && !i--)
			return l->v[k];
	fail_msg("no %s %s", type, name ? name : "");
	return NULL;
}

static void ndjson_first_and_last(void **state)
{
	struct lines l = parsed(exported("ndjson"));
	yajl_val first = l.v[0], last = l.v[l.n - 1];

	assert_int_equal(l.n, 135 + 2);
	assert_string_equal(text_of(first, "type"), "window");
	assert_string_equal(text_of(first, "host"), "box");
	assert_string_equal(text_of(first, "device"), "simulated accelerator");
	assert_true(YAJL_IS_TRUE(get(first, "simulated")));
	assert_int_equal(number(first, "start_ns"), START);
	assert_int_equal(get(first, "processes")->u.array.len, 2);
	assert_string_equal(text_of(get(first, "processes")->u.array.values[0], "exe"), "/opt/bin/engine");
	assert_string_equal(text_of(last, "type"), "loss");
	assert_int_equal(number(last, "ring_full"), 12);
	assert_int_equal(number(last, "damaged"), 0);
	drop(&l);
}

static void ndjson_accel(void **state)
{
	struct lines l = parsed(exported("ndjson"));
	yajl_val launch = line(&l, "accel", "cuLaunchKernel", 0),
		 copy = line(&l, "accel", "cudaMemcpyAsync", 0);
	yajl_val inner = line(&l, "accel", "cuMemcpyHtoDAsync", 0),
		 reduce = line(&l, "accel", "ncclAllReduce", 0);
	yajl_val sync = line(&l, "accel", "cudaStreamSynchronize", 0),
		 graph = line(&l, "accel", "cuGraphLaunch", 0);

	assert_int_equal(number(launch, "ts"), 10 * MS);
	assert_int_equal(number(launch, "pid"), 100);
	assert_string_equal(text_of(launch, "comm"), "ev?[31mil?\"\\");
	assert_null(get(launch, "dur"));
	assert_null(get(launch, "ret"));
	assert_string_equal(text_of(launch, "api"), "cuda-driver");
	assert_string_equal(text_of(launch, "class"), "launch");
	assert_string_equal(text_of(launch, "function"), "0xf00");
	assert_string_equal(text_of(launch, "stream"), "0x0");
	assert_int_equal(YAJL_GET_INTEGER(get(launch, "grid")->u.array.values[1]), 2);
	assert_int_equal(YAJL_GET_INTEGER(get(launch, "block")->u.array.values[0]), 256);
	assert_int_equal(number(launch, "shared_bytes"), 1024);
	assert_string_equal(text_of(graph, "graph"), "0xabc");
	assert_int_equal(number(copy, "ts"), 31 * MS); /* the begin of the call */
	assert_int_equal(number(copy, "dur"), MS);
	assert_int_equal(number(copy, "ret"), 0);
	assert_int_equal(number(copy, "nested"), 1);
	assert_int_equal(number(copy, "bytes"), 4096);
	assert_string_equal(text_of(copy, "kind"), "DtoH");
	assert_null(get(copy, "inner"));
	assert_true(YAJL_IS_TRUE(get(inner, "inner")));
	assert_string_equal(text_of(inner, "kind"), "HtoD");
	assert_int_equal(number(sync, "ret"), 719);
	assert_null(get(sync, "stream"));
	assert_int_equal(number(reduce, "elements"), 1000);
	assert_int_equal(number(reduce, "bytes"), 2000);
	assert_string_equal(text_of(reduce, "datatype"), "bfloat16");
	assert_string_equal(text_of(reduce, "comm"), "worker"); /* the thread, as in every line */
	assert_string_equal(text_of(reduce, "communicator"), "0xc0");
	drop(&l);
}

static void ndjson_stacks(void **state)
{
	struct lines l = parsed(exported("ndjson"));
	yajl_val launch = line(&l, "accel", "cuLaunchKernel", 0), sample = line(&l, "sample", NULL, 3);
	yajl_val *f = get(launch, "stack")->u.array.values;

	assert_int_equal(get(launch, "stack")->u.array.len, 3);
	assert_string_equal(text_of(f[0], "f"), "main");
	assert_string_equal(text_of(f[1], "f"), "step;one");
	assert_string_equal(text_of(f[2], "f"), "libx.so+0x1234");
	assert_string_equal(text_of(f[2], "module"), "/opt/lib/libx.so");
	assert_string_equal(text_of(f[0], "lang"), "native");
	assert_null(get(launch, "stack_state"));
	assert_int_equal(get(sample, "stack")->u.array.len, 4); /* user, then kernel */
	assert_string_equal(text_of(get(sample, "stack")->u.array.values[3], "lang"), "kernel");
	assert_int_equal(number(sample, "weight_ns"), 10 * MS);
	assert_string_equal(text_of(sample, "syscall"), "read");
	assert_string_equal(text_of(line(&l, "offcpu", NULL, 0), "stack_state"), "truncated");
	drop(&l);
}

static const char *arg_of(yajl_val v, unsigned i)
{
	return YAJL_GET_STRING(get(v, "args")->u.array.values[i]);
}

static void ndjson_waits(void **state)
{
	struct lines l = parsed(exported("ndjson"));
	yajl_val epoll = line(&l, "offcpu", NULL, 0), tcp = line(&l, "offcpu", NULL, 4),
		 preempted = line(&l, "offcpu", NULL, 5);

	assert_int_equal(number(epoll, "ts"), 90 * MS);
	assert_int_equal(number(epoll, "dur"), 10 * MS);
	assert_int_equal(number(epoll, "runnable_ns"), MS);
	assert_string_equal(text_of(epoll, "state"), "S");
	assert_string_equal(text_of(epoll, "syscall"), "epoll_wait");
	assert_string_equal(text_of(epoll, "chan"), "unix 11 -> 22 /run/engine.sock");
	assert_string_equal(arg_of(epoll, 0), "5<unix /run/engine.sock>");
	assert_string_equal(arg_of(epoll, 1), "0x0");
	assert_int_equal(number(epoll, "fd"), 5);
	assert_int_equal(number(get(epoll, "waker"), "tid"), 200);
	assert_string_equal(text_of(get(epoll, "waker"), "comm"), "api;server");
	assert_string_equal(text_of(get(epoll, "waker"), "context"), "own_send");
	assert_string_equal(text_of(get(epoll, "waker"), "syscall"), "sendto");
	assert_int_equal(number(get(epoll, "waker"), "fd"), 9);
	assert_string_equal(text_of(get(epoll, "waker"), "file"), "unix");
	assert_string_equal(text_of(tcp, "chan"), "tcp 127.0.0.1:8000 -> 10.0.0.1:555");
	assert_string_equal(text_of(get(tcp, "waker"), "context"), "softirq");
	assert_string_equal(text_of(preempted, "state"), "R");
	assert_null(get(preempted, "waker"));
	assert_null(get(preempted, "syscall"));
	drop(&l);
}

static void ndjson_the_others(void **state)
{
	struct lines l = parsed(exported("ndjson"));
	yajl_val call = line(&l, "syscall", "read", 0), receipt = line(&l, "receipt", NULL, 0);

	assert_int_equal(number(call, "ret"), -11);
	assert_int_equal(number(call, "fd"), 3);
	assert_int_equal(get(call, "args")->u.array.len, 6);
	assert_string_equal(arg_of(call, 0), "3<tcp 127.0.0.1:8000 -> 10.0.0.1:555>");
	assert_string_equal(arg_of(call, 1), "0x0");
	assert_int_equal(number(line(&l, "exit", NULL, 0), "code"), 3 << 8);
	assert_int_equal(number(line(&l, "probed", NULL, 0), "late_ns"), 7 * MS);
	assert_string_equal(text_of(line(&l, "probed", NULL, 0), "file"), "/opt/lib/libcuda.so.1");
	assert_string_equal(text_of(line(&l, "note", NULL, 0), "level"), "warning");
	assert_int_equal(number(receipt, "price_ns"), 500);
	assert_string_equal(text_of(receipt, "name"), "cuLaunchKernel");
	assert_string_equal(text_of(line(&l, "receipt", NULL, 1), "hook"), "sched_switch");
	drop(&l);
}

static void ndjson_devices(void **state)
{
	struct rig r = rig_new("devices");
	u16 t = rig_task(&r, 5, 5, "x", true);
	struct hb_rec_accel a = {.correlation = 7, .dur = 10, .flags = HB_AFLAG_TIMED | HB_AFLAG_NO_STREAM};
	struct hb_rec_device d = {.dur = 100,
				  .correlation = 7,
				  .stream = 9,
				  .device = 2,
				  .gx = 1,
				  .gy = 1,
				  .gz = 1,
				  .queued = START + 5};
	struct hb_rec_op o = {.dur = 5, .kind = HB_OPKIND_CPU_OP, .seq = 1, .stream = 3};
	struct hb_window *own = w;
	struct lines l;
	yajl_val v;

	rig_put(&r, 1010, t, HB_TYPE_accel, &a);
	rig_put(&r, 1200, t, HB_TYPE_device, &d);
	d = (struct hb_rec_device){.kind = HB_DEVKIND_SYNC,
				   .sync = HB_SYNCKIND_CONTEXT,
				   .stream = UINT32_MAX,
				   .wstream = UINT32_MAX};
	rig_put(&r, 1300, t, HB_TYPE_device, &d);
	rig_put(&r, 1400, t, HB_TYPE_op, &o);
	w = rig_open(&r);
	l = parsed(exported("ndjson"));
	assert_null(get(line(&l, "accel", NULL, 0), "stream"));
	v = line(&l, "device", NULL, 0);
	assert_int_equal(number(v, "ts"), 1100);
	assert_int_equal(number(v, "op_ts"), 1000); /* when its call began */
	assert_int_equal(number(v, "stream"), 9);
	assert_int_equal(number(v, "queued_ns"), 5);
	assert_int_equal(get(v, "grid")->u.array.len, 3);
	assert_string_equal(text_of(v, "kind"), "kernel");
	assert_null(get(v, "block"));
	assert_null(get(v, "copy"));
	v = line(&l, "device", NULL, 1);
	assert_null(get(v, "op_ts"));
	assert_null(get(v, "stream"));
	assert_null(get(v, "wait_stream"));
	assert_string_equal(text_of(v, "sync"), "context");
	v = line(&l, "op", NULL, 0);
	assert_int_equal(number(v, "sequence"), 0);
	assert_null(get(v, "stream"));
	assert_null(get(v, "shapes"));
	drop(&l);
	rig_close(&r, w);
	w = own;
}

/* Every type with every byte set: whatever the numbers are, each line is an object with type, ts, pid, tid,
 * comm. */
static void ndjson_any_content(void **state)
{
	struct rig r = rig_new("any");
	u16 t = rig_task(&r, 5, 5, "\xff\xfe\x01", true);
	unsigned char junk[HB_RECORD_MAX];
	size_t n;
	const struct hb_type *types = hb_schema__types(&n);
	struct hb_window *own = w;
	struct lines l;

	memset(junk, 0xff, sizeof(junk));
	for (size_t i = 0; i < n; i++)
		rig_put(&r, i, t, types[i].id, junk);
	w = rig_open(&r);
	l = parsed(exported("ndjson"));
	assert_int_equal(l.n, n + 2);
	for (size_t i = 1; i + 1 < l.n; i++) {
		assert_non_null(get(l.v[i], "ts"));
		assert_int_equal(number(l.v[i], "pid"), 5);
		assert_string_equal(text_of(l.v[i], "comm"), "???");
	}
	drop(&l);
	rig_close(&r, w);
	w = own;
}

static void numbers_as_text(void **state)
{
	struct hb_buf b = {0};

	hb_jbuf__u64(&b, 0);
	hb_jbuf__lit(&b, " ");
	hb_jbuf__u64(&b, UINT64_MAX);
	hb_jbuf__lit(&b, " ");
	hb_jbuf__s64(&b, INT64_MIN);
	hb_jbuf__lit(&b, " ");
	hb_jbuf__hex(&b, UINT64_MAX);
	hb_jbuf__str(&b, "a\"b\\c\nd\xc3\xa9\xff");
	hb_buf__add(&b, "", 1);
	assert_string_equal(b.data, "0 18446744073709551615 -9223372036854775808 \"0xffffffffffffffff\""
				    "\"a\\\"b\\\\c?d\xc3\xa9?\"");
	hb_buf__free(&b);
}

/* docs/ndjson.md holds what the exporter says of itself. HB_UPDATE_DOCS=1 writes it there. */
static void ndjson_is_documented(void **state)
{
	static const char begin[] = "<!-- made by `make docs-ndjson`: begin -->\n", end[] = "<!-- end -->\n";
	char *want = NULL, *docs = calloc(1, 1 << 20), *from, *to;
	size_t size;
	FILE *f = open_memstream(&want, &size);

	hb_ndjson__describe(f);
	fclose(f);
	f = fopen("docs/ndjson.md", "r+");
	if (!f)
		fail_msg("docs/ndjson.md is not here: run from the project's folder");
	assert_true(fread(docs, 1, (1 << 20) - 1, f) > 0);
	from = strstr(docs, begin);
	to = from ? strstr(from, end) : NULL;
	assert_non_null(to);
	from += strlen(begin);
	if (getenv("HB_UPDATE_DOCS")) {
		rewind(f);
		assert_int_equal(ftruncate(fileno(f), 0), 0);
		fprintf(f, "%.*s%s%s", (int)(from - docs), docs, want, to);
	} else if ((size_t)(to - from) != size || memcmp(from, want, size) != 0) {
		fail_msg("docs/ndjson.md does not say what ndjson writes: run `make docs-ndjson`");
	}
	fclose(f);
	free(want);
	free(docs);
}

/* ---- folded ---- */

static void folded_stacks(void **state)
{
	char *s = exported("folded");

	assert_string_equal(s, "api:server;[no stack] 5000\n"
			       "ev?[31mil?\"\\;main;step:one;libx.so+0x1234 30000\n"
			       "ev?[31mil?\"\\;main;step:one;libx.so+0x1234;do_syscall_64_[k] 10000\n");
	free(s);
}

/* ---- where it goes ---- */

static char dir[64], out_path[96], link_path[96];

static int make_dir(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/hb-output-XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(out_path, sizeof(out_path), "%s/out", dir);
	snprintf(link_path, sizeof(link_path), "%s/link", dir);
	return 0;
}

/* Fails when something other than the two names is left. */
static int remove_dir(void **state)
{
	unlink(out_path);
	unlink(link_path);
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

static void write_out(const char *path, bool force, const char *text)
{
	struct hb_error e = {0};
	struct hb_output *o = hb_output__new(path, force, &e);

	if (!o)
		fail_msg("%s", e.text);
	fputs(text, hb_output__file(o));
	if (hb_output__commit(o, &e))
		fail_msg("%s", e.text);
}

static void content_is(const char *path, const char *want)
{
	char got[64] = "";
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	(void)!fread(got, 1, sizeof(got) - 1, f);
	fclose(f);
	assert_string_equal(got, want);
}

static void output_never_overwrites(void **state)
{
	struct hb_error e = {0};
	struct stat st;

	write_out(out_path, false, "one");
	assert_int_equal(stat(out_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_null(hb_output__new(out_path, false, &e));
	assert_int_equal(e.exit, HB_EXIT_FAILED);
	assert_non_null(strstr(e.text, "--force"));
	content_is(out_path, "one");
	write_out(out_path, true, "two");
	content_is(out_path, "two");
}

/* Made by somebody else between begin and end. */
static void output_loses_no_race(void **state)
{
	struct hb_error e = {0};
	struct hb_output *o = hb_output__new(out_path, false, &e);

	assert_non_null(o);
	write_out(out_path, false, "theirs");
	fputs("ours", hb_output__file(o));
	assert_int_equal(hb_output__commit(o, &e), -EEXIST);
	content_is(out_path, "theirs");
}

static void output_follows_no_link(void **state)
{
	struct hb_error e = {0};

	write_out(out_path, false, "precious");
	assert_int_equal(symlink(out_path, link_path), 0);
	assert_null(hb_output__new(link_path, false, &e));
	write_out(link_path, true, "new"); /* replaces the link */
	content_is(out_path, "precious");
	content_is(link_path, "new");
}

static void output_aborted_leaves_nothing(void **state)
{
	struct hb_error e = {0};
	struct hb_output *o = hb_output__new(out_path, false, &e);

	assert_non_null(o);
	fputs("half", hb_output__file(o));
	hb_output__abort(o);
	assert_int_equal(access(out_path, F_OK), -1);
}

static void output_says_what_is_wrong(void **state)
{
	struct hb_error e = {0};
	struct hb_output *o;

	assert_null(hb_output__new("/no/such/folder/x", false, &e));
	assert_non_null(strstr(e.text, "/no/such/folder/x: No such file"));
	hb_error__clear(&e);
	o = hb_output__new("/dev/full", false, &e); /* a device is written to, not replaced */
	assert_non_null(o);
	fputs("x", hb_output__file(o));
	assert_int_equal(hb_output__commit(o, &e), -ENOSPC);
	assert_non_null(strstr(e.text, "No space left"));
}

static void formats(void **state)
{
	const struct hb_exporter *const *x = hb_exporters();

	assert_null(hb_exporter__find("nonsense"));
	assert_null(hb_exporter__find(""));
	for (; *x; x++) {
		assert_ptr_equal(hb_exporter__find((*x)->name), *x);
		assert_non_null((*x)->doc);
	}
}

int main(void)
{
#define WITH_WINDOW(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define IN_FOLDER(f)   cmocka_unit_test_setup_teardown(f, make_dir, remove_dir)
	const struct CMUnitTest tests[] = {
	    WITH_WINDOW(ndjson_first_and_last),
	    WITH_WINDOW(ndjson_accel),
	    WITH_WINDOW(ndjson_stacks),
	    WITH_WINDOW(ndjson_waits),
	    WITH_WINDOW(ndjson_the_others),
	    cmocka_unit_test(ndjson_devices),
	    cmocka_unit_test(ndjson_any_content),
	    cmocka_unit_test(numbers_as_text),
	    cmocka_unit_test(ndjson_is_documented),
	    WITH_WINDOW(folded_stacks),
	    IN_FOLDER(output_never_overwrites),
	    IN_FOLDER(output_loses_no_race),
	    IN_FOLDER(output_follows_no_link),
	    IN_FOLDER(output_aborted_leaves_nothing),
	    cmocka_unit_test(output_says_what_is_wrong),
	    cmocka_unit_test(formats),
	};

	return cmocka_run_group_tests_name("export", tests, NULL, NULL);
}
