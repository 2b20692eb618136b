/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/session/impl.h"

#include <errno.h>
#include <stdlib.h>

/* As long as no runtime launch was seen there is nothing to decide on; after this the answer stays open, and
 * says so. */
#define CHECK_NS 3000000000ULL

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

static u64 hits_of(const struct hb_plan_file *const *files, u32 n, const u64 *hits)
{
	u64 sum = 0;

	for (u32 i = 0; i < n; i++)
		for (u32 j = 0; j < files[i]->n_sites; j++)
			sum += hits[files[i]->sites[j].probe];
	return sum;
}

/* The launches that only the check has seen are known exactly: they are the loss. */
static void moved(struct hb_session *s, struct proc_state *ps, u64 unseen)
{
	struct hb_loss_row loss = {
	    .cause = HB_LOSS_LATE, .type = HB_TYPE_accel, .cpu = UINT32_MAX, .count = unseen};
	struct hb_error e = {0};
	u32 n;
	const struct hb_plan_file *const *files;

	hb_session__publish_rows(s, &e);
	files = hb_plan__files_of(s->plan, ps->p->pid, &n);
	hb_session__attach_files(s, ps->p, files, n, 0);
	hb_window_writer__loss(s->writer, &loss);
	hb_session__note(
	    s, HB_NOTE_WARNING,
	    "pid %u: its runtime does not launch through the driver's exported function; launches are taken "
	    "at the runtime from now on, %llu before that were counted only",
	    ps->p->pid, (unsigned long long)unseen);
}

static void decide(struct hb_session *s, struct proc_state *ps, bool last)
{
	u32 n, ids = hb_plan__n_probes(s->plan);
	const struct hb_plan_file *const *files = hb_plan__check_files(s->plan, ps->p->pid, &n);
	u64 *hits = calloc(2 * ((size_t)ids + 1), sizeof(u64)), *inner, unseen;

	if (!hits)
		return;
	inner = hits + ids + 1;
	hb_bpf__sums(s->bpf, ids, hits, inner);
	unseen = hits_of(files, n, hits);
	if (unseen || last) {
		for (u32 i = 0; i < n; i++)
			hb_attach__drop(s->attach, ps->p->pid, files[i]);
		ps->check_until = UINT64_MAX; /* done, never again */
		if (hb_plan__check(s->plan, ps->p->pid, hits, inner))
			moved(s, ps, unseen);
	}
	free(hits);
}

void hb_arrival__tick(struct hb_session *s, bool force)
{
	u64 now = hb_clock__now();

	for (u32 i = 0; i < s->n_procs; i++) {
		struct proc_state *ps = &s->procs[i];

		if (ps->check_until && ps->check_until != UINT64_MAX && ps->live)
			decide(s, ps, force || now >= ps->check_until);
	}
}
