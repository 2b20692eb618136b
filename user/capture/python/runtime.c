/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The interpreters of a process: which file, which version, which layout, and whether it fits. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "capture/python/memory.h"
#include "capture/python/private.h"
#include "capture/symbols/symbols.h"

struct hb_python {
	u32 pid, n;
	struct hb_py_runtime runtime[HB_PY_RUNTIMES];
};

static void refuse(struct hb_py_runtime *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void refuse(struct hb_py_runtime *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(r->why, sizeof(r->why), fmt, ap);
	va_end(ap);
	hb_text__clean(r->why);
	r->state = HB_PY_REFUSED;
}

/* ---- the file ---- */

/* Addresses in the process of what a file defines. */
struct image {
	struct hb_elf *elf;
	u64 bias;
};

static u64 symbol(const struct image *im, const char *name)
{
	struct hb_sym s;

	return hb_elf__find(im->elf, name, &s) == 0 && s.value && s.state != HB_SYM_UNDEFINED
		   ? im->bias + s.value
		   : 0;
}

static u64 runtime_address(const struct image *im)
{
	u64 at = symbol(im, "_PyRuntime"), vaddr, size;

	if (!at && hb_elf__section(im->elf, ".PyRuntime", &vaddr, &size))
		at = im->bias + vaddr;
	return at;
}

/* 0, or -errno: not to be opened, or no Python in it. */
static int open_image(const struct hb_process *p, const struct hb_mapping *m, struct image *im)
{
	char path[4200];
	int err = hb_process__open_path(p, m, path, sizeof(path));
	u64 vaddr;

	if (err)
		return err;
	im->elf = hb_elf__open(path, NULL);
	if (!im->elf)
		return -ENOEXEC;
	if (!hb_elf__vaddr(im->elf, m->pgoff, &vaddr)) {
		hb_elf__close(im->elf);
		return -ENOEXEC;
	}
	im->bias = m->start - vaddr;
	return 0;
}

/* "libpython3.11.so.1.0", "python3.11" -> 11; 0 when the name does not tell. */
static unsigned minor_of_name(const char *path)
{
	const char *at = strstr(hb_text__basename(path), "python3.");

	return at && isdigit((unsigned char)at[8]) ? (unsigned)strtoul(at + 8, NULL, 10) : 0;
}

static bool free_threaded_name(const char *path)
{
	const char *at = strstr(hb_text__basename(path), "python3.");

	for (at = at ? at + 8 : ""; isdigit((unsigned char)*at);)
		at++;
	return *at == 't';
}

/* ---- version and layout ---- */

static void set_version(struct hb_py_runtime *r, u32 hex)
{
	r->major = hex >> 24 & 0xff;
	r->minor = hex >> 16 & 0xff;
	r->micro = hex >> 8 & 0xff;
	r->exact = true;
}

/* From what the runtime publishes, else the variable Py_Version (3.11), else the file's name. */
static void find_version(struct hb_py_runtime *r, u32 pid, u64 variable)
{
	u32 hex;

	if (variable && !hb_py_memory__read(pid, variable, &hex, sizeof(hex)) && hex >> 24 == 3) {
		set_version(r, hex);
		return;
	}
	r->minor = (u16)minor_of_name(r->path);
	r->major = r->minor ? 3 : 0;
	r->free_threaded = free_threaded_name(r->path);
}

static bool published_layout(struct hb_py_runtime *r, u32 pid)
{
	u64 words[HB_PY_PUBLISHED_WORDS];
	long n = hb_py_memory__some(pid, r->address, words, sizeof(words));

	if (n < 24 || hb_py_offsets__published(words, (size_t)n / 8, &r->off))
		return false;
	set_version(r, (u32)words[1]);
	r->free_threaded = words[2] == 1;
	r->published = true;
	if (r->minor > HB_PY_NEWEST)
		snprintf(r->note, sizeof(r->note), "Python 3.%u is not known; using its published offsets",
			 r->minor);
	return true;
}

static void find_layout(struct hb_py_runtime *r, u32 pid, u64 version)
{
	struct hb_py_walk *w = &r->off.walk;
	u64 none = w->none;

	if (!published_layout(r, pid)) {
		find_version(r, pid, version);
		if (!r->minor)
			refuse(r, "%s: its version is not told by the file", r->path);
		else if (!hb_py_offsets__known(r->minor, r->free_threaded, &r->off))
			refuse(r, "%s: Python 3.%u is not known (3.%u to 3.%u are)", r->path, r->minor,
			       HB_PY_OLDEST, HB_PY_NEWEST);
	}
	w->none = none;
}

static bool add_runtime(struct hb_python *py, const struct hb_process *p, const struct hb_mapping *m,
			const struct image *im)
{
	struct hb_py_runtime *r = &py->runtime[py->n];
	u64 address = runtime_address(im);

	if (!address)
		return false;
	memset(r, 0, sizeof(*r));
	snprintf(r->path, sizeof(r->path), "%s", m->path);
	r->address = address;
	r->file = m->ino;
	r->in_program = strcmp(m->path, p->exe) == 0;
	r->code_type = symbol(im, "PyCode_Type");
	r->cell_type = symbol(im, "PyCell_Type");
	r->eval = symbol(im, "_PyEval_EvalFrameDefault");
	r->get_state = symbol(im, "PyGILState_GetThisThreadState");
	r->get_hook = symbol(im, "_PyInterpreterState_GetEvalFrameFunc");
	r->off.walk.none = symbol(im, "_Py_NoneStruct");
	snprintf(r->why, sizeof(r->why), "it has not started up yet");
	find_layout(r, py->pid, symbol(im, "Py_Version"));
	if (r->state != HB_PY_REFUSED && (!r->code_type || !r->off.walk.none))
		refuse(r, "%s: it hides the symbols by which its objects are recognised", r->path);
	py->n++;
	return true;
}

/* ---- looking for them ---- */

bool hb_python__is_library(const char *path)
{
	return strncmp(hb_text__basename(path), "libpython3.", 11) == 0;
}

static bool seen(const struct hb_python *py, const struct hb_mapping *m)
{
	for (u32 i = 0; i < py->n; i++)
		if (py->runtime[i].file == m->ino && strcmp(py->runtime[i].path, m->path) == 0)
			return true;
	return false;
}

static void look_at(struct hb_python *py, const struct hb_process *p, const struct hb_mapping *m)
{
	struct image im;
	int err;

	if (py->n == HB_PY_RUNTIMES || seen(py, m))
		return;
	err = open_image(p, m, &im);
	if (!err) {
		add_runtime(py, p, m, &im);
		hb_elf__close(im.elf);
	} else if (hb_python__is_library(m->path)) {
		struct hb_py_runtime *r = &py->runtime[py->n++];

		memset(r, 0, sizeof(*r));
		snprintf(r->path, sizeof(r->path), "%s", m->path);
		r->file = m->ino;
		refuse(r, "%s cannot be opened: %s", m->path, strerror(-err));
	}
}

struct hb_python *hb_python__new(const struct hb_process *p)
{
	struct hb_python *py = calloc(1, sizeof(*py));

	if (!py)
		return NULL;
	py->pid = p->pid;
	for (u32 i = 0; i < p->n_maps; i++)
		if (hb_python__is_library(p->maps[i].path))
			look_at(py, p, &p->maps[i]);
	/* A program that has a libpython mapped is only its front. */
	for (u32 i = 0; i < p->n_maps && !py->n; i++)
		if (strcmp(p->maps[i].path, p->exe) == 0) {
			look_at(py, p, &p->maps[i]);
			break;
		}
	hb_python__update(py);
	return py;
}

void hb_python__free(struct hb_python *py)
{
	free(py);
}

const struct hb_py_runtime *hb_python__runtimes(const struct hb_python *py, u32 *n)
{
	*n = py->n;
	return py->runtime;
}

/* ---- for a person ---- */

static void describe_ready(const struct hb_py_runtime *r, char *buf, size_t size)
{
	const struct hb_py_walk *w = &r->off.walk;
	char behind[32] = "";
	unsigned slot = w->slot < 0 ? -(unsigned)w->slot : (unsigned)w->slot;

	if (w->slot_inner >= 0)
		snprintf(behind, sizeof(behind), ", then +0x%x", (unsigned)w->slot_inner);
	snprintf(
	    buf, size,
	    "stacks work, also without the GIL (layout %s, checked on %u thread%s; thread state at %c0x%x%s)",
	    r->published ? "published by the runtime" : "known by version", r->threads,
	    r->threads == 1 ? "" : "s", w->slot < 0 ? '-' : '+', slot, behind);
}

/* The last number is only told by the runtime itself. */
static void describe_version(const struct hb_py_runtime *r, char *buf, size_t size)
{
	char micro[8] = "";

	if (r->exact)
		snprintf(micro, sizeof(micro), ".%u", r->micro);
	if (r->minor)
		snprintf(buf, size, "Python %u.%u%s%s", r->major, r->minor, micro,
			 r->free_threaded ? "t" : "");
	else
		snprintf(buf, size, "Python");
}

const char *hb_py_runtime__describe(const struct hb_py_runtime *r, char *buf, size_t size)
{
	char what[400], version[32];

	describe_version(r, version, sizeof(version));
	if (r->state == HB_PY_READY)
		describe_ready(r, what, sizeof(what));
	else
		snprintf(what, sizeof(what), "%s: %s",
			 r->state == HB_PY_WAITING ? "no stacks yet" : "no stacks", r->why);
	snprintf(buf, size, "%s in %s: %s%s%s", version, r->path, what, r->note[0] ? "; " : "", r->note);
	return hb_text__clean(buf);
}

/* ---- is it ready? ---- */

/* Threads come and go, so a slot that is not right for all at once may only have met one of those. */
static bool slot_found(u32 pid, struct hb_py_runtime *r, u64 *states)
{
	for (int i = 0; i < 3; i++) {
		r->threads = hb_py_threads__list(pid, r, states, HB_PY_THREADS_MAX);
		if (r->threads && hb_py_threads__slot(pid, r, states, r->threads))
			return true;
	}
	return false;
}

#define WRONG_MAX 5

static void update_one(u32 pid, struct hb_py_runtime *r, u64 *states)
{
	char why[128] = "";

	if (!slot_found(pid, r, states)) {
		snprintf(r->why, sizeof(r->why), "%s",
			 r->threads ? "its threads' states are not found in their own memory"
				    : "it has not started up yet");
		return;
	}
	switch (hb_py_walk__try(pid, r, states, r->threads, why, sizeof(why))) {
	case HB_PY_WALK_RIGHT:
		r->state = HB_PY_READY;
		r->why[0] = 0;
		break;
	case HB_PY_WALK_NOTHING:
		snprintf(r->why, sizeof(r->why), "none of its threads runs Python code");
		break;
	default:
		/* Frames change while they are read: once is no proof. */
		snprintf(r->why, sizeof(r->why), "its frames make no sense: %s", why);
		if (++r->wrong < WRONG_MAX)
			break;
		refuse(r, "%s: its frames are not laid out as in Python 3.%u%s elsewhere: %s", r->path,
		       r->minor, r->free_threaded ? "t" : "", why);
	}
}

bool hb_python__update(struct hb_python *py)
{
	u64 *states = malloc(HB_PY_THREADS_MAX * sizeof(*states));
	bool changed = false;

	for (u32 i = 0; states && i < py->n; i++) {
		if (py->runtime[i].state != HB_PY_WAITING)
			continue;
		update_one(py->pid, &py->runtime[i], states);
		changed |= py->runtime[i].state != HB_PY_WAITING;
	}
	free(states);
	return changed;
}

bool hb_python__waits(const struct hb_python *py)
{
	for (u32 i = 0; i < py->n; i++)
		if (py->runtime[i].state == HB_PY_WAITING)
			return true;
	return false;
}

bool hb_python__kernel(const struct hb_python *py, struct hb_py_process *out)
{
	memset(out, 0, sizeof(*out));
	for (u32 i = 0; i < py->n; i++)
		if (py->runtime[i].state == HB_PY_READY)
			out->runtime[out->n++] = py->runtime[i].off.walk;
	return out->n > 0;
}

void hb_python__each_stack(const struct hb_python *py,
			   void (*fn)(u64 thread, const struct hb_stack_trace *t, void *arg), void *arg)
{
	u64 *states = malloc(HB_PY_THREADS_MAX * sizeof(*states)), thread;
	struct hb_stack_trace t;

	for (u32 i = 0; states && i < py->n; i++) {
		const struct hb_py_runtime *r = &py->runtime[i];
		u32 n =
		    r->state == HB_PY_READY ? hb_py_threads__list(py->pid, r, states, HB_PY_THREADS_MAX) : 0;

		for (u32 k = 0; k < n; k++)
			if (hb_py_memory__word(py->pid, states[k] + r->off.walk.thread_id, &thread) &&
			    hb_py_walk__trace(py->pid, r, states[k], &t))
				fn(thread, &t, arg);
	}
	free(states);
}
