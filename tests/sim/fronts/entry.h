/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Entries of libcuda.so.1 begin as those of the real driver do, because that decides what a probe costs: a
 * compare with a word of the library, a branch to "deinitialized", and a jump through a table.
 */
#ifndef HB_SIM_ENTRY_H
#define HB_SIM_ENTRY_H

struct hb_entry { /* what cuGetProcAddress knows */
	const char *name;
	void *exported, *inner;
};

/* Of the file that stubs.py writes, where it is linked in; ends with a NULL name. */
extern const struct hb_entry hb_stub_table[] __attribute__((weak));

#if defined(__x86_64__)
#define HB_ENTRY(name)                                                                                       \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ",@function\n" #name ":\n"               \
		"	cmpl $0x321cba00, hb_front_state(%rip)\n"                                                  \
		"	je 1f\n"                                                                                   \
		"	jmp *hb_table_" #name "(%rip)\n"                                                     \
		"1:	movl $4, %eax\n"                                                                         \
		"	ret\n"                                                                                     \
		".size " #name ", .-" #name "\n"                                                             \
		".section .data.rel.local,\"aw\",@progbits\n.p2align 3\n"                                    \
		"hb_table_" #name ":	.quad hb_front_" #name "\n.text\n");
#else
#define HB_ENTRY(name)                                                                                       \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ",%function\n" #name ":\n"               \
		"	b hb_front_" #name "\n.size " #name ", .-" #name "\n");
#endif

#endif
