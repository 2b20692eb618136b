/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The language of probe tables, what rows cover, and the tables compiled in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "capture/probes/probes.h"

static struct hb_tables *tables_of(const char *text)
{
	struct hb_tables *t = hb_tables__new();
	struct hb_error e = {0};

	assert_non_null(t);
	if (hb_tables__add_text(t, "t.tbl", text, strlen(text), &e) != 0)
		fail_msg("%s", e.text);
	return t;
}

static struct hb_tables *embedded(void)
{
	struct hb_tables *t = hb_tables__new();
	struct hb_error e = {0};

	assert_non_null(t);
	if (hb_tables__add_embedded(t, &e) != 0)
		fail_msg("%s", e.text);
	return t;
}

static const struct hb_arg *args_of(const struct hb_tables *t, const char *lib, const char *symbol)
{
	const struct hb_row *r = hb_tables__match(t, lib, symbol);

	if (!r)
		fail_msg("no row for %s in %s", symbol, lib);
	return r->args;
}

static void assert_arg(const struct hb_arg *a, int src, int n, int shift, int width, int off)
{
	assert_int_equal(a->src, src);
	assert_int_equal(a->n, n);
	assert_int_equal(a->shift, shift);
	assert_int_equal(a->width, width);
	assert_int_equal(a->off, off);
}

static void a_row_says_all_of_this(void **state)
{
	struct hb_tables *t =
	    tables_of("# comment\n\napi my-chip\r\n"
		      "libx.so*|liby.so \t f!f_not*!f_nor launch driver return off nothrow function=a1 "
		      "grid=a2,a2>>32,s1:u16 stream=*(a0+32) kind=-3 shm=*(a5-0x8):u8 bytes=s63 # why\n"
		      "libx.so g alloc runtime entry");
	const struct hb_row *r;
	char buf[256];
	u32 n;

	r = hb_tables__rows(t, &n);
	assert_int_equal(n, 2);
	assert_string_equal(r->api, "my-chip");
	assert_string_equal(r->library, "libx.so*|liby.so");
	assert_string_equal(r->symbol, "f");
	assert_string_equal(r->except, "f_not*!f_nor");
	assert_string_equal(r->table, "t.tbl");
	assert_int_equal(r->line, 4);
	assert_int_equal(r->cls, HB_CLASS_LAUNCH);
	assert_int_equal(r->layer, HB_LAYER_DRIVER);
	assert_int_equal(r->handle, HB_HANDLE_FUNCTION);
	assert_true(r->ret && r->nothrow && !r->on);
	assert_arg(&r->args[HB_SLOT_HANDLE], HB_SRC_REG, 1, 0, 8, 0);
	assert_arg(&r->args[HB_SLOT_GX], HB_SRC_REG, 2, 0, 4, 0);
	assert_arg(&r->args[HB_SLOT_GY], HB_SRC_REG, 2, 32, 4, 0);
	assert_arg(&r->args[HB_SLOT_GZ], HB_SRC_STACK, 1, 0, 2, 0);
	assert_arg(&r->args[HB_SLOT_STREAM], HB_SRC_DEREF, 0, 0, 8, 32);
	assert_arg(&r->args[HB_SLOT_KIND], HB_SRC_CONST, 0, 0, 4, -3);
	assert_arg(&r->args[HB_SLOT_SHM], HB_SRC_DEREF, 5, 0, 1, -8);
	assert_arg(&r->args[HB_SLOT_BYTES], HB_SRC_STACK, 63, 0, 8, 0);
	assert_int_equal(r->args[HB_SLOT_BX].src, HB_SRC_NONE);
	assert_string_equal(
	    hb_row__args(r, buf, sizeof(buf)),
	    "stream=*(a0+32) function=a1 bytes=s63 grid=a2,a2>>32,s1:u16 shm=*(a5-8):u8 kind=-3");
	assert_string_equal(r[1].symbol, "g");
	assert_null(r[1].except);
	assert_true(r[1].on && !r[1].ret && !r[1].nothrow);
	assert_string_equal(hb_row__args(&r[1], buf, sizeof(buf)), "");
	hb_tables__free(t);
}

#define ROW "api x\nl.so f launch driver entry "

static void a_malformed_table_names_line_column_and_what_was_expected(void **state)
{
	static const struct {
		const char *text, *at, *words;
	} bad[] = {
	    {"l.so f launch driver entry", "1:1", "api NAME"},
	    {"\n\napi", "3:4", "the name of an API"},
	    {"api X", "1:5", "small letters"},
	    {"api x y", "1:7", "end of the line"},
	    {"api abcdefghijklmnopqrstuvwxyz-0123456789", "1:5", "less than 32 characters"},
	    {"api x\nl/so f launch driver entry", "2:2", "library"},
	    {"api x\nl.so", "2:5", "function"},
	    {"api x\nl.so f(int) launch driver entry", "2:7", "function's name"},
	    {"api x\nl.so !f launch driver entry", "2:6", "empty glob"},
	    {"api x\nl.so f! launch driver entry", "2:7", "empty glob"},
	    {"api x\nl.so *a*b*c*d*e*f*g launch driver entry", "2:18", "no more than 6 '*'"},
	    {"api x\nl.so f", "2:7",
	     "one of other, launch, graph, copy, sync, alloc, collective, capture, event"},
	    {"api x\nl.so f lunch driver entry", "2:8", "found 'lunch'"},
	    {"api x\nl.so f launch drive entry", "2:15", "one of driver, runtime, library"},
	    {"api x\nl.so f launch driver", "2:21", "entry or return"},
	    {"api x\nl.so f launch driver exit", "2:22", "entry or return, found 'exit'"},
	    {"api x\nl.so f launch driver return", "2:28", "nothrow"},
	    {ROW "gird=a1", "2:28", "grid="},
	    {ROW "stream", "2:28", "stream="},
	    {ROW "stream=", "2:35", "the end of the word"},
	    {ROW "stream=a6", "2:36", "0 to 5"},
	    {ROW "stream=s64", "2:36", "0 to 63"},
	    {ROW "stream=a-1", "2:36", "a source"},
	    {ROW "stream=a1,", "2:38", "no more than 1 source"},
	    {ROW "grid=a1,a2,a3,a4", "2:42", "no more than 3 sources"},
	    {ROW "grid=a1,,a3", "2:36", "a source"},
	    {ROW "stream=*(s1)", "2:37", "a source"},
	    {ROW "stream=*(a1+", "2:39", "a source"},
	    {ROW "stream=*(a1+8", "2:41", "a source"},
	    {ROW "stream=*(a1+99999999999)", "2:39", "a source"},
	    {ROW "stream=99999999999", "2:35", "a source"},
	    {ROW "stream=a1>>0", "2:39", "1 to 63"},
	    {ROW "stream=a1>>64", "2:39", "1 to 63"},
	    {ROW "stream=*(a1)>>8", "2:42", "after aN or sN"},
	    {ROW "stream=a1:u12", "2:37", ":u8, :u16"},
	    {ROW "stream=5:u8", "2:36", ":u8, :u16"},
	    {ROW "stream=a1x", "2:37", "','"},
	    {ROW "stream=a1 stream=a2", "2:38", "each argument once"},
	    {ROW "function=a1 graph=a2", "2:40", "each argument once"},
	    {ROW "count=a1", "2:28", "bytes="},
	    {"api x\nl.so f collective driver entry bytes=a1", "2:32", "count="},
	    {ROW "\nl.so g launch driver entry\nl.so f launch driver entry", "4:1", "line 2 has it"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct hb_tables *t = hb_tables__new();
		struct hb_error e = {0};
		char where[64];
		u32 n;

		assert_int_equal(hb_tables__add_text(t, "t.tbl", bad[i].text, strlen(bad[i].text), &e),
				 -EINVAL);
		snprintf(where, sizeof(where), "t.tbl:%s", bad[i].at);
		if (strncmp(e.text, where, strlen(where)) != 0 || !strstr(e.text, bad[i].words) ||
		    !strstr(e.text, "expected"))
			fail_msg("\"%s\" for \"%s\"", e.text, bad[i].text);
		assert_int_equal(e.exit, HB_EXIT_USAGE);
		hb_tables__rows(t, &n);
		assert_int_equal(n, 0);
		hb_tables__free(t);
	}
}

static void bounds_are_kept(void **state)
{
	struct hb_tables *t = hb_tables__new();
	struct hb_error e = {0};
	size_t size = 6, cap = 1 << 20;
	char *text = malloc(cap);
	u32 n;

	assert_non_null(text);
	/* A line that is too long, a word that is too long, a byte that is no text. */
	memset(text, 'a', cap);
	assert_int_equal(hb_tables__add_text(t, "long", text, cap, &e), -EINVAL);
	assert_non_null(strstr(e.text, "long:1:4097: "));
	hb_error__clear(&e);
	memcpy(text, "api x\n", 6);
	assert_int_equal(hb_tables__add_text(t, "word", text, 1000, &e), -EINVAL);
	assert_non_null(strstr(e.text, "more than 255 characters"));
	hb_error__clear(&e);
	assert_int_equal(hb_tables__add_text(t, "nul", "api\0x", 5, &e), -EINVAL);
	assert_non_null(strstr(e.text, "nul:1:4: "));
	hb_error__clear(&e);
	assert_int_equal(hb_tables__add_text(t, "esc\033[1m", "\033[31m", 5, &e), -EINVAL);
	assert_null(strchr(e.text, '\033'));
	hb_error__clear(&e);
	/* As many rows as a plan can have, and one more. */
	for (int i = 0; i < HB_MAX_PROBES; i++)
		size += (size_t)snprintf(text + size, cap - size, "l.so f%d launch driver entry\n", i);
	assert_int_equal(hb_tables__add_text(t, "full", text, size, &e), 0);
	assert_int_equal(hb_tables__add_text(t, "more", ROW, strlen(ROW), &e), -E2BIG);
	hb_error__clear(&e);
	size += (size_t)snprintf(text + size, cap - size, "l.so f%d launch driver entry\n", HB_MAX_PROBES);
	assert_int_equal(hb_tables__add_text(t, "full", text, size, &e), -EINVAL);
	hb_tables__rows(t, &n);
	assert_int_equal(n, HB_MAX_PROBES);
	hb_tables__free(t);
	free(text);
}

static void an_empty_table_adds_nothing(void **state)
{
	struct hb_tables *t = tables_of("# nothing\n");
	u32 n;

	assert_int_equal(hb_tables__add_text(t, "empty", "", 0, NULL), 0);
	hb_tables__rows(t, &n);
	assert_int_equal(n, 0);
	assert_null(hb_tables__match(t, "libcuda.so.1", "cuLaunchKernel"));
	hb_tables__free(t);
}

static bool covers(const char *library, const char *path)
{
	struct hb_row r = {.library = (char *)library};

	return hb_row__covers_library(&r, path);
}

static void libraries_are_known_under_the_names_they_are_deployed_with(void **state)
{
	assert_true(covers("libcudart.so*", "/usr/local/cuda/lib64/libcudart.so.13"));
	assert_true(covers("libcudart.so*", "/x/site-packages/nvidia/cuda_runtime/lib/libcudart.so.12"));
	assert_true(covers("libcudart.so*", "/x/torchvision.libs/libcudart.e8e8b82a.so.12"));
	assert_true(covers("libcudart.so*", "libcudart-d0da41ae.so.11.0"));
	assert_true(covers("libcudart.so*", "/opt/libcudart-9335f6a2.so.12.8.90"));
	assert_true(covers("libcuda.so*", "/usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01"));
	assert_true(covers("libnccl.so*|librccl.so*", "librccl.so.1"));
	assert_false(covers("libcuda.so*", "libcudart.so.12"));
	assert_false(covers("libcudart.so*", "libcudart-tools.so.1"));
	assert_false(covers("libcudart.so*", "libcudart-12.so.1")); /* no hash: a version */
	assert_false(covers("libcudart.so*", "xlibcudart.so.1"));
	assert_false(covers("libcublas.so*", "libcublasLt.so.12"));
	assert_false(covers("libcudart.so*", "e8e8b82a.so"));
	assert_false(covers("libcudart.so*", ""));
}

static bool names(const char *symbol, const char *except, const char *name)
{
	struct hb_row r = {.symbol = (char *)symbol, .except = (char *)except};

	return hb_row__covers_symbol(&r, name);
}

static void a_function_is_named_once_for_all_its_versions(void **state)
{
	assert_true(names("cuMemcpyHtoDAsync", NULL, "cuMemcpyHtoDAsync"));
	assert_true(names("cuMemcpyHtoDAsync", NULL, "cuMemcpyHtoDAsync_v2"));
	assert_true(names("cuMemcpyHtoDAsync", NULL, "cuMemcpyHtoDAsync_ptsz"));
	assert_true(names("cuMemcpyHtoDAsync", NULL, "cuMemcpyHtoDAsync_v2_ptsz"));
	assert_true(names("cudaMemcpy", NULL, "cudaMemcpy_ptds"));
	assert_true(names("hipMemcpyAsync", NULL, "hipMemcpyAsync_spt"));
	assert_false(names("cuMemcpyHtoDAsync", NULL, "cuMemcpyHtoDAsync_vx"));
	assert_false(names("cuMemcpyHtoDAsync", NULL, "cuMemcpyHtoDAsync2"));
	assert_false(names("cuLaunchKernel", NULL, "cuLaunchKernelEx"));
	assert_false(names("ncclAllReduce", NULL, "ncclAllReduce.cold.11"));
	assert_true(names("cuMemcpyBatchAsync_v2", NULL, "cuMemcpyBatchAsync_v2_ptsz"));
	assert_false(names("cuMemcpyBatchAsync_v2", NULL, "cuMemcpyBatchAsync"));
	assert_false(names("cuMemcpyBatchAsync_v2", NULL, "cuMemcpyBatchAsync_v3"));
	assert_true(names("aclnn*", "*GetWorkspaceSize!aclnnInit", "aclnnAdd"));
	assert_false(names("aclnn*", "*GetWorkspaceSize!aclnnInit", "aclnnAddGetWorkspaceSize"));
	assert_false(names("aclnn*", "*GetWorkspaceSize!aclnnInit", "aclnnInit"));
	assert_false(names("aclnn*", NULL, "aclnnAdd.part.0"));
	assert_false(names("f", NULL, ""));
}

static void the_name_shown_has_no_version(void **state)
{
	char b[32];

	assert_string_equal(hb_symbol__base("cuMemAlloc_v2", b, sizeof(b)), "cuMemAlloc");
	assert_string_equal(hb_symbol__base("cuMemcpyHtoD_v2_ptds", b, sizeof(b)), "cuMemcpyHtoD");
	assert_string_equal(hb_symbol__base("cuLaunchKernel_ptsz", b, sizeof(b)), "cuLaunchKernel");
	assert_string_equal(hb_symbol__base("clFinish", b, sizeof(b)), "clFinish");
	assert_string_equal(hb_symbol__base("_ptsz", b, sizeof(b)), "_ptsz");
	assert_string_equal(hb_symbol__base("_v2", b, sizeof(b)), "_v2");
	assert_string_equal(hb_symbol__base("", b, sizeof(b)), "");
	assert_string_equal(hb_symbol__base("abcdefgh", b, 4), "abc");
}

static void the_last_file_wins_and_inside_a_table_the_first_row(void **state)
{
	static const char mine[] = "api mine\nlibcuda.so* cuLaunchKernel launch driver entry off stream=a0\n";
	struct hb_tables *t = embedded();
	char path[] = "/tmp/hb-test-tables-XXXXXX";
	struct hb_error e = {0};
	const struct hb_row *r;
	int fd = mkstemp(path);

	assert_string_equal(hb_tables__match(t, "libcuda.so.1", "cuLaunchKernel")->api, "cuda-driver");
	assert_true(fd >= 0);
	assert_int_equal(write(fd, mine, strlen(mine)), strlen(mine));
	close(fd);
	assert_int_equal(hb_tables__add_file(t, path, &e), 0);
	r = hb_tables__match(t, "libcuda.so.1", "cuLaunchKernel_ptsz");
	assert_string_equal(r->api, "mine");
	assert_string_equal(r->table, path);
	assert_false(r->on);
	assert_string_equal(hb_tables__match(t, "libcuda.so.1", "cuGraphLaunch")->api, "cuda-driver");
	unlink(path);
	assert_int_equal(hb_tables__add_file(t, path, &e), -ENOENT);
	assert_int_equal(e.exit, HB_EXIT_USAGE);
	hb_error__clear(&e);
	assert_int_equal(hb_tables__add_file(t, "/tmp", &e), -EISDIR);
	hb_error__clear(&e);
	assert_int_equal(hb_tables__add_file(t, "/dev/zero", &e), -EFBIG);
	hb_tables__free(t);
}

/* ---- the tables compiled in ---- */

static void every_api_has_its_rows(void **state)
{
	static const struct {
		const char *lib, *symbol, *api;
		int cls;
		bool ret;
	} want[] = {
	    {"libcuda.so.1", "cuLaunchKernel", "cuda-driver", HB_CLASS_LAUNCH, false},
	    {"libcuda.so.1", "cuLaunchKernelEx_ptsz", "cuda-driver", HB_CLASS_LAUNCH, false},
	    {"libcuda.so.1", "cuGraphLaunch", "cuda-driver", HB_CLASS_GRAPH, false},
	    {"libcuda.so.1", "cuGraphInstantiateWithParams", "cuda-driver", HB_CLASS_GRAPH, true},
	    {"libcuda.so.1", "cuMemcpyDtoHAsync_v2", "cuda-driver", HB_CLASS_COPY, true},
	    {"libcuda.so.1", "cuCtxSynchronize_v2", "cuda-driver", HB_CLASS_SYNC, true},
	    {"libcuda.so.1", "cuMemAlloc_v2", "cuda-driver", HB_CLASS_ALLOC, true},
	    {"libcuda.so.1", "cuStreamBeginCapture_v2_ptsz", "cuda-driver", HB_CLASS_CAPTURE, true},
	    {"libcudart.so.12", "cudaLaunchKernel", "cuda-runtime", HB_CLASS_LAUNCH, false},
	    {"libcudart.so.12", "cudaMemcpyAsync_ptsz", "cuda-runtime", HB_CLASS_COPY, true},
	    {"libcudart.so.12", "cudaStreamSynchronize", "cuda-runtime", HB_CLASS_SYNC, true},
	    {"libcudart.so.12", "cudaEventRecord", "cuda-runtime", HB_CLASS_EVENT, false},
	    {"libcudart.so.12", "cudaMalloc", "cuda-runtime", HB_CLASS_ALLOC, true},
	    {"libnccl.so.2", "ncclAllReduce", "nccl", HB_CLASS_COLLECTIVE, true},
	    {"librccl.so.1", "ncclAllReduce", "nccl", HB_CLASS_COLLECTIVE, true},
	    {"libamdhip64.so.6", "hipModuleLaunchKernel", "hip", HB_CLASS_LAUNCH, false},
	    {"libOpenCL.so.1", "clEnqueueNDRangeKernel", "opencl", HB_CLASS_LAUNCH, false},
	    {"libOpenCL.so.1", "clFinish", "opencl", HB_CLASS_SYNC, true},
	    {"libze_loader.so.1", "zeCommandListAppendLaunchKernel", "level-zero", HB_CLASS_LAUNCH, false},
	    {"libopapi.so", "aclnnMatmul", "ascend", HB_CLASS_LAUNCH, false},
	    {"libhccl.so", "HcclAllReduce", "ascend", HB_CLASS_COLLECTIVE, true},
	};
	static const char *const off[] = {"cuStreamQuery", "cuEventQuery", "cuEventRecord",
					  "cuGetProcAddress_v2"};
	struct hb_tables *t = embedded();

	for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
		const struct hb_row *r = hb_tables__match(t, want[i].lib, want[i].symbol);

		if (!r)
			fail_msg("no row for %s", want[i].symbol);
		assert_string_equal(r->api, want[i].api);
		assert_int_equal(r->cls, want[i].cls);
		assert_int_equal(r->ret, want[i].ret);
		assert_true(r->on);
	}
	for (size_t i = 0; i < sizeof(off) / sizeof(*off); i++)
		assert_false(hb_tables__match(t, "libcuda.so.1", off[i])->on);
	assert_false(hb_tables__match(t, "libcublasLt.so.12", "cublasLtMatmul")->on);
	assert_null(hb_tables__match(t, "libcudart.so.12", "cudaGetDevice"));
	assert_null(hb_tables__match(t, "libcudart.so.12", "cudaGetLastError"));
	assert_null(hb_tables__match(t, "libopapi.so", "aclnnMatmulGetWorkspaceSize"));
	hb_tables__free(t);
}

static void positions_are_those_of_the_headers(void **state)
{
	struct hb_tables *t = embedded();
	const struct hb_arg *a = args_of(t, "libcuda.so.1", "cuLaunchKernel");

	assert_arg(&a[HB_SLOT_HANDLE], HB_SRC_REG, 0, 0, 8, 0);
	assert_arg(&a[HB_SLOT_GX], HB_SRC_REG, 1, 0, 4, 0);
	assert_arg(&a[HB_SLOT_BZ], HB_SRC_STACK, 0, 0, 4, 0);
	assert_arg(&a[HB_SLOT_SHM], HB_SRC_STACK, 1, 0, 4, 0);
	assert_arg(&a[HB_SLOT_STREAM], HB_SRC_STACK, 2, 0, 8, 0);
	a = args_of(t, "libcuda.so.1", "cuLaunchKernelEx");
	assert_arg(&a[HB_SLOT_BX], HB_SRC_DEREF, 0, 0, 4, 12);
	assert_arg(&a[HB_SLOT_STREAM], HB_SRC_DEREF, 0, 0, 8, 32);
	a = args_of(t, "libcudart.so.13", "cudaLaunchKernel"); /* dim3: x and y share a register */
	assert_arg(&a[HB_SLOT_GX], HB_SRC_REG, 1, 0, 4, 0);
	assert_arg(&a[HB_SLOT_GY], HB_SRC_REG, 1, 32, 4, 0);
	assert_arg(&a[HB_SLOT_GZ], HB_SRC_REG, 2, 0, 4, 0);
	assert_arg(&a[HB_SLOT_BY], HB_SRC_REG, 3, 32, 4, 0);
	assert_arg(&a[HB_SLOT_SHM], HB_SRC_STACK, 0, 0, 4, 0);
	assert_arg(&a[HB_SLOT_STREAM], HB_SRC_STACK, 1, 0, 8, 0);
	a = args_of(t, "libcuda.so.1", "cuMemcpyHtoDAsync_v2");
	assert_arg(&a[HB_SLOT_KIND], HB_SRC_CONST, 0, 0, 4, 1);
	a = args_of(t, "libcuda.so.1", "cuMemcpyBatchAsync_v2_ptsz");
	assert_arg(&a[HB_SLOT_STREAM], HB_SRC_STACK, 1, 0, 8, 0);
	a = args_of(t, "libcuda.so.1", "cuMemcpyBatchAsync");
	assert_arg(&a[HB_SLOT_STREAM], HB_SRC_STACK, 2, 0, 8, 0);
	a = args_of(t, "libnccl.so.2", "ncclAllGather");
	assert_arg(&a[HB_SLOT_STREAM], HB_SRC_REG, 5, 0, 8, 0);
	hb_tables__free(t);
}

/* Printed and read again, a row is the same row. */
static void what_is_printed_can_be_read(void **state)
{
	struct hb_tables *t = embedded(), *again;
	char text[2048], args[512], flags[64];
	const struct hb_row *rows, *r;
	u32 n, m;

	rows = hb_tables__rows(t, &n);
	assert_true(n > 200);
	for (u32 i = 0; i < n; i++) {
		snprintf(flags, sizeof(flags), "%s%s%s", rows[i].ret ? "return" : "entry",
			 rows[i].on ? "" : " off", rows[i].nothrow ? " nothrow" : "");
		snprintf(text, sizeof(text), "api %s\n%s %s%s%s %s %s %s %s", rows[i].api, rows[i].library,
			 rows[i].symbol, rows[i].except ? "!" : "", rows[i].except ? rows[i].except : "",
			 hb_word(HB_WORDS_CLASS, rows[i].cls), hb_word(HB_WORDS_LAYER, rows[i].layer), flags,
			 hb_row__args(&rows[i], args, sizeof(args)));
		again = tables_of(text);
		r = hb_tables__rows(again, &m);
		assert_int_equal(m, 1);
		assert_memory_equal(r->args, rows[i].args, sizeof(r->args));
		assert_int_equal(r->handle, rows[i].handle);
		assert_int_equal(r->on, rows[i].on);
		assert_int_equal(r->ret, rows[i].ret);
		hb_tables__free(again);
	}
	hb_tables__free(t);
}

/* ---- against libraries of this machine ---- */

static int count(const struct hb_sym *s, void *arg)
{
	++*(unsigned *)arg;
	return s->state == HB_SYM_OK ? 0 : -1;
}

/* Every row of the table finds a function that can be probed, in a library that is here. */
static void all_found(const char *path)
{
	struct hb_elf *f = hb_elf__open(path, NULL);
	struct hb_tables *t = embedded();
	const struct hb_row *rows;
	unsigned checked = 0;
	u32 n;

	if (!f) {
		hb_tables__free(t);
		skip();
	}
	rows = hb_tables__rows(t, &n);
	for (u32 i = 0; i < n; i++) {
		unsigned found = 0;

		if (!hb_row__covers_library(&rows[i], path))
			continue;
		assert_int_equal(hb_row__each(&rows[i], f, count, &found), 0);
		if (!found)
			fail_msg("%s: no %s", path, rows[i].symbol);
		checked++;
	}
	assert_true(checked > 0);
	hb_tables__free(t);
	hb_elf__close(f);
}

static void the_runtime_has_what_its_table_names(void **state)
{
	all_found("/usr/local/cuda/lib64/libcudart.so.13");
}

static void nccl_has_what_its_table_names(void **state)
{
	all_found("/usr/local/cuda/lib64/libnccl.so.2");
}

static void opencl_has_what_its_table_names(void **state)
{
	all_found("/usr/lib/x86_64-linux-gnu/libOpenCL.so.1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_row_says_all_of_this),
	    cmocka_unit_test(a_malformed_table_names_line_column_and_what_was_expected),
	    cmocka_unit_test(bounds_are_kept),
	    cmocka_unit_test(an_empty_table_adds_nothing),
	    cmocka_unit_test(libraries_are_known_under_the_names_they_are_deployed_with),
	    cmocka_unit_test(a_function_is_named_once_for_all_its_versions),
	    cmocka_unit_test(the_name_shown_has_no_version),
	    cmocka_unit_test(the_last_file_wins_and_inside_a_table_the_first_row),
	    cmocka_unit_test(every_api_has_its_rows),
	    cmocka_unit_test(positions_are_those_of_the_headers),
	    cmocka_unit_test(what_is_printed_can_be_read),
	    cmocka_unit_test(the_runtime_has_what_its_table_names),
	    cmocka_unit_test(nccl_has_what_its_table_names),
	    cmocka_unit_test(opencl_has_what_its_table_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
