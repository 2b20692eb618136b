/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The bytes of a window file; docs/window-format.md explains them. Internal to window/. Little endian
 * throughout. */
#ifndef HB_WINDOW_FORMAT_H
#define HB_WINDOW_FORMAT_H

#include "schema/schema.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "window files are little endian, and so must be the host");

#define HB_SKIP_MAGIC 0x184D2A50u /* a zstd skippable frame: every zstd tool passes over it */
#define HB_FRAME_TAG  0x66574248u /* "HBWf" */

#define HB_BLOCK_SIZE  (256u << 10) /* uncompressed bytes of a data frame; what the writer aims at */
#define HB_TABLE_SIZE  (256u << 10) /* the same of a table frame */
#define HB_MAX_RAW     (1u << 20)   /* readers refuse larger frames */
#define HB_MAX_BODY    (1u << 20)
#define HB_MAX_FOLLOW  (2u << 20)
#define HB_MAX_STREAMS 1024u

enum hb_frame_kind {
	HB_FRAME_HEADER = 1,
	HB_FRAME_SCHEMA = 2,
	HB_FRAME_TABLE = 3,
	HB_FRAME_DATA = 4,
	HB_FRAME_INDEX = 5,
	HB_FRAME_FOOTER = 6,
};
#define HB_FRAME_ZSTD 1u /* flag: the body is one zstd frame of `raw` uncompressed bytes */

/* Starts every frame of ours, together with the zstd skippable header. `follow` bytes of an ordinary zstd
 * frame come right behind the skippable one (data only). */
struct hb_frame_head {
	u32 magic; /* HB_SKIP_MAGIC */
	u32 size;  /* of the rest of the skippable frame: 32 + body */
	u32 tag;   /* HB_FRAME_TAG */
	u8 kind, flags;
	u8 major, minor; /* of the writer: in every frame, at the same place in every version */
	u32 seq;	 /* number of this frame in the file, from 0 */
	u32 raw;	 /* uncompressed bytes of the body (flag ZSTD) or of what follows (data) */
	u32 follow;
	u32 body_crc, follow_crc; /* zlib crc32 */
	u32 head_crc;		  /* of all members above */
} __attribute__((packed));
_Static_assert(sizeof(struct hb_frame_head) == 40, "frame head");
#define HB_HEAD_REST 32u /* bytes of the head that `size` counts */

struct hb_header_body {
	u64 start_ts; /* monotonic ns */
	u64 real_ns;  /* CLOCK_REALTIME ns at start_ts */
	u32 streams;
	u32 reserved;
};

/* Body of a data frame's head, then n_types entries, types ascending. */
struct hb_data_head {
	u64 base_ts; /* of the first record */
	u64 min_ts, max_ts;
	u64 first; /* records of this stream before this frame */
	u16 stream, n_types;
	u32 count;
};
struct hb_data_type {
	u8 type;
	u8 words; /* payload size in units of 8 bytes */
	u16 reserved;
	u32 count;
};
_Static_assert(sizeof(struct hb_data_head) == 40 && sizeof(struct hb_data_type) == 8, "data head");

/* A record's head inside a data frame. */
struct hb_file_head {
	s32 dt; /* ns since the record before it in the frame; 0 for the first */
	u16 task;
	u8 type;
	u8 flags; /* 0 */
};
_Static_assert(sizeof(struct hb_file_head) == 8, "record head");

/* Table frames hold entries: this head, then `size` bytes. Later entries replace earlier ones of the same
 * key. */
struct hb_entry_head {
	u16 kind;
	u16 reserved;
	u32 size;
};
enum hb_entry_kind {
	HB_ENTRY_STRING = 1,  /* u32 id, bytes */
	HB_ENTRY_TASK = 2,    /* u32 idx, struct hb_task */
	HB_ENTRY_PROC = 3,    /* struct hb_proc; key: pid */
	HB_ENTRY_PROBE = 4,   /* u32 id, struct hb_probe_row */
	HB_ENTRY_LOC = 5,     /* u32 id, struct hb_loc */
	HB_ENTRY_STACK = 6,   /* u32 pid, raw, state, n; u32 locs[n] */
	HB_ENTRY_LOSS = 7,    /* struct hb_loss_row; key: cause, type, cpu */
	HB_ENTRY_META = 8,    /* u32 key, value: strings */
	HB_ENTRY_FD = 9,      /* struct hb_fd_row; key: pid, fd, chan */
	HB_ENTRY_PYTASK = 10, /* struct hb_pytask_row; key: pid, task, since */
};

struct hb_index_entry {
	u64 offset; /* of the frame's head in the file */
	u64 min_ts, max_ts;
	u32 stream, count;
};
_Static_assert(sizeof(struct hb_index_entry) == 32, "index entry");
#define HB_INDEX_PER_FRAME 8192u

struct hb_footer_body {
	u64 index; /* offset of the first index frame */
	u64 frames;
	u64 records;
	u64 end_ts;
};

#endif
