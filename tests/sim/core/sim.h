/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Core of the simulated accelerator: what devices, contexts, memory, streams, events, graphs and collectives
 * do, and when. It lives in libcuda.so.1, as the real driver does; the other libraries are thin fronts that
 * reach it by exported libcuda functions and, for what a real library would do by itself (truth log, meeting
 * of ranks), by the table hb_sim_core. Results are CUDA driver codes (abi.h).
 *
 * Time: there are no worker threads. A stream is a queue with the moment its last operation ends; the moment
 * follows CLOCK_MONOTONIC, and whoever synchronises sleeps until it has come. One lock guards all of it: the
 * work under it is some tens of nanoseconds.
 */
#ifndef HB_SIM_H
#define HB_SIM_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>
#include "../abi.h"

typedef uint64_t u64;
typedef uint32_t u32;
typedef uint16_t u16;
typedef uint8_t u8;
typedef int32_t s32;

static inline u64 hb_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

/* ---- truth log (truth.c): one record per API call, file format in truth.h ---- */

enum hb_layer { HB_DRIVER = 1, HB_RUNTIME = 2, HB_LIBRARY = 3, HB_DEVICE = 4, HB_FAULT = 5 };
#define HB_STUB 0x80 /* or-ed to the layer of names that are stubs: calls of them are gaps */

struct hb_call { /* a call in progress, on the caller's stack */
	struct hb_truth_record *rec;
	u64 enter;	 /* 0 when neither log nor observer nor faults need it */
	u32 correlation; /* 0: a library's call, which has none */
	bool outermost; /* of this thread's driver and runtime calls: those within it share its correlation */
};

/* Names of a front's functions; returns the id of names[0]. Names are written to the log of this process. */
u32 hb_truth__register(u32 layer, const char *const *names, u32 n);
void hb_truth__enter(struct hb_call *c, u32 function);
void hb_truth__leave(struct hb_call *c, s32 result, u64 stream, u64 bytes);

/* Calls of this thread are made on behalf of a library until the matching -1. */
void hb_truth__nest(int by);

/* Of the driver or runtime call that this thread is in: a number per call and process, as CUPTI gives; else
 * 0. */
u32 hb_truth__correlation(void);

/* Room for a profiling interface on this core: told of every call and device operation while set. The name is
 * the function's; an operation (truth.h) is told once its times are known, with the core's lock held. */
struct hb_operation;
struct hb_observer {
	void (*enter)(const struct hb_call *c, u32 layer, const char *function);
	void (*leave)(const struct hb_call *c, s32 result);
	void (*operation)(const struct hb_operation *op);
};
extern const struct hb_observer *hb_observer; /* NULL: nobody looks */

/* ---- handles (handle.c): objects live in one arena, so that any number a caller passes can be checked ----
 */

enum hb_kind {
	HB_FREE,
	HB_CTX,
	HB_STREAM,
	HB_EVENT,
	HB_GRAPH,
	HB_EXEC,
	HB_MODULE,
	HB_FUNCTION,
	HB_POOL,
	HB_PHYSICAL,
	HB_USER_OBJECT,
	HB_KINDS
};

struct hb_obj {
	u32 kind;
	u32 generation; /* counts the lives of this slot */
	struct hb_obj *next;
};
#define HB_OBJ_SIZE 256

void *hb_handle__new(enum hb_kind kind);		/* zeroed, or NULL */
void *hb_handle__get(const void *h, enum hb_kind kind); /* NULL when h is no live object of that kind */
void hb_handle__free(void *obj);
u32 hb_handle__index(const void *obj);		   /* of its slot */
void *hb_handle__at(u32 index, enum hb_kind kind); /* NULL when no such object is there */
u32 hb_handle__live(enum hb_kind kind);

/* ---- costs (cost.c): HB_SIM_COSTS, a file or "key=value,..." ---- */

struct hb_costs {
	u64 launch_ns;	     /* host time of a launch */
	u64 graph_launch_ns; /* host time of a graph launch */
	u64 kernel_ns;	     /* device time of a kernel without a row in HB_SIM_COSTS, if set (kernel.h) */
	u64 node_ns;	     /* device time added per graph node */
	u64 copy_ns;	     /* latency of a copy */
	u64 h2d_bps, d2h_bps, d2d_bps, pageable_bps; /* bytes/s */
	u64 event_ns; /* device time of an event record: never 0 (elapsed times are divided by) */
	u64 coll_ns;  /* latency of a collective */
	u64 coll_bps;
	u64 alloc_ns; /* host time of an allocation */
	u64 memory;   /* bytes of a device */
	u64 devices;
	u64 queue;			       /* launches a stream holds before the caller blocks */
	u64 sms, hbm_bps;		       /* what kernels are priced by (kernel.h) */
	u64 bf16_flops, fp8_flops, fp32_flops; /* a second */
};
extern struct hb_costs hb_costs;
/* A file of settings, or NULL: not there, or (said on stderr) no plain file or too large. */
FILE *hb_settings__open(const char *path, const char *variable);
void hb_settings__complain(u32 *times, const char *variable, const char *what); /* a few times at most */
bool hb_settings__number(const char *text, double *v); /* the whole text, finite, not below 0 */
void hb_costs__load(void);			       /* idempotent */
void hb_costs__spin(u64 since, u64 ns);		       /* the host is busy until since + ns */
/* What a library knows of the kernel that its thread launches next; the launch takes it. 0: nothing (hint.c)
 */
struct hb_hint {
	u64 flops, bytes;
};
void hb_hint__set(u64 flops, u64 bytes);
struct hb_hint hb_hint__take(void);
static inline u64 hb_costs__transfer(u64 bytes, u64 bps)
{
	return bps ? (u64)((double)bytes * 1e9 / (double)bps) : 0;
}

/* ---- moments: a time that may depend on a collective that other ranks have not reached yet ---- */

struct hb_rdv;
struct hb_moment { /* max(at, end of operation seq of channel chan + plus) */
	u64 at, plus, seq;
	struct hb_rdv *rdv; /* NULL: at alone */
	u32 chan;
	u32 pad;
};

bool hb_moment__known(struct hb_moment *m, u64 *ns); /* folds a resolved dependency into `at` */
bool hb_moment__passed(struct hb_moment *m, u64 now);
void hb_moment__wait(const struct hb_moment *m, u32 sched); /* sched: CU_CTX_SCHED_*; 0 as HB_SIM_SYNC says */
void hb_moment__join(struct hb_moment *m, const struct hb_moment *other);
void hb_moment__advance(struct hb_moment *m, u64 now, u64 cost);

/* ---- meeting of ranks (rendezvous.c): a shared-memory object per communicator ---- */

struct hb_rdv *hb_rdv__open(const char id[128], u32 nranks, u32 rank,
			    int *err); /* waits for all ranks; err -errno */
void hb_rdv__close(struct hb_rdv *r);
void hb_rdv__abort(struct hb_rdv *r); /* waiting for others ends at once, here and in the other ranks */
bool hb_rdv__aborted(const struct hb_rdv *r);
/* Channel 0 joins all ranks; others join two. */
u32 hb_rdv__pair(const struct hb_rdv *r, u32 from, u32 to);
/* This rank arrives at its next operation on the channel when *m has come; *m becomes the end of that
 * operation. */
void hb_rdv__arrive(struct hb_rdv *r, u32 chan, struct hb_moment *m, u64 cost);
bool hb_rdv__end(struct hb_rdv *r, u32 chan, u64 seq, u64 *ns);
void hb_rdv__wait(struct hb_rdv *r, u32 chan, u64 seq, u64 ns); /* until the end is known, at most ns */

/* What a collective kernel carries to the driver in its first kernel parameter. */
#define HB_COLL_MAGIC 0x4c4c4f4342485343ull
#define HB_COLL_OPS   64
struct hb_coll_op {
	u32 chan, pad;
	u64 cost;
};
enum hb_number { HB_NUMBER_OTHER, HB_NUMBER_U32, HB_NUMBER_U64, HB_NUMBER_F32, HB_NUMBER_F64 };
struct hb_coll_value { /* what it leaves in memory (coll.h): `copies` times `bytes`, one after the other */
	u64 from, to, bytes; /* 0: nothing */
	u32 copies, times;   /* times: a sum of so many equal parts */
	enum hb_number number;
};
struct hb_coll {
	u64 magic;
	struct hb_rdv *rdv;
	u32 n, pad;
	struct hb_coll_op op[HB_COLL_OPS];
	struct hb_coll_value value; /* of one operation alone */
};

/* ---- devices and contexts (device.c) ---- */

struct hb_stream;
struct hb_ctx {
	struct hb_obj obj;
	int device;
	u32 flags;
	u32 refs; /* of a primary context */
	bool primary, active;
	struct hb_stream *streams; /* all that were made in it */
	struct hb_stream *legacy;  /* the NULL stream */
	u32 blocking;		   /* streams that the NULL stream waits for */
};

void hb_lock(void);
void hb_unlock(void);
CUresult hb_device__init(void); /* cuInit */
CUresult
hb_device__ready(void); /* NOT_INITIALIZED before cuInit, and in the child of an initialised process */
int hb_device__count(void);
bool hb_device__valid(int device);
/* Of CU_DEVICE_ATTRIBUTE_*; all values: attributes.def */
#define HB_ATTRIBUTE_PCI_BUS_ID		      33
#define HB_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR 75
CUresult hb_device__attribute(int device, int attribute, int *value);
CUresult hb_ctx__retain(int device, struct hb_ctx **ctx);
CUresult hb_ctx__release(int device);
CUresult hb_ctx__reset(int device);
struct hb_ctx *hb_ctx__primary(int device);
CUresult hb_ctx__create(int device, u32 flags, struct hb_ctx **ctx);
CUresult hb_ctx__destroy(struct hb_ctx *ctx);
struct hb_ctx *hb_ctx__current(void);
CUresult hb_ctx__set(struct hb_ctx *ctx);
CUresult hb_ctx__push(struct hb_ctx *ctx);
CUresult hb_ctx__pop(struct hb_ctx **ctx);
CUresult hb_ctx__need(struct hb_ctx **ctx); /* the current one, or the code for its absence */

/* ---- memory (memory.c) ---- */

struct hb_work;
enum hb_space { HB_MEM_PAGEABLE, HB_MEM_DEVICE, HB_MEM_PINNED, HB_MEM_MANAGED };
struct hb_range {
	u64 start, size;
	enum hb_space space;
	int device;
	bool ours;		      /* mapped by us, so unmapped with it */
	struct hb_physical *physical; /* mapped into a reserved range (virtual.c) */
};
CUresult hb_memory__alloc(enum hb_space space, u64 size, u64 *addr);
CUresult hb_memory__free(enum hb_space space, u64 addr);
CUresult hb_memory__register(u64 addr, u64 size);
CUresult hb_memory__unregister(u64 addr);
bool hb_memory__find(u64 addr, struct hb_range *out);
/* A whole span of known memory, or pageable host memory; anything else is an invalid value. */
bool hb_memory__inside(u64 addr, u64 size, enum hb_space *space);
void hb_memory__info(u64 *free_bytes, u64 *total);
void hb_memory__copy(const struct hb_work *w);
void hb_memory__fill(const struct hb_work *w);
/* For virtual.c: device memory that has no address of its own, and ranges that it lays over reserved ones. */
CUresult hb_memory__charge(u64 bytes);
void hb_memory__uncharge(u64 bytes);
CUresult hb_memory__lay(const struct hb_range *r);
bool hb_memory__lift(u64 start, u64 size, struct hb_range *out); /* one range that lies within */

/* ---- virtual memory and pools (virtual.c) ---- */

struct hb_physical { /* what cuMemCreate makes */
	struct hb_obj obj;
	u64 size;
	int device;
	u32 refs;    /* of the handle, and one while mapped */
	bool mapped; /* at most once: two views of it would not show the same bytes */
};
#define HB_GRANULARITY (2u << 20)
CUresult hb_virtual__reserve(u64 size, u64 align, u64 wish, u64 *addr);
CUresult hb_virtual__free(u64 addr, u64 size);
bool hb_virtual__reserved(u64 addr);
CUresult hb_virtual__create(u64 size, int device, struct hb_physical **p);
CUresult hb_virtual__release(struct hb_physical *p);
CUresult hb_virtual__map(u64 addr, u64 size, u64 offset, struct hb_physical *p);
CUresult hb_virtual__unmap(u64 addr, u64 size);
CUresult hb_virtual__access(u64 addr, u64 size, bool write);

struct hb_pool {
	struct hb_obj obj;
	int device;
	bool is_default;
	u64 attributes[9]; /* by CU_MEMPOOL_ATTR_* */
};
CUresult hb_pool__create(int device, struct hb_pool **p);
CUresult hb_pool__default(int device, struct hb_pool **p);
CUresult hb_pool__current(int device, struct hb_pool **p);
CUresult hb_pool__choose(int device, struct hb_pool *p);
CUresult hb_pool__destroy(struct hb_pool *p);
CUresult hb_pool__alloc(struct hb_pool *p, u64 size, u64 *addr);

/* ---- functions (module.c) ---- */

struct hb_module;
struct hb_function {
	struct hb_obj obj;
	const char *name;
	bool collective;
	u16 name_id; /* in the truth log; 0: not yet there */
	u16 row;     /* of the table of costs + 1; 0: not yet looked up */
	u32 faults,
	    fault_generation; /* planted faults that concern its name, and of which reading they are */
	struct hb_module *module;
	struct hb_function *next; /* of the module */
	int attributes[16];	  /* by CU_FUNC_ATTRIBUTE_* */
};
struct hb_image;
struct hb_variable;
struct hb_module {
	struct hb_obj obj;
	struct hb_image *image;
	struct hb_function *functions; /* that were asked for */
	struct hb_variable *variables;
};
CUresult hb_module__load(const void *data, struct hb_module **m);
CUresult hb_module__unload(struct hb_module *m);
CUresult hb_module__function(struct hb_module *m, const char *name, struct hb_function **f);
CUresult hb_module__variable(struct hb_module *m, const char *name, u64 *addr, u64 *size);
CUresult hb_function__set(struct hb_function *f, int attribute, int value);
int hb_function__occupancy(const struct hb_function *f, int threads, u64 dynamic);

/* ---- streams and events (stream.c) ---- */

enum hb_op { HB_OP_KERNEL, HB_OP_COPY, HB_OP_FILL, HB_OP_EVENT, HB_OP_COLL, HB_OP_HOST, HB_OP_NOTHING };
enum hb_engine { HB_ENGINE_NONE, HB_ENGINE_H2D, HB_ENGINE_D2H };

/* What a node of a graph waits for: indices of earlier nodes. More than fit are joined by an empty node. */
#define HB_MAX_DEPS 7
struct hb_deps {
	u32 n;
	u32 node[HB_MAX_DEPS];
};

struct hb_work { /* one device operation: enqueued, or a node of a graph */
	enum hb_op op;
	enum hb_engine engine;
	u64 cost;	     /* a kernel's own comes on top of it (cost.c) */
	u64 dst, src, bytes; /* copy; fill: src = value, bytes = count; kernel: moved, as hinted, or 0 */
	u64 flops;	     /* kernel: as hinted, or 0 */
	u32 grid[3], block[3], shared;
	u32 node;	     /* of a graph: its id, never used twice in a process */
	struct hb_deps deps; /* of a graph */
	u32 width;
	u64 rows, dst_pitch,
	    src_pitch; /* copy or fill of more than one row, which begin at these distances */
	CUhostFn fn;
	void *arg;
	struct hb_coll *coll;
	const struct hb_function *function;
};

struct hb_graph;
struct hb_stream {
	struct hb_obj obj;
	struct hb_ctx *ctx;
	struct hb_stream *next; /* in the context's list */
	u32 flags;
	int priority;
	struct hb_moment tail;
	struct hb_moment *queue; /* ends of the operations still queued */
	u32 head, count;
	struct hb_graph *capture;
	u64 capture_id;
	bool capture_origin, capture_broken;
	u8 capture_mode;
	u32 capture_tid;     /* of the thread that began it */
	struct hb_deps deps; /* while capturing: what the next node waits for */
	u32 serial, kernels; /* streams before it; kernels so far */
	u32 exec;	     /* graph whose nodes are being enqueued, or 0 */
	u64 now;	     /* when the operation being enqueued is */
};

CUresult hb_stream__resolve(CUstream h, bool per_thread, struct hb_stream **s); /* handle or default stream */
CUresult hb_stream__create(u32 flags, int priority, struct hb_stream **s);
CUresult hb_stream__destroy(struct hb_stream *s);
CUresult hb_stream__enqueue(struct hb_stream *s, const struct hb_work *w); /* or captures it */
CUresult hb_stream__query(struct hb_stream *s);
CUresult hb_stream__sync(struct hb_stream *s);
CUresult hb_ctx__sync(struct hb_ctx *ctx);
/* Used by graph launches, with the lock held: room in the queue (may drop the lock while waiting), then the
 * work. */
void hb_stream__room(struct hb_stream *s);
void hb_stream__start(struct hb_stream *s, u64 now);
void hb_stream__apply(struct hb_stream *s, const struct hb_work *w, u64 now);
void hb_stream__push(struct hb_stream *s);
/* Planted fault blocking_d2h: whoever waits for *m waits for a copy more, if kernels ran since the last one.
 */
void hb_stream__plant(struct hb_stream *s, struct hb_moment *m);

struct hb_event {
	struct hb_obj obj;
	u32 flags;
	bool recorded;
	struct hb_moment when;
	struct hb_graph *capture; /* recorded in a capturing stream */
	u64 capture_id;
	struct hb_deps deps; /* then: what it stands for */
};
CUresult hb_event__create(u32 flags, struct hb_event **e);
CUresult hb_event__destroy(struct hb_event *e);
CUresult hb_event__record(struct hb_event *e, struct hb_stream *s);
CUresult hb_event__query(struct hb_event *e);
CUresult hb_event__sync(struct hb_event *e);
CUresult hb_event__elapsed(float *ms, struct hb_event *a, struct hb_event *b);
CUresult hb_stream__wait_event(struct hb_stream *s, struct hb_event *e);

/* ---- graphs (graph.c) ---- */

struct hb_kept;
struct hb_graph {
	struct hb_obj obj;
	struct hb_work *nodes;
	u32 n, cap;
	u32 id;		   /* never used twice in a process */
	u64 capture_id;	   /* while captured into */
	u32 captured_from; /* its nodes before the capture */
	bool captured;	   /* made by a capture */
	struct hb_kept *kept;
};
struct hb_exec {
	struct hb_obj obj;
	struct hb_work *nodes;
	struct hb_moment *ends; /* of the nodes, in the launch under way */
	u32 n;
	u32 id; /* never used twice in a process */
	u64 flags;
	struct hb_kept *kept;
};
CUresult hb_graph__create(struct hb_graph **g);
CUresult hb_graph__destroy(struct hb_graph *g);
/* Appends a node that waits for w->deps; its index is g->n - 1 then. */
CUresult hb_graph__add(struct hb_graph *g, const struct hb_work *w);
/* Adds what other stands for to deps, in a graph (for the empty node that joins more than fit). */
CUresult hb_graph__join(struct hb_graph *g, struct hb_deps *deps, const struct hb_deps *other);
CUresult hb_graph__instantiate(struct hb_graph *g, struct hb_exec **x);
CUresult hb_graph__update(struct hb_exec *x, struct hb_graph *g);
CUresult hb_exec__destroy(struct hb_exec *x);
CUresult hb_exec__launch(struct hb_exec *x, struct hb_stream *s);
CUresult hb_capture__begin(struct hb_stream *s, int mode);
/* Into a graph that is there already; its first nodes wait for deps. */
CUresult hb_capture__begin_to(struct hb_stream *s, int mode, struct hb_graph *g, const struct hb_deps *deps);
CUresult hb_capture__end(struct hb_stream *s, struct hb_graph **g);
void hb_capture__break(struct hb_stream *s);
CUresult
hb_capture__implicit(const struct hb_ctx *ctx); /* may the legacy stream be used? With the lock held */
struct hb_graph *hb_capture__drop(struct hb_stream *s);
/* A call that must not be made while something is captured: its code, and the captures are spoiled. */
CUresult hb_capture__unsafe(void);
int hb_capture__exchange(int mode); /* of this thread; returns the old one */

/* ---- nodes as an application sees them (node.c): a handle says which graph, which life of it, which node
 * ---- */

CUgraphNode hb_node__handle(const struct hb_graph *g, u32 index);
struct hb_work *hb_node__get(CUgraphNode h, struct hb_graph **g, u32 *index); /* NULL when there is none */
int hb_node__type(const struct hb_work *w);				      /* CU_GRAPH_NODE_TYPE_* */
/* Appends a node that waits for the n nodes of deps. */
CUresult hb_node__add(struct hb_graph *g, const CUgraphNode *deps, size_t n, const struct hb_work *w,
		      CUgraphNode *out);
CUresult hb_node__add_child(struct hb_graph *g, const CUgraphNode *deps, size_t n,
			    const struct hb_graph *child, CUgraphNode *out);
CUresult hb_node__depend(CUgraphNode from, CUgraphNode to);
CUresult hb_node__collect(struct hb_graph *g, const CUgraphNode *deps, size_t n, struct hb_deps *out);
/* In an executable graph: the node that was made of this one. */
struct hb_work *hb_node__in_exec(struct hb_exec *x, CUgraphNode h, u32 *index);
CUresult hb_node__replace_child(struct hb_exec *x, CUgraphNode h, const struct hb_graph *child);

struct hb_user_object { /* something of the application that a graph keeps */
	struct hb_obj obj;
	void *ptr;
	CUhostFn destroy;
	u32 refs;
};
struct hb_kept { /* by a graph */
	struct hb_kept *next;
	struct hb_user_object *object;
	u32 n;
};
CUresult hb_user_object__create(void *ptr, CUhostFn destroy, u32 refs, struct hb_user_object **o);
CUresult hb_user_object__release(struct hb_user_object *o, u32 n);
CUresult hb_graph__keep(struct hb_graph *g, struct hb_user_object *o, u32 n, bool move);
CUresult hb_graph__drop(struct hb_graph *g, struct hb_user_object *o, u32 n);
/* What is made of a graph (executable, clone) keeps what the graph keeps. */
CUresult hb_kept__copy(const struct hb_kept *from, struct hb_kept **to);
void hb_kept__drop(struct hb_kept **list);

/* ---- the table that the other fronts get by dlsym("hb_sim_core") ---- */

struct hb_sim_core {
	u32 size;
	u32 (*register_names)(u32 layer, const char *const *names, u32 n);
	void (*enter)(struct hb_call *c, u32 function);
	void (*leave)(struct hb_call *c, s32 result, u64 stream, u64 bytes);
	void (*nest)(int by);
	const struct hb_costs *costs;
	u64 (*transfer)(u64 bytes, u64 bps);
	struct hb_rdv *(*rdv_open)(const char id[128], u32 nranks, u32 rank, int *err);
	void (*rdv_close)(struct hb_rdv *r);
	void (*rdv_abort)(struct hb_rdv *r);
	bool (*rdv_aborted)(const struct hb_rdv *r);
	u32 (*rdv_pair)(const struct hb_rdv *r, u32 from, u32 to);
	void (*hint)(u64 flops, u64 bytes);
	const struct hb_observer **observer;
	void (*memory_info)(u64 *free_bytes, u64 *total);
};
extern const struct hb_sim_core hb_sim_core;

#endif
