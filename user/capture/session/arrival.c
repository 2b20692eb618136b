/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/session/impl.h"

#include <errno.h>
#include <stdlib.h>

/* As long as few runtime launches were seen there is nothing to decide on; after this the answer is that they
 * arrive, as everywhere else. */
#define CHECK_NS  3000000000ULL
#define MAX_FILES 16 /* copies of a runtime in one process */

int hb_arrival__begin(struct hb_session *s, struct proc_state *ps, struct hb_error *e)
{
	u32 n;
	const struct hb_plan_file *const *files = hb_plan__check_files(s->plan, ps->p->pid, &n);
	int err;

	if (!n || ps->check_until)
		return 0;
	err = hb_session__publish_rows(s, e);
	if (err)
		return err;
	for (u32 i = 0; i < n; i++) {
		const struct hb_mapping *m = hb_plan_file__mapping(files[i], ps->p);

		if (m)
			hb_attach__file(s->attach, ps->p, m, files[i], NULL);
	}
	ps->check_until = hb_clock__now() + CHECK_NS;
	return 0;
}

/* Probes that record although they counted only before: what they have not recorded. */
static u64 unseen(struct hb_session *s)
{
	u32 ids = hb_plan__n_probes(s->plan);
	u64 *silent = calloc((size_t)ids + 1, sizeof(u64)), sum = 0;

	if (!silent)
		return 0;
	hb_bpf__silent(s->bpf, ids, silent);
	for (u32 id = 1; id <= ids; id++)
		if (!(hb_plan__desc(s->plan, id)->flags & HB_PROBE_QUIET))
			sum += silent[id];
	free(silent);
	return sum;
}

/* The probes of the check go on as recording ones: nothing is attached, so nothing passes unseen meanwhile.
 */
static void moved(struct hb_session *s, const struct proc_state *ps, const struct hb_plan_file *const *files,
		  u32 n)
{
	struct hb_error e = {0};

	if (hb_bpf__load_probes(s->bpf, s->plan, 1, &e))
		hb_warn("%s", e.text);
	for (u32 i = 0; i < n && !s->o.timed; i++)
		hb_attach__drop_returns(s->attach, ps->p->pid, files[i]);
	hb_session__note(
	    s, HB_NOTE_WARNING,
	    "pid %u: its runtime does not launch through the driver's exported function; launches are taken "
	    "at the runtime from now on, %llu before that were counted only",
	    ps->p->pid, (unsigned long long)unseen(s));
}

/* At the end of the window all links are closed at once next; one process after the other takes 70 ms each.
 */
static void decide(struct hb_session *s, struct proc_state *ps, bool last, bool ended)
{
	u32 n, ids = hb_plan__n_probes(s->plan);
	const struct hb_plan_file *const *check = hb_plan__check_files(s->plan, ps->p->pid, &n);
	const struct hb_plan_file *files[MAX_FILES];
	u64 *hits = calloc(2 * ((size_t)ids + 1), sizeof(u64)), *inner;

	if (!hits)
		return;
	n = n < MAX_FILES ? n : MAX_FILES;
	for (u32 i = 0; i < n; i++)
		files[i] = check[i];
	inner = hits + ids + 1;
	hb_bpf__sums(s->bpf, ids, hits, inner);
	if (last || hb_plan__check_ready(s->plan, ps->p->pid, hits)) {
		ps->check_until = UINT64_MAX; /* done, never again */
		if (hb_plan__check(s->plan, ps->p->pid, hits, inner))
			moved(s, ps, files, n);
		else
			for (u32 i = 0; i < n && !ended; i++)
				hb_attach__drop(s->attach, ps->p->pid, files[i]);
	}
	free(hits);
}

void hb_arrival__tick(struct hb_session *s, bool force)
{
	u64 now = hb_clock__now();

	for (u32 i = 0; i < s->n_procs; i++) {
		struct proc_state *ps = &s->procs[i];

		if (ps->check_until && ps->check_until != UINT64_MAX && (ps->live || force))
			decide(s, ps, force || now >= ps->check_until, force);
	}
}

void hb_arrival__account(struct hb_session *s)
{
	struct hb_loss_row loss = {
	    .cause = HB_LOSS_LATE, .type = HB_TYPE_accel, .cpu = UINT32_MAX, .count = unseen(s)};

	if (loss.count)
		hb_window_writer__loss(s->writer, &loss);
}
