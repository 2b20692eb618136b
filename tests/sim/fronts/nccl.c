/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libnccl.so.2: communicators over the meeting of ranks in the core. As in the real library an operation is a
 * kernel launched through the driver (cuLaunchKernelEx), one for all operations of a group on one stream.
 * Data are not exchanged: kernels of the simulated accelerator compute nothing. What small results are
 * instead: core/coll.h.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "driver.h"
#include "nccl_abi.h"

#define F(name, params, args, stream, bytes) static ncclResult_t do_##name params;
#include "nccl.def"
#undef F

HB_SIM_MARK

/* ---- communicators live in a table, so that a stale one gives an error, not a crash ---- */

#define MAX_COMMS 256
#define MAX_OPS	  32 /* reductions made by the caller */

enum comm_state { COMM_FREE, COMM_MADE, COMM_READY };

struct ncclComm {
	u32 state;
	int nranks, rank, device;
	CUcontext ctx;
	struct hb_rdv *rdv;
	ncclUniqueId id;
	u32 parts; /* communicators split off: all ranks count alike, so they agree on names */
	u32 ops;   /* bit per reduction that exists */
};
static struct ncclComm comms[MAX_COMMS];

static char last_error[160];

static ncclResult_t fail(ncclResult_t r, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(last_error, sizeof(last_error), format, ap);
	va_end(ap);
	return r;
}

static struct ncclComm *comm_new(void)
{
	for (u32 i = 0; i < MAX_COMMS; i++) {
		u32 unused = COMM_FREE;

		if (__atomic_compare_exchange_n(&comms[i].state, &unused, COMM_MADE, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED)) {
			comms[i] = (struct ncclComm){.state = COMM_MADE};
			return &comms[i];
		}
	}
	return NULL;
}

static void comm_free(struct ncclComm *c)
{
	__atomic_store_n(&c->state, COMM_FREE, __ATOMIC_RELEASE);
}

static bool valid(const struct ncclComm *c)
{
	uintptr_t at = (uintptr_t)c - (uintptr_t)comms;

	return at < sizeof(comms) && at % sizeof(comms[0]) == 0 &&
	       __atomic_load_n(&c->state, __ATOMIC_ACQUIRE) == COMM_READY;
}

/* ---- kernels, by kind, reduction and type ---- */

enum kind { ALL_REDUCE, REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, SEND_RECV, N_KINDS };
static const struct {
	const char *name;
	bool reduces;
} kinds[N_KINDS] = {
    {"AllReduce", true},  {"Reduce", true},	{"ReduceScatter", true},
    {"AllGather", false}, {"Broadcast", false}, {"SendRecv", false},
};
static const struct {
	const char *name;
	u8 size;
} types[ncclNumTypes] = {
    {"i8", 1},	{"u8", 1},  {"i32", 4}, {"u32", 4},  {"i64", 8},    {"u64", 8},
    {"f16", 2}, {"f32", 4}, {"f64", 8}, {"bf16", 2}, {"f8e4m3", 1}, {"f8e5m2", 1},
};
static const char *const op_names[] = {"Sum", "Prod", "MinMax", "MinMax", "SumPostDiv", "PreMulSum"};
#define N_OPS (sizeof(op_names) / sizeof(*op_names))

static CUfunction kernels[N_KINDS][N_OPS][ncclNumTypes];
static CUlibrary library;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static u64 size_of(ncclDataType_t type)
{
	return (u32)type < ncclNumTypes ? types[type].size : 0;
}

static void kernel_name(char *out, size_t size, enum kind kind, u32 op, u32 type)
{
	if (kind == SEND_RECV)
		snprintf(out, size, "ncclDevKernel_SendRecv");
	else if (kinds[kind].reduces)
		snprintf(out, size, "ncclDevKernel_%s_%s_%s_RING_LL", kinds[kind].name, op_names[op],
			 types[type].name);
	else
		snprintf(out, size, "ncclDevKernel_%s_RING_LL", kinds[kind].name);
}

static CUresult load_kernel(CUfunction *f, const char *name)
{
	static const char image[] = "simulated";
	CUresult r = CUDA_SUCCESS;
	CUkernel k = NULL;

	if (!library)
		r = drv.cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0);
	if (!r)
		r = drv.cuLibraryGetKernel(&k, library, name);
	if (!r)
		__atomic_store_n(f, (CUfunction)k, __ATOMIC_RELEASE);
	return r;
}

static CUresult kernel_of(enum kind kind, u32 op, u32 type, CUfunction *f)
{
	CUfunction *slot = &kernels[kind][kinds[kind].reduces ? op : 0][kinds[kind].reduces ? type : 0];
	CUresult r = CUDA_SUCCESS;
	char name[80];

	*f = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
	if (*f)
		return CUDA_SUCCESS;
	kernel_name(name, sizeof(name), kind, op, type);
	pthread_mutex_lock(&lock);
	if (!*slot)
		r = load_kernel(slot, name);
	*f = *slot;
	pthread_mutex_unlock(&lock);
	return r;
}

/* ---- groups ---- */

struct pending {
	struct ncclComm *comm;
	cudaStream_t stream;
	enum kind kind;
	u32 op, type, chan;
	u64 bytes, cost;
	struct hb_coll_value value;
};
static __thread struct pending *group;
static __thread u32 n_group, cap_group, depth;

static ncclResult_t launch(const struct pending *first, struct hb_coll *work, u64 bytes)
{
	u64 channels = 1 + bytes / (256 << 10);
	CUlaunchConfig config = {.gridDimX = (unsigned int)(channels < 24 ? channels : 24),
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = 512,
				 .blockDimY = 1,
				 .blockDimZ = 1,
				 .hStream = (CUstream)first->stream};
	void *params[] = {work, NULL};
	CUcontext current = NULL;
	CUfunction f;
	CUresult r;

	r = drv.cuCtxGetCurrent(&current);
	if (!r && current != first->comm->ctx)
		r = drv.cuCtxPushCurrent_v2(first->comm->ctx);
	if (!r)
		r = kernel_of(first->kind, first->op, first->type, &f);
	if (!r && core->hint)
		core->hint(0, bytes);
	if (!r)
		r = drv.cuLaunchKernelEx(&config, f, params, NULL);
	if (current != first->comm->ctx)
		drv.cuCtxPopCurrent_v2(NULL);
	return r ? fail(ncclUnhandledCudaError, "the driver refused a launch with %d", (int)r) : ncclSuccess;
}

/* One kernel for the operations that share communicator and stream with the first one left. */
static ncclResult_t launch_one(struct pending *p, u32 *n)
{
	struct hb_coll work = {.magic = HB_COLL_MAGIC, .rdv = p[0].comm->rdv};
	struct pending first = p[0];
	u32 left = 0;
	u64 bytes = 0;

	for (u32 i = 0; i < *n; i++) {
		if (p[i].comm != first.comm || p[i].stream != first.stream) {
			p[left++] = p[i];
			continue;
		}
		/* Two kernels could wait for each other across ranks. */
		if (work.n == HB_COLL_OPS)
			return fail(ncclInvalidUsage, "more than %d operations on one stream in a group",
				    HB_COLL_OPS);
		work.op[work.n++] = (struct hb_coll_op){.chan = p[i].chan, .cost = p[i].cost};
		bytes += p[i].bytes;
	}
	*n = left;
	if (work.n == 1)
		work.value = first.value;
	return launch(&first, &work, bytes);
}

static ncclResult_t flush(void)
{
	ncclResult_t r = ncclSuccess;

	while (n_group && !r)
		r = launch_one(group, &n_group);
	free(group);
	group = NULL;
	n_group = cap_group = 0;
	return r;
}

static ncclResult_t add_to_group(const struct pending *p)
{
	if (n_group == cap_group) {
		u32 cap = cap_group ? 2 * cap_group : 64;
		struct pending *more = realloc(group, cap * sizeof(*more));

		if (!more)
			return ncclSystemError;
		group = more;
		cap_group = cap;
	}
	group[n_group++] = *p;
	return ncclSuccess;
}

/* ---- operations ---- */

/* Bytes that cross the links of one rank in a ring, in terms of the whole buffer. */
static u64 traffic(enum kind kind, u64 bytes, int n)
{
	u64 others = (u64)n - 1;

	switch (kind) {
	case ALL_REDUCE:
		return 2 * bytes * others / (u64)n;
	case REDUCE_SCATTER:
	case ALL_GATHER:
		return bytes * others; /* count is one rank's share */
	default:
		return n > 1 ? bytes : 0;
	}
}

static ncclResult_t operation(struct pending *p, size_t count)
{
	u32 n = 1;

	p->bytes = count * types[p->type].size;
	p->cost = core->costs->coll_ns +
		  core->transfer(traffic(p->kind, p->bytes, p->comm->nranks), core->costs->coll_bps);
	return depth ? add_to_group(p) : launch_one(p, &n);
}

/* Which of the kernels' reductions, or -1. */
static int reduction(const struct ncclComm *c, ncclRedOp_t op)
{
	if ((u32)op < ncclNumOps)
		return (int)op;
	return (u32)op < ncclNumOps + MAX_OPS && (c->ops >> ((u32)op - ncclNumOps) & 1) ? ncclNumOps : -1;
}

struct place {
	struct ncclComm *comm;
	cudaStream_t stream;
	int root;
	const void *send;
	void *recv;
};

/* Where the result of an operation comes from, as far as the rank itself can know it (core/coll.h). */
enum shape { ALL, OWN_PART, GATHERED, FROM_ROOT, TO_ROOT, GATHERED_AT_ROOT, PARTS_OF_ROOT, PART_OF_ALL };

static struct hb_coll_value value_of(enum shape shape, const struct place *at, u64 bytes)
{
	struct ncclComm *c = at->comm;
	u64 send = HB_H(at->send), recv = HB_H(at->recv), own = send + (u64)c->rank * bytes;
	bool root = at->root == c->rank;

	switch (shape) {
	case ALL:
		return (struct hb_coll_value){.from = send, .to = recv, .bytes = bytes, .copies = 1};
	case OWN_PART:
		return (struct hb_coll_value){.from = own, .to = recv, .bytes = bytes, .copies = 1};
	case GATHERED:
		return (struct hb_coll_value){
		    .from = send, .to = recv, .bytes = bytes, .copies = (u32)c->nranks};
	case PART_OF_ALL:
		return (struct hb_coll_value){
		    .from = own, .to = recv, .bytes = bytes, .copies = (u32)c->nranks};
	case FROM_ROOT:
		return (struct hb_coll_value){
		    .from = root ? send : recv, .to = recv, .bytes = bytes, .copies = 1};
	case TO_ROOT:
		return (struct hb_coll_value){
		    .from = send, .to = root ? recv : send, .bytes = bytes, .copies = 1};
	case GATHERED_AT_ROOT:
		return (struct hb_coll_value){.from = send,
					      .to = root ? recv : send,
					      .bytes = bytes,
					      .copies = root ? (u32)c->nranks : 1};
	case PARTS_OF_ROOT:
		return (struct hb_coll_value){
		    .from = root ? own : recv, .to = recv, .bytes = bytes, .copies = 1};
	}
	return (struct hb_coll_value){0};
}

/* What adding up equal parts makes of them. */
static void add_up(struct hb_coll_value *v, int reduce, u32 type, int nranks)
{
	static const u8 numbers[ncclNumTypes] = {
	    [2] = HB_NUMBER_U32, [3] = HB_NUMBER_U32, [4] = HB_NUMBER_U64,
	    [5] = HB_NUMBER_U64, [7] = HB_NUMBER_F32, [8] = HB_NUMBER_F64};

	if (reduce == ncclNumOps) /* the scalar is on the device */
		v->bytes = 0;
	v->number = (enum hb_number)numbers[type];
	v->times = reduce == ncclSum ? (u32)nranks : 1;
}

static ncclResult_t collective(enum kind kind, enum shape shape, struct place at, size_t count,
			       ncclDataType_t type, ncclRedOp_t op)
{
	struct ncclComm *c = at.comm;
	struct pending p = {.comm = c, .stream = at.stream, .kind = kind, .type = (u32)type};
	int reduce;

	if (!valid(c))
		return fail(ncclInvalidArgument, "no such communicator");
	reduce = reduction(c, op);
	if (!size_of(type) || reduce < 0 || at.root < 0 || at.root >= c->nranks)
		return fail(ncclInvalidArgument, "type %d, reduction %d or root %d is not valid", (int)type,
			    (int)op, at.root);
	p.op = (u32)reduce;
	p.value = value_of(shape, &at, count * size_of(type));
	if (kinds[kind].reduces)
		add_up(&p.value, reduce, p.type, c->nranks);
	return operation(&p, count);
}

static ncclResult_t pairwise(struct place at, bool send, size_t count, ncclDataType_t type)
{
	struct ncclComm *c = at.comm;
	int peer = at.root;
	u32 from, to;

	if (!valid(c))
		return fail(ncclInvalidArgument, "no such communicator");
	if (!size_of(type) || peer < 0 || peer >= c->nranks)
		return fail(ncclInvalidArgument, "type %d or peer %d is not valid", (int)type, peer);
	if (peer == c->rank)
		return ncclSuccess; /* to oneself: nothing crosses a link */
	from = (u32)(send ? c->rank : peer);
	to = (u32)(send ? peer : c->rank);
	return operation(&(struct pending){.comm = c,
					   .stream = at.stream,
					   .kind = SEND_RECV,
					   .type = (u32)type,
					   .chan = core->rdv_pair(c->rdv, from, to)},
			 count);
}

static ncclResult_t do_ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
				     ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return collective(ALL_REDUCE, ALL, (struct place){comm, stream, 0, send, recv}, count, type, op);
}

static ncclResult_t do_ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
				  ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
	return collective(REDUCE, TO_ROOT, (struct place){comm, stream, root, send, recv}, count, type, op);
}

static ncclResult_t do_ncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t type,
					 ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return collective(REDUCE_SCATTER, OWN_PART, (struct place){comm, stream, 0, send, recv}, count, type,
			  op);
}

static ncclResult_t do_ncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type,
				     ncclComm_t comm, cudaStream_t stream)
{
	return collective(ALL_GATHER, GATHERED, (struct place){comm, stream, 0, send, recv}, count, type,
			  ncclSum);
}

static ncclResult_t do_ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
				     int root, ncclComm_t comm, cudaStream_t stream)
{
	return collective(BROADCAST, FROM_ROOT, (struct place){comm, stream, root, send, recv}, count, type,
			  ncclSum);
}

static ncclResult_t do_ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
				 cudaStream_t stream)
{
	return collective(BROADCAST, FROM_ROOT, (struct place){comm, stream, root, buffer, buffer}, count,
			  type, ncclSum);
}

/* The real ones are made of sends and receives; here the ranks meet once, and as much crosses the links. */
static ncclResult_t do_ncclAlltoAll(const void *send, void *recv, size_t count, ncclDataType_t type,
				    ncclComm_t comm, cudaStream_t stream)
{
	return collective(ALL_GATHER, PART_OF_ALL, (struct place){comm, stream, 0, send, recv}, count, type,
			  ncclSum);
}

static ncclResult_t do_ncclGather(const void *send, void *recv, size_t count, ncclDataType_t type, int root,
				  ncclComm_t comm, cudaStream_t stream)
{
	return collective(ALL_GATHER, GATHERED_AT_ROOT, (struct place){comm, stream, root, send, recv}, count,
			  type, ncclSum);
}

static ncclResult_t do_ncclScatter(const void *send, void *recv, size_t count, ncclDataType_t type, int root,
				   ncclComm_t comm, cudaStream_t stream)
{
	return collective(ALL_GATHER, PARTS_OF_ROOT, (struct place){comm, stream, root, send, recv}, count,
			  type, ncclSum);
}

static ncclResult_t do_ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
				ncclComm_t comm, cudaStream_t stream)
{
	return pairwise((struct place){comm, stream, peer, NULL, NULL}, true, count, type);
}

static ncclResult_t do_ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
				cudaStream_t stream)
{
	return pairwise((struct place){comm, stream, peer, NULL, NULL}, false, count, type);
}

static ncclResult_t do_ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type,
						ncclScalarResidence_t residence, ncclComm_t comm)
{
	if (!op || !scalar || !size_of(type) || !valid(comm))
		return fail(ncclInvalidArgument, "a reduction needs a scalar, a type and a communicator");
	for (u32 i = 0; i < MAX_OPS; i++)
		if (!(comm->ops >> i & 1)) {
			comm->ops |= 1u << i;
			*op = (ncclRedOp_t)(ncclNumOps + i);
			return ncclSuccess;
		}
	return fail(ncclInternalError, "more than %d reductions", MAX_OPS);
}

static ncclResult_t do_ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
	if (!valid(comm) || (u32)op < ncclNumOps || reduction(comm, op) < 0)
		return fail(ncclInvalidArgument, "no such reduction");
	comm->ops &= ~(1u << ((u32)op - ncclNumOps));
	return ncclSuccess;
}

#include "nccl_comm.h"

/* ---- what the linker sees ---- */

enum {
#define F HB_ID_
#include "nccl.def"
#undef F
	N_FUNCTIONS
};

static u32 hb_front_register(const struct hb_sim_core *c)
{
	static const char *const names[] = {
#define F HB_NAME_
#include "nccl.def"
#undef F
	};

	return c->register_names(HB_LIBRARY, names, N_FUNCTIONS);
}

/* The profiling name (pNAME) has the same address, as in the real library: one probe catches both. */
#define PROFILED(name) __asm__(".globl p" #name "\n.type p" #name ",@function\n.set p" #name ", " #name "\n");
#define F(name, params, args, stream, bytes)                                                                 \
	HB_EXPORT ncclResult_t name params;                                                                  \
	ncclResult_t name params                                                                             \
	{                                                                                                    \
		struct hb_call c;                                                                            \
		ncclResult_t r;                                                                              \
		hb_front_enter(&c, ID_##name);                                                               \
		r = do_##name args;                                                                          \
		hb_front_leave(&c, (s32)r, HB_H(stream), bytes);                                             \
		return r;                                                                                    \
	}                                                                                                    \
	PROFILED(name)
#include "nccl.def"
#undef F

#define NAMED_RESULT(name, value) {value, #name},
HB_EXPORT const char *ncclGetErrorString(ncclResult_t result);
const char *ncclGetErrorString(ncclResult_t result)
{
	static const struct {
		int code;
		const char *name;
	} results[] = {HB_ABI_NCCL_CONSTANTS(NAMED_RESULT)};

	for (size_t i = 0; i < sizeof(results) / sizeof(*results); i++)
		if (results[i].code == (int)result)
			return results[i].name;
	return "unknown result code";
}
PROFILED(ncclGetErrorString)

HB_EXPORT const char *ncclGetLastError(ncclComm_t comm);
const char *ncclGetLastError(ncclComm_t comm)
{
	return last_error;
}
PROFILED(ncclGetLastError)

HB_EXPORT void ncclResetDebugInit(void);
void ncclResetDebugInit(void)
{
}
PROFILED(ncclResetDebugInit)
