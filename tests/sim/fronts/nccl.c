/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * libnccl.so.2: communicators over the meeting of ranks in the core. As in the real library an operation is a
 * kernel launched through the driver (cuLaunchKernelEx), one for all operations of a group on one stream.
 * Data are not exchanged: kernels of the simulated accelerator compute nothing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include "driver.h"

#define F(name, params, args, stream, bytes) static ncclResult_t do_##name params;
#include "nccl.def"
#undef F

HB_SIM_MARK

#define COMM_MAGIC  0x6d6f4348 /* checked: a stale communicator must give an error, not a crash */
#define GROUP_LIMIT HB_COLL_OPS

struct ncclComm {
	u32 magic;
	int nranks, rank, device;
	struct hb_rdv *rdv;
	CUfunction kernel[8];
};

enum kind { ALL_REDUCE, REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, SEND_RECV, N_KINDS };
static const char *const kernel_names[N_KINDS] = {
    "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
    "ncclDevKernel_Reduce_Sum_bf16_RING_LL",
    "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL",
    "ncclDevKernel_AllGather_RING_LL",
    "ncclDevKernel_Broadcast_RING_LL",
    "ncclDevKernel_SendRecv",
};

/* Communicators alive in this process. */
#define MAX_COMMS 64
static struct ncclComm *comms[MAX_COMMS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool keep(struct ncclComm *c)
{
	bool done = false;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < MAX_COMMS && !done; i++)
		if (!comms[i]) {
			comms[i] = c;
			done = true;
		}
	pthread_mutex_unlock(&lock);
	return done;
}

static bool valid(const struct ncclComm *c, bool take)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (int i = 0; c && i < MAX_COMMS; i++)
		if (comms[i] == c) {
			found = true;
			if (take)
				comms[i] = NULL;
		}
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- groups ---- */

struct pending {
	struct ncclComm *comm;
	cudaStream_t stream;
	enum kind kind;
	u32 chan;
	u64 cost;
};
static __thread struct pending group[GROUP_LIMIT];
static __thread u32 n_group, depth;

static ncclResult_t launch(const struct pending *first, struct hb_coll *work)
{
	CUlaunchConfig config = {.gridDimX = 16,
				 .gridDimY = 1,
				 .gridDimZ = 1,
				 .blockDimX = 512,
				 .blockDimY = 1,
				 .blockDimZ = 1,
				 .hStream = first->stream};
	void *params[] = {work, NULL};
	CUresult r = drv.cuLaunchKernelEx(&config, first->comm->kernel[first->kind], params, NULL);

	return r ? ncclUnhandledCudaError : ncclSuccess;
}

/* One kernel for the operations that share communicator and stream with the first one left. */
static ncclResult_t launch_one(struct pending *p, u32 *n)
{
	struct hb_coll work = {.magic = HB_COLL_MAGIC, .rdv = p[0].comm->rdv};
	struct pending first = p[0];
	u32 left = 0;

	for (u32 i = 0; i < *n; i++) {
		if (p[i].comm == first.comm && p[i].stream == first.stream)
			work.op[work.n++] = (struct hb_coll_op){.chan = p[i].chan, .cost = p[i].cost};
		else
			p[left++] = p[i];
	}
	*n = left;
	return launch(&first, &work);
}

static ncclResult_t flush(void)
{
	ncclResult_t r = ncclSuccess;

	while (n_group && !r)
		r = launch_one(group, &n_group);
	n_group = 0;
	return r;
}

static ncclResult_t do_ncclGroupStart(void)
{
	depth++;
	return ncclSuccess;
}

static ncclResult_t do_ncclGroupEnd(void)
{
	if (!depth)
		return ncclInvalidUsage;
	return --depth ? ncclSuccess : flush();
}

/* ---- operations ---- */

static u64 size_of(ncclDataType_t type)
{
	static const u8 sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};

	return (u32)type < sizeof(sizes) ? sizes[type] : 0;
}

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

static ncclResult_t operation(enum kind kind, struct ncclComm *c, u32 chan, size_t count, ncclDataType_t type,
			      cudaStream_t stream)
{
	u64 bytes = count * size_of(type);

	if (n_group == GROUP_LIMIT)
		return ncclInvalidUsage;
	group[n_group++] = (struct pending){
	    .comm = c,
	    .stream = stream,
	    .kind = kind,
	    .chan = chan,
	    .cost =
		core->costs->coll_ns + core->transfer(traffic(kind, bytes, c->nranks), core->costs->coll_bps),
	};
	return depth ? ncclSuccess : flush();
}

static ncclResult_t collective(enum kind kind, struct ncclComm *c, int root, size_t count,
			       ncclDataType_t type, cudaStream_t stream)
{
	if (!valid(c, false) || !size_of(type) || root < 0 || root >= c->nranks)
		return ncclInvalidArgument;
	return operation(kind, c, 0, count, type, stream);
}

static ncclResult_t pairwise(struct ncclComm *c, int peer, bool send, size_t count, ncclDataType_t type,
			     cudaStream_t stream)
{
	u32 from, to;

	if (!valid(c, false) || !size_of(type) || peer < 0 || peer >= c->nranks)
		return ncclInvalidArgument;
	if (peer == c->rank)
		return ncclSuccess; /* to oneself: nothing crosses a link */
	from = (u32)(send ? c->rank : peer);
	to = (u32)(send ? peer : c->rank);
	return operation(SEND_RECV, c, core->rdv_pair(c->rdv, from, to), count, type, stream);
}

static ncclResult_t do_ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
				     ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return collective(ALL_REDUCE, comm, 0, count, type, stream);
}

static ncclResult_t do_ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
				  ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
	return collective(REDUCE, comm, root, count, type, stream);
}

static ncclResult_t do_ncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t type,
					 ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return collective(REDUCE_SCATTER, comm, 0, count, type, stream);
}

static ncclResult_t do_ncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type,
				     ncclComm_t comm, cudaStream_t stream)
{
	return collective(ALL_GATHER, comm, 0, count, type, stream);
}

static ncclResult_t do_ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
				     int root, ncclComm_t comm, cudaStream_t stream)
{
	return collective(BROADCAST, comm, root, count, type, stream);
}

static ncclResult_t do_ncclBcast(void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
				 cudaStream_t stream)
{
	return collective(BROADCAST, comm, root, count, type, stream);
}

static ncclResult_t do_ncclSend(const void *send, size_t count, ncclDataType_t type, int peer,
				ncclComm_t comm, cudaStream_t stream)
{
	return pairwise(comm, peer, true, count, type, stream);
}

static ncclResult_t do_ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
				cudaStream_t stream)
{
	return pairwise(comm, peer, false, count, type, stream);
}

/* ---- communicators ---- */

static ncclResult_t do_ncclGetVersion(int *version)
{
	if (!version)
		return ncclInvalidArgument;
	*version = HB_ABI_NCCL_VERSION;
	return ncclSuccess;
}

static ncclResult_t do_ncclGetUniqueId(ncclUniqueId *id)
{
	if (!id)
		return ncclInvalidArgument;
	memset(id, 0, sizeof(*id));
	return getrandom(id, 16, 0) == 16 ? ncclSuccess : ncclSystemError;
}

static ncclResult_t load_kernels(struct ncclComm *c)
{
	static const char image[] = "simulated";
	CUmodule m;

	if (drv.cuCtxGetDevice(&c->device) || drv.cuModuleLoadData(&m, image))
		return ncclUnhandledCudaError;
	for (int i = 0; i < N_KINDS; i++)
		if (drv.cuModuleGetFunction(&c->kernel[i], m, kernel_names[i]))
			return ncclUnhandledCudaError;
	return ncclSuccess;
}

static ncclResult_t do_ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	struct ncclComm *c;
	ncclResult_t r;
	int err;

	if (!comm || nranks < 1 || rank < 0 || rank >= nranks)
		return ncclInvalidArgument;
	if (!have_driver || !core)
		return ncclUnhandledCudaError;
	c = calloc(1, sizeof(*c));
	if (!c)
		return ncclSystemError;
	*c = (struct ncclComm){.magic = COMM_MAGIC, .nranks = nranks, .rank = rank};
	r = load_kernels(c);
	if (!r) {
		c->rdv = core->rdv_open(id.internal, (u32)nranks, (u32)rank, &err);
		r = c->rdv ? ncclSuccess : err == -22 ? ncclInvalidArgument : ncclSystemError;
	}
	if (!r && !keep(c)) {
		core->rdv_close(c->rdv);
		r = ncclSystemError;
	}
	if (r)
		free(c);
	else
		*comm = c;
	return r;
}

static ncclResult_t do_ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
					      ncclConfig_t *config)
{
	return do_ncclCommInitRank(comm, nranks, id, rank);
}

static ncclResult_t do_ncclCommFinalize(ncclComm_t comm)
{
	return valid(comm, false) ? ncclSuccess : ncclInvalidArgument;
}

static ncclResult_t do_ncclCommDestroy(ncclComm_t comm)
{
	if (!valid(comm, true))
		return ncclInvalidArgument;
	core->rdv_close(comm->rdv);
	free(comm);
	return ncclSuccess;
}

static ncclResult_t do_ncclCommAbort(ncclComm_t comm)
{
	if (!valid(comm, false))
		return ncclInvalidArgument;
	core->rdv_abort(comm->rdv);
	return do_ncclCommDestroy(comm);
}

static ncclResult_t do_ncclCommCount(const ncclComm_t comm, int *count)
{
	if (!valid(comm, false) || !count)
		return ncclInvalidArgument;
	*count = comm->nranks;
	return ncclSuccess;
}

static ncclResult_t do_ncclCommUserRank(const ncclComm_t comm, int *rank)
{
	if (!valid(comm, false) || !rank)
		return ncclInvalidArgument;
	*rank = comm->rank;
	return ncclSuccess;
}

static ncclResult_t do_ncclCommCuDevice(const ncclComm_t comm, int *device)
{
	if (!valid(comm, false) || !device)
		return ncclInvalidArgument;
	*device = comm->device;
	return ncclSuccess;
}

static ncclResult_t do_ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
	if (!valid(comm, false) || !error)
		return ncclInvalidArgument;
	*error = core->rdv_aborted(comm->rdv) ? ncclRemoteError : ncclSuccess;
	return ncclSuccess;
}

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
	__asm__(".globl p" #name "\n.type p" #name ",@function\n.set p" #name ", " #name "\n");
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

HB_EXPORT const char *ncclGetLastError(ncclComm_t comm);
const char *ncclGetLastError(ncclComm_t comm)
{
	return "";
}
