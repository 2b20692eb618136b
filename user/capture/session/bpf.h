/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The loaded BPF side of a session: one skeleton, its rings, its maps. Nothing is attached to a target
 * process here (capture/probes does that); programs on scheduler and process events are.
 */
#ifndef HB_SESSION_BPF_H
#define HB_SESSION_BPF_H

#include "base/error.h"
#include "capture/probes/probes.h"
#include "capture/session/session.h"
#include "schema/pyfield.h"
#include "schema/pycall.h"
#include "schema/pyevents.h"

struct hb_bpf;

/* Opens, configures and loads. Errors: HB_EXIT_KERNEL with what is missing and the remedy. */
struct hb_bpf *hb_bpf__new(const struct hb_session_opts *o, struct hb_error *e);
void hb_bpf__free(struct hb_bpf *b); /* detaches what is left */

/* Rings: fds and how many. */
const int *hb_bpf__rings(const struct hb_bpf *b, unsigned *n);
/* Programs for capture/probes. */
struct hb_attach_ops hb_bpf__uprobes(const struct hb_bpf *b);
/* Programs for calls of Python functions. */
struct hb_attach_ops hb_bpf__python_calls(const struct hb_bpf *b);
/* What a cookie of theirs means; 0 or -errno. */
int hb_bpf__set_call_site(struct hb_bpf *b, u32 cookie, const struct hb_py_call_site *site);
/* What user space thinks of a function. */
void hb_bpf__judge(struct hb_bpf *b, u32 pid, u64 code, const struct hb_py_function *f);
/* Fields that are read in calls of a function, where an attribute lies in objects of a type (a step, or
 * HB_PY_VALUE), and an end of all that is known of a process. 0 or -errno. */
int hb_bpf__set_fields(struct hb_bpf *b, u32 pid, u64 code, const struct hb_py_field_code *c);
int hb_bpf__plan_field(struct hb_bpf *b, u32 pid, u64 type, u32 step, const struct hb_py_plan *p);
void hb_bpf__forget_fields(struct hb_bpf *b, u32 pid);
u64 hb_bpf__open_python_calls(const struct hb_bpf *b);
/* Programs for the events of Python: exceptions, collections. */
struct hb_attach_ops hb_bpf__py_events(const struct hb_bpf *b);
/* Program for CPU sampling. */
int hb_bpf__sample_prog(const struct hb_bpf *b);

/* Puts descriptors of a plan's probes first..n into the array. */
int hb_bpf__load_probes(struct hb_bpf *b, const struct hb_plan *p, u32 first, struct hb_error *e);
/* Adds a process to the target set: from now on its events are recorded. */
int hb_bpf__add_target(struct hb_bpf *b, u32 pid, const struct hb_target_cfg *cfg);
/* Accelerator calls are recorded from the returned moment (monotonic ns) on, in all targets alike; before,
 * none are. It has passed on return. */
u64 hb_bpf__begin_calls(struct hb_bpf *b);
/* The same for the end. */
u64 hb_bpf__end_calls(struct hb_bpf *b);
/* Where Python is in a process, or that it has none (n = 0). 0 or -errno. */
int hb_bpf__set_python(struct hb_bpf *b, u32 pid, const struct hb_py_process *cfg);
/* So many frames of each of its stacks are marked from now on (struct hb_py_walk). */
void hb_bpf__mark_python(struct hb_bpf *b, u32 pid, u16 frames);
/* What is known of a process's Pythons for exceptions, GIL and collections. 0 or -errno. */
int hb_bpf__set_py_events(struct hb_bpf *b, u32 pid, const struct hb_py_events *e);
/* All exceptions counted. */
void hb_bpf__each_raise(const struct hb_bpf *b,
			void (*fn)(const struct hb_py_raise_key *k, const struct hb_py_raise_count *c,
				   void *arg),
			void *arg);
/* The Python stack of a thread that sleeps, for the end of this sleep. 0 or -errno. */
int hb_bpf__edge_stack(struct hb_bpf *b, u32 pid, u64 thread, const struct hb_stack_trace *t);
/* Empties the set: from now on nothing is recorded. */
void hb_bpf__clear_targets(struct hb_bpf *b);
/* Process, scheduler and (--syscalls all) system call events. */
int hb_bpf__attach_events(struct hb_bpf *b, struct hb_error *e);
void hb_bpf__detach_events(struct hb_bpf *b);

/* Hits of probes 0..n since the load, and those of them inside an open runtime call, over all CPUs. */
void hb_bpf__sums(const struct hb_bpf *b, u32 n, u64 *hits, u64 *inner);
/* Calls that probes 0..n counted without recording them. */
void hb_bpf__silent(const struct hb_bpf *b, u32 n, u64 *silent);
/* Timed calls that were entered and have not returned. */
u64 hb_bpf__open_calls(const struct hb_bpf *b);
u64 hb_bpf__open_syscalls(const struct hb_bpf *b); /* the same of system calls (--syscalls all) */
/* Records lost to full rings so far. */
u64 hb_bpf__ring_losses(const struct hb_bpf *b);
/* Calls fn for each non-zero loss counter. */
void hb_bpf__each_loss(const struct hb_bpf *b, void (*fn)(const struct hb_loss_row *row, void *arg),
		       void *arg);
/* Addresses of a stack (raw id as in records), innermost first; returns the number, 0 when gone. */
u32 hb_bpf__stack(const struct hb_bpf *b, u32 raw, u64 addr[HB_STACK_DEPTH]);
/* The same with all there is of it; false when gone. */
bool hb_bpf__trace(const struct hb_bpf *b, u32 id, struct hb_stack_trace *out);
/* The two stacks of an id; false when it is that of a native one. */
bool hb_bpf__pair(const struct hb_bpf *b, u32 raw, struct hb_stack_pair *out);
/* What the event programs cost: calls fn(name, runs, ns, misses) per program. ns is 0 where the kernel cannot
 * measure. */
void hb_bpf__each_cost(const struct hb_bpf *b,
		       void (*fn)(const char *name, u64 runs, u64 ns, u64 missed, void *arg), void *arg);

#endif
