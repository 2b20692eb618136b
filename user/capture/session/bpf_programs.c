/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/session/bpf_programs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <string.h>

enum family {
	FAMILY_EVENT,
	FAMILY_UPROBE_MULTI,
	FAMILY_UPROBE_SINGLE,
	FAMILY_PYCALL_MULTI,
	FAMILY_PYCALL_SINGLE,
	FAMILY_PYCALL_SESSION,
	FAMILY_SCHED,
	FAMILY_SYSCALLS,
	FAMILY_SAMPLE,
	FAMILY_EDGE,
	FAMILY_PYTHON_MULTI,
	FAMILY_PYTHON_SINGLE
};

/* By name; everything else is an event program that is always wanted. */
static const struct {
	const char *name;
	enum family family;
} programs[] = {
    {HB_PROG_ENTRY_MULTI, FAMILY_UPROBE_MULTI},
    {HB_PROG_RETURN_MULTI, FAMILY_UPROBE_MULTI},
    {HB_PROG_ENTRY_SINGLE, FAMILY_UPROBE_SINGLE},
    {HB_PROG_RETURN_SINGLE, FAMILY_UPROBE_SINGLE},
    {HB_PROG_PYCALL_ENTRY_MULTI, FAMILY_PYCALL_MULTI},
    {HB_PROG_PYCALL_RETURN_MULTI, FAMILY_PYCALL_MULTI},
    {HB_PROG_PYCALL_SESSION, FAMILY_PYCALL_SESSION},
    {HB_PROG_PYCALL_ENTRY_SINGLE, FAMILY_PYCALL_SINGLE},
    {HB_PROG_PYCALL_RETURN_SINGLE, FAMILY_PYCALL_SINGLE},
    {HB_PROG_SAMPLE, FAMILY_SAMPLE},
    {HB_PROG_EDGE, FAMILY_EDGE},
    {HB_PROG_PY_EVENT_MULTI, FAMILY_PYTHON_MULTI},
    {HB_PROG_PY_EVENT_END_MULTI, FAMILY_PYTHON_MULTI},
    {HB_PROG_PY_EVENT, FAMILY_PYTHON_SINGLE},
    {HB_PROG_PY_EVENT_END, FAMILY_PYTHON_SINGLE},
    {"sched_switch", FAMILY_SCHED},
    {"sched_waking", FAMILY_SCHED},
    {"sys_enter", FAMILY_SYSCALLS},
    {"sys_exit", FAMILY_SYSCALLS},
};

static enum family family_of(const struct bpf_program *p)
{
	for (unsigned i = 0; i < sizeof(programs) / sizeof(*programs); i++)
		if (strcmp(bpf_program__name(p), programs[i].name) == 0)
			return programs[i].family;
	return FAMILY_EVENT;
}

static bool wanted(enum family f, const struct hb_session_opts *o, bool multi)
{
	switch (f) {
	case FAMILY_UPROBE_MULTI:
		return multi;
	case FAMILY_UPROBE_SINGLE:
		return !multi;
	case FAMILY_PYCALL_MULTI:
		return multi && hb_session__wants_calls(o) && !hb_attach__has_session();
	case FAMILY_PYCALL_SESSION:
		return multi && hb_session__wants_calls(o) && hb_attach__has_session();
	case FAMILY_PYCALL_SINGLE:
		return !multi && hb_session__wants_calls(o);
	case FAMILY_PYTHON_MULTI:
		return multi && o->python != HB_PYTHON_OFF;
	case FAMILY_PYTHON_SINGLE:
		return !multi && o->python != HB_PYTHON_OFF;
	case FAMILY_SCHED:
	case FAMILY_EDGE:
		return o->syscalls != HB_SYSCALLS_NONE;
	case FAMILY_SYSCALLS:
		return o->syscalls == HB_SYSCALLS_ALL;
	case FAMILY_SAMPLE:
		return o->freq > 0;
	default:
		return true;
	}
}

void hb_bpf_programs__configure(struct bpf_program *p, const struct hb_session_opts *o, bool multi)
{
	enum family f = family_of(p);

	bpf_program__set_autoload(p, wanted(f, o, multi));
	if (f == FAMILY_UPROBE_MULTI || f == FAMILY_PYCALL_MULTI || f == FAMILY_PYTHON_MULTI)
		bpf_program__set_expected_attach_type(p, HB_UPROBE_MULTI);
	if (f == FAMILY_PYCALL_SESSION)
		bpf_program__set_expected_attach_type(p, HB_UPROBE_SESSION);
}

bool hb_bpf_programs__is_event(const struct bpf_program *p)
{
	enum family f = family_of(p);

	return f == FAMILY_EVENT || f == FAMILY_SCHED || f == FAMILY_SYSCALLS;
}
