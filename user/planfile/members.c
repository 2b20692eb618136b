/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "planfile/members.h"

#include <string.h>

#define OF(member)	   offsetof(struct hb_planfile, member)
#define OF_PROCESS(member) offsetof(struct hb_planfile_process, member)
#define OF_REASON(member)  offsetof(struct hb_planfile_reason, member)
#define OF_COST(member)	   offsetof(struct hb_planfile_cost, member)

const struct hb_member hb_planfile_members[] = {
    {"", "plan", HB_MEMBER_NUMBER, true, OF(version)},
    {"", "tool", HB_MEMBER_TEXT, false, OF(tool)},
    {"window", "id", HB_MEMBER_TEXT, true, OF(window_id)},
    {"window", "file", HB_MEMBER_TEXT, false, OF(window_file)},
    {"window", "host", HB_MEMBER_TEXT, false, OF(window_host)},
    {"window", "boot", HB_MEMBER_TEXT, true, OF(boot)},
    {"window", "start_ns", HB_MEMBER_NUMBER, false, OF(window_start_ns)},
    {"window", "end_ns", HB_MEMBER_NUMBER, false, OF(window_end_ns)},
    {"target[]", "pid", HB_MEMBER_NUMBER, true, OF_PROCESS(pid)},
    {"target[]", "start_ns", HB_MEMBER_NUMBER, true, OF_PROCESS(start_ns)},
    {"target[]", "name", HB_MEMBER_TEXT, false, OF_PROCESS(name)},
    {HB_PLANFILE_RECORD, "", HB_MEMBER_TEXT, false, 0},
    {"reasons[]", "pattern", HB_MEMBER_TEXT, true, OF_REASON(pattern)},
    {"reasons[]", "title", HB_MEMBER_TEXT, false, OF_REASON(title)},
    {"reasons[]", "confidence", HB_MEMBER_TEXT, false, OF_REASON(confidence)},
    {"reasons[]", "why", HB_MEMBER_TEXT, false, OF_REASON(why)},
    {"reasons[]", "records", HB_MEMBER_TEXT, false, OF_REASON(records)},
    {"reasons[]", "settle", HB_MEMBER_TEXT, false, OF_REASON(settle)},
    {"cost[]", "what", HB_MEMBER_TEXT, true, OF_COST(what)},
    {"cost[]", "known", HB_MEMBER_BOOL, true, OF_COST(known)},
    {"cost[]", "rate_per_s", HB_MEMBER_NUMBER, false, OF_COST(rate)},
    {"cost[]", "price_ns", HB_MEMBER_NUMBER, false, OF_COST(price_ns)},
    {"cost[]", "ns_per_s", HB_MEMBER_NUMBER, false, OF_COST(ns_per_s)},
    {"cost[]", "most_ns_per_s", HB_MEMBER_NUMBER, false, OF_COST(most_ns_per_s)},
    {"cost[]", "basis", HB_MEMBER_TEXT, false, OF_COST(basis)},
    {"approval", "plan", HB_MEMBER_TEXT, false, OF(approval.plan)},
    {"approval", "by", HB_MEMBER_TEXT, false, OF(approval.by)},
    {"approval", "uid", HB_MEMBER_NUMBER, false, OF(approval.uid)},
    {"approval", "host", HB_MEMBER_TEXT, false, OF(approval.host)},
    {"approval", "at", HB_MEMBER_TEXT, false, OF(approval.at)},
    {"approval", "method", HB_MEMBER_TEXT, false, OF(approval.method)},
    {"approval", "machine", HB_MEMBER_TEXT, false, OF(approval.machine)},
    {"approval", "boot", HB_MEMBER_TEXT, false, OF(approval.boot)},
    {"approval", "signature", HB_MEMBER_LINES, false, OF(approval.signature)},
    {NULL, NULL, HB_MEMBER_TEXT, false, 0},
};

static const struct hb_list lists[] = {
    {"target[]", OF(process), OF(n_processes), sizeof(struct hb_planfile_process), HB_PLANFILE_PROCESSES},
    {"reasons[]", OF(reason), OF(n_reasons), sizeof(struct hb_planfile_reason), HB_PLANFILE_REASONS},
    {"cost[]", OF(cost), OF(n_costs), sizeof(struct hb_planfile_cost), HB_PLANFILE_COSTS},
};

const struct hb_list *hb_planfile__list(const char *object)
{
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		if (strcmp(lists[i].object, object) == 0)
			return &lists[i];
	return NULL;
}

/* Options of `trace` about what is recorded; how it is kept (-o, --max-size) is the business of whoever runs
 * it. */
static const struct {
	const char *name;
	bool list;
} options[] = {
    {"duration", false},  {"no-children", false}, {"layers", false},	   {"syscalls", false},
    {"python", false},	  {"calls", true},	  {"field", true},	   {"capture-strings", false},
    {"py-hook", false},	  {"timed", false},	  {"stacks-every", false}, {"exceptions", false},
    {"frequency", false}, {"probe", true},
};
#define N_OPTIONS (sizeof(options) / sizeof(*options))

const char *hb_planfile__option_name(u32 i)
{
	return i < N_OPTIONS ? options[i].name : NULL;
}

bool hb_planfile__option_is_list(u32 i)
{
	return i < N_OPTIONS && options[i].list;
}
