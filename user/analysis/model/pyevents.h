/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What records of Python's exceptions, of the GIL and of collections say, for reports and exporters. */
#ifndef HB_MODEL_PYEVENTS_H
#define HB_MODEL_PYEVENTS_H

#include "window/window.h"

/* The class; of C++ demangled. Cleaned. */
const char *hb_decode__exception(const hb_label *name, unsigned origin, char *buf, size_t size);
/* The message as UTF-8; "" when none was kept. Cleaned. */
const char *hb_decode__message(const struct hb_rec_py_exception *r, char *buf, size_t size);
/* Where it was raised; NULL when that was not kept. */
const struct hb_loc *hb_decode__site(const struct hb_window *w, u32 pid, u32 site);
/* A thread of process `pid` by its number in the innermost pid namespace; NULL: unknown. */
const struct hb_task *hb_decode__nstask(const struct hb_window *w, u32 pid, u32 nstid);

#endif
