/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of rows in timelines, the same in each format that has timelines. Not cleaned. */
#ifndef HB_LABEL_H
#define HB_LABEL_H

#include "window/window.h"

/* "off-CPU epoll_wait", "preempted", "off-CPU" outside of a call. */
const char *hb_label__offcpu(const struct hb_rec_offcpu *o, char *buf, size_t size);
/* True when a thread ended this sleep: in softirq and hardirq the running one is a bystander. */
bool hb_label__has_waker(const struct hb_rec_offcpu *o);
/* "waits for GIL", "GIL handed over". */
const char *hb_label__gil(const struct hb_rec_py_gil *g);
/* Name of a process: its main thread's, with "(simulated accelerator)" or "(not traced)" where that is so. */
const char *hb_label__process(const struct hb_window *w, u32 pid, bool traced, char *buf, size_t size);

#endif
