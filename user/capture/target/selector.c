/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/target/procfs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/text.h"
#include "capture/target/cgroup.h"

#define PID_LIMIT   4194304 /* PID_MAX_LIMIT of 64-bit kernels */
#define MAX_PARENTS 1024    /* deeper than any real tree; ends a loop made by pid reuse while we read */

/* One look at the process tree: pid -> parent, and which pids are us. */
struct tree {
	u32 *all, n;
	struct hb_map *parent;
};

static u32 parent_of(u32 pid)
{
	struct hb_stat st;
	char *text = hb_procfs__read(pid, "stat", 4096, NULL, NULL);
	bool ok = text && hb_procfs__stat(text, &st);

	free(text);
	return ok ? st.ppid : 0;
}

static void tree_free(struct tree *t)
{
	free(t->all);
	hb_map__free(t->parent);
}

static int tree_read(struct tree *t)
{
	t->parent = hb_map__new();
	t->all = hb_process__all(&t->n);
	if (!t->parent || !t->all)
		return -ENOMEM;
	for (u32 i = 0; i < t->n; i++)
		if (hb_map__put(t->parent, t->all[i], parent_of(t->all[i])))
			return -ENOMEM;
	return 0;
}

static bool is_below(const struct tree *t, u32 pid, u32 ancestor)
{
	u64 up = pid;

	for (int i = 0; i < MAX_PARENTS && up; i++) {
		if (up == ancestor)
			return true;
		if (!hb_map__get(t->parent, up, &up))
			return false;
	}
	return false;
}

/* We, what we started, and (unless named) the shell and sudo above us: tracing those would record ourselves.
 */
static bool is_ours(const struct tree *t, u32 pid)
{
	return is_below(t, pid, (u32)getpid()) || is_below(t, (u32)getpid(), pid);
}

/* ---- why a process cannot be a target ---- */

static int check(u32 pid, struct hb_error *e)
{
	struct hb_process *p = hb_process__peek(pid);
	int rc = 0;

	if (!p) {
		u32 tgid = hb_thread__pid(pid);

		if (tgid && tgid != pid)
			return hb_error__set(e, HB_EXIT_TARGET, -ESRCH,
					     "%u is a thread of process %u; use -p %u", pid, tgid, tgid);
		return hb_error__set(e, HB_EXIT_TARGET, -ESRCH, "there is no process %u", pid);
	}
	if (p->kernel)
		rc = hb_error__set(
		    e, HB_EXIT_TARGET, -EINVAL,
		    "process %u (%s) is a kernel thread: it runs no libraries that could be probed", pid,
		    p->comm);
	else if (p->state == 'Z' || p->state == 'X')
		rc = hb_error__set(
		    e, HB_EXIT_TARGET, -ESRCH,
		    "process %u (%s) has exited already and waits for its parent %u to take notice", pid,
		    p->comm, p->ppid);
	else if (p->is_32bit)
		rc = hb_error__set(e, HB_EXIT_TARGET, -ENOEXEC,
				   "process %u (%s, %.200s) is a 32-bit program, or one of another machine: "
				   "only 64-bit programs can be traced",
				   pid, p->comm, p->exe);
	hb_process__free(p);
	return rc;
}

/* ---- the three ways to say what is meant ---- */

static int bad_list(const char *list, const char *item, struct hb_error *e)
{
	return hb_error__set(
	    e, HB_EXIT_USAGE, -EINVAL,
	    "\"%.40s\" in -p %.80s is not a process id: expected numbers from 1 to %d, separated by commas",
	    item, list, PID_LIMIT);
}

static int add_listed(const char *list, struct hb_buf *roots, struct hb_error *e)
{
	const char *p = list;

	for (;;) {
		size_t n = strcspn(p, ",");
		char item[64];
		u32 pid;

		snprintf(item, sizeof(item), "%.*s", (int)(n < 63 ? n : 63), p);
		if (!hb_procfs__u32(item, &pid) || !pid || pid > PID_LIMIT)
			return bad_list(list, item, e);
		if (pid == (u32)getpid())
			return hb_error__set(e, HB_EXIT_TARGET, -EINVAL, "process %u is herschel-bpf itself",
					     pid);
		hb_buf__add(roots, &pid, sizeof(pid));
		if (!p[n])
			return 0;
		p += n + 1;
	}
}

static int check_all(const struct hb_buf *roots, struct hb_error *e)
{
	const u32 *pids = (const u32 *)roots->data;
	int rc = 0;

	for (size_t i = 0; i < roots->size / sizeof(u32) && !rc; i++)
		rc = check(pids[i], e);
	return rc;
}

static bool name_matches(u32 pid, const char *glob)
{
	char buf[4096];
	char *text = hb_procfs__read(pid, "comm", 64, NULL, NULL);
	bool yes;

	if (text)
		text[strcspn(text, "\n")] = 0;
	yes = text && hb_text__glob(glob, text);
	free(text);
	if (!yes && hb_procfs__link(pid, "exe", buf, sizeof(buf)) == 0)
		yes = hb_text__glob(glob, hb_text__basename(buf));
	if (yes)
		return true;
	text = hb_procfs__read(pid, "cmdline", 4096, NULL, NULL); /* argv[0] ends at its NUL */
	yes = text && text[0] && hb_text__glob(glob, hb_text__basename(text));
	free(text);
	return yes;
}

static void add_named(const struct tree *t, const char *glob, struct hb_buf *roots)
{
	for (u32 i = 0; i < t->n; i++)
		if (!is_ours(t, t->all[i]) && name_matches(t->all[i], glob))
			hb_buf__add(roots, &t->all[i], sizeof(u32));
}

static int add_cgroup(const struct tree *t, const char *path, struct hb_buf *roots, struct hb_error *e)
{
	struct hb_buf members = {0};
	int rc = hb_cgroup__pids(path, &members, e);

	for (size_t i = 0; i < members.size / sizeof(u32); i++) {
		const u32 *pid = (const u32 *)members.data + i;

		if (!is_ours(t, *pid))
			hb_buf__add(roots, pid, sizeof(*pid));
	}
	hb_buf__free(&members);
	return rc;
}

/* ---- putting it together ---- */

/* What is ours stays out, except below a process that we started and that was named itself. */
static bool wanted(const struct tree *t, const struct hb_buf *roots, bool named, bool children, u32 pid)
{
	const u32 *root = (const u32 *)roots->data;
	size_t n = roots->size / sizeof(u32);

	for (size_t i = 0; i < n; i++)
		if (root[i] == pid)
			return named || !is_ours(t, pid);
	for (size_t i = 0; i < n && children; i++)
		if (is_below(t, pid, root[i]) && (!is_ours(t, pid) || is_below(t, root[i], (u32)getpid())))
			return true;
	return false;
}

/* Ascending because t->all is. What nobody named is left out when it cannot be traced; `why` keeps the last
 * reason. */
static int collect(const struct tree *t, const struct hb_selector *s, const struct hb_buf *roots,
		   struct hb_buf *out, struct hb_error *why)
{
	for (u32 i = 0; i < t->n; i++) {
		struct hb_error reason = {0};

		if (!wanted(t, roots, s->pids != NULL, !s->no_children, t->all[i]))
			continue;
		if (check(t->all[i], &reason) == 0)
			hb_buf__add(out, &t->all[i], sizeof(u32));
		else
			*why = reason;
	}
	return out->oom ? -ENOMEM : 0;
}

static int nothing(const struct hb_selector *s, const struct hb_error *why, struct hb_error *e)
{
	const char *hint = why->text[0] ? ": " : "";

	if (s->name)
		return hb_error__set(e, HB_EXIT_TARGET, -ESRCH, "no process to trace is named \"%s\"%s%s",
				     s->name, hint, why->text);
	if (s->cgroup)
		return hb_error__set(e, HB_EXIT_TARGET, -ESRCH,
				     "there is no process to trace in cgroup \"%s\"%s%s", s->cgroup, hint,
				     why->text);
	return hb_error__set(e, HB_EXIT_TARGET, -ESRCH, "the process has gone%s%s", hint, why->text);
}

static int check_selector(const struct hb_selector *s, struct hb_error *e)
{
	int given = (s->pids != NULL) + (s->cgroup != NULL) + (s->name != NULL);

	if (given != 1)
		return hb_error__set(e, HB_EXIT_USAGE, -EINVAL,
				     given
					 ? "give only one of -p PID[,PID..], --cgroup PATH and --name GLOB"
					 : "say what to trace: -p PID[,PID..], --cgroup PATH or --name GLOB");
	if ((s->name && !*s->name) || (s->cgroup && !*s->cgroup))
		return hb_error__set(e, HB_EXIT_USAGE, -EINVAL, "the %s is empty",
				     s->name ? "name" : "cgroup path");
	return 0;
}

static int find_roots(const struct tree *t, const struct hb_selector *s, struct hb_buf *roots,
		      struct hb_error *e)
{
	if (s->pids)
		return check_all(roots, e);
	if (s->cgroup)
		return add_cgroup(t, s->cgroup, roots, e);
	add_named(t, s->name, roots);
	return 0;
}

int hb_selector__resolve(const struct hb_selector *s, u32 **pids, u32 *n, struct hb_error *e)
{
	struct tree t = {0};
	struct hb_buf roots = {0}, out = {0};
	struct hb_error why = {0};
	int rc = check_selector(s, e) ?: hb_target__need_proc(e);

	*pids = NULL;
	*n = 0;
	if (!rc && s->pids)
		rc = add_listed(s->pids, &roots, e);
	if (!rc && tree_read(&t))
		rc = hb_error__nomem(e, "the process tree");
	if (!rc)
		rc = find_roots(&t, s, &roots, e);
	if (!rc && (roots.oom || collect(&t, s, &roots, &out, &why)))
		rc = hb_error__nomem(e, "the list of processes");
	if (!rc && !out.size)
		rc = nothing(s, &why, e);
	tree_free(&t);
	hb_buf__free(&roots);
	if (rc) {
		hb_buf__free(&out);
		return rc;
	}
	*pids = (u32 *)out.data;
	*n = (u32)(out.size / sizeof(u32));
	return 0;
}
