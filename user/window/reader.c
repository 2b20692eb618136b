/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "window/window.h"
#include "window/frame.h"
#include "window/merge.h"
#include "window/tables_in.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zstd.h>

struct hb_window {
	int fd;
	struct hb_window_info info;
	struct hb_tables_in *tables;
	struct hb_merge *merge;
	bool has_header, has_footer, torn;
	struct hb_footer_body footer;
	u64 first_ts, last_ts; /* of all good data frames */
	u64 next_seq, gaps;    /* frames that the numbering says are not there */
	u64 lost_records;      /* where known */
	u64 undecoded;	       /* frames already counted in info */
	u64 by_type[HB_TYPE_MAX];
	char damage[512];
	struct hb_merge_tasks tasks; /* as hb_tables_in__tasks() has them */
	struct hb_records batch;     /* which hb_window__next() gives one by one */
	u32 at;
};

/* ---- opening ---- */

static int refuse(const char *path, struct hb_error *e, const char *why)
{
	return hb_error__set(e, HB_EXIT_FAILED, -EINVAL, "%s is not a window: %s", path, why);
}

static int open_file(struct hb_window *w, const char *path, struct hb_error *e)
{
	struct stat st;

	w->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* NONBLOCK: a FIFO must not hang us */
	if (w->fd < 0)
		return hb_error__set(e, HB_EXIT_FAILED, -errno, "cannot open window %s: %s", path,
				     strerror(errno));
	if (fstat(w->fd, &st))
		return hb_error__set(e, HB_EXIT_FAILED, -errno, "cannot read %s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return refuse(path, e, "it is not a regular file");
	if (st.st_size == 0)
		return refuse(path, e, "it is empty");
	w->info.bytes = (u64)st.st_size;
	return 0;
}

/* Is it ours, and of a version we know? The version stands at the same place in all versions. */
static int identify(struct hb_window *w, const char *path, struct hb_error *e)
{
	struct hb_frame_head h = {0};
	size_t n = w->info.bytes < sizeof(h) ? (size_t)w->info.bytes : sizeof(h);
	int err = hb_scan__read(w->fd, &h, n, 0);

	if (err)
		return hb_error__set(e, HB_EXIT_FAILED, err, "cannot read %s: %s", path, strerror(-err));
	if (h.magic != HB_SKIP_MAGIC && h.tag != HB_FRAME_TAG)
		return refuse(path, e,
			      "it does not begin like one (.hbw files are made by `herschel-bpf trace`)");
	if (n < sizeof(h))
		return refuse(path, e, "it is cut off inside its header, and nothing else is there");
	if (h.tag == HB_FRAME_TAG && h.major > HB_WINDOW_MAJOR)
		return hb_error__set(e, HB_EXIT_FAILED, -EPROTO,
				     "%s has format version %u.%u, this herschel-bpf reads up to %u.x: use a "
				     "newer herschel-bpf%s",
				     path, h.major, h.minor, HB_WINDOW_MAJOR,
				     hb_frame__head_ok(&h) ? "" : " (or the file's header is damaged)");
	w->info.major = h.major;
	w->info.minor = h.minor;
	return 0;
}

/* ---- frames ---- */

static void on_header(struct hb_window *w, const struct hb_frame *f)
{
	struct hb_header_body h = {0};

	if (w->has_header)
		return;
	memcpy(&h, f->body, f->n_body < sizeof(h) ? f->n_body : sizeof(h));
	w->has_header = true;
	w->info.start_ts = h.start_ts;
	w->info.major = f->head.major;
	w->info.minor = f->head.minor;
}

static int on_table(struct hb_window *w, const struct hb_frame *f)
{
	u8 *plain;
	int err;

	if (!(f->head.flags & HB_FRAME_ZSTD))
		return hb_tables_in__apply(w->tables, f->body, f->n_body);
	plain = malloc(f->head.raw ? f->head.raw : 1);
	if (!plain)
		return -ENOMEM;
	if (ZSTD_decompress(plain, f->head.raw, f->body, f->n_body) == f->head.raw)
		err = hb_tables_in__apply(w->tables, plain, f->head.raw);
	else
		err = hb_tables_in__apply(w->tables, "?", 1); /* counted as malformed */
	free(plain);
	return err;
}

static int on_data(struct hb_window *w, const struct hb_frame *f)
{
	struct hb_data_head d;
	struct hb_data_type t;

	memcpy(&d, f->body, sizeof(d));
	for (u32 i = 0; i < d.n_types; i++) {
		memcpy(&t, f->body + sizeof(d) + i * sizeof(t), sizeof(t));
		if (!hb_schema__type(t.type))
			w->info.unknown += t.count;
		else
			w->by_type[t.type] += t.count;
	}
	if (!w->info.frames || d.min_ts < w->first_ts)
		w->first_ts = d.min_ts;
	if (!w->info.frames || d.max_ts > w->last_ts)
		w->last_ts = d.max_ts;
	w->info.frames++;
	w->info.records += d.count;
	return hb_merge__add(w->merge, f);
}

static void on_footer(struct hb_window *w, const struct hb_frame *f)
{
	memset(&w->footer, 0, sizeof(w->footer));
	memcpy(&w->footer, f->body, f->n_body < sizeof(w->footer) ? f->n_body : sizeof(w->footer));
	w->has_footer = true;
}

static int on_frame(struct hb_window *w, const struct hb_frame *f)
{
	if (f->head.seq > w->next_seq)
		w->gaps += f->head.seq - w->next_seq;
	w->next_seq = (u64)f->head.seq + 1;
	switch (f->head.kind) {
	case HB_FRAME_HEADER:
		on_header(w, f);
		return 0;
	case HB_FRAME_TABLE:
		return on_table(w, f);
	case HB_FRAME_DATA:
		return on_data(w, f);
	case HB_FRAME_FOOTER:
		on_footer(w, f);
		return 0;
	default: /* schema and index are for other readers; unknown kinds belong to a newer minor version */
		return 0;
	}
}

static int read_frames(struct hb_window *w, const char *path, struct hb_error *e)
{
	struct hb_scan scan;
	struct hb_frame f;
	int r = hb_scan__init(&scan, w->fd, w->info.bytes);

	if (r == 0)
		while ((r = hb_scan__next(&scan, &f)) > 0 && (r = on_frame(w, &f)) == 0)
			;
	w->info.bytes_lost = scan.lost_bytes;
	w->info.frames_bad = scan.bad_frames;
	w->lost_records = scan.lost_records;
	w->torn = scan.torn;
	hb_scan__free(&scan);
	if (r < 0)
		return hb_error__set(e, HB_EXIT_FAILED, r, "cannot read window %s: %s", path, strerror(-r));
	if (!w->next_seq)
		return refuse(path, e, "its header is cut off or damaged, and no whole frame is there");
	return 0;
}

/* ---- what is missing ---- */

static void say_frames(struct hb_window *w, struct hb_buf *b)
{
	char n[32], m[32];

	if (w->info.frames_bad)
		hb_buf__printf(b, ", %s of its frames cannot be read",
			       hb_text__count(n, sizeof(n), w->info.frames_bad));
	if (w->lost_records)
		hb_buf__printf(b, ", %s%s records are lost", w->has_footer ? "" : "at least ",
			       hb_text__count(n, sizeof(n), w->lost_records));
	if (w->info.bytes_lost)
		hb_buf__printf(b, ", %s of %s are not readable",
			       hb_text__bytes(n, sizeof(n), w->info.bytes_lost),
			       hb_text__bytes(m, sizeof(m), w->info.bytes));
}

static void describe(struct hb_window *w)
{
	struct hb_buf b = {0};
	char n[32];

	hb_buf__printf(&b, "the window is %s",
		       w->has_footer
			   ? "damaged"
			   : "incomplete: it was not finished (the writer was stopped, or still writes)");
	if (!w->has_header)
		hb_buf__printf(&b, ", its header is lost");
	say_frames(w, &b);
	if (hb_tables_in__malformed(w->tables))
		hb_buf__printf(&b, ", %s table entries make no sense",
			       hb_text__count(n, sizeof(n), hb_tables_in__malformed(w->tables)));
	hb_buf__printf(&b, "; %s records are whole", hb_text__count(n, sizeof(n), w->info.records));
	snprintf(w->damage, sizeof(w->damage), "%s", b.oom ? "the window is damaged" : b.data);
	hb_buf__free(&b);
}

static bool is_whole(const struct hb_window *w)
{
	return w->has_header && w->has_footer && !w->info.bytes_lost && !w->info.frames_bad &&
	       !w->lost_records && !hb_tables_in__malformed(w->tables);
}

static int sum_up(struct hb_window *w, struct hb_error *e)
{
	struct hb_window_info *i = &w->info;
	const char *simulated = NULL;
	int err;

	if (w->has_footer && w->footer.records > i->records)
		w->lost_records = w->footer.records - i->records;
	if (w->gaps > i->frames_bad)
		i->frames_bad = w->gaps;
	if (w->torn && !i->frames_bad)
		i->frames_bad = 1;
	if (!w->has_header)
		i->start_ts = w->first_ts;
	i->complete = w->has_footer;
	i->end_ts = w->has_footer ? w->footer.end_ts : i->frames ? w->last_ts : i->start_ts;
	if (i->end_ts < i->start_ts)
		i->end_ts = i->start_ts;
	simulated = hb_window__meta(w, "simulated");
	i->simulated = simulated && strcmp(simulated, "1") == 0;
	if (!is_whole(w))
		describe(w);
	err = hb_tables_in__add_loss(w->tables, HB_LOSS_DAMAGED, i->frames_bad)
		  ?: hb_tables_in__add_loss(w->tables, HB_LOSS_UNKNOWN_TYPE, i->unknown);
	return err ? hb_error__nomem(e, "the window's tables") : 0;
}

static int alloc_parts(struct hb_window *w, struct hb_error *e)
{
	u64 ids = w->info.bytes * 4 + 1024;

	w->tables =
	    hb_tables_in__new(ids < (1u << 24) ? (u32)ids : 1u << 24, (64u << 20) + 32 * w->info.bytes);
	w->merge = hb_merge__new(w->fd);
	return w->tables && w->merge ? 0 : hb_error__nomem(e, "a window");
}

struct hb_window *hb_window__open(const char *path, struct hb_error *e)
{
	struct hb_window *w = calloc(1, sizeof(*w));

	if (!w) {
		hb_error__nomem(e, "a window");
		return NULL;
	}
	w->fd = -1;
	if (open_file(w, path, e) == 0 && identify(w, path, e) == 0 && alloc_parts(w, e) == 0 &&
	    read_frames(w, path, e) == 0 && sum_up(w, e) == 0) {
		w->tasks.task = hb_tables_in__tasks(w->tables, &w->tasks.n);
		return w;
	}
	hb_window__close(w);
	return NULL;
}

void hb_window__close(struct hb_window *w)
{
	if (!w)
		return;
	hb_tables_in__free(w->tables);
	hb_merge__free(w->merge);
	if (w->fd >= 0)
		close(w->fd);
	free(w);
}

const struct hb_window_info *hb_window__info(const struct hb_window *w)
{
	return &w->info;
}

const char *hb_window__damage(const struct hb_window *w)
{
	return *w->damage ? w->damage : NULL;
}

/* ---- records ---- */

/* Frames with a right checksum that still do not decode: only a file made to deceive has them. */
static void count_undecoded(struct hb_window *w)
{
	u64 records, frames = hb_merge__bad_frames(w->merge, &records);

	if (frames == w->undecoded)
		return;
	w->info.frames_bad += frames - w->undecoded;
	w->info.frames -= frames - w->undecoded;
	w->info.records -= records;
	w->lost_records += records;
	w->undecoded = frames;
	describe(w);
}

int hb_window__take(struct hb_window *w, struct hb_records *b)
{
	int got = hb_merge__take(w->merge, &w->tasks, b);

	if (got <= 0)
		count_undecoded(w);
	return got;
}

int hb_window__next(struct hb_window *w, struct hb_record *r)
{
	if (w->at == w->batch.n) {
		int got = hb_window__take(w, &w->batch);

		w->at = 0;
		if (got <= 0)
			return got;
	}
	*r = w->batch.record[w->at++];
	return 1;
}

u64 hb_window__count(const struct hb_window *w, u32 type)
{
	return type < HB_TYPE_MAX ? w->by_type[type] : 0;
}

void hb_window__rewind(struct hb_window *w)
{
	hb_merge__rewind(w->merge);
	w->at = w->batch.n = 0;
}

/* ---- tables ---- */

const char *hb_window__string(const struct hb_window *w, u32 id)
{
	return hb_tables_in__string(w->tables, id);
}

const struct hb_task *hb_window__task(const struct hb_window *w, u16 idx)
{
	return hb_tables_in__task(w->tables, idx);
}

const struct hb_task *hb_window__tasks(const struct hb_window *w, u32 *n)
{
	return hb_tables_in__tasks(w->tables, n);
}

const struct hb_task *hb_window__task_by_tid(const struct hb_window *w, u32 tid)
{
	return hb_tables_in__task_by_tid(w->tables, tid);
}

const struct hb_proc *hb_window__procs(const struct hb_window *w, u32 *n)
{
	return hb_tables_in__procs(w->tables, n);
}

const struct hb_probe_row *hb_window__probe(const struct hb_window *w, u32 id)
{
	return hb_tables_in__probe(w->tables, id);
}

u32 hb_window__probes(const struct hb_window *w)
{
	return hb_tables_in__probes(w->tables);
}

const struct hb_loc *hb_window__loc(const struct hb_window *w, u32 id)
{
	return hb_tables_in__loc(w->tables, id);
}

const char *hb_window__fd(const struct hb_window *w, u32 pid, u32 fd, u64 chan)
{
	return hb_tables_in__fd(w->tables, pid, fd, chan);
}

const char *hb_window__pytask(const struct hb_window *w, u32 pid, u64 task, u64 ts)
{
	return hb_tables_in__pytask(w->tables, pid, task, ts);
}

struct hb_stack hb_window__stack(const struct hb_window *w, u32 pid, u32 raw)
{
	return hb_tables_in__stack(w->tables, pid, raw);
}

const struct hb_loss_row *hb_window__losses(const struct hb_window *w, u32 *n)
{
	return hb_tables_in__losses(w->tables, n);
}

u64 hb_window__loss_total(const struct hb_window *w, enum hb_loss cause)
{
	const struct hb_loss_row *r;
	u64 sum = 0;
	u32 n;

	r = hb_window__losses(w, &n);
	for (u32 i = 0; i < n; i++)
		if (r[i].cause == (u32)cause)
			sum += r[i].count;
	return sum;
}

const char *hb_window__meta(const struct hb_window *w, const char *key)
{
	const char *k, *v;

	for (u32 i = 0; hb_tables_in__meta_at(w->tables, i, &k, &v); i++)
		if (strcmp(k, key) == 0)
			return v;
	return NULL;
}

bool hb_window__meta_at(const struct hb_window *w, u32 i, const char **key, const char **value)
{
	return hb_tables_in__meta_at(w->tables, i, key, value);
}
