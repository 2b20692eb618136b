/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/python/calls.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "capture/symbols/symbols.h"

#define EVAL "_PyEval_EvalFrameDefault"

#define HOLES_END                                                                                            \
	"only ends are seen: no durations, and of generators and coroutines not what they yield but their "  \
	"end"

static const struct way {
	u8 from, to;	   /* minor versions */
	u8 way, frame_arg; /* enum hb_py_way; see hb_py_call_site */
	const char *symbol, *holes;
} ways[] = {
    {8, 8, HB_PY_WAY_FRAME, 0, EVAL, NULL},
    {9, 10, HB_PY_WAY_FRAME, 1, EVAL, NULL},
    {11, 11, HB_PY_WAY_END, 0, "_PyFrame_Clear", HOLES_END "; a generator dropped before its end counts"},
    {12, 12, HB_PY_WAY_END, 1, "_PyEvalFrameClearAndPop", HOLES_END},
    {12, 12, HB_PY_WAY_END, 0, "_PyFrame_ClearExceptCode",
     HOLES_END "; a generator dropped before its end counts"},
    {13, 255, HB_PY_WAY_END, 1, "_PyEval_FrameClearAndPop", HOLES_END},
    {11, 11, HB_PY_WAY_HOOK, 1, EVAL,
     "__getitem__ called by specialised code of 3.11.2 and older; interpreters that start later"},
    {12, 12, HB_PY_WAY_HOOK, 1, EVAL, "interpreters that start later"},
    {13, 13, HB_PY_WAY_HOOK, 1, EVAL, "__init__ called by specialised code; interpreters that start later"},
    {14, 255, HB_PY_WAY_HOOK, 1, EVAL, "interpreters that start later"},
};
#define N_WAYS (sizeof(ways) / sizeof(*ways))

/* Where the way a frame was left can be read, by version: 3.8 and 3.9 keep the stack's top in a frame that
 * goes on later, 3.10 its state, and then generators theirs, right before their frame. */
static const struct {
	u8 from, to, suspended;
	s32 at;
	u16 exception; /* in the thread state */
} states[] = {
    {8, 9, HB_PY_SUSPENDED_WORD, 72, 88},   {10, 10, HB_PY_SUSPENDED_MINUS, 108, 88},
    {11, 11, HB_PY_SUSPENDED_GEN, -5, 96},  {12, 12, HB_PY_SUSPENDED_GEN, -5, 96},
    {13, 14, HB_PY_SUSPENDED_GEN, -5, 112}, {15, 15, HB_PY_SUSPENDED_NONE, 0, 136},
};

/* ---- the file ---- */

struct image {
	const struct hb_mapping *map;
	struct hb_elf *elf;
	char path[4200];
	u64 bias;
};

static bool open_image(const struct hb_process *p, const struct hb_py_runtime *r, struct image *im)
{
	u64 vaddr;

	memset(im, 0, sizeof(*im));
	for (u32 i = 0; i < p->n_maps && !im->map; i++)
		if (p->maps[i].ino == r->file && strcmp(p->maps[i].path, r->path) == 0)
			im->map = &p->maps[i];
	if (!im->map || hb_process__open_path(p, im->map, im->path, sizeof(im->path)))
		return false;
	im->elf = hb_elf__open(im->path, NULL);
	if (!im->elf)
		return false;
	if (hb_elf__vaddr(im->elf, im->map->pgoff, &vaddr)) {
		im->bias = im->map->start - vaddr;
		return true;
	}
	hb_elf__close(im->elf);
	return false;
}

static u64 address(const struct image *im, const char *name)
{
	struct hb_sym s;

	return hb_elf__find(im->elf, name, &s) == 0 && s.state == HB_SYM_OK ? im->bias + s.value : 0;
}

/* Behind endbr64 a push is emulated, which costs the target a quarter; registers and the return address are
 * where they were. */
static u64 cheapest(const struct image *im, u64 offset)
{
	static const u8 endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	u8 code[6];
	int fd = open(im->path, O_RDONLY | O_CLOEXEC);
	bool push = false;

	if (fd < 0)
		return offset;
	if (pread(fd, code, sizeof(code), (off_t)offset) == sizeof(code) && !memcmp(code, endbr64, 4))
		push = (code[4] & 0xf8) == 0x50 || (code[4] == 0x41 && (code[5] & 0xf8) == 0x50);
	close(fd);
	return push ? offset + 4 : offset;
}

/* ---- the way ---- */

/* greenlet swaps pieces of a thread's stack, and the kernel finds the place to return to by order: it would
 * return into another call. */
bool hb_py_calls__swaps_stacks(const char *path)
{
	return strstr(hb_text__basename(path), "greenlet") != NULL;
}

const char *hb_py_calls__no_return(const struct hb_process *p)
{
	for (u32 i = 0; i < p->n_maps; i++)
		if (hb_py_calls__swaps_stacks(p->maps[i].path))
			return "greenlet is loaded, which swaps stacks: the kernel would return into the "
			       "wrong call";
	return NULL;
}

static void describe_site(const struct hb_py_runtime *r, u32 index, const struct way *w,
			  struct hb_py_calls *c)
{
	c->site = (struct hb_py_call_site){.runtime = (u8)index,
					   .frame_arg = w->frame_arg,
					   .ends = w->way == HB_PY_WAY_END,
					   .owner = r->minor == 11 ? 69 : (u8)r->off.walk.owner,
					   .timed = c->ret};
	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
		if (r->minor < states[i].from || r->minor > states[i].to)
			continue;
		c->site.suspended = r->free_threaded ? HB_PY_SUSPENDED_NONE : states[i].suspended;
		c->site.suspended_at = states[i].at;
		c->site.exception = states[i].exception;
	}
}

/* Specialised code of 3.13 runs __init__ inside of its caller whatever the hook says: such calls are told by
 * their ends. */
static void take_ends(const struct image *im, struct hb_py_calls *c)
{
	struct hb_sym s;

	if (!c->ret || hb_elf__find(im->elf, "_PyEval_FrameClearAndPop", &s) || s.state != HB_SYM_OK)
		return;
	c->end_offset = cheapest(im, s.offset);
	c->end_site = c->site;
	c->end_site.frame_arg = 1;
	c->end_site.ends = c->end_site.inlined = 1;
	c->end_site.timed = 0;
	c->holes = "interpreters that start later; __init__ called by specialised code has no duration";
}

static bool take(const struct hb_process *p, const struct hb_py_runtime *r, u32 index, const struct way *w,
		 const struct image *im, struct hb_py_calls *c)
{
	struct hb_sym s;

	if (hb_elf__find(im->elf, w->symbol, &s) || s.state != HB_SYM_OK)
		return false;
	c->way = (enum hb_py_way)w->way;
	c->symbol = w->symbol;
	c->map = im->map;
	c->offset = cheapest(im, s.offset);
	c->holes = w->holes;
	if (w->way == HB_PY_WAY_HOOK && r->minor == 11 && r->exact && r->micro >= 7)
		c->holes = "interpreters that start later";
	if (w->way != HB_PY_WAY_END)
		c->no_return = hb_py_calls__no_return(p);
	c->ret = w->way != HB_PY_WAY_END && !c->no_return;
	describe_site(r, index, w, c);
	if (w->way == HB_PY_WAY_HOOK && r->minor == 13)
		take_ends(im, c);
	return true;
}

static void choose(const struct hb_process *p, const struct hb_py_runtime *r, u32 index, bool hook,
		   const struct image *im, struct hb_py_calls *c)
{
	bool wanted = hook && r->minor >= 11;

	for (size_t i = 0; i < N_WAYS && !c->way; i++)
		if (r->minor >= ways[i].from && r->minor <= ways[i].to &&
		    (ways[i].way == HB_PY_WAY_HOOK) == wanted)
			take(p, r, index, &ways[i], im, c);
	if (!c->way)
		snprintf(c->why, sizeof(c->why),
			 "%s has no symbol for the end of a frame (it is stripped); --py-hook eval_frame "
			 "sees calls there",
			 hb_text__basename(r->path));
	c->eval = r->eval;
	c->get_hook = r->get_hook;
	c->get_limit = address(im, "Py_GetRecursionLimit");
}

void hb_py_calls__find(const struct hb_process *p, const struct hb_py_runtime *r, u32 index, bool hook,
		       struct hb_py_calls *out)
{
	struct image im;

	memset(out, 0, sizeof(*out));
	if (r->state != HB_PY_READY) {
		snprintf(out->why, sizeof(out->why), "%s", r->why);
		return;
	}
	if (!open_image(p, r, &im)) {
		snprintf(out->why, sizeof(out->why), "%.200s cannot be opened", r->path);
		return;
	}
	choose(p, r, index, hook, &im, out);
	hb_elf__close(im.elf);
}

/* ---- for a person ---- */

static const char *const words[] = {
    [HB_PY_WAY_NONE] = "not seen",
    [HB_PY_WAY_FRAME] = "all, with durations",
    [HB_PY_WAY_END] = "their ends",
    [HB_PY_WAY_HOOK] = "all, with durations",
};

static size_t describe_hook(const struct hb_process *p, const struct hb_py_runtime *r, char *buf, size_t size)
{
	struct hb_py_hook h;
	struct hb_error e = {0};
	struct hb_py_calls c;
	const char *there = "";
	bool left = false;
	int err;

	hb_py_calls__find(p, r, 0, true, &c);
	if (!c.way)
		return (size_t)snprintf(buf, size, "  calls with --py-hook eval_frame: %s\n", c.why);
	err = hb_py_hook__find(p, r, &c, false, &h, &left, &e);
	if (left)
		there = "; a hook is there already: of a tool that runs, or left by a tool that was killed";
	if (err)
		return (size_t)snprintf(buf, size, "  calls with --py-hook eval_frame: refused: %s%s\n",
					e.text, there);
	return (size_t)snprintf(buf, size, "  calls with --py-hook eval_frame: %s at %s; not seen: %s%s\n",
				words[c.way], c.symbol, c.holes, there);
}

const char *hb_py_calls__describe(const struct hb_process *p, const struct hb_py_runtime *r, char *buf,
				  size_t size)
{
	struct hb_py_calls c;
	size_t n;

	*buf = 0;
	if (r->state == HB_PY_REFUSED)
		return buf;
	hb_py_calls__find(p, r, 0, false, &c);
	if (!c.way)
		n = (size_t)snprintf(buf, size, "  calls: not seen: %s\n", c.why);
	else
		n = (size_t)snprintf(buf, size, "  calls: %s at %s; %s%s%s%s\n", words[c.way], c.symbol,
				     c.holes ? "not complete: " : "complete", c.holes ? c.holes : "",
				     c.no_return ? "; no durations: " : "", c.no_return ? c.no_return : "");
	if (r->minor >= 11 && r->state == HB_PY_READY && n < size)
		describe_hook(p, r, buf + n, size - n);
	return buf;
}
