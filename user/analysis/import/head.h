/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a trace says of itself beside its rows: the clock, the devices, the rank. */
#ifndef HB_IMPORT_HEAD_H
#define HB_IMPORT_HEAD_H

#include "analysis/import/text.h"
#include "base/buf.h"
#include "window/window.h"

#define HB_HEAD_DEVICES 64

struct hb_head {
	s64 base_ns;	/* wall clock at time 0 of the trace */
	bool kineto;	/* it has what PyTorch's profiler writes */
	bool ours;	/* an export of our own */
	bool simulated; /* whose window was of the simulated accelerator */
	struct {
		char id[16], name[96], sms[16], memory[24];
	} device[HB_HEAD_DEVICES];
	unsigned n_devices;
	char rank[16], world[16], name[256];
};

/* `head` of struct hb_parse_sink. */
int hb_head__take(struct hb_head *h, const char *path, unsigned item, struct hb_piece value);
/* As facts about the window. `shift`: ns that were added to the trace's times. */
void hb_head__write(const struct hb_head *h, struct hb_window_writer *w, s64 shift);
/* Of a further trace of the same window: devices that those before it do not have. */
void hb_head__write_more(const struct hb_head *h, const struct hb_head *const *before, unsigned n,
			 struct hb_window_writer *w);

#endif
