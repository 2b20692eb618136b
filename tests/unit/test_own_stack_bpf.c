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
	/* With everything on that makes them larger. */
	struct hb_session_opts o = {.single = !multi, .python = HB_PYTHON_CALLS};
	struct herschel *skel = herschel__open();
	struct bpf_program *p;

	assert_non_null(skel);
	bpf_object__for_each_program(p, skel->obj) hb_bpf_programs__configure(p, &o, multi);
	bpf_map__set_max_entries(skel->maps.stacks, 16);
	skel->rodata->hb_python = skel->rodata->hb_exceptions = skel->rodata->hb_py_fields_on = true;
	skel->rodata->hb_accel_stacks = 1;
	for (u32 i = 0; i < HB_CLASS_COUNT; i++)
		skel->rodata->hb_accel_every[i] = 1;
	if (herschel__load(skel)) {
		herschel__destroy(skel);
		return NULL;
	}
	return skel;
}

static void check(bool multi, u32 least)
{
	static unsigned char image[MAX_IMAGE];
	struct herschel *skel = load(multi);
	struct bpf_program *p;
	u32 checked = 0;

	if (!skel && geteuid() != 0) {
		print_message("not checked: loading needs root\n");
		skip();
	}
	assert_non_null(skel);
	bpf_object__for_each_program(p, skel->obj)
	{
		if (bpf_program__type(p) != BPF_PROG_TYPE_KPROBE || !bpf_program__autoload(p))
			continue;
		u32 n = image_of(bpf_program__fd(p), image);

		checked++;
		if (!n)
			print_message("not checked: the kernel does not show the code of %s\n",
				      bpf_program__name(p));
		if (uses_cpu_stack(image, n))
			fail_msg("%s works on a stack of the CPU", bpf_program__name(p));
	}
	assert_true(checked >= least);
	herschel__destroy(skel);
}

/* Entry and return of accelerator calls, of Python's calls and of its events. */
static void single(void **state)
{
	check(false, 6);
}

/* With uprobe sessions Python's calls are one program. */
static void multi(void **state)
{
	if (!hb_attach__has_multi())
		skip();
	check(true, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(single), cmocka_unit_test(multi)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
