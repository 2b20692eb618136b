/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/cost/price.h"
#include "base/clock.h"
#include "capture/symbols/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Functions to be probed by ourselves, one per kind of first instruction. In assembly, because a compiler
 * would choose the first instruction itself. */
#if defined(__x86_64__)
__asm__(".text\n"
	".globl hb_price_step\n.type hb_price_step,@function\nhb_price_step:\n"
	"	sub $8,%rsp\n	add $8,%rsp\n	ret\n.size hb_price_step,.-hb_price_step\n"
	".globl hb_price_emulated\n.type hb_price_emulated,@function\nhb_price_emulated:\n"
	"	push %rbp\n	pop %rbp\n	ret\n.size hb_price_emulated,.-hb_price_emulated\n"
	".globl hb_price_nop5\n.type hb_price_nop5,@function\n.balign 16\nhb_price_nop5:\n"
	"	.byte 0x0f,0x1f,0x44,0x00,0x00\n	ret\n.size hb_price_nop5,.-hb_price_nop5\n");
#else
__asm__(
    ".text\n"
    ".globl hb_price_step\n.type hb_price_step,%function\nhb_price_step:\n	mov x9, x9\n	ret\n"
    ".globl hb_price_emulated\n.type hb_price_emulated,%function\nhb_price_emulated:\n	b 1f\n1:	ret\n"
    ".globl hb_price_nop5\n.type hb_price_nop5,%function\nhb_price_nop5:\n	nop\n	ret\n");
#endif
void hb_price_step(void);
void hb_price_emulated(void);
void hb_price_nop5(void);

static const struct {
	const char *name;
	void (*fn)(void);
} samples[HB_HOOK_COUNT] = {
    [HB_HOOK_STEP] = {"hb_price_step", hb_price_step},
    [HB_HOOK_EMULATED] = {"hb_price_emulated", hb_price_emulated},
    [HB_HOOK_NOP5] = {"hb_price_nop5", hb_price_nop5},
};

enum hb_hook hb_hook__of(const u8 *code, size_t size)
{
#if defined(__x86_64__)
	static const u8 nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};

	if (size >= 5 && memcmp(code, nop5, 5) == 0)
		return HB_HOOK_NOP5;
	if (size >= 1 && code[0] >= 0x50 && code[0] <= 0x57) /* push r64 */
		return HB_HOOK_EMULATED;
	if (size >= 2 && code[0] == 0x41 && code[1] >= 0x50 && code[1] <= 0x57) /* push r8..r15 */
		return HB_HOOK_EMULATED;
	if (size >= 1 && (code[0] == 0x90 || code[0] == 0xe8 || code[0] == 0xe9 || code[0] == 0xeb))
		return HB_HOOK_EMULATED;
	if (size >= 1 && code[0] >= 0x70 && code[0] <= 0x7f) /* jcc rel8 */
		return HB_HOOK_EMULATED;
	if (size >= 2 && code[0] == 0x0f && code[1] >= 0x80 && code[1] <= 0x8f) /* jcc rel32 */
		return HB_HOOK_EMULATED;
#endif
	return HB_HOOK_STEP;
}

enum hb_hook hb_hook__at(const char *path, u64 offset)
{
	u8 code[16];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : pread(fd, code, sizeof(code), (off_t)offset);

	if (fd >= 0)
		close(fd);
	return n > 0 ? hb_hook__of(code, (size_t)n) : HB_HOOK_STEP;
}

#define ROUNDS 5
#define CALLS  100

/* Minimum over rounds: everything that disturbs a measurement makes it longer. */
static u64 call_ns(void (*fn)(void))
{
	u64 best = UINT64_MAX;

	for (int r = 0; r < ROUNDS; r++) {
		u64 t = hb_clock__now();

		for (int i = 0; i < CALLS; i++)
			fn();
		t = hb_clock__now() - t;
		if (t < best)
			best = t;
	}
	return best / CALLS;
}

static void bare_syscall(void)
{
	syscall(SYS_getppid);
}

u64 hb_price__syscall(void)
{
	return call_ns(bare_syscall);
}

static int one(const struct hb_price_ops *ops, const struct hb_elf *self, enum hb_hook kind, bool ret,
	       u64 *ns, u64 *detach)
{
	u64 bare = call_ns(samples[kind].fn), probed;
	struct hb_sym sym;
	int h;

	if (hb_elf__find(self, samples[kind].name, &sym) || sym.state != HB_SYM_OK)
		return -ENOENT;
	h = ops->attach(ops->arg, "/proc/self/exe", sym.offset, ret);
	if (h < 0)
		return h;
	probed = call_ns(samples[kind].fn);
	*detach = hb_clock__now();
	ops->detach(ops->arg, h);
	*detach = hb_clock__now() - *detach;
	*ns = probed > bare ? probed - bare : 0;
	return 0;
}

int hb_prices__measure(struct hb_prices *p, const struct hb_price_ops *ops, struct hb_error *e)
{
	struct hb_elf *self = hb_elf__open("/proc/self/exe", e);
	u64 both = 0, detach = 0;
	int err = self ? 0 : e && e->err ? e->err : -ENOENT;

	memset(p, 0, sizeof(*p));
	p->syscall = hb_price__syscall();
	for (int k = 0; !err && k < HB_HOOK_COUNT; k++) {
		err = one(ops, self, k, false, &p->entry[k], &detach);
		if (!p->detach || detach < p->detach)
			p->detach = detach;
	}
	if (!err)
		err = one(ops, self, HB_HOOK_EMULATED, true, &both, &detach);
	hb_elf__close(self);
	if (err)
		return hb_error__set(e, HB_EXIT_KERNEL, err, "cannot measure what a probe costs here: %s",
				     strerror(-err));
	p->ret = both > p->entry[HB_HOOK_EMULATED] ? both - p->entry[HB_HOOK_EMULATED] : 0;
	p->measured = true;
	return 0;
}
