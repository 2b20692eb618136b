/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers of records as words: what reports and exporters print in the same way. */
#ifndef HB_DECODE_H
#define HB_DECODE_H

#include "window/window.h"

/* Name of a system call, "syscall_N" (into buf, >= 24 bytes) when it has none here, NULL for HB_SYSNO_NONE.
 */
const char *hb_decode__syscall(unsigned sysno, char *buf, size_t size);
/* True when the first argument of this call is a file descriptor. */
bool hb_decode__fd_call(unsigned sysno);

/* "futex 0x7f..", "unix 12 -> 34", "tcp 127.0.0.1:80 -> 10.0.0.1:1234", "pipe 12", "timer"; NULL when the
 * sleep has no channel. */
const char *hb_decode__chan(const struct hb_rec_offcpu *r, char *buf, size_t size);
/* The same with what the descriptor slept on was: "file 77 /var/log/x", "unix 12 -> 34 /run/x.sock". */
const char *hb_decode__slept_on(const struct hb_window *w, u32 pid, const struct hb_rec_offcpu *r, char *buf,
				size_t size);
/* Path or peer of a descriptor: "/var/log/x", "tcp 127.0.0.1:80 -> 127.0.0.1:4711", "pipe:[7]". `chan` as in
 * an offcpu record, 0 = whatever it was last. NULL when nobody looked at it while it was open. Cleaned when
 * written. */
const char *hb_decode__fd(const struct hb_window *w, u32 pid, u64 fd, u64 chan);
/* "1.2.3.4:80" of address << 16 | port. */
const char *hb_decode__socket(u64 v, char *buf, size_t size);

/* Direction of a copy as the API numbers it ("HtoD"), NULL when this API has no such numbers. */
const char *hb_decode__copy_kind(const char *api, unsigned kind);
/* Data type of a collective ("bfloat16") and its bytes, NULL when unknown. */
const char *hb_decode__datatype(const char *api, unsigned kind, unsigned *bytes);

enum hb_frame_style {
	HB_FRAME_NAME,	 /* function, or module+0xoffset when it has no name */
	HB_FRAME_MARKED, /* a kernel function with _[k], one of Python's with its file: "step (core.py)" */
	HB_FRAME_LINE,	 /* the same with the line: "step (core.py:17)" */
};
/* "native", "kernel", "py": whose function a frame is, as all outputs say it. */
const char *hb_decode__lang(const struct hb_loc *l);
/* "truncated", "broken", "missing" (its frames are not in the window); NULL for a whole one. */
const char *hb_decode__stack_state(const struct hb_stack *s);

/* A frame as text. Cleaned. */
const char *hb_decode__frame(const struct hb_window *w, const struct hb_loc *l, enum hb_frame_style style,
			     char *buf, size_t size);
/* The name of a kernel as people call it, into buf: "void at::native::elementwise_kernel<128, 4, ..>(int,
 * ..)" is "elementwise_kernel<..>". One that is no C++ name stays as it is. Cleaned. */
const char *hb_decode__kernel(const char *name, char *buf, size_t size);
/* Where its code is: library, program, or Python source file; "" unknown. */
const char *hb_decode__frame_file(const struct hb_window *w, const struct hb_loc *l);

/* Python module of a source file, as far as its place tells: "vllm.v1.core" below site-packages and the
 * standard library, else the file's own name; "" for what is no file. */
const char *hb_decode__module(const char *file, char *buf, size_t size);

/* Last known name of a thread, "?" when unknown; not cleaned. */
const char *hb_decode__comm(const struct hb_window *w, const struct hb_task *t);

/* Total over all causes. */
u64 hb_decode__loss_all(const struct hb_window *w);
/* What a cause means, for a person. */
const char *hb_decode__loss_doc(enum hb_loss cause);

/* The word that every output made from a simulated device carries; NULL for a real one. */
const char *hb_decode__simulated(const struct hb_window *w);

#endif
