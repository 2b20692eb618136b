/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The eval_frame hook, as data: an interpreter runs frames through the function that a word in its state
 * names, and without one runs them inside of the function that is running already. Where the word names that
 * very function, nothing changes in what is computed, but each call goes through it and can be seen. What
 * does change is that Python's recursion uses the C stack.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/python/calls.h"
#include "capture/python/memory.h"
#include "capture/python/private.h"

/* Calls that may be nested under the hook, by version: measured, with room to spare. 3.11 has no check of the
 * C stack and crashes beyond (15,000 went well, 40,000 did not, with 8 MiB); 3.12 raises RecursionError at
 * 749, 3.13 at 4,999. */
static const struct {
	u8 from, to;
	u32 safe;
	const char *beyond;
} depths[] = {
    {11, 11, 10000, "would overflow the C stack"},
    {12, 12, 700, "would end in a RecursionError that the program does not get otherwise"},
    {13, 13, 4500, "would end in a RecursionError that the program does not get otherwise"},
};

/* ---- code bytes of small accessors ---- */

/* mov disp(%rdi),%rax, before anything else: the offset of the word; 0 when it is something else. */
static u32 offset_of_hook(u32 pid, u64 code)
{
	u8 b[48];
	u32 off;

	if (!code || hb_py_memory__read(pid, code, b, sizeof(b)))
		return 0;
	for (size_t i = 0; i + 7 <= 24; i++) {
		if (b[i] != 0x48 || b[i + 1] != 0x8b || b[i + 2] != 0x87)
			continue;
		memcpy(&off, b + i + 3, sizeof(off));
		return off % 8 == 0 && off < 1 << 20 ? off : 0;
	}
	return 0;
}

/* [add $8,%rsp;] [pop %rbp;] ret */
static bool returns(const u8 *b, const u8 *end)
{
	if (b + 4 < end && b[0] == 0x48 && b[1] == 0x83 && b[2] == 0xc4)
		b += 4;
	if (b + 1 < end && b[0] == 0x5d)
		b++;
	return b < end && *b == 0xc3;
}

/* mov disp(%rax),%eax as the last thing before the return: the offset of the limit in an interpreter; 0 when
 * it is something else. */
static u32 offset_of_limit(u32 pid, u64 code)
{
	u8 b[64];
	u32 off = 0;

	if (!code || hb_py_memory__read(pid, code, b, sizeof(b)))
		return 0;
	for (size_t i = 1; i + 6 < sizeof(b) && !off; i++) {
		bool wide = b[i + 1] == 0x80;

		if (b[i] != 0x8b || b[i - 1] == 0x48 || (!wide && b[i + 1] != 0x40))
			continue;
		if (returns(b + i + (wide ? 6 : 3), b + sizeof(b)))
			memcpy(&off, b + i + 2, wide ? 4 : 1);
	}
	return off < 1 << 20 && off % 4 == 0 ? off : 0;
}

/* ---- the C stacks that calls are nested on ---- */

#define PER_CALL 1024 /* bytes of C stack for a nested call, twice of what was measured (430) */

/* Bytes of a thread's stack below its own block, which lies at the stack's upper end; 0: not found. */
static u64 stack_below(FILE *maps, u64 self)
{
	char line[512];
	unsigned long long from, to;

	rewind(maps);
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%llx-%llx", &from, &to) == 2 && from <= self && self < to)
			return self - from;
	return 0;
}

/* The smallest stack among the threads that run Python, but for the main one, which grows. */
static u64 smallest_stack(const struct hb_process *p, const struct hb_py_runtime *r)
{
	static __thread u64 states[HB_PY_THREADS_MAX];
	u32 n = hb_py_threads__list(p->pid, r, states, HB_PY_THREADS_MAX);
	u64 self, native, size, min = UINT64_MAX;
	char path[32];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%u/maps", p->pid);
	maps = fopen(path, "re");
	for (u32 i = 0; maps && i < n; i++) {
		u64 at = states[i] + r->off.walk.thread_id;

		/* Behind the thread's own block's address: its number. */
		if (!hb_py_memory__word(p->pid, at, &self) || !hb_py_memory__word(p->pid, at + 8, &native) ||
		    native == p->nspid)
			continue;
		size = stack_below(maps, self);
		min = size && size < min ? size : min;
	}
	if (maps)
		fclose(maps);
	return min;
}

static int check_stacks(const struct hb_process *p, const struct hb_py_runtime *r, u32 limit,
			struct hb_error *e)
{
	u64 size = smallest_stack(p, r);

	if (size / PER_CALL >= limit)
		return 0;
	return hb_error__set(e, HB_EXIT_TARGET, -ERANGE,
			     "a thread has a stack of %llu KiB only, and under the hook calls nested %u deep "
			     "(sys.setrecursionlimit) could need %u KiB",
			     (unsigned long long)size / 1024, limit, limit * PER_CALL / 1024);
}

/* ---- may it be set? ---- */

static int check_depth(const struct hb_process *p, const struct hb_py_runtime *r, const struct hb_py_calls *c,
		       u64 interp, struct hb_error *e)
{
	u32 off = offset_of_limit(p->pid, c->get_limit), limit = 0;

	for (size_t i = 0; i < sizeof(depths) / sizeof(*depths); i++) {
		if (r->minor < depths[i].from || r->minor > depths[i].to)
			continue;
		if (!off || hb_py_memory__read(p->pid, interp + off, &limit, sizeof(limit)) || !limit)
			return hb_error__set(e, HB_EXIT_TARGET, -ENOTSUP,
					     "how deep its calls may be nested could not be read; under the "
					     "hook more than %u %s",
					     depths[i].safe, depths[i].beyond);
		if (limit > depths[i].safe)
			return hb_error__set(e, HB_EXIT_TARGET, -ERANGE,
					     "it allows calls nested %u deep (sys.setrecursionlimit), and "
					     "under the hook more than %u of Python 3.%u %s",
					     limit, depths[i].safe, r->minor, depths[i].beyond);
		return check_stacks(p, r, limit, e);
	}
	return hb_error__set(e, HB_EXIT_TARGET, -ENOTSUP,
			     "how deep calls may be nested under the hook is not known of Python 3.%u",
			     r->minor);
}

static int check_slot(u32 pid, u64 slot, u64 eval, bool *left, struct hb_error *e)
{
	u64 word;

	if (hb_py_memory__read(pid, slot, &word, sizeof(word)))
		return hb_error__set(e, HB_EXIT_TARGET, -EFAULT, "an interpreter's state cannot be read");
	*left |= word == eval;
	if (word && word != eval)
		return hb_error__set(e, HB_EXIT_TARGET, -EBUSY,
				     "something else runs its frames already (a debugger, or torch.compile)");
	return 0;
}

/* Its compiler uses the same word, around what it must not compile too, and sets it to nothing when it is
 * done. */
static int check_torch(const struct hb_process *p, struct hb_error *e)
{
	for (u32 i = 0; i < p->n_maps; i++)
		if (strstr(p->maps[i].path, "/libtorch_python."))
			return hb_error__set(
			    e, HB_EXIT_TARGET, -EBUSY,
			    "torch is loaded, whose compiler uses the same hook and would take "
			    "it away, in eager mode too");
	return 0;
}

int hb_py_hook__find(const struct hb_process *p, const struct hb_py_runtime *r, const struct hb_py_calls *c,
		     bool force, struct hb_py_hook *h, bool *left, struct hb_error *e)
{
	u32 off = offset_of_hook(p->pid, c->get_hook);
	u64 interp;
	int err = force ? 0 : check_torch(p, e);

	*h = (struct hb_py_hook){.pid = p->pid, .eval = c->eval};
	*left = false;
	if (err)
		return err;
	if (!off || !c->eval)
		return hb_error__set(e, HB_EXIT_TARGET, -ENOTSUP,
				     "where the hook is could not be found (another compiler's code?)");
	if (!hb_py_memory__word(p->pid, r->address + r->off.interpreters, &interp) || !interp)
		return hb_error__set(e, HB_EXIT_TARGET, -ENODATA, "it has no interpreter yet");
	while (interp && h->n < HB_PY_HOOKS && !err) {
		err = check_slot(p->pid, interp + off, c->eval, left, e);
		if (!err && !force)
			err = check_depth(p, r, c, interp, e);
		h->slot[h->n++] = interp + off;
		if (!hb_py_memory__word(p->pid, interp + r->off.interp_next, &interp))
			break;
	}
	return err;
}

/* ---- setting it ---- */

/* Without stdio and malloc: the guardian is a fork of a program with threads. */
static int open_memory(u32 pid)
{
	char path[32] = "/proc/", digits[12];
	size_t n = 0, at = 6;

	do
		digits[n++] = (char)('0' + pid % 10);
	while (pid /= 10);
	while (n)
		path[at++] = digits[--n];
	memcpy(path + at, "/mem", 5);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* One aligned word: the interpreter reads the old one or the new one. */
static bool exchange(int fd, u64 slot, u64 from, u64 to)
{
	u64 word;

	return pread(fd, &word, sizeof(word), (off_t)slot) == sizeof(word) && word == from &&
	       pwrite(fd, &to, sizeof(to), (off_t)slot) == sizeof(to);
}

int hb_py_hook__set(const struct hb_py_hook *h)
{
	int fd = open_memory(h->pid), err = 0;
	u64 word;

	if (fd < 0)
		return -errno;
	for (u32 i = 0; i < h->n && !err; i++)
		if (!exchange(fd, h->slot[i], 0, h->eval) &&
		    (pread(fd, &word, sizeof(word), (off_t)h->slot[i]) != sizeof(word) || word != h->eval))
			err = -EBUSY;
	close(fd);
	if (err)
		hb_py_hook__unset(h);
	return err;
}

bool hb_py_hook__stands(const struct hb_py_hook *h)
{
	u64 word;

	for (u32 i = 0; i < h->n; i++)
		if (hb_py_memory__word(h->pid, h->slot[i], &word) && word != h->eval)
			return false;
	return true;
}

u32 hb_py_hook__unset(const struct hb_py_hook *h)
{
	int fd = open_memory(h->pid);
	u32 n = 0;

	for (u32 i = 0; fd >= 0 && i < h->n && i < HB_PY_HOOKS; i++)
		n += exchange(fd, h->slot[i], h->eval, 0);
	if (fd >= 0)
		close(fd);
	return n;
}
