/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What becomes of the rows of a trace. That broken ones do no harm: test_import_odd.c. */
#include "import_rig.h"

#include "analysis/import/api.h"
#include "analysis/import/text.h"

/* ---- numbers and words ---- */

static s64 us(const char *text)
{
	s64 ns = -77;

	return hb_text__decimal((struct hb_piece){text, strlen(text)}, 3, &ns) ? ns : -77;
}

static void microseconds_are_exact(void **state)
{
	assert_int_equal(us("0"), 0);
	assert_int_equal(us("1419247332972.313"), 1419247332972313);
	assert_int_equal(us("1694039968955744"), 1694039968955744000); /* a double has no room for that */
	assert_int_equal(us("1694039968955744.001"), 1694039968955744001);
	assert_int_equal(us("5.97"), 5970);
	assert_int_equal(us(".5"), 500);
	assert_int_equal(us("-0.001"), -1);
	assert_int_equal(us("0.0005"), 1); /* half up */
	assert_int_equal(us("0.00049999"), 0);
	assert_int_equal(us("2.9999999999999999999999"), 3000);
	assert_int_equal(us("1.5e3"), 1500000);
	assert_int_equal(us("15E-1"), 1500);
	assert_int_equal(us("1e-30"), 0);
	assert_int_equal(us("9223372036854775.807"), INT64_MAX);
	assert_int_equal(us("9223372036854775.808"), -77);
	assert_int_equal(us("1e30"), -77);
	assert_int_equal(us("1e999999"), -77);
	assert_int_equal(us(""), -77);
	assert_int_equal(us("."), -77);
	assert_int_equal(us("-"), -77);
	assert_int_equal(us("12x"), -77);
	assert_int_equal(us("0x10"), -77);
	assert_int_equal(us("NaN"), -77);
}

static void python_names(void **state)
{
	static const struct {
		const char *name, *file, *func;
		u32 line;
	} t[] = {
	    {"torch/nn/module.py(1740): _call_impl", "torch/nn/module.py", "_call_impl", 1740},
	    {"/a(b)/c.py(7): f.<locals>.g", "/a(b)/c.py", "f.<locals>.g", 7},
	    {"<string>(2): __init__", "<string>", "__init__", 2},
	    {"/x(1)/y.py(3): f", "/x(1)/y.py", "f", 3},
	    {"nn.Module: Linear_3", NULL, NULL, 0},
	    {"<built-in method f of type object at 0x7f>", NULL, NULL, 0},
	    {"f(1): ", NULL, NULL, 0},
	    {"f(99999999999): g", NULL, NULL, 0},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		struct hb_piece file, func, whole = {t[i].name, strlen(t[i].name)};
		u32 line;

		assert_int_equal(hb_text__python(whole, &file, &line, &func), !!t[i].file);
		if (!t[i].file)
			continue;
		assert_true(hb_piece__is(file, t[i].file));
		assert_true(hb_piece__is(func, t[i].func));
		assert_int_equal(line, t[i].line);
	}
}

static void copies(void **state)
{
	static const struct {
		const char *name;
		u8 copy, from, to;
	} t[] = {
	    {"Memcpy HtoD (Pageable -> Device)", HB_COPY_HTOD, HB_MEMKIND_PAGEABLE, HB_MEMKIND_DEVICE},
	    {"Memcpy DtoH (Device -> Pinned)", HB_COPY_DTOH, HB_MEMKIND_DEVICE, HB_MEMKIND_PINNED},
	    {"Memcpy PtoP (Device -> Device)", HB_COPY_PTOP, HB_MEMKIND_DEVICE, HB_MEMKIND_DEVICE},
	    {"Memcpy DtoH (Device -> Host)", HB_COPY_DTOH, HB_MEMKIND_DEVICE, HB_MEMKIND_UNKNOWN},
	    {"CopyHostToDevice", HB_COPY_HTOD, 0, 0},
	    {"Memset (Device)", 0, HB_MEMKIND_DEVICE, 0},
	    {"Memset (Unknown)", 0, 0, 0},
	    {"Memcpy HtoD (Pageable", HB_COPY_HTOD, 0, 0},
	    {"", 0, 0, 0},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		u8 copy, from, to;

		hb_text__copy((struct hb_piece){t[i].name, strlen(t[i].name)}, &copy, &from, &to);
		assert_int_equal(copy, t[i].copy);
		assert_int_equal(from, t[i].from);
		assert_int_equal(to, t[i].to);
	}
}

static void calls_by_name(void **state)
{
	static const struct {
		const char *symbol, *base, *api;
		u8 cls, layer;
	} t[] = {
	    {"cudaLaunchKernel", "cudaLaunchKernel", "cuda-runtime", HB_CLASS_LAUNCH, HB_LAYER_RUNTIME},
	    {"cudaLaunchKernelExC_v11060", "cudaLaunchKernelExC", "cuda-runtime", HB_CLASS_LAUNCH,
	     HB_LAYER_RUNTIME},
	    {"cudaMemcpyAsync_ptsz", "cudaMemcpyAsync", "cuda-runtime", HB_CLASS_COPY, HB_LAYER_RUNTIME},
	    {"cuMemcpyBatchAsync_v2", "cuMemcpyBatchAsync_v2", "cuda-driver", HB_CLASS_COPY, HB_LAYER_DRIVER},
	    {"cuGraphLaunch_ptsz_v2", "cuGraphLaunch", "cuda-driver", HB_CLASS_GRAPH, HB_LAYER_DRIVER},
	    {"hipGraphLaunch", "hipGraphLaunch", "hip", HB_CLASS_GRAPH, HB_LAYER_RUNTIME},
	    {"cudaGetDeviceProperties_v2_v12000", "cudaGetDeviceProperties", "cuda-runtime", 0,
	     HB_LAYER_DRIVER},
	    {"cuFuncGetAttribute", "cuFuncGetAttribute", "cuda-driver", 0, HB_LAYER_DRIVER},
	    {"currentTime", "currentTime", "driver", 0, HB_LAYER_DRIVER},
	    {"_v2", "_v2", "driver", 0, HB_LAYER_DRIVER},
	};

	for (size_t i = 0; i < sizeof(t) / sizeof(*t); i++) {
		char base[64];
		struct hb_api a;

		hb_api__find(t[i].symbol, HB_LAYER_DRIVER, base, sizeof(base), &a);
		assert_string_equal(base, t[i].base);
		assert_string_equal(a.api, t[i].api);
		assert_int_equal(a.cls, t[i].cls);
		assert_int_equal(a.layer, t[i].layer);
	}
}

/* ---- records ---- */

static void a_call_and_its_kernel(void **state)
{
	struct hb_window *w = rig_open(
	    "{\"schemaVersion\":1,\"baseTimeNanoseconds\":1700000000000000000,\"deviceProperties\":["
	    "{\"id\":0,\"name\":\"H100\","
	    "\"numSms\":132,\"totalGlobalMem\":85018279936},{\"id\":1,\"name\":\"H100\"}],"
	    "\"distributedInfo\":{\"rank\":3,"
	    "\"world_size\":8},\"traceEvents\":[" ROW(
		"kernel", "gemm", "0", "7", "1010.5", "20.25",
		"\"device\":0,\"context\":1,\"stream\":7,\"correlation\":99,\"registers per "
		"thread\":16,\"shared memory\":512,"
		"\"grid\":[3,2,1],\"block\":[128,1,1],\"graph id\":5,\"graph node "
		"id\":6,\"queued\":0") "," ROW("cuda_runtime", "cudaLaunchKernel", "42", "43", "1000.001",
					       "9.999", "\"correlation\":99,\"cbid\":211") "]}",
	    0);
	struct hb_record r;
	const struct hb_rec_accel *a = rig_get(w, HB_TYPE_accel, 0, &r);
	const struct hb_probe_row *row = hb_window__probe(w, a->probe);
	const struct hb_rec_device *d;

	assert_int_equal(r.begin, 1000001);
	assert_int_equal(r.ts, 1010000);
	assert_int_equal(a->dur, 9999);
	assert_int_equal(a->correlation, 99);
	assert_int_equal(a->flags, HB_AFLAG_TIMED | HB_AFLAG_NO_STREAM);
	assert_int_equal(r.task->pid, 42);
	assert_int_equal(r.task->tid, 43);
	assert_true(r.task->target);
	assert_string_equal(hb_window__string(w, row->name), "cudaLaunchKernel");
	assert_string_equal(hb_window__string(w, row->api), "cuda-runtime");
	assert_int_equal(row->cls, HB_CLASS_LAUNCH);
	d = rig_get(w, HB_TYPE_device, 0, &r);
	assert_int_equal(r.begin, 1010500);
	assert_int_equal(r.ts, 1030750);
	assert_int_equal(r.task->pid, 42); /* who started it */
	assert_string_equal(hb_window__string(w, d->name), "gemm");
	assert_int_equal(d->correlation, 99);
	assert_int_equal(d->stream, 7);
	assert_int_equal(d->context, 1);
	assert_int_equal(d->gx * 100 + d->gy * 10 + d->gz, 321);
	assert_int_equal(d->bx, 128);
	assert_int_equal(d->regs, 16);
	assert_int_equal(d->shm, 512);
	assert_int_equal(d->graph, 5);
	assert_int_equal(d->node, 6);
	assert_int_equal(hb_window__info(w)->start_ts, 1000001);
	assert_int_equal(hb_window__info(w)->end_ts, 1030750);
	assert_false(hb_window__info(w)->simulated);
	assert_string_equal(hb_window__meta(w, "realtime_offset_ns"), "1700000000000000000");
	assert_string_equal(hb_window__meta(w, "device_0_name"), "H100");
	assert_string_equal(hb_window__meta(w, "device_0_sms"), "132");
	assert_string_equal(hb_window__meta(w, "rank"), "3");
	assert_string_equal(hb_window__meta(w, "world_size"), "8");
	assert_string_equal(hb_window__meta(w, "imported_from"), "PyTorch profiler");
	hb_window__close(w);
}

static void copies_memsets_and_syncs(void **state)
{
	struct hb_window *w = rig_open(
	    TRACE(ROW("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", "1", "7", "1", "1", "\"device\":1,\"stream\":7,\"correlation\":5,\"bytes\":64") "," ROW(
		"gpu_memset", "Memset (Device)", "0", "7", "3", "1",
		"\"device\":0,\"stream\":8,\"bytes\":128") "," ROW("cuda_sync", "Event Sync", "0", "-1", "5",
								   "1",
								   "\"cuda_sync_kind\":\"Event "
								   "Sync\",\"stream\":-1,\"wait_on_"
								   "stream\":7,"
								   "\"wait_on_cuda_event_record_corr_"
								   "id\":4,\"device\":0") "," ROW("cuda_"
												  "sync",
												  "Contex"
												  "t "
												  "Sync",
												  "0", "-1",
												  "7", "1",
												  "\"stre"
												  "am\":"
												  "429496"
												  "7295,"
												  "\"devi"
												  "ce\":"
												  "0") "," ROW("overhead",
													       "Activity Buffer Request",
													       "-1",
													       "0",
													       "9",
													       "1",
													       "")),
	    0);
	struct hb_record r;
	const struct hb_rec_device *d = rig_get(w, HB_TYPE_device, 0, &r);

	assert_int_equal(d->kind, HB_DEVKIND_MEMCPY);
	assert_int_equal(d->copy, HB_COPY_DTOH);
	assert_int_equal(d->srcmem, HB_MEMKIND_DEVICE);
	assert_int_equal(d->dstmem, HB_MEMKIND_PINNED);
	assert_int_equal(d->bytes, 64);
	assert_int_equal(d->device, 1);
	d = rig_get(w, HB_TYPE_device, 1, &r);
	assert_int_equal(d->kind, HB_DEVKIND_MEMSET);
	assert_int_equal(d->srcmem, HB_MEMKIND_DEVICE);
	assert_int_equal(d->stream, 8);
	d = rig_get(w, HB_TYPE_device, 2, &r);
	assert_int_equal(d->kind, HB_DEVKIND_SYNC);
	assert_int_equal(d->sync, HB_SYNCKIND_EVENT);
	assert_int_equal(d->waits, 4);
	assert_int_equal(d->wstream, 7);
	assert_int_equal(d->stream, UINT32_MAX);
	d = rig_get(w, HB_TYPE_device, 3, &r);
	assert_int_equal(d->sync, HB_SYNCKIND_CONTEXT);
	assert_int_equal(d->stream, UINT32_MAX);
	assert_int_equal(d->wstream, UINT32_MAX);
	d = rig_get(w, HB_TYPE_device, 4, &r);
	assert_int_equal(d->kind, HB_DEVKIND_OVERHEAD);
	assert_int_equal(d->device, UINT32_MAX);
	assert_int_equal(rig_stats.device[HB_DEVKIND_SYNC], 2);
	hb_window__close(w);
}

static void operators_annotations_and_python(void **state)
{
	struct hb_window *w = rig_open(
	    TRACE(ROW(
		"cpu_op", "aten::mm", "1", "1", "2", "6",
		"\"External id\":17,\"Sequence number\":0,\"Input Dims\":[[16,5],[],[[1,2],3]],"
		"\"Input type\":[\"c10::BFloat16\",\"\",\"a\\\"b\"],\"Concrete "
		"Inputs\":[\"\",\"[9]\"]") "," ROW("user_annotation", "ProfilerStep#3", "1", "1", "1", "9",
						   "") "," ROW("gpu_user_annotation", "ProfilerStep#3", "0",
							       "7", "1.5", "9",
							       "") "," ROW("python_function", "m/x.py(8): f",
									   "1", "1", "1", "8",
									   "\"Python id\":1") "," ROW("of my "
												      "own",
												      "thing",
												      "1",
												      "2",
												      "3",
												      "1",
												      "")),
	    0);
	struct hb_record r;
	const struct hb_rec_op *o = rig_get(w, HB_TYPE_op, 1, &r);
	const struct hb_rec_py_call *p;

	assert_string_equal(hb_window__string(w, o->name), "aten::mm");
	assert_int_equal(o->kind, HB_OPKIND_CPU_OP);
	assert_int_equal(o->external, 17);
	assert_int_equal(o->seq, 1); /* 0 is a number too */
	assert_string_equal(hb_window__string(w, o->shapes), "[[16,5],[],[[1,2],3]]");
	assert_string_equal(hb_window__string(w, o->types), "[\"c10::BFloat16\",\"\",\"a'b\"]");
	o = rig_get(w, HB_TYPE_op, 0, &r);
	assert_int_equal(o->kind, HB_OPKIND_OTHER);
	o = rig_get(w, HB_TYPE_op, 2, &r);
	assert_int_equal(o->kind, HB_OPKIND_ANNOTATION);
	assert_int_equal(o->seq, 0);
	assert_int_equal(o->shapes, 0);
	o = rig_get(w, HB_TYPE_op, 3, &r);
	assert_int_equal(o->kind, HB_OPKIND_DEVICE_ANNOTATION);
	assert_int_equal(o->stream, 7);
	p = rig_get(w, HB_TYPE_py_call, 0, &r);
	assert_int_equal(p->flags, HB_PYCALL_TIMED);
	assert_string_equal(hb_window__string(w, hb_window__loc(w, p->func)->func), "f");
	assert_string_equal(hb_window__string(w, hb_window__loc(w, p->func)->file), "m/x.py");
	assert_int_equal(hb_window__loc(w, p->func)->line, 8);
	assert_int_equal(hb_window__loc(w, p->func)->lang, HB_LANG_PYTHON);
	hb_window__close(w);
}

static void has_stack(struct hb_window *w, unsigned call, const char *want)
{
	struct hb_record r;
	const struct hb_rec_accel *a = rig_get(w, HB_TYPE_accel, call, &r);
	struct hb_stack s = hb_window__stack(w, r.task->pid, a->stack);
	char text[256] = "";

	for (u32 i = 0; i < s.n; i++) {
		strcat(text, i ? " " : "");
		strcat(text, hb_window__string(w, hb_window__loc(w, s.locs[i])->func));
	}
	assert_string_equal(text, want);
}

/* Whatever the order in the file, a call has the functions and operators around it, those of its thread
 * alone, and none that ended before; equal begins: the longer is the outer one. */
static void calls_have_stacks(void **state)
{
	struct hb_window *w = rig_open(
	    TRACE(ROW("cuda_runtime", "cudaMalloc", "1", "1", "15", "1", "") "," ROW(
		"cuda_runtime", "cudaMalloc", "1", "1", "25", "1",
		"") "," ROW("cuda_runtime", "cudaMalloc", "1", "1", "60", "1",
			    "") "," ROW("cuda_runtime", "cudaMalloc", "1", "2", "65", "1",
					"") "," ROW("cpu_op", "aten::b", "1", "1", "10", "10",
						    "") "," ROW("cpu_op", "aten::a", "1", "1", "10", "30",
								"") "," ROW("python_function", "x.py(1): f",
									    "1", "1", "5", "50",
									    "") "," ROW("user_annotation",
											"note", "1", "1", "4",
											"90",
											"") "," ROW("cpu_op",
												    "aten::"
												    "other",
												    "1", "3",
												    "0", "90",
												    "")),
	    0);

	has_stack(w, 0, "f aten::a aten::b");
	has_stack(w, 1, "f aten::a");
	has_stack(w, 2, "");
	has_stack(w, 3, "");
	hb_window__close(w);
}

static void a_driver_call_inside_of_a_runtime_call(void **state)
{
	struct hb_window *w = rig_open(
	    TRACE(ROW("cuda_runtime", "cudaMalloc", "1", "1", "10", "20", "") "," ROW(
		"cuda_driver", "cuMemAlloc", "1", "1", "12", "2",
		"") "," ROW("cuda_driver", "cuMemAlloc", "1", "1", "15", "2",
			    "") "," ROW("cuda_driver", "cuMemAlloc", "1", "2", "16", "2",
					"") "," ROW("cuda_driver", "cuMemAlloc", "1", "1", "40", "2", "")),
	    0);
	struct hb_record r;
	unsigned inner = 0;

	for (unsigned i = 0; i < 5; i++) {
		const struct hb_rec_accel *a = rig_get(w, HB_TYPE_accel, i, &r);

		inner += !!(a->flags & HB_AFLAG_INNER);
		if (a->dur == 20000)
			assert_int_equal(a->nested, 2);
		else
			assert_int_equal(a->nested, 0);
	}
	assert_int_equal(inner, 2);
	hb_window__close(w);
}

/* Two ranks in one file: what a device did belongs to who launched it; what has no launch, to whose work it
 * did. */
static void several_processes(void **state)
{
	struct hb_window *w = rig_open(
	    TRACE(ROW("cuda_runtime", "cudaLaunchKernel", "10", "10", "1", "1", "\"correlation\":1") "," ROW(
		"cuda_runtime", "cudaLaunchKernel", "20", "20", "2", "1",
		"\"correlation\":2") "," ROW("cpu_op", "a", "10", "10", "0", "9",
					     "") "," ROW("kernel", "k1", "0", "7", "5", "1",
							 "\"device\":0,\"stream\":7,\"correlation\":"
							 "1") "," ROW("kernel", "k2", "1", "7", "6", "1",
								      "\"device\":1,"
								      "\"stream\":7,"
								      "\"correlation\":"
								      "2") "," ROW("kern"
										   "el",
										   "k3", "1", "7", "8", "1",
										   "\"de"
										   "vice"
										   "\":"
										   "1,"
										   "\"st"
										   "ream"
										   "\":"
										   "7,"
										   "\"co"
										   "rrel"
										   "atio"
										   "n\":"
										   "77") "," ROW("ke"
												 "rn"
												 "e"
												 "l",
												 "k"
												 "4",
												 "2", "7",
												 "9", "1",
												 "\""
												 "de"
												 "vi"
												 "ce"
												 "\""
												 ":2"
												 ","
												 "\""
												 "st"
												 "re"
												 "am"
												 "\""
												 ":"
												 "7")),
	    0);
	static const u32 pids[] = {10, 20, 20, 10};
	struct hb_record r;
	u32 n;

	for (unsigned i = 0; i < 4; i++) {
		rig_get(w, HB_TYPE_device, i, &r);
		assert_int_equal(r.task->pid, pids[i]);
	}
	hb_window__procs(w, &n);
	assert_int_equal(n, 2);
	hb_window__close(w);
}

static void names_of_processes_and_threads(void **state)
{
	struct hb_window *w = rig_open(
	    TRACE("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":5,\"tid\":0,\"args\":{\"name\":"
		  "\"python3\"}},"
		  "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":5,\"tid\":6,\"args\":{\"name\":\"thread 6 "
		  "(worker)\"}},"
		  "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":5,\"tid\":7,\"args\":{\"name\":\"plain\"}},"
		  "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":7,\"args\":{\"name\":\"stream "
		  "7\"}}," ROW("cpu_op", "a", "5", "5", "1", "1", "") "," ROW(
		      "cpu_op", "a", "5", "6", "1", "1", "") "," ROW("cpu_op", "a", "5", "7", "1", "1", "")),
	    0);
	u32 n;
	const struct hb_proc *p = hb_window__procs(w, &n);

	assert_int_equal(n, 1);
	assert_string_equal(hb_window__string(w, p->cmdline), "python3");
	assert_string_equal(hb_window__string(w, hb_window__task_by_tid(w, 5)->comm), "python3");
	assert_string_equal(hb_window__string(w, hb_window__task_by_tid(w, 6)->comm), "worker");
	assert_string_equal(hb_window__string(w, hb_window__task_by_tid(w, 7)->comm), "plain");
	assert_int_equal(rig_count(w, HB_TYPE_process), 1);
	assert_int_equal(rig_count(w, HB_TYPE_thread), 3);
	hb_window__close(w);
}

/* ---- sorting ---- */

static char *many_rows(unsigned n)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	fprintf(f, "{\"traceEvents\":[");
	for (unsigned i = 0; i < n; i++) {
		unsigned at = i * 7919 % n; /* not in order */

		fprintf(
		    f, ROW("cuda_runtime", "cudaMalloc", "1", "%u", "%u.5", "%u", "\"correlation\":%u") ",\n",
		    1 + at % 3, at * 2, at % 17, at);
		fprintf(f, ROW("cpu_op", "op%u", "1", "%u", "%u", "%u", "\"External id\":%u") "%s\n", at % 5,
			1 + at % 3, at, 3 * n, at, i + 1 < n ? "," : "");
	}
	fprintf(f, "]}");
	fclose(f);
	return text;
}

/* Memory so small that it sorts on disk, and that most of what goes on at one time goes there too: the same
 * window. */
static void on_disk_as_in_memory(void **state)
{
	char *json = many_rows(600), *a, *b;
	struct hb_window *w = rig_open(json, 0);

	assert_false(rig_stats.tmp);
	assert_int_equal(rig_count(w, HB_TYPE_op), 600);
	assert_int_equal(rig_count(w, HB_TYPE_accel), 600);
	a = rig_text(w);
	hb_window__close(w);
	w = rig_open(json, 8192);
	assert_true(rig_stats.tmp);
	b = rig_text(w);
	hb_window__close(w);
	assert_string_equal(a, b);
	free(a);
	free(b);
	free(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(microseconds_are_exact),
	    cmocka_unit_test(python_names),
	    cmocka_unit_test(copies),
	    cmocka_unit_test(calls_by_name),
	    cmocka_unit_test(a_call_and_its_kernel),
	    cmocka_unit_test(copies_memsets_and_syncs),
	    cmocka_unit_test(operators_annotations_and_python),
	    cmocka_unit_test(calls_have_stacks),
	    cmocka_unit_test(a_driver_call_inside_of_a_runtime_call),
	    cmocka_unit_test(several_processes),
	    cmocka_unit_test(names_of_processes_and_threads),
	    cmocka_unit_test(on_disk_as_in_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
