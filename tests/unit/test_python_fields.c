// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Objects of real CPythons, read from outside: what tests/workloads/python/objects.py says of each is what is
 * found in it. And the grammar of fields and functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/siphash.h"
#include "capture/python/heap.h"
#include "capture/python/pattern.h"
#include "children.h"

#define PROGRAM "tests/workloads/python/objects.py"

/* ---- real objects ---- */

struct program {
	pid_t pid;
	FILE *out;
	struct hb_py_heap heap;
};

static void execute(const char *python, int from, int to)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	dup2(from, 0);
	dup2(to, 1);
	execl(python, python, PROGRAM, (char *)NULL);
	_exit(127);
}

static void begin(struct program *p, const char *python)
{
	int in[2], out[2];

	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	p->pid = fork();
	if (p->pid == 0)
		execute(python, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	p->out = fdopen(out[0], "r");
	/* The other end of its input stays open until this test ends. */
}

/* All but the state is known without any thread that runs Python. */
static bool find_heap(struct program *p)
{
	struct hb_error e = {0};
	struct hb_process *proc = hb_process__read((u32)p->pid, &e);
	struct hb_python *py = proc ? hb_python__new(proc) : NULL;
	const struct hb_py_runtime *r;
	u32 n = 0;

	r = py ? hb_python__runtimes(py, &n) : NULL;
	if (n)
		p->heap = (struct hb_py_heap){(u32)p->pid, r[0].off, r[0].cell_type};
	hb_python__free(py);
	hb_process__free(proc);
	return n && r;
}

static void print_value(const struct hb_py_value *v, char *buf, size_t size)
{
	double d;

	memcpy(&d, &v->num, sizeof(d));
	if (v->kind == HB_PYKIND_FLOAT)
		snprintf(buf, size, "%a", d);
	else if (v->kind == HB_PYKIND_STR)
		snprintf(buf, size, "%s", v->text);
	else if (v->kind == HB_PYKIND_INT || v->kind == HB_PYKIND_BOOL || v->kind == HB_PYKIND_LEN)
		snprintf(buf, size, "%lld", (long long)v->num);
	else
		buf[0] = 0;
}

static bool same(const struct hb_py_value *v, const char *value, const char *found)
{
	double d;

	memcpy(&d, &v->num, sizeof(d));
	return v->kind == HB_PYKIND_FLOAT ? strtod(value, NULL) == d : strcmp(value, found) == 0;
}

/* "ADDRESS PATH KIND VALUE": 1 when it is not what is found. */
static unsigned check(const struct program *p, char *line)
{
	char *at = line, *address = strsep(&at, "\t"), *path = strsep(&at, "\t"), *kind = strsep(&at, "\t"),
	     *value = strsep(&at, "\n");
	char text[160], found[400], why[512];
	struct hb_py_value v;
	struct hb_error e = {0};
	struct hb_py_path way;

	assert_non_null(value);
	snprintf(text, sizeof(text), "o.%s", path);
	if (hb_py_path__parse(text, &way, &e))
		fail_msg("%s: %s", text, e.text);
	hb_py_path__follow(&p->heap, &way, 0, strtoull(address, NULL, 10), &v, NULL, NULL, why, sizeof(why));
	print_value(&v, found, sizeof(found));
	if (strcmp(hb_word(HB_WORDS_PYKIND, v.kind), kind) == 0 && same(&v, value, found))
		return 0;
	print_error("3.%u: %s is %s \"%s\", found was %s \"%s\" %s\n", p->heap.off.minor, path, kind, value,
		    hb_word(HB_WORDS_PYKIND, v.kind), found, why);
	return 1;
}

static unsigned check_program(const char *python)
{
	static char lines[512][400];
	struct program p = {0};
	unsigned n = 0, bad = 0;

	begin(&p, python);
	while (n < 512 && fgets(lines[n], sizeof(lines[n]), p.out) && strcmp(lines[n], "ready\n") != 0)
		n++;
	if (n < 80 || n == 512)
		fail_msg("%s: %u lines", python, n);
	if (!find_heap(&p))
		fail_msg("%s: no interpreter found", python);
	for (unsigned i = 0; i < n; i++)
		bad += check(&p, lines[i]);
	stop(p.pid);
	fclose(p.out);
	return bad;
}

/* 3.8 and later. */
static bool is_known(const char *python)
{
	const char *at = strstr(python, "/3.");

	at = at ? at + 3 : strstr(python, "python3.") + 8;
	return strtoul(at, NULL, 10) >= HB_PY_OLDEST;
}

/* Those of this machine, and others named by HB_PYTHONS (space between them), such as a script that enters a
 * chroot and executes .../python3.14. */
static void find_pythons(glob_t *g)
{
	char *more = strdup(getenv("HB_PYTHONS") ?: ""), *rest = more, *one;

	glob("/root/.pyenv/versions/3.*/bin/python", 0, NULL, g);
	glob("/usr/bin/python3.[0-9]*[0-9]", GLOB_APPEND, NULL, g);
	while ((one = strsep(&rest, " ")))
		if (*one)
			glob(one, GLOB_APPEND, NULL, g);
	free(more);
}

static void objects(void **state)
{
	unsigned n = 0, bad = 0;
	glob_t g = {0};

	if (access(PROGRAM, R_OK))
		skip(); /* not run from the project's folder */
	find_pythons(&g);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		if (!is_known(g.gl_pathv[i]))
			continue;
		bad += check_program(g.gl_pathv[i]);
		n++;
	}
	globfree(&g);
	if (!n)
		skip();
	assert_int_equal(bad, 0);
}

/* ---- what cannot be read ---- */

static void nonsense(void **state)
{
	struct program p = {.pid = getpid()};
	static u64 garbage[512];
	struct hb_py_value v;
	struct hb_error e = {0};
	struct hb_py_path way;
	char why[512];
	u64 r = 88172645463325252ULL;

	assert_int_equal(hb_py_path__parse("o.a.b", &way, &e), 0);
	for (unsigned minor = HB_PY_OLDEST; minor <= HB_PY_NEWEST; minor++) {
		p.heap.pid = (u32)getpid();
		hb_py_offsets__known(minor, false, &p.heap.off);
		for (unsigned round = 0; round < 3000; round++) {
			/* Words that point among themselves, small numbers and wild ones. */
			for (unsigned i = 0; i < 512; i++) {
				r ^= r << 13, r ^= r >> 7, r ^= r << 17;
				garbage[i] = r % 4 == 0	  ? r
					     : r % 4 == 1 ? (r >> 8) % 200
							  : (u64)(uintptr_t)&garbage[(r >> 8) % 512];
			}
			hb_py_path__follow(&p.heap, &way, 0, (u64)(uintptr_t)&garbage[r % 256], &v, NULL,
					   NULL, why, sizeof(why));
			hb_py_value__read(&p.heap, (u64)(uintptr_t)&garbage[r % 256], HB_PY_ANY, &v);
		}
	}
}

/* ---- grammar ---- */

static void paths(void **state)
{
	static const char *const bad[] = {
	    "",		"self.", ".x",		"self..x",   "self.x:list",   "self.x:",
	    "self.a b", "1x",	 "a.b.c.d.e.f", "self.x[0]", "self.x:len:len"};
	struct hb_error e = {0};
	struct hb_py_path p;

	assert_int_equal(hb_py_path__parse("self.scheduler.running:len", &p, &e), 0);
	assert_string_equal(p.variable, "self");
	assert_int_equal(p.steps, 2);
	assert_string_equal(p.attribute[1], "running");
	assert_int_equal(p.want, HB_PY_WANT_LEN);
	assert_int_equal(hb_py_path__parse("x", &p, &e), 0);
	assert_int_equal(p.steps, 0);
	assert_int_equal(p.want, HB_PY_ANY);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		e = (struct hb_error){0};
		assert_int_not_equal(hb_py_path__parse(bad[i], &p, &e), 0);
		assert_int_not_equal(e.text[0], 0);
	}
}

static bool means(const char *pattern, const char *file, const char *name, bool qualified)
{
	struct hb_py_pattern p;
	struct hb_error e = {0};

	assert_int_equal(hb_py_pattern__parse(pattern, &p, &e), 0);
	return hb_py_pattern__matches(&p, file, name, qualified);
}

static void patterns(void **state)
{
	static const char file[] = "/opt/venv/lib/python3.12/site-packages/vllm/v1/engine/core.py";
	struct hb_py_pattern p;
	struct hb_error e = {0};

	assert_true(means("EngineCore.step", file, "EngineCore.step", true));
	assert_true(means("*:EngineCore.*", file, "EngineCore.step", true));
	assert_true(means("vllm.v1.engine.core:EngineCore.step", file, "EngineCore.step", true));
	assert_true(means("engine.core:*", file, "f", true));
	assert_true(means("vllm.*:*", file, "f", true));
	assert_true(means("core.py:*", file, "f", true));
	assert_true(means("*/v1/engine/*:*", file, "f", true));
	assert_true(means("vllm:*", "/x/vllm/__init__.py", "f", true));
	assert_false(means("gine.core:*", file, "f", true));
	assert_false(means("vllm.v1.engine:*", file, "f", true));
	assert_false(means("EngineCore.step", file, "Other.step", true));
	assert_true(means("EngineCore.step", file, "step", false));
	assert_false(means("EngineCore.step", file, "stop", false));
	assert_int_not_equal(hb_py_pattern__parse("core.py:", &p, &e), 0);
	assert_int_not_equal(hb_py_pattern__parse("", &p, &e), 0);
	assert_int_not_equal(hb_py_pattern__parse("a b", &p, &e), 0);
}

/* ---- hashes ---- */

/* The published vectors: key 00..0f, texts 00.., of each length. */
static void siphash(void **state)
{
	const u64 key[2] = {0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL};
	u8 text[16];

	for (u8 i = 0; i < sizeof(text); i++)
		text[i] = i;
	assert_true(hb_siphash(key, text, 0) == 0x726fdb47dd0e0e31ULL);
	assert_true(hb_siphash(key, text, 8) == 0x93f5f5799a932462ULL);
	assert_true(hb_siphash(key, text, 15) == 0xa129ca6149be45e5ULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(objects),	cmocka_unit_test(nonsense), cmocka_unit_test(paths),
	    cmocka_unit_test(patterns), cmocka_unit_test(siphash),
	};

	return cmocka_run_group_tests_name("python_fields", tests, NULL, NULL);
}
