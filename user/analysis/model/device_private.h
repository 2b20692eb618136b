/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inside of hb_devices: what its files share. device.c takes records and joins them, device_launch.c and
 * device_time.c look at one device each, device_kernel.c at names and directions. */
#ifndef HB_DEVICE_PRIVATE_H
#define HB_DEVICE_PRIVATE_H

#include "analysis/model/device.h"
#include "analysis/model/order.h"
#include "analysis/model/rows.h"

struct arrived { /* an operation as it came: its launch may come later */
	struct hb_device_op op;
	u64 correlation;
	u32 device; /* row of devs */
	u32 kernel; /* row of names; copies and memsets: NO_KERNEL */
};
#define NO_KERNEL UINT32_MAX

struct name { /* pub first, as in dev */
	struct hb_kernel pub;
	u32 row;
};

struct dev { /* pub first: tables of pointers are handed out as they are */
	struct hb_device pub;
	struct hb_map *stream_of; /* (context, number) -> index */
	struct hb_stream *streams;
	u32 n_streams, cap_streams;
	struct hb_gap *gaps;
	u32 n_gaps, cap_gaps;
	struct hb_copies *copies;
	struct hb_ivs active, host_idle, not_known;
};

struct hb_devices {
	struct hb_window *w;
	struct hb_devices_opts o;
	struct hb_device_counts counts;
	struct hb_feed feed;
	bool finished;
	struct arrived *in; /* until finish */
	u32 n_in, cap_in;
	struct hb_device_op *op; /* after it: by device and begin */
	struct hb_launch *launch;
	u32 n_launches, cap_launches;
	struct hb_map *calls; /* (pid, correlation) -> index of the last launch + 1 */
	struct hb_rows devs;  /* struct dev, by (pid, number) */
	struct hb_rows names; /* struct name, by string id */
	u32 n_names;	      /* after finish: the first ones, that have operations */
	u8 *is_work;	      /* by probe: this call gives the device work */
};

/* The next item of a growing array; NULL: out of memory, or 2^32 of them. */
void *hb_devices__push(void *array, u32 *n, u32 *cap, size_t size);

/* One device each, in this order; 0 or -ENOMEM. */
int hb_devices__queue(struct hb_devices *d, struct dev *v); /* launches: queue, delay, short kernels */
int hb_devices__time(struct hb_devices *d, struct dev *v);  /* unions, gaps */
int hb_devices__copies(struct hb_devices *d, struct dev *v);

/* Kernels by name, of `in`. */
struct hb_kernel *hb_devices__name(struct hb_devices *d, u32 name, u32 *row);
int hb_devices__by_name(struct hb_devices *d);

#endif
