/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Part of nccl.c: making, splitting and ending communicators; memory. Whatever waits for other ranks is a
 * job: done at once, or at the end of the group that it was asked for in, then all at a time on threads of
 * their own, since a process that holds several ranks would otherwise wait for itself.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define JOIN_NS	  60000000000ull
#define MAX_RANKS 64
#define MAX_JOBS  64

struct job {
	struct ncclComm *made;	 /* what comes of it */
	struct ncclComm *parent; /* that is split; NULL: a new communicator */
	ncclComm_t *out;
	int color, key;
	u32 part; /* of the parent: the number of this split */
	ncclResult_t result;
	pthread_t thread;
};
static __thread struct job *jobs;
static __thread u32 n_jobs;

static ncclResult_t open_comm(struct ncclComm *c)
{
	int err = 0;

	c->rdv = core->rdv_open(c->id.internal, (u32)c->nranks, (u32)c->rank, &err);
	if (!c->rdv)
		return err == -EINVAL
			   ? fail(ncclInvalidArgument, "rank %d of %d is not possible", c->rank, c->nranks)
			   : fail(ncclSystemError, "the ranks did not meet: %s", strerror(-err));
	__atomic_store_n(&c->state, COMM_READY, __ATOMIC_RELEASE);
	return ncclSuccess;
}

/* ---- split: ranks tell each other colour and key in shared memory ---- */

struct split {
	u32 arrived, left;
	struct {
		s32 color, key;
	} of[MAX_RANKS];
};

static struct split *open_split(const struct ncclComm *c, u32 part, char *name, size_t size)
{
	unsigned long long id[2];
	struct split *s;
	int fd;

	memcpy(id, c->id.internal, sizeof(id));
	snprintf(name, size, "/hb-sim-split-%016llx%016llx-%u", id[0], id[1], part);
	fd = shm_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return NULL;
	s = ftruncate(fd, sizeof(*s)) ? MAP_FAILED
				      : mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return s == MAP_FAILED ? NULL : s;
}

static bool all_arrived(const struct split *s, const struct ncclComm *c)
{
	u64 deadline = hb_now() + JOIN_NS;

	while (__atomic_load_n(&s->arrived, __ATOMIC_ACQUIRE) < (u32)c->nranks) {
		if (hb_now() > deadline || core->rdv_aborted(c->rdv))
			return false;
		usleep(200);
	}
	return true;
}

static bool exchange(const struct job *j, struct split *out)
{
	char name[96];
	struct split *s = open_split(j->parent, j->part, name, sizeof(name));
	bool done;

	if (!s)
		return false;
	s->of[j->parent->rank].color = j->color;
	s->of[j->parent->rank].key = j->key;
	__atomic_add_fetch(&s->arrived, 1, __ATOMIC_RELEASE);
	done = all_arrived(s, j->parent);
	*out = *s;
	if (!done || __atomic_add_fetch(&s->left, 1, __ATOMIC_ACQ_REL) == (u32)j->parent->nranks)
		shm_unlink(name);
	munmap(s, sizeof(*s));
	return done;
}

/* The same for all ranks of a part, different from any other part's. */
static ncclUniqueId part_id(const struct ncclComm *parent, u32 part, u32 color)
{
	ncclUniqueId id = parent->id;
	u64 half[2];

	memcpy(half, id.internal, sizeof(half));
	half[0] = (half[0] ^ part) * 0x9e3779b97f4a7c15ull;
	half[1] = (half[1] ^ color) * 0xc2b2ae3d27d4eb4full;
	memcpy(id.internal, half, sizeof(half));
	return id;
}

static ncclResult_t split(struct job *j)
{
	struct ncclComm *c = j->made, *p = j->parent;
	struct split all;

	if (!exchange(j, &all))
		return fail(ncclSystemError, "the ranks did not meet to split");
	if (j->color == NCCL_SPLIT_NOCOLOR) {
		comm_free(c);
		*j->out = NULL;
		return ncclSuccess;
	}
	for (int i = 0; i < p->nranks; i++) {
		if (all.of[i].color != j->color)
			continue;
		c->nranks++;
		c->rank += all.of[i].key < j->key || (all.of[i].key == j->key && i < p->rank);
	}
	c->id = part_id(p, j->part, (u32)j->color);
	return open_comm(c);
}

/* ---- jobs ---- */

static ncclResult_t do_job(struct job *j)
{
	j->result = j->parent ? split(j) : open_comm(j->made);
	if (j->result) {
		comm_free(j->made);
		*j->out = NULL;
	}
	return j->result;
}

static void *job_thread(void *arg)
{
	struct job *j = arg;
	CUresult r = drv.cuCtxPushCurrent_v2(j->made->ctx); /* the core asks whose rank it is */

	do_job(j);
	if (!r)
		drv.cuCtxPopCurrent_v2(NULL);
	return NULL;
}

static ncclResult_t do_jobs(void)
{
	ncclResult_t r = ncclSuccess;
	bool started[MAX_JOBS];

	for (u32 i = 0; i < n_jobs; i++)
		started[i] = n_jobs > 1 && !pthread_create(&jobs[i].thread, NULL, job_thread, &jobs[i]);
	for (u32 i = 0; i < n_jobs; i++) {
		if (started[i])
			pthread_join(jobs[i].thread, NULL);
		else
			do_job(&jobs[i]);
		r = r ? r : jobs[i].result;
	}
	free(jobs);
	jobs = NULL;
	n_jobs = 0;
	return r;
}

static ncclResult_t start(struct job j)
{
	*j.out = j.made;
	if (!depth)
		return do_job(&j);
	if (!jobs)
		jobs = calloc(MAX_JOBS, sizeof(*jobs));
	if (!jobs || n_jobs == MAX_JOBS) {
		comm_free(j.made);
		*j.out = NULL;
		return fail(ncclSystemError, "more than %d communicators in a group", MAX_JOBS);
	}
	jobs[n_jobs++] = j;
	return ncclSuccess;
}

/* ---- groups ---- */

static ncclResult_t do_ncclGroupStart(void)
{
	depth++;
	return ncclSuccess;
}

static ncclResult_t do_ncclGroupEnd(void)
{
	ncclResult_t made, flushed;

	if (!depth)
		return fail(ncclInvalidUsage, "the end of a group that was not begun");
	if (--depth)
		return ncclSuccess;
	made = n_jobs ? do_jobs() : ncclSuccess;
	flushed = flush();
	return made ? made : flushed;
}

static ncclResult_t do_ncclGroupSimulateEnd(ncclSimInfo_t *info)
{
	u64 ns = 0;

	if (!depth)
		return fail(ncclInvalidUsage, "the end of a group that was not begun");
	if (!info || info->magic != HB_NCCL_SIM_MAGIC)
		return fail(ncclInvalidArgument, "the simulation's answer was not initialised");
	if (--depth)
		return ncclSuccess;
	for (u32 i = 0; i < n_group; i++)
		ns += group[i].cost;
	n_group = 0;
	info->estimatedTime = (float)ns / 1000;
	return flush();
}

/* ---- communicators ---- */

static ncclResult_t do_ncclGetVersion(int *version)
{
	const char *given = getenv("HB_SIM_NCCL_VERSION");

	if (!version)
		return ncclInvalidArgument;
	*version = given ? atoi(given) : HB_NCCL_VERSION;
	return ncclSuccess;
}

static ncclResult_t do_ncclGetUniqueId(ncclUniqueId *id)
{
	if (!id)
		return ncclInvalidArgument;
	memset(id, 0, sizeof(*id));
	return getrandom(id, 16, 0) == 16 ? ncclSuccess : ncclSystemError;
}

static bool good_config(const ncclConfig_t *config)
{
	return !config || config->magic == HB_NCCL_MAGIC;
}

/* On the device that is current in the calling thread. */
static ncclResult_t make(struct ncclComm **out)
{
	struct ncclComm *c;

	if (!have_driver || !core)
		return fail(ncclUnhandledCudaError, "there is no simulated driver");
	c = comm_new();
	if (!c)
		return fail(ncclSystemError, "more than %d communicators", MAX_COMMS);
	if (drv.cuCtxGetDevice(&c->device) || drv.cuCtxGetCurrent(&c->ctx)) {
		comm_free(c);
		return fail(ncclUnhandledCudaError, "no device is current");
	}
	*out = c;
	return ncclSuccess;
}

static ncclResult_t do_ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank,
					      ncclConfig_t *config)
{
	struct ncclComm *c;
	ncclResult_t r;

	if (!comm || nranks < 1 || rank < 0 || rank >= nranks || !good_config(config))
		return fail(ncclInvalidArgument, "rank %d of %d, or the configuration, is not valid", rank,
			    nranks);
	r = make(&c);
	if (r)
		return r;
	c->nranks = nranks;
	c->rank = rank;
	c->id = id;
	return start((struct job){.made = c, .out = comm});
}

static ncclResult_t do_ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
	return do_ncclCommInitRankConfig(comm, nranks, id, rank, NULL);
}

/* With several ids the real one shares the work of the meeting; one is enough. */
static ncclResult_t do_ncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank, int n_ids,
						ncclUniqueId *ids, ncclConfig_t *config)
{
	if (!ids || n_ids < 1 || n_ids > nranks)
		return fail(ncclInvalidArgument, "%d ids for %d ranks", n_ids, nranks);
	return do_ncclCommInitRankConfig(comm, nranks, ids[0], rank, config);
}

static ncclResult_t init_on(ncclComm_t *comm, int n, ncclUniqueId id, int rank, int device)
{
	CUcontext ctx;
	ncclResult_t r;

	if (drv.cuInit(0) || drv.cuDevicePrimaryCtxRetain(&ctx, device) || drv.cuCtxPushCurrent_v2(ctx))
		return fail(ncclUnhandledCudaError, "device %d cannot be used", device);
	r = do_ncclCommInitRankConfig(comm, n, id, rank, NULL);
	drv.cuCtxPopCurrent_v2(NULL);
	return r;
}

static ncclResult_t do_ncclCommInitAll(ncclComm_t *all, int n, const int *devices)
{
	ncclResult_t r = ncclSuccess, end;
	ncclUniqueId id;

	if (!all || n < 1 || n > MAX_JOBS)
		return fail(ncclInvalidArgument, "communicators for %d devices", n);
	if (!have_driver || !core)
		return fail(ncclUnhandledCudaError, "there is no simulated driver");
	if (do_ncclGetUniqueId(&id))
		return ncclSystemError;
	depth++;
	for (int i = 0; i < n && !r; i++)
		r = init_on(&all[i], n, id, i, devices ? devices[i] : i);
	if (r) { /* the others would wait for those that were not made */
		for (u32 i = 0; i < n_jobs; i++)
			comm_free(jobs[i].made);
		n_jobs = 0;
	}
	end = do_ncclGroupEnd();
	return r ? r : end;
}

static ncclResult_t do_ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *part,
				     ncclConfig_t *config)
{
	struct ncclComm *c;
	ncclResult_t r;

	if (!valid(comm) || !part || color < NCCL_SPLIT_NOCOLOR || !good_config(config))
		return fail(ncclInvalidArgument, "communicator, color %d or configuration is not valid",
			    color);
	r = make(&c);
	if (r)
		return r;
	return start((struct job){
	    .made = c, .parent = comm, .out = part, .color = color, .key = key, .part = comm->parts++});
}

static ncclResult_t do_ncclCommShrink(ncclComm_t comm, int *excluded, int n, ncclComm_t *part,
				      ncclConfig_t *config, int flags)
{
	struct ncclComm *c;
	ncclResult_t r;
	int before = 0;

	if (!valid(comm) || !part || !excluded || n < 1 || n >= comm->nranks || !good_config(config))
		return fail(ncclInvalidArgument, "communicator, list of ranks or configuration is not valid");
	for (int i = 0; i < n; i++) {
		if (excluded[i] == comm->rank || excluded[i] < 0 || excluded[i] >= comm->nranks)
			return fail(ncclInvalidArgument, "rank %d cannot be left out here", excluded[i]);
		before += excluded[i] < comm->rank;
	}
	r = make(&c);
	if (r)
		return r;
	c->nranks = comm->nranks - n;
	c->rank = comm->rank - before;
	c->id = part_id(comm, comm->parts++, ~0u);
	return start((struct job){.made = c, .out = part});
}

static ncclResult_t do_ncclCommFinalize(ncclComm_t comm)
{
	return valid(comm) ? ncclSuccess : fail(ncclInvalidArgument, "no such communicator");
}

static ncclResult_t do_ncclCommDestroy(ncclComm_t comm)
{
	if (!valid(comm))
		return fail(ncclInvalidArgument, "no such communicator");
	core->rdv_close(comm->rdv);
	comm_free(comm);
	return ncclSuccess;
}

static ncclResult_t do_ncclCommAbort(ncclComm_t comm)
{
	if (!valid(comm))
		return fail(ncclInvalidArgument, "no such communicator");
	core->rdv_abort(comm->rdv);
	return do_ncclCommDestroy(comm);
}

static ncclResult_t tell(const struct ncclComm *c, int *out, size_t at)
{
	if (!valid(c) || !out)
		return fail(ncclInvalidArgument, "no such communicator");
	*out = *(const int *)((const char *)c + at);
	return ncclSuccess;
}

static ncclResult_t do_ncclCommCount(const ncclComm_t comm, int *count)
{
	return tell(comm, count, offsetof(struct ncclComm, nranks));
}

static ncclResult_t do_ncclCommUserRank(const ncclComm_t comm, int *rank)
{
	return tell(comm, rank, offsetof(struct ncclComm, rank));
}

static ncclResult_t do_ncclCommCuDevice(const ncclComm_t comm, int *device)
{
	return tell(comm, device, offsetof(struct ncclComm, device));
}

static ncclResult_t do_ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
	if (!valid(comm) || !error)
		return fail(ncclInvalidArgument, "no such communicator");
	*error = core->rdv_aborted(comm->rdv) ? ncclRemoteError : ncclSuccess;
	return ncclSuccess;
}

/* ---- memory ---- */

static ncclResult_t do_ncclMemAlloc(void **ptr, size_t size)
{
	CUdeviceptr p = 0;

	if (!ptr || !size)
		return fail(ncclInvalidArgument, "no memory was asked for");
	if (!have_driver || drv.cuMemAlloc_v2(&p, size))
		return fail(ncclUnhandledCudaError, "no memory for %zu bytes", size);
	*ptr = (void *)(uintptr_t)p;
	return ncclSuccess;
}

static ncclResult_t do_ncclMemFree(void *ptr)
{
	if (!ptr)
		return ncclSuccess;
	if (!have_driver || drv.cuMemFree_v2((CUdeviceptr)(uintptr_t)ptr))
		return fail(ncclInvalidArgument, "memory that was not allocated");
	return ncclSuccess;
}

/* A handle is the buffer's own address: registering changes no timing here. */
static ncclResult_t do_ncclCommRegister(const ncclComm_t comm, void *buffer, size_t size, void **handle)
{
	if (!valid(comm) || !handle || !buffer || !size)
		return fail(ncclInvalidArgument, "communicator or buffer is not valid");
	*handle = buffer;
	return ncclSuccess;
}

static ncclResult_t do_ncclCommDeregister(const ncclComm_t comm, void *handle)
{
	return valid(comm) && handle ? ncclSuccess : fail(ncclInvalidArgument, "no such registration");
}

/* Devices without access to each other have no windows: the real library succeeds and gives none. */
static ncclResult_t do_ncclCommWindowRegister(ncclComm_t comm, void *buffer, size_t size,
					      ncclWindow_t *window, int flags)
{
	if (!valid(comm) || !window || !buffer || !size)
		return fail(ncclInvalidArgument, "communicator or buffer is not valid");
	*window = NULL;
	return ncclSuccess;
}

static ncclResult_t do_ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
	return valid(comm) ? ncclSuccess : fail(ncclInvalidArgument, "no such communicator");
}
