// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Uprobe programs work on the stack of their thread. Kernels since 6.13 may give them one that belongs to the
 * CPU, which preempted programs then share; what the kernel made of our programs shows which of both it is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/probes/probes.h"
#include "capture/session/bpf_programs.h"
#include "herschel.skel.h"

#define MAX_IMAGE 65536

/* `add %gs:ADDRESS, %r9`: how the x86 compiler finds a program's stack of this CPU, at each of its calls. */
static const unsigned char cpu_stack[] = {0x65, 0x4c, 0x03, 0x0c, 0x25};

static bool uses_cpu_stack(const unsigned char *image, u32 n)
{
	return memmem(image, n, cpu_stack, sizeof(cpu_stack)) != NULL;
}

/* Bytes of machine code; 0 when the kernel does not show them or has not compiled. */
static u32 image_of(int fd, unsigned char *image)
{
	struct bpf_prog_info info = {.jited_prog_insns = (uintptr_t)image, .jited_prog_len = MAX_IMAGE};
	u32 size = sizeof(info);

	assert_int_equal(bpf_obj_get_info_by_fd(fd, &info, &size), 0);
	assert_in_range(info.jited_prog_len, 0, MAX_IMAGE);
	for (u32 i = 0; i < info.jited_prog_len; i++)
		if (image[i])
			return info.jited_prog_len;
	return 0;
}

static struct herschel *load(bool multi)
{
	struct hb_session_opts o = {.single = !multi};
	struct herschel *skel = herschel__open();
	struct bpf_program *p;

	assert_non_null(skel);
	bpf_object__for_each_program(p, skel->obj) hb_bpf_programs__configure(p, &o, multi);
	bpf_map__set_max_entries(skel->maps.stacks, 16);
	if (herschel__load(skel)) {
		herschel__destroy(skel);
		return NULL;
	}
	return skel;
}

static void check(bool multi, const char *const names[2])
{
	static unsigned char image[MAX_IMAGE];
	struct herschel *skel = load(multi);

	if (!skel && geteuid() != 0) {
		print_message("not checked: loading needs root\n");
		skip();
	}
	assert_non_null(skel);
	for (int i = 0; i < 2; i++) {
		struct bpf_program *p = bpf_object__find_program_by_name(skel->obj, names[i]);
		u32 n = image_of(bpf_program__fd(p), image);

		if (!n)
			print_message("not checked: the kernel does not show the code of %s\n", names[i]);
		if (uses_cpu_stack(image, n))
			fail_msg("%s works on a stack of the CPU", names[i]);
	}
	herschel__destroy(skel);
}

static void single(void **state)
{
	check(false, (const char *const[]){HB_PROG_ENTRY_SINGLE, HB_PROG_RETURN_SINGLE});
}

static void multi(void **state)
{
	if (!hb_attach__has_multi())
		skip();
	check(true, (const char *const[]){HB_PROG_ENTRY_MULTI, HB_PROG_RETURN_MULTI});
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(single), cmocka_unit_test(multi)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
