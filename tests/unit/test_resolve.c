/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Addresses of this process, of a child that is gone, and of the kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "base/text.h"
#include "capture/target/resolve.h"

int hb_test_here(int x);
__attribute__((noinline, noclone, used)) int hb_test_here(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

static u64 here(void)
{
	return (u64)(uintptr_t)hb_test_here;
}

static struct hb_resolve *fresh(void)
{
	struct hb_resolve *r = hb_resolve__new();

	assert_non_null(r);
	return r;
}

static void our_own_function_has_its_name_and_file(void **state)
{
	struct hb_resolve *r = fresh();
	struct hb_code c;
	char exe[256];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	assert_true(n > 0);
	exe[n] = 0;
	/* Not learned yet: done by the look-up. */
	assert_int_equal(hb_resolve__user(r, (u32)getpid(), here() + 1, &c), 0);
	assert_string_equal(c.func, "hb_test_here");
	assert_string_equal(c.module, exe);
	assert_true(c.offset > 0 && c.offset < here());
	hb_resolve__free(r);
}

static void what_lies_in_no_file_is_given_as_an_address(void **state)
{
	struct hb_resolve *r = fresh();
	void *jit = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct hb_code c;

	assert_ptr_not_equal(jit, MAP_FAILED);
	hb_resolve__user(r, (u32)getpid(), (u64)(uintptr_t)jit, &c);
	assert_null(c.func);
	assert_int_equal(c.offset, (u64)(uintptr_t)jit);
	assert_int_equal(hb_resolve__user(r, (u32)getpid(), 16, &c), -ENOENT);
	assert_null(c.module);
	munmap(jit, 4096);
	hb_resolve__free(r);
}

static pid_t child(int *go)
{
	int p[2];
	pid_t pid;

	assert_int_equal(pipe(p), 0);
	pid = fork();
	if (pid == 0) {
		char c;

		close(p[1]);
		if (read(p[0], &c, 1) < 0)
			_exit(1);
		_exit(0);
	}
	assert_true(pid > 0);
	close(p[0]);
	*go = p[1];
	return pid;
}

static void a_process_that_is_gone_is_remembered(void **state)
{
	struct hb_resolve *r = fresh();
	struct hb_code c;
	int go, go2;
	pid_t known = child(&go), unknown = child(&go2);

	assert_int_equal(hb_resolve__learn(r, (u32)known), 0);
	close(go);
	close(go2);
	waitpid(known, NULL, 0);
	waitpid(unknown, NULL, 0);
	assert_int_equal(hb_resolve__user(r, (u32)known, here(), &c), 0);
	assert_string_equal(c.func, "hb_test_here");
	assert_int_equal(hb_resolve__learn(r, (u32)known), -ESRCH);
	assert_int_equal(hb_resolve__user(r, (u32)known, here(), &c),
			 0); /* failing to learn forgets nothing */
	assert_string_equal(c.func, "hb_test_here");
	assert_true(hb_resolve__user(r, (u32)unknown, here(), &c) < 0);
	assert_null(c.func);
	assert_int_equal(c.offset, here());
	hb_resolve__free(r);
}

static void a_library_loaded_later_and_unloaded_again_resolves(void **state)
{
	struct hb_resolve *r = fresh();
	struct hb_code c;
	u64 addr;
	void *lib;

	assert_int_equal(hb_resolve__learn(r, (u32)getpid()), 0);
	lib = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!lib || !dlsym(lib, "_fini"))
		lib = dlopen("libanl.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		skip();
	addr = *(u64 *)lib; /* l_addr of struct link_map: where it is loaded */
	addr += 0x1000;	    /* its code, behind the page of headers */
	assert_int_equal(hb_resolve__learn(r, (u32)getpid()), 0);
	assert_int_equal(hb_resolve__user(r, (u32)getpid(), addr, &c), 0);
	assert_non_null(strstr(c.module, ".so.1"));
	dlclose(lib);
	assert_int_equal(hb_resolve__learn(r, (u32)getpid()), 0);
	assert_int_equal(hb_resolve__user(r, (u32)getpid(), addr, &c), 0);
	assert_non_null(strstr(c.module, ".so.1"));
	hb_resolve__free(r);
}

static void kernel_addresses_have_names(void **state)
{
	struct hb_resolve *r = fresh();
	unsigned long addr = 0;
	char line[256], name[128] = "";
	struct hb_code c;
	FILE *fp = fopen("/proc/kallsyms", "re");

	while (fp && fgets(line, sizeof(line), fp))
		if (sscanf(line, "%lx T %127s", &addr, name) == 2 && strcmp(name, "vfs_read") == 0)
			break;
	if (fp)
		fclose(fp);
	if (addr == 0) { /* not root */
		assert_int_equal(hb_resolve__kernel(r, 0xffffffff81000000ull, &c), -ENOENT);
	} else {
		assert_int_equal(hb_resolve__kernel(r, addr + 4, &c), 0);
		assert_string_equal(c.func, "vfs_read");
	}
	assert_string_equal(c.module, "[kernel]");
	hb_resolve__free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(our_own_function_has_its_name_and_file),
	    cmocka_unit_test(what_lies_in_no_file_is_given_as_an_address),
	    cmocka_unit_test(a_process_that_is_gone_is_remembered),
	    cmocka_unit_test(a_library_loaded_later_and_unloaded_again_resolves),
	    cmocka_unit_test(kernel_addresses_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
