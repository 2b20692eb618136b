/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/session/impl.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* The real programs, for a moment, on functions of our own: we are no target, so nothing is recorded and what
 * is left is the trap and the filter. The ring write (under a tenth of a trap) is not in the price. */
struct pricing {
	struct hb_session *s;
	struct hb_process *self;
	struct hb_plan_file file;
	struct hb_site site;
};

static const struct hb_mapping *own_code(const struct hb_process *self, u64 offset)
{
	for (u32 i = 0; i < self->n_maps; i++) {
		const struct hb_mapping *m = &self->maps[i];
		u64 begin = m->pgoff, end = m->pgoff + (m->end - m->start);
		u64 here = (u64)(uintptr_t)&hb_session__measure_prices;

		if (m->start <= here && here < m->end && begin <= offset && offset < end)
			return m;
	}
	return NULL;
}

static int attach_one(void *arg, const char *path, u64 offset, bool ret)
{
	struct pricing *p = arg;
	const struct hb_mapping *m = own_code(p->self, offset);
	int n;

	(void)path;
	if (!m)
		return -ENOENT;
	p->site = (struct hb_site){.offset = offset, .ret = ret};
	p->file = (struct hb_plan_file){
	    .ino = m->ino, .dev = m->dev, .path = m->path, .sites = &p->site, .n_sites = 1};
	n = hb_attach__file(p->s->attach, p->self, m, &p->file, NULL);
	return n > 0 ? n : n < 0 ? n : -EAGAIN;
}

static void detach_one(void *arg, int handle)
{
	struct pricing *p = arg;

	(void)handle;
	hb_attach__drop(p->s->attach, p->self->pid, &p->file);
}

int hb_session__measure_prices(struct hb_session *s)
{
	struct pricing p = {.s = s, .self = hb_process__read((u32)getpid(), NULL)};
	struct hb_price_ops ops = {attach_one, detach_one, &p};
	int err = p.self ? hb_prices__measure(&s->prices, &ops, NULL) : -ESRCH;

	hb_process__free(p.self);
	return err;
}
