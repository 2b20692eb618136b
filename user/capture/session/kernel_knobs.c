// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture/session/kernel_knobs.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

/* Offset of a per-CPU variable in its section; false when there is none of this name. */
static bool percpu_var(const struct btf *btf, const char *name, u32 *offset, u32 *type)
{
	int id = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
	const struct btf_type *sec = id > 0 ? btf__type_by_id(btf, (u32)id) : NULL;

	for (u32 i = 0; sec && i < btf_vlen(sec); i++) {
		const struct btf_var_secinfo *v = btf_var_secinfos(sec) + i;
		const struct btf_type *var = btf__type_by_id(btf, v->type);

		if (strcmp(btf__name_by_offset(btf, var->name_off), name))
			continue;
		*offset = v->offset;
		*type = var->type;
		return true;
	}
	return false;
}

/* Byte offset of a member, looking into nameless structs and unions; -1 when absent. */
static s64 member_offset(const struct btf *btf, u32 type, const char *name)
{
	const struct btf_type *t = btf__type_by_id(btf, type);

	for (u32 i = 0; t && btf_is_composite(t) && i < btf_vlen(t); i++) {
		const struct btf_member *m = btf_members(t) + i;
		const char *s = btf__name_by_offset(btf, m->name_off);
		s64 at = btf_member_bit_offset(t, i) / 8, inner;

		if (!strcmp(s, name))
			return at;
		inner = *s ? -1 : member_offset(btf, m->type, name);
		if (inner >= 0)
			return at + inner;
	}
	return -1;
}

/* x86: a variable of its own up to 6.1 and again since 6.15, a member of pcpu_hot between. */
static s64 preempt_off(const struct btf *btf, u32 *hardirq)
{
	u32 rq, at, type;
	s64 member;

	*hardirq = 0x00ff0000;

	if (!percpu_var(btf, "runqueues", &rq, &type))
		return 0;
	if (percpu_var(btf, "__preempt_count", &at, &type)) {
		/* 64 bits wide (7.3): 8 bits for "interrupts held off" came in below those of interrupts. */
		if (btf__resolve_size(btf, type) == 8)
			*hardirq = 0xff000000;
		return (s64)at - rq;
	}
	if (!percpu_var(btf, "pcpu_hot", &at, &type))
		return 0;
	member = member_offset(btf, type, "preempt_count");
	return member < 0 ? 0 : (s64)at + member - rq;
}

/* The tracepoint's prototype, after the hidden first argument: preempt, prev, next, and since 5.18 the state.
 */
static bool switch_has_state(const struct btf *btf)
{
	int id = btf__find_by_name_kind(btf, "btf_trace_sched_switch", BTF_KIND_TYPEDEF);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (u32)id) : NULL;

	t = t ? btf__type_by_id(btf, t->type) : NULL;
	t = t && btf_is_ptr(t) ? btf__type_by_id(btf, t->type) : NULL;
	return t && btf_is_func_proto(t) && btf_vlen(t) >= 5 &&
	       btf_is_int(btf__type_by_id(btf, btf_params(t)[4].type));
}

int hb_kernel_knobs__read(struct hb_kernel_knobs *k)
{
	struct btf *btf = btf__load_vmlinux_btf();

	memset(k, 0, sizeof(*k));
	if (!btf)
		return -errno;
	k->preempt_off = preempt_off(btf, &k->preempt_hardirq);
	k->switch_has_state = switch_has_state(btf);
	btf__free(btf);
	return 0;
}
