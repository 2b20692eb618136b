/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Entries of libcuda.so.1 begin as those of the real driver do, because that decides what a probe costs: a
 * compare with a word of the library, a branch to "deinitialized", and a jump through a table. `make sim
 * SIM_FRONT=push|endbr|nop5` gives other begins, to see what the tool makes of them.
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
#if defined(HB_FRONT_push) /* emulated by the kernel */
#define HB_ENTRY_FIRST "	push %rbp\n	pop %rbp\n"
#elif defined(HB_FRONT_endbr) /* single-stepped */
#define HB_ENTRY_FIRST "	endbr64\n"
#elif defined(HB_FRONT_nop5) /* replaced by a call since 6.18 */
#define HB_ENTRY_FIRST "	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
#else
#define HB_ENTRY_FIRST "	cmpl $0x321cba00, hb_front_state(%rip)\n	je 1f\n"
#endif
#define HB_ENTRY(name)                                                                                       \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ",@function\n" #name                     \
		":\n" HB_ENTRY_FIRST "	jmp *hb_table_" #name "(%rip)\n"                                     \
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
