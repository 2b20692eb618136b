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

/*
 * The entries themselves begin as those of the real driver do, because that decides what a probe costs: a
 * compare with a word of the library, a branch to "deinitialized", and a jump through a table.
 */
__attribute__((visibility("hidden"), used)) u32 hb_front_state = 0;

#if defined(__x86_64__)
#define HB_ENTRY(name)                                                                                       \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ",@function\n" #name ":\n"               \
		"	cmpl $0x321cba00, hb_front_state(%rip)\n"                                                  \
		"	je 1f\n"                                                                                   \
		"	jmp *hb_table_" #name "(%rip)\n"                                                     \
		"1:	movl $4, %eax\n"                                                                         \
		"	ret\n"                                                                                     \
		".size " #name ", .-" #name "\n"                                                             \
		".section .data.rel.local,\"aw\",@progbits\n.p2align 3\n"                                    \
		"hb_table_" #name ":	.quad hb_front_" #name "\n.text\n");
#else
#define HB_ENTRY(name)                                                                                       \
	__asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ",%function\n" #name ":\n"               \
		"	b hb_front_" #name "\n.size " #name ", .-" #name "\n");
#endif
#define F(name, params, args, stream, bytes) HB_ENTRY(name)
#include "cuda.def"
#undef F

/* ---- cuGetProcAddress ---- */

#define F(name, params, args, stream, bytes)                                                                 \
	extern __attribute__((visibility("default"))) CUresult name params;
#include "cuda.def"
#undef F

struct entry {
	const char *name;
	void *exported, *inner;
};
static const struct entry table[] = {
#define F(name, params, args, stream, bytes) {#name, (void *)name, (void *)do_##name},
#include "cuda.def"
#undef F
};

/* 0: not this function; else the better, the newer: base, base_v2, base_v3; with or without _ptsz as wanted.
 */
static int rank_of(const char *name, const char *base, bool per_thread)
{
	size_t n = strlen(base);
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

static const struct entry *look_up(const char *symbol, bool per_thread)
{
	const struct entry *best = NULL;
	int best_rank = 0;

	for (size_t i = 0; i < N_FUNCTIONS; i++) {
		int rank = rank_of(table[i].name, symbol, per_thread);

		if (rank > best_rank) {
			best = &table[i];
			best_rank = rank;
		}
	}
	return best;
}

static CUresult do_cuGetProcAddress_v2(const char *symbol, void **pfn, int version, uint64_t flags,
				       CUdriverProcAddressQueryResult *status)
{
	/* Some drivers may hand out addresses behind the exported ones: a probe on those then sees nothing.
	 */
	static int inner = -1;
	const struct entry *e;

	if (!symbol || !pfn)
		return CUDA_ERROR_INVALID_VALUE;
	if (inner < 0)
		inner = getenv("HB_SIM_INNER") != NULL;
	e = look_up(symbol, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
	*pfn = !e ? NULL : inner ? e->inner : e->exported;
	if (status)
		*status = e ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return e ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
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
