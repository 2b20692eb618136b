/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Which program of the skeleton is for what: the one place that knows their names. */
#ifndef HB_SESSION_BPF_PROGRAMS_H
#define HB_SESSION_BPF_PROGRAMS_H

#include <stdbool.h>

#include "capture/session/session.h"

#define HB_PROG_ENTRY_MULTI	     "accel_entry_multi"
#define HB_PROG_RETURN_MULTI	     "accel_return_multi"
#define HB_PROG_ENTRY_SINGLE	     "accel_entry"
#define HB_PROG_RETURN_SINGLE	     "accel_return"
#define HB_PROG_PYCALL_ENTRY_MULTI   "pycall_entry_multi"
#define HB_PROG_PYCALL_RETURN_MULTI  "pycall_return_multi"
#define HB_PROG_PYCALL_SESSION	     "pycall_session"
#define HB_PROG_PYCALL_ENTRY_SINGLE  "pycall_entry"
#define HB_PROG_PYCALL_RETURN_SINGLE "pycall_return"
#define HB_PROG_SAMPLE		     "sample"
#define HB_PROG_EDGE		     "window_edge"
#define HB_PROG_PY_EVENT_MULTI	     "py_event_multi"
#define HB_PROG_PY_EVENT_END_MULTI   "py_event_end_multi"
#define HB_PROG_PY_EVENT	     "py_event"
#define HB_PROG_PY_EVENT_END	     "py_event_end"

struct bpf_program;

/* Sets autoload and attach type before the object is loaded. */
void hb_bpf_programs__configure(struct bpf_program *p, const struct hb_session_opts *o, bool multi);
/* True for programs that libbpf attaches by their section: scheduler, process, system calls. */
bool hb_bpf_programs__is_event(const struct bpf_program *p);

#endif
