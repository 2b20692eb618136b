/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "analysis/model/decode.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

const char *hb_decode__syscall(unsigned sysno, char *buf, size_t size)
{
	const char *name;

	if (sysno == HB_SYSNO_NONE)
		return NULL;
	name = hb_sysno__name(sysno);
	if (name)
		return name;
	snprintf(buf, size, "syscall_%u", sysno);
	return buf;
}

/* Calls that sleep or move data on their first argument. */
static const char *const fd_calls[] = {
    "read",	      "write",		 "readv",      "writev",     "pread64",	   "pwrite64",	"preadv",
    "pwritev",	      "recvfrom",	 "recvmsg",    "recvmmsg",   "sendto",	   "sendmsg",	"sendmmsg",
    "accept",	      "accept4",	 "connect",    "shutdown",   "fsync",	   "fdatasync", "epoll_wait",
    "epoll_pwait",    "epoll_pwait2",	 "epoll_ctl",  "ioctl",	     "close",	   "flock",	"fcntl",
    "fstat",	      "lseek",		 "ftruncate",  "fallocate",  "getdents64", "sendfile",	"splice",
    "io_uring_enter", "timerfd_settime", "setsockopt", "getsockopt", "bind",	   "listen",
};

bool hb_decode__fd_call(unsigned sysno)
{
	static u8 known[1024]; /* 0 not looked up yet, 1 no, 2 yes */
	const char *name;

	if (sysno >= COUNT(known))
		return false;
	if (!known[sysno]) {
		known[sysno] = 1;
		name = hb_sysno__name(sysno);
		for (size_t i = 0; name && i < COUNT(fd_calls); i++)
			if (strcmp(name, fd_calls[i]) == 0)
				known[sysno] = 2;
	}
	return known[sysno] == 2;
}

const char *hb_decode__socket(u64 v, char *buf, size_t size)
{
	u32 ip = (u32)(v >> 16);

	snprintf(buf, size, "%u.%u.%u.%u:%u", ip >> 24, (ip >> 16) & 255, (ip >> 8) & 255, ip & 255,
		 (u32)(v & 0xffff));
	return buf;
}

static const char *inet_chan(const struct hb_rec_offcpu *r, char *buf, size_t size)
{
	char a[32] = "?", b[32] = "?";

	if (r->local)
		hb_decode__socket(r->local, a, sizeof(a));
	if (r->peer)
		hb_decode__socket(r->peer, b, sizeof(b));
	if (r->local || r->peer)
		snprintf(buf, size, "%s %s -> %s", hb_word(HB_WORDS_CHANKIND, r->chankind), a, b);
	else
		snprintf(buf, size, "%s inode %" PRIu64, hb_word(HB_WORDS_CHANKIND, r->chankind), r->chan);
	return buf;
}

const char *hb_decode__chan(const struct hb_rec_offcpu *r, char *buf, size_t size)
{
	const char *kind = hb_word(HB_WORDS_CHANKIND, r->chankind);

	switch (r->chankind) {
	case HB_CHAN_NONE:
		return NULL;
	case HB_CHAN_TIMER:
		return kind;
	case HB_CHAN_FUTEX:
		snprintf(buf, size, "%s 0x%" PRIx64, kind, r->chan);
		return buf;
	case HB_CHAN_TCP:
	case HB_CHAN_UDP:
		return inet_chan(r, buf, size);
	case HB_CHAN_UNIX:
		if (r->peer) {
			snprintf(buf, size, "%s %" PRIu64 " -> %" PRIu64, kind, r->chan, r->peer);
			return buf;
		}
		break;
	}
	snprintf(buf, size, r->chan ? "%s %" PRIu64 : "%s", kind, r->chan);
	return buf;
}

/* "socket:[12] tcp a -> b" names its own inode. By the time it was looked at the number may have been closed
 * and given to another file: then it is not what was slept on. */
static bool is_inode(const char *text, u64 chan)
{
	u64 ino;

	return !chan || sscanf(text, "%*[a-z]:[%" SCNu64 "]", &ino) != 1 || ino == chan;
}

const char *hb_decode__fd(const struct hb_window *w, u32 pid, u64 fd, u64 chan)
{
	const char *text = fd <= UINT32_MAX ? hb_window__fd(w, pid, (u32)fd, chan) : NULL, *words;

	if (!text || !is_inode(text, chan))
		return NULL;
	words = strncmp(text, "socket:[", 8) == 0 ? strchr(text, ' ') : NULL;
	return words && words[1] ? words + 1 : text;
}

/* What the record does not say by itself. */
static const char *more_of(const struct hb_window *w, u32 pid, const struct hb_rec_offcpu *r)
{
	const char *text =
	    hb_decode__fd_call(r->sysno) && r->chan ? hb_decode__fd(w, pid, r->a0, r->chan) : NULL;

	if (text && r->chankind == HB_CHAN_FILE)
		return text;
	if (text && r->chankind == HB_CHAN_UNIX && strncmp(text, "unix ", 5) == 0)
		return text + 5;
	/* IPv6 addresses do not fit into a record */
	return text && (r->chankind == HB_CHAN_TCP || r->chankind == HB_CHAN_UDP) && strchr(text, '[') ? text
												       : NULL;
}

const char *hb_decode__slept_on(const struct hb_window *w, u32 pid, const struct hb_rec_offcpu *r, char *buf,
				size_t size)
{
	char plain[96];
	const char *chan = hb_decode__chan(r, plain, sizeof(plain)), *more = more_of(w, pid, r);

	if (!chan)
		return NULL;
	if (more && (r->chankind == HB_CHAN_TCP || r->chankind == HB_CHAN_UDP))
		snprintf(buf, size, "%s", more);
	else
		snprintf(buf, size, "%s%s%s", chan, more ? " " : "", more ? more : "");
	return hb_text__clean(buf);
}

const char *hb_decode__copy_kind(const char *api, unsigned kind)
{
	static const char *const words[] = {"HtoH", "HtoD", "DtoH", "DtoD", "default"};
	static const char *const apis[] = {"cuda-runtime", "cuda-driver", "hip", "ascend"};

	for (size_t i = 0; i < COUNT(apis); i++)
		if (strcmp(api, apis[i]) == 0)
			return kind < COUNT(words) ? words[kind] : NULL;
	return NULL;
}

const char *hb_decode__datatype(const char *api, unsigned kind, unsigned *bytes)
{
	static const struct {
		const char *name;
		unsigned bytes;
	} nccl[] = {{"int8", 1},    {"uint8", 1},    {"int32", 4},	{"uint32", 4},
		    {"int64", 8},   {"uint64", 8},   {"float16", 2},	{"float32", 4},
		    {"float64", 8}, {"bfloat16", 2}, {"float8e4m3", 1}, {"float8e5m2", 1}};

	if ((strcmp(api, "nccl") != 0 && strcmp(api, "rccl") != 0) || kind >= COUNT(nccl))
		return NULL;
	*bytes = nccl[kind].bytes;
	return nccl[kind].name;
}

const char *hb_decode__frame_file(const struct hb_window *w, const struct hb_loc *l)
{
	return hb_window__string(w, l->lang == HB_LANG_PYTHON ? l->file : l->module);
}

/* Where modules begin in a path: after the last of these. Elsewhere only the file's own name is sure. */
static const char *module_begin(const char *file)
{
	static const char *const roots[] = {"/site-packages/", "/dist-packages/", "/lib-dynload/"};
	const char *begin = NULL;

	for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++)
		for (const char *at = strstr(file, roots[i]); at; at = strstr(at + 1, roots[i]))
			begin = at + strlen(roots[i]) > begin ? at + strlen(roots[i]) : begin;
	if (begin)
		return begin;
	begin = strstr(file, "/lib/python3");
	begin = begin ? strchr(begin + 5, '/') : NULL;
	return begin ? begin + 1 : hb_text__basename(file);
}

const char *hb_decode__module(const char *file, char *buf, size_t size)
{
	const char *at = module_begin(file);
	size_t n = strlen(at);

	if (n > 3 && strcmp(at + n - 3, ".py") == 0)
		n -= 3;
	if (n > 9 && strncmp(at + n - 9, "/__init__", 9) == 0)
		n -= 9;
	if (*at == '<' || n >= size) /* "<string>", "<frozen importlib._bootstrap>" */
		n = 0;
	for (size_t i = 0; i < n; i++)
		buf[i] = at[i] == '/' ? '.' : at[i];
	buf[n] = 0;
	return buf;
}

/* Files are told by their last two names at most: "v1/core.py" would do for a person, but not "__init__.py".
 */
static const char *short_file(const char *path)
{
	const char *base = hb_text__basename(path);

	if (strcmp(base, "__init__.py") != 0)
		return base;
	for (base -= base > path; base > path && base[-1] != '/';)
		base--;
	return base;
}

static const char *python_frame(const struct hb_window *w, const struct hb_loc *l, bool line, char *buf,
				size_t size)
{
	const char *func = hb_window__string(w, l->func), *file = short_file(hb_window__string(w, l->file));
	char at[16] = "";

	if (line && l->line)
		snprintf(at, sizeof(at), ":%u", l->line);
	if (*func && !*file && !*at) /* of an imported trace: built in, or a module's name */
		snprintf(buf, size, "%.*s", (int)size - 1, func);
	else if (*func)
		snprintf(buf, size, "%.*s (%.*s%s)", (int)size / 2 - 16, func, (int)size / 2 - 16, file, at);
	else
		snprintf(buf, size, "[python]");
	return hb_text__clean(buf);
}

const char *hb_decode__kernel(const char *name, char *buf, size_t size)
{
	static const char anonymous[] = "(anonymous namespace)";
	const char *from = strncmp(name, "void ", 5) == 0 ? name + 5 : name, *at = from;

	while (*at && *at != '<') {
		if (strncmp(at, anonymous, sizeof(anonymous) - 1) == 0)
			at += sizeof(anonymous) - 1;
		else if (*at == '(')
			break;
		else if (*at == ':' && at[1] == ':')
			from = at += 2;
		else
			at++;
	}
	if (at == from || !strchr(name, '('))
		snprintf(buf, size, "%s", name);
	else
		snprintf(buf, size, "%.*s%s", (int)(at - from), from, *at == '<' ? "<..>" : "");
	return hb_text__clean(buf);
}

const char *hb_decode__lang(const struct hb_loc *l)
{
	static const char *const langs[] = {
	    [HB_LANG_NATIVE] = "native", [HB_LANG_KERNEL] = "kernel", [HB_LANG_PYTHON] = "py"};

	return l->lang < sizeof(langs) / sizeof(*langs) ? langs[l->lang] : "?";
}

const char *hb_decode__stack_state(const struct hb_stack *s)
{
	static const char *const states[] = {
	    [HB_STACK_TRUNCATED] = "truncated", [HB_STACK_BROKEN] = "broken"};

	if (!s->n)
		return "missing";
	return s->state < sizeof(states) / sizeof(*states) ? states[s->state] : NULL;
}

const char *hb_decode__frame(const struct hb_window *w, const struct hb_loc *l, enum hb_frame_style style,
			     char *buf, size_t size)
{
	const char *module = hb_text__basename(hb_window__string(w, l->module));
	const char *func = hb_window__string(w, l->func);
	const char *mark = style != HB_FRAME_NAME && l->lang == HB_LANG_KERNEL ? "_[k]" : "";

	if (l->lang == HB_LANG_PYTHON && (style != HB_FRAME_NAME || !*func))
		return python_frame(w, l, style == HB_FRAME_LINE, buf, size);
	if (*func)
		snprintf(buf, size, "%.*s%s", (int)size - 5, func, mark);
	else
		snprintf(buf, size, "%.*s+0x%" PRIx64 "%s", (int)size - 32, *module ? module : "[unknown]",
			 l->offset, mark);
	return hb_text__clean(buf);
}

const char *hb_decode__comm(const struct hb_window *w, const struct hb_task *t)
{
	const char *s = t ? hb_window__string(w, t->comm) : "";

	return *s ? s : "?";
}

u64 hb_decode__loss_all(const struct hb_window *w)
{
	u64 n = 0;

	for (unsigned c = 0; c < HB_LOSS_COUNT; c++)
		n += hb_window__loss_total(w, c);
	return n;
}

const char *hb_decode__loss_doc(enum hb_loss cause)
{
	static const char *const docs[HB_LOSS_COUNT] = {
	    [HB_LOSS_RING_FULL] = "records dropped: no room in a ring (--buffer makes it larger)",
	    [HB_LOSS_STACK_FULL] = "stacks not kept: table full; the records are there",
	    [HB_LOSS_STACK_NONE] = "stacks not readable; the records are there",
	    [HB_LOSS_NESTING] = "calls nested deeper than is followed",
	    [HB_LOSS_NO_STORAGE] = "the kernel refused memory for a thread",
	    [HB_LOSS_LATE] = "stretches in which a process or library lived unprobed",
	    [HB_LOSS_UNFINISHED] = "calls begun before the window or not returned at its end",
	    [HB_LOSS_ARGS] = "arguments not readable; the records are there",
	    [HB_LOSS_MMAP_LOST] = "mapping events dropped by the kernel",
	    [HB_LOSS_DISK] = "records that could not be written to the file",
	    [HB_LOSS_TASKS] = "records of threads beyond 65,535",
	    [HB_LOSS_MISSED] = "hooks that the kernel did not run: their events are missing",
	    [HB_LOSS_UNKNOWN_TYPE] = "records of a type this version does not know",
	    [HB_LOSS_PY_TRUNCATED] = "Python stacks deeper than is walked: without their outermost functions",
	    [HB_LOSS_PY_UNREADABLE] = "Python stacks not readable to their end",
	    [HB_LOSS_PY_UNRESOLVED] = "Python functions gone before their names were read",
	    [HB_LOSS_PY_FUNCTIONS] = "Python functions beyond --max-functions: without their names",
	    [HB_LOSS_PY_REPLACED] =
		"frames of Python functions that did not stay: maybe under an earlier one's name",
	    [HB_LOSS_PY_EXCEPTIONS] = "exceptions of more classes and places than are told apart",
	    [HB_LOSS_PY_TASKS] = "asyncio tasks gone before their names were read; their records are there",
	    [HB_LOSS_PY_MOVED] =
		"stacks of holders of a GIL that ran too fast to be read; the records are there",
	    [HB_LOSS_DAMAGED] = "damaged or missing blocks of the file",
	    [HB_LOSS_IMPORT_ODD] =
		"rows of the imported trace that are odd: not used, or with a guess (see the notes)",
	    [HB_LOSS_IMPORT_CUT] = "the imported trace ends in the middle: what came after is missing",
	};

	return cause < HB_LOSS_COUNT && docs[cause] ? docs[cause] : "";
}

const char *hb_decode__simulated(const struct hb_window *w)
{
	return hb_window__info(w)->simulated ? "simulated accelerator" : NULL;
}
