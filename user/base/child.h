/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Another program, run to its end with a deadline: given bytes on its standard input, asked for what it
 * prints. */
#ifndef HB_BASE_CHILD_H
#define HB_BASE_CHILD_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define HB_CHILD_OUT (256U << 10) /* more than this of its output is left out */

struct hb_child {
	const char *const *argv; /* argv[0] is looked up in PATH; NULL-terminated */
	const char *in;		 /* its standard input; NULL: nothing to read */
	size_t in_size;
	const char *extra; /* bytes that it finds in the file HB_CHILD_EXTRA; NULL: none */
	size_t extra_size;
	uint64_t timeout; /* ns; after that it is killed */
};

#define HB_CHILD_EXTRA "/proc/self/fd/3"

/* Runs it. Its standard output goes to `out`, what it complains about to `complaints` (the caller's, freed by
 * the caller, NUL-terminated), `status` is its exit status, 128 + the signal when one ended it. A question it
 * asks of a person it asks on the terminal. 0, or -errno with a sentence: not to be started, not ended in
 * time. */
int hb_child__run(const struct hb_child *c, struct hb_buf *out, struct hb_buf *complaints, int *status,
		  struct hb_error *e);

#endif
