/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The window file (.hbw): a bounded recording that explains itself. docs/window-format.md is its
 * specification.
 *
 * A file is a valid zstd stream: data in independent zstd frames (256 KiB of records, level 1, checksummed),
 * all the rest (header, schema, tables, index, footer) in skippable frames. It is written as NAME.part and
 * renamed when finished; cut at any byte it still opens with every whole frame.
 *
 * Writer: put() may be called from one thread per stream; table functions take a lock and may be called from
 * any. Reader: one thread; everything it hands out lives until hb_window__close().
 */
#ifndef HB_WINDOW_H
#define HB_WINDOW_H

#include "base/error.h"
#include "schema/schema.h"

#define HB_WINDOW_MAJOR 1
#define HB_WINDOW_MINOR 0

/* ---- tables ---- */

/* Ids are dense, start at 1; 0 means "none": string 0 is "", task 0 is nobody (all zero), so that an array of
 * as many items as hb_window__tasks() says may be indexed by hb_record.task_idx. */
struct hb_task { /* one thread that occurs in the window, target or bystander (a waker) */
	u32 pid, tid;
	u32 nspid, nstid; /* in the innermost pid namespace; equal to pid, tid outside of one */
	u32 comm;	  /* string: last name seen */
	u32 target;	  /* 1: thread of a traced process */
};

struct hb_proc { /* one traced process */
	u32 pid, ppid, nspid;
	u32 exe, cmdline, cgroup, container; /* strings; 0 = unknown */
	u32 how;			     /* enum hb_how */
	u64 start;			     /* monotonic ns when it started, 0 unknown */
	u64 since;			     /* monotonic ns from which it was probed */
};

struct hb_probe_row { /* one probed function; `probe` members of records are ids of this table */
	u32 name;     /* string: symbol as in the table, version suffix stripped */
	u32 symbol;   /* string: the symbol really probed */
	u32 api;      /* string: cuda-driver, cuda-runtime, nccl, opencl, hip, level-zero, ascend, ... */
	u32 library;  /* string: path in the target's mount namespace */
	u8 cls, layer, handle, timed; /* enum hb_class, hb_layer, hb_handle; 1: entry and return are probed */
	u32 reserved;
};

struct hb_loc {	    /* one code location */
	u32 func;   /* string; 0 = unknown (print module+offset) */
	u32 file;   /* string: source file; 0 = unknown */
	u32 module; /* string: library or executable */
	u32 line;
	u64 offset; /* in the module's file */
	u32 lang;   /* enum hb_lang */
	u32 reserved;
};
enum hb_lang { HB_LANG_NATIVE = 0, HB_LANG_KERNEL = 1, HB_LANG_PYTHON = 2 };

enum hb_stack_state { HB_STACK_WHOLE = 0, HB_STACK_TRUNCATED = 1, HB_STACK_BROKEN = 2 };
struct hb_stack {	 /* STACK members are resolved by (pid, raw id), see hb_window__stack() */
	const u32 *locs; /* outermost first: ids of the location table */
	u32 n;
	u32 state; /* enum hb_stack_state */
};

struct hb_loss_row {
	u32 cause; /* enum hb_loss */
	u32 type;  /* HB_TYPE_*, 0 = not about one type */
	u32 cpu;   /* 0xffffffff = not about one CPU */
	u32 reserved;
	u64 count;
};

struct hb_fd_row { /* what a file descriptor was while something slept on it or called with it */
	u64 chan;  /* inode number, as `chan` of an offcpu record; 0 = not known */
	u32 pid, fd;
	u32 text; /* string: path, "tcp 127.0.0.1:80 -> 127.0.0.1:4711", "pipe:[7]" .. */
	u32 reserved;
};

struct hb_pytask_row {	 /* name of the asyncio task whose root coroutine lay at an address from then on */
	u64 task, since; /* since: monotonic ns */
	u32 pid, name;	 /* name: string; 0: not known from then on */
};

/* ---- writer ---- */

struct hb_window_writer;

struct hb_window_opts {
	unsigned streams; /* streams of data records, numbered 0.. (one per ring) */
	bool force;	  /* replace an existing file at the end, and a leftover .part at once */
	u64 max_size; /* bytes; 0 = unlimited. put() returns -EFBIG before what was accepted could exceed it;
		       * an eighth is kept for tables. */
	unsigned exempt; /* so many of the last streams go on: a few records about the end */
	u64 start_ts;	 /* monotonic ns of the window's begin */
	u64 real_ts;	 /* wall clock then, ns; 0: as the two clocks of this machine stand now */
};

/* Says early what hb_window_writer__new would refuse; touches nothing. */
int hb_window_writer__check(const char *path, bool force, struct hb_error *e);

/* Creates PATH.part (O_EXCL, O_NOFOLLOW, 0600; that of a dead writer is replaced only with `force`, that of a
 * live writer never) and writes header and schema. Refuses early when PATH exists and `force` is off, or when
 * the directory is missing. */
struct hb_window_writer *hb_window_writer__new(const char *path, const struct hb_window_opts *o,
					       struct hb_error *e);

/* Appends one record to a stream. `task` comes from hb_window_writer__task(). Payload size is the type's
 * size. Compression and disk writes run on the writer's own thread; put() blocks only when 16 blocks are
 * waiting. -EFBIG: max_size reached; -ENOSPC, -EIO..: the disk said no (sticky; what was written stays
 * readable). */
int hb_window_writer__put(struct hb_window_writer *w, unsigned stream, u64 ts, u16 task, unsigned type,
			  const void *payload);

/* Tables. Each returns the id, or 0 when out of memory. Equal strings and locations get equal ids. */
u32 hb_window_writer__string(struct hb_window_writer *w, const char *s); /* cleaned of control characters */
u32 hb_window_writer__loc(struct hb_window_writer *w, const struct hb_loc *loc);
/* Task index for put(); the same pid and tid again: the same index, and what is known of it is replaced.
 * Index 0xffff = table full (count as loss TASKS). */
u16 hb_window_writer__task(struct hb_window_writer *w, const struct hb_task *t);
/* Replaces what is known of a task (name, namespace ids). */
void hb_window_writer__task_update(struct hb_window_writer *w, u16 idx, const struct hb_task *t);
u32 hb_window_writer__proc(struct hb_window_writer *w,
			   const struct hb_proc *p); /* same pid again: replaced */
/* Row `id` of the probe table (ids are chosen by the plan, from 1); may be given again to replace. */
int hb_window_writer__probe(struct hb_window_writer *w, u32 id, const struct hb_probe_row *row);
int hb_window_writer__stack(struct hb_window_writer *w, u32 pid, u32 raw, const u32 *locs, u32 n,
			    enum hb_stack_state state);
int hb_window_writer__fd(struct hb_window_writer *w,
			 const struct hb_fd_row *row); /* same pid, fd, chan: replaced */
int hb_window_writer__pytask(struct hb_window_writer *w,
			     const struct hb_pytask_row *row); /* same pid and task: in the order of since */
void hb_window_writer__loss(struct hb_window_writer *w,
			    const struct hb_loss_row *row); /* same key: added up */
/* Facts about the window, key -> value, such as "host", "kernel", "profile", "simulated" ("1"), "end". */
void hb_window_writer__meta(struct hb_window_writer *w, const char *key, const char *value);

/* Bytes on disk so far, records accepted so far. */
u64 hb_window_writer__bytes(const struct hb_window_writer *w);
u64 hb_window_writer__records(const struct hb_window_writer *w);

/* Pushes out what is buffered (tables too), so that a SIGKILL from here on loses only what comes later. The
 * session calls it once a second. */
int hb_window_writer__flush(struct hb_window_writer *w);

/* Writes tables, index and footer, fsyncs, renames to the final name. With an error the .part is kept and
 * named in the sentence. Frees the writer in any case. */
int hb_window_writer__finish(struct hb_window_writer *w, u64 end_ts, struct hb_error *e);
/* Gives up: removes the .part and frees. */
void hb_window_writer__abort(struct hb_window_writer *w);

/* ---- reader ---- */

struct hb_window;

struct hb_record {
	u64 ts;	   /* monotonic ns, as in the wire header; a timed record began at ts - dur */
	u64 begin; /* ts - dur; ts for untimed types */
	const struct hb_task *task; /* never NULL; nobody when its table entry is lost */
	u16 type;		    /* always a type known to this version */
	u16 task_idx;
	const void *data; /* struct hb_rec_<type>, zero-extended; valid until the next call */
};

struct hb_window_info {
	u64 start_ts, end_ts; /* monotonic; end is the last record's when the window is incomplete */
	u16 major, minor;
	bool complete;	/* finalised by the writer */
	bool simulated; /* meta "simulated" is 1 */
	u64 bytes;	/* of the file */
	u64 bytes_lost; /* of the file: not understood or cut off */
	u64 frames, frames_bad;
	u64 records; /* in good frames, unknown types included */
	u64 unknown; /* records of types this version does not know (skipped) */
};

/* Opens and checks a file; damage is no error as long as the header is ours (see info and hb_window__damage).
 * Errors: not a window, empty, newer major version: HB_EXIT_FAILED with one sentence. */
struct hb_window *hb_window__open(const char *path, struct hb_error *e);
void hb_window__close(struct hb_window *w);
const struct hb_window_info *hb_window__info(const struct hb_window *w);
/* NULL when whole; else one sentence that says what is missing. */
const char *hb_window__damage(const struct hb_window *w);

/* Records of all streams merged by ts; within a thread's stream the order of writing. Returns 1, 0 at the
 * end, -errno on a read error. rewind starts again. */
int hb_window__next(struct hb_window *w, struct hb_record *r);

/* Some records that follow one another, and which of them are of a type: who goes through one type after the
 * other does the same thing many times. */
#define HB_RECORDS_MAX 64u
struct hb_records {
	u32 n;
	u64 types;				 /* a bit for each type that occurs */
	u64 of[HB_TYPE_MAX];			 /* a bit for each record of that type */
	struct hb_record record[HB_RECORDS_MAX]; /* in order of time */
};
#define hb_each_bit(i, bits)                                                                                 \
	for (u64 left_##i = (bits), i; left_##i && (i = (u64)__builtin_ctzll(left_##i), true);               \
	     left_##i &= left_##i - 1)
static inline bool hb_records__has(const struct hb_records *b, u32 type)
{
	return b->types >> type & 1;
}
/* record[n], which is set, is one more of them. */
static inline void hb_records__add(struct hb_records *b)
{
	u32 type = b->record[b->n].type;

	b->types |= 1ULL << type;
	b->of[type] |= 1ULL << b->n++;
}
/* Some of the next records (not to be mixed with hb_window__next): 1, 0 at the end, -errno on a read error.
 * They are valid until the next call. What is handed in is all zero the first time, then as it was left. */
int hb_window__take(struct hb_window *w, struct hb_records *b);
void hb_window__rewind(struct hb_window *w);
/* How many records of a type the file says it has. A damaged one may have fewer. */
u64 hb_window__count(const struct hb_window *w, u32 type);

const char *hb_window__string(const struct hb_window *w,
			      u32 id); /* never NULL; "" for 0, "?" beyond the table */
const struct hb_task *hb_window__task(const struct hb_window *w, u16 idx); /* NULL beyond */
const struct hb_task *hb_window__tasks(const struct hb_window *w, u32 *n);
const struct hb_task *hb_window__task_by_tid(const struct hb_window *w, u32 tid); /* NULL when unknown */
const struct hb_proc *hb_window__procs(const struct hb_window *w, u32 *n);
const struct hb_probe_row *hb_window__probe(const struct hb_window *w, u32 id); /* NULL beyond */
u32 hb_window__probes(const struct hb_window *w);				/* highest id */
const struct hb_loc *hb_window__loc(const struct hb_window *w, u32 id);		/* NULL beyond */
/* Frames of a stack id found in a record of process `pid`; n = 0 when it was not kept. */
struct hb_stack hb_window__stack(const struct hb_window *w, u32 pid, u32 raw);
/* What (pid, fd) was when its inode was `chan`; 0: whatever was seen last. NULL when never looked at. */
const char *hb_window__fd(const struct hb_window *w, u32 pid, u32 fd, u64 chan);
/* Name of the asyncio task that was at this address at that time; NULL when it was not read. */
const char *hb_window__pytask(const struct hb_window *w, u32 pid, u64 task, u64 ts);
const struct hb_loss_row *hb_window__losses(const struct hb_window *w, u32 *n);
u64 hb_window__loss_total(const struct hb_window *w, enum hb_loss cause);
const char *hb_window__meta(const struct hb_window *w, const char *key); /* NULL when absent */
/* i-th meta pair, false at the end. */
bool hb_window__meta_at(const struct hb_window *w, u32 i, const char **key, const char **value);

#endif
