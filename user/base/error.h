/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One way to fail: a function returns 0 or -errno and leaves one human sentence (cause, value, remedy) in
 * struct hb_error. Whoever owns main() prints it once and exits with error.exit. Never print and return.
 */
#ifndef HB_BASE_ERROR_H
#define HB_BASE_ERROR_H

/* Exit codes of every subcommand (design.md section 5). */
enum hb_exit {
	HB_EXIT_OK = 0,
	HB_EXIT_FAILED = 1, /* anything without a better word */
	HB_EXIT_USAGE = 2,  /* bad option, bad table, unknown format */
	HB_EXIT_TARGET = 3, /* target gone or not allowed; never attached */
	HB_EXIT_KERNEL = 4, /* kernel feature or permission missing */
	HB_EXIT_LOSS = 5,   /* --strict only: done, but with more loss than allowed */
};

struct hb_error {
	int err;	/* -errno of the first failure, 0 when none */
	int exit;	/* enum hb_exit */
	char text[768]; /* one sentence, no trailing newline, control characters already stripped */
};

/* Sets the sentence if none is set yet (the first cause wins) and returns `err` (a negative errno; 0 becomes
 * -EINVAL), so that `return hb_error__set(e, HB_EXIT_USAGE, -EINVAL, "...")` is the whole error path.
 * `e` may be NULL: the sentence is dropped. */
int hb_error__set(struct hb_error *e, enum hb_exit exit, int err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* -ENOMEM with a sentence that names what was being allocated. */
int hb_error__nomem(struct hb_error *e, const char *what);

/* err, of something that needs a file descriptor: EMFILE and ENFILE with the limit to raise. */
int hb_error__fds(struct hb_error *e, const char *what, int err);

void hb_error__clear(struct hb_error *e);

/* A warning to stderr: "herschel-bpf: warning: ..."; suppressed by hb_quiet(true). Thread safe. */
void hb_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Progress and notes to stderr; suppressed by hb_quiet(true). */
void hb_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void hb_quiet(int on);

#endif
