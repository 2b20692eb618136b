// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Life of the target's processes and threads. A child becomes a target here, at the fork and before it has
 * run, so that nothing of it is missed by the programs that filter on `targets`.
 */
#include "python.bpf.h"
#include "task.bpf.h"

/* On a thread group's leader: the group was a target when it ended. Its threads die at the same time on many
 * CPUs, and the one that ends the process may pass sched_process_exit before others do. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} ended SEC(".maps");

static __always_inline void fork_thread(struct task_struct *parent, struct task_struct *child)
{
	struct hb_rec_thread *r = HB_RESERVE_FOR(thread, child->tgid, child->pid);

	if (!r)
		return;
	r->parent = parent->pid;
	r->nstid = hb_task__nsid(child);
	r->how = HB_HOW_FORKED;
	r->pad = 0;
	hb_comm__read(&r->name, child->comm);
	HB_SUBMIT(r);
}

/* A child has its parent's interpreter until it execs: from then on none, until user space has looked. */
static __always_inline void exec_python(u32 tgid)
{
	struct hb_py_process *py = bpf_map_lookup_elem(&py_processes, &tgid);

	if (py)
		py->n = 0;
}

static __always_inline void fork_python(u32 parent, u32 child)
{
	struct hb_py_process *py = bpf_map_lookup_elem(&py_processes, &parent);

	if (py)
		bpf_map_update_elem(&py_processes, &child, py, BPF_ANY);
}

static __always_inline void fork_process(struct task_struct *parent, struct task_struct *child, u32 flags)
{
	struct hb_target_cfg cfg = {.flags = flags, .nspid = hb_task__nsid(child)};
	struct hb_rec_process *r;
	u32 tgid = child->tgid;

	if (bpf_map_update_elem(&targets, &tgid, &cfg, BPF_ANY))
		hb_lose(HB_LOSS_NO_STORAGE, HB_TYPE_process);
	if (hb_python)
		fork_python(parent->tgid, tgid);
	r = HB_RESERVE_FOR(process, child->tgid, child->pid);
	if (!r)
		return;
	r->ppid = parent->tgid;
	r->nspid = cfg.nspid;
	r->how = HB_HOW_FORKED;
	r->pad = 0;
	hb_comm__read(&r->name, child->comm);
	HB_SUBMIT(r);
}

SEC("tp_btf/sched_process_fork")
int process_fork(u64 *ctx)
{
	struct task_struct *parent = (void *)ctx[0], *child = (void *)ctx[1];
	struct hb_target_cfg *cfg = hb_target__find(parent->tgid);

	if (!cfg)
		return 0;
	if (child->tgid == parent->tgid)
		fork_thread(parent, child);
	else if (cfg->flags & HB_TARGET_FOLLOW)
		fork_process(parent, child, cfg->flags);
	return 0;
}

static __always_inline void exit_emit(u32 tgid, u32 tid, u32 code, bool last)
{
	struct hb_rec_exit *r = HB_RESERVE_FOR(exit, tgid, tid);

	if (!r)
		return;
	r->code = code;
	r->last = last;
	HB_SUBMIT(r);
}

/* A thread that is not the leader and execs takes over the leader's id: the id it had ends here. */
SEC("tp_btf/sched_process_exec")
int process_exec(u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	u32 old = (u32)ctx[1], tid = p->pid;
	struct hb_rec_exec *r;

	if (!hb_target__is(p->tgid))
		return 0;
	exec_python(tid); /* the leader's id by now */
	if (old != tid)
		exit_emit(p->tgid, old, 0, false);
	r = HB_RESERVE_FOR(exec, p->tgid, tid);
	if (!r)
		return 0;
	hb_comm__read(&r->name, p->comm);
	HB_SUBMIT(r);
	return 0;
}

/* As wait(2) reports it: the group's code when it was ended as a group (since 5.16 its last thread counts as
 * that), else the leader's. */
static __always_inline u32 exit_group_code(struct task_struct *p)
{
	if (BPF_CORE_READ(p, signal, flags) & 0x4) /* SIGNAL_GROUP_EXIT */
		return BPF_CORE_READ(p, signal, group_exit_code);
	return BPF_CORE_READ(p, group_leader, exit_code);
}

/* Several threads can see the count of living ones at zero; deleting the target succeeds for one of them. */
static __always_inline bool exit_is_last(struct task_struct *p, u32 tgid)
{
	struct task_struct *leader = p->group_leader;
	u32 *mark;

	if (BPF_CORE_READ(p, signal, live.counter) != 0)
		return false;
	mark = leader ? bpf_task_storage_get(&ended, leader, 0, BPF_LOCAL_STORAGE_GET_F_CREATE) : NULL;
	if (mark)
		*mark = 1;
	bpf_map_delete_elem(&py_processes, &tgid);
	return bpf_map_delete_elem(&targets, &tgid) == 0;
}

static __always_inline bool exit_of_ended(struct task_struct *p)
{
	struct task_struct *leader = p->group_leader;
	u32 *mark = leader ? bpf_task_storage_get(&ended, leader, 0, 0) : NULL;

	return mark && *mark;
}

/* A leader that leaves before its threads is an exit like any other: the process goes on under its id. */
SEC("tp_btf/sched_process_exit")
int process_exit(u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	u32 tgid = p->tgid;
	bool last;

	if (!hb_target__is(tgid)) {
		if (exit_of_ended(p))
			exit_emit(tgid, p->pid, p->exit_code, false);
		return 0;
	}
	last = exit_is_last(p, tgid);
	exit_emit(tgid, p->pid, last ? exit_group_code(p) : (u32)p->exit_code, last);
	return 0;
}

/* Inside an exec the name changes too: that is the exec's record. */
static __always_inline bool rename_by_exec(struct task_struct *t)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	struct hb_call_regs r;

	if (cur->pid != t->pid)
		return false;
	hb_task__call(cur, &r);
	return hb_call__class(r.sysno) & HB_CALL_EXEC;
}

SEC("tp_btf/task_rename")
int task_rename(u64 *ctx)
{
	struct task_struct *t = (void *)ctx[0];
	struct hb_rec_rename *r;

	if (!hb_target__is(t->tgid) || rename_by_exec(t))
		return 0;
	r = HB_RESERVE_FOR(rename, t->tgid, t->pid);
	if (!r)
		return 0;
	hb_comm__read(&r->name, (const void *)ctx[1]);
	HB_SUBMIT(r);
	return 0;
}
