/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What there is to see of exceptions, of the GIL and of garbage collections in a process: places to probe in
 * the interpreter's file (and in libstdc++), and where things lie in its memory.
 */
#ifndef HB_PYTHON_EVENTS_H
#define HB_PYTHON_EVENTS_H

#include "capture/python/python.h"
#include "schema/pyevents.h"

struct hb_py_site {  /* a place to probe */
	u32 cookie;  /* HB_PYEV_COOKIE() */
	u64 offset;  /* in the file */
	u64 counter; /* of a USDT probe, in the file; 0: none */
	bool ret;
	char symbol[40];
};
#define HB_PY_SITES 8

enum hb_py_gc_way { HB_PY_GC_NONE, HB_PY_GC_COLLECTOR, HB_PY_GC_USDT, HB_PY_GC_PENDING };

struct hb_py_image { /* a file */
	struct hb_py_site site[HB_PY_SITES];
	u32 n_sites;
	u64 runtime, quiet[3]; /* virtual addresses: of _PyRuntime; of the variables with these classes */
	enum hb_py_gc_way gc;
	bool raises; /* exceptions can be seen */
};

/* The mapping of a runtime's file; NULL when it is not mapped any more. */
const struct hb_mapping *hb_py_runtime__mapping(const struct hb_py_runtime *r, const struct hb_process *p);
/* 0, or -errno when the file cannot be read. */
int hb_py_image__read(const struct hb_process *p, const struct hb_mapping *m, const struct hb_py_runtime *r,
		      struct hb_py_image *out);
/* A C++ library, for its exceptions. */
bool hb_py_image__is_cxx(const char *path);
int hb_py_image__read_cxx(const struct hb_process *p, const struct hb_mapping *m, struct hb_py_image *out);

/* For the kernel: what is known now of the runtimes that are ready (in the order of hb_python__kernel);
 * image[i] is that of the i-th of hb_python__runtimes(), NULL: none. GILs that do not look like one are left
 * out. */
void hb_py_events__fill(u32 pid, const struct hb_python *py, const struct hb_py_image *const *image,
			struct hb_py_events *out);

/* A line for a person: what of exceptions, GIL and GC can be seen. */
const char *hb_py_events__describe(u32 pid, const struct hb_py_runtime *r, const struct hb_py_image *im,
				   char *buf, size_t size);

#endif
