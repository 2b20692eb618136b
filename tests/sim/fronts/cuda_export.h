/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of cuda.c: what the linker sees. */

enum {
#define F HB_ID_
#include "cuda.def"
#undef F
	N_FUNCTIONS
};
static const char *const names[] = {
#define F HB_NAME_
#include "cuda.def"
#undef F
};
static u32 first_id;

/* Behind each exported entry: the truth log, then the work. */
#define F(name, params, args, stream, bytes)                                                                 \
	CUresult hb_front_##name params;                                                                     \
	CUresult hb_front_##name params                                                                      \
	{                                                                                                    \
		struct hb_call c;                                                                            \
		CUresult r;                                                                                  \
		hb_truth__enter(&c, first_id + ID_##name);                                                   \
		r = do_##name args;                                                                          \
		hb_truth__leave(&c, (s32)r, HB_H(stream), bytes);                                            \
		return r;                                                                                    \
	}
#include "cuda.def"
#undef F

__attribute__((visibility("hidden"), used)) u32 hb_front_state = 0; /* that of the entries: entry.h */

#define F(name, params, args, stream, bytes) HB_ENTRY(name)
#include "cuda.def"
#undef F

/* ---- cuGetProcAddress ---- */

#define F(name, params, args, stream, bytes)                                                                 \
	extern __attribute__((visibility("default"))) CUresult name params;
#include "cuda.def"
#undef F

static const struct hb_entry table[] = {
#define F(name, params, args, stream, bytes) {#name, (void *)name, (void *)do_##name},
#include "cuda.def"
#undef F
    {NULL, NULL, NULL}};

/* Since which version a newer form of a function is what its plain name means; others always were. */
static const struct {
	const char *name;
	int version;
} since[] = {
    {"cuStreamGetCaptureInfo_v2", 11030},
    {"cuStreamGetCaptureInfo_v3", 12030},
    {"cuStreamUpdateCaptureDependencies_v2", 12030},
    {"cuGraphAddDependencies_v2", 12030},
    {"cuGraphGetEdges_v2", 12030},
    {"cuGraphNodeGetDependencies_v2", 12030},
    {"cuGraphNodeGetDependentNodes_v2", 12030},
    {"cuGraphAddNode_v2", 12030},
    {"cuGraphRemoveDependencies_v2", 12030},
    {"cuGraphAddKernelNode_v2", 12000},
    {"cuGraphKernelNodeGetParams_v2", 12000},
    {"cuGraphKernelNodeSetParams_v2", 12000},
    {"cuGraphExecKernelNodeSetParams_v2", 12000},
    {"cuGraphExecUpdate_v2", 12000},
    {"cuGetProcAddress_v2", 12000},
    {"cuMemPrefetchAsync_v2", 12020},
    {"cuMemAdvise_v2", 12020},
    {"cuEventElapsedTime_v2", 12080},
    {"cuCtxCreate_v3", 11040},
    {"cuCtxCreate_v4", 12050},
    {"cuCtxSynchronize_v2", 13000},
    {"cuStreamGetCtx_v2", 12050},
};

static bool too_new(const char *name, int version)
{
	for (size_t i = 0; i < sizeof(since) / sizeof(*since); i++)
		if (!strcmp(name, since[i].name))
			return version < since[i].version;
	return false;
}

/* 0: not this function; else the better, the newer: base, base_v2, base_v3; with or without _ptsz as wanted.
 */
static int rank_of(const char *name, const char *base, size_t n, bool per_thread)
{
	int version = 1;
	bool ptsz;

	if (strncmp(name, base, n))
		return 0;
	name += n;
	if (name[0] == '_' && name[1] == 'v' && name[2] >= '2' && name[2] <= '9') {
		version = name[2] - '0';
		name += 3;
	}
	ptsz = !strcmp(name, "_ptsz") || !strcmp(name, "_ptds");
	if (*name && !ptsz)
		return 0;
	if (ptsz && !per_thread)
		return 0;
	return version * 2 + (ptsz ? 100 : 0);
}

struct wish {
	const char *symbol;
	size_t len;
	int version;
	bool per_thread;
	const struct hb_entry *best;
	int rank;
};

static void look_in(struct wish *w, const struct hb_entry *t)
{
	for (; t->name; t++) {
		int rank = rank_of(t->name, w->symbol, w->len, w->per_thread);

		if (rank > w->rank && (!strcmp(t->name, w->symbol) || !too_new(t->name, w->version))) {
			w->best = t;
			w->rank = rank;
		}
	}
}

static const struct hb_entry *look_up(const char *symbol, int version, bool per_thread)
{
	struct wish w = {
	    .symbol = symbol, .len = strlen(symbol), .version = version, .per_thread = per_thread};

	look_in(&w, table);
	if (hb_stub_table)
		look_in(&w, hb_stub_table);
	return w.best;
}

static CUresult do_cuGetProcAddress_v2(const char *symbol, void **pfn, int version, uint64_t flags,
				       CUdriverProcAddressQueryResult *status)
{
	/* Some drivers may hand out addresses behind the exported ones: a probe on those then sees nothing.
	 */
	static int inner = -1;
	const struct hb_entry *e;

	if (!symbol || !pfn)
		return CUDA_ERROR_INVALID_VALUE;
	if (inner < 0)
		inner = getenv("HB_SIM_INNER") != NULL;
	e = look_up(symbol, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	*pfn = !e ? NULL : inner ? e->inner : e->exported;
	if (status)
		*status = e ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return e ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult do_cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
	return do_cuGetProcAddress_v2(symbol, pfn, version, flags, NULL);
}

/* ---- for the other fronts ---- */

HB_EXPORT const struct hb_sim_core hb_sim_core = {
    .size = sizeof(struct hb_sim_core),
    .register_names = hb_truth__register,
    .enter = hb_truth__enter,
    .leave = hb_truth__leave,
    .nest = hb_truth__nest,
    .costs = &hb_costs,
    .transfer = hb_costs__transfer,
    .rdv_open = hb_rdv__open,
    .rdv_close = hb_rdv__close,
    .rdv_abort = hb_rdv__abort,
    .rdv_aborted = hb_rdv__aborted,
    .rdv_pair = hb_rdv__pair,
    .hint = hb_hint__set,
    .observer = &hb_observer,
    .memory_info = hb_memory__info,
};

__attribute__((constructor)) static void loaded(void)
{
	first_id = hb_truth__register(HB_DRIVER, names, N_FUNCTIONS);
}
