/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Ranks meet in shared memory. An operation starts when its last rank is there; the moment of arrival may
 * itself depend on an earlier operation of the communicator whose end is not known yet (a rank can be several
 * collectives ahead), so a rank announces max(at, end(earlier) + plus) and whoever wants to know evaluates
 * it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "fault.h"
#include "operation.h"
#include "sim.h"

#define MAX_RANKS   64
#define RING_ALL    4096 /* operations a rank can be ahead of the others */
#define RING_PAIR   512
#define JOIN_NS	    60000000000ull
#define ABORTED_END 1

struct arrival {
	u64 at, plus, seq;
	u32 chan; /* + 1; 0: depends on nothing */
	u32 pad;
};

struct slot {
	u64 tag; /* seq + 1 of its present use */
	u64 cost, end;
	u32 arrived, lock, word, waiters;
	struct arrival arrival[];
};

struct shared {
	u32 nranks, joined, aborted, left;
	u32 pid[MAX_RANKS];
};

struct hb_rdv {
	struct shared *sh;
	size_t size;
	u32 nranks, rank;
	char name[64];
	int fd; /* kept open: the lock on this rank's byte says that its process lives */
	bool closed;
	u64 checked; /* when the other ranks were last seen alive */
	u64 next[];  /* per channel: this rank's next operation */
};

static u32 parties(const struct hb_rdv *r, u32 chan)
{
	return chan ? 2 : r->nranks;
}

static size_t stride(u32 n)
{
	return (sizeof(struct slot) + n * sizeof(struct arrival) + 63) / 64 * 64;
}

static size_t offset(u32 nranks, u32 chan)
{
	size_t at = 4096;

	if (!chan)
		return at;
	return at + RING_ALL * stride(nranks) + (size_t)(chan - 1) * RING_PAIR * stride(2);
}

static struct slot *slot_of(const struct hb_rdv *r, u32 chan, u64 seq)
{
	size_t i = seq % (chan ? RING_PAIR : RING_ALL);

	return (struct slot *)((char *)r->sh + offset(r->nranks, chan) + i * stride(parties(r, chan)));
}

u32 hb_rdv__pair(const struct hb_rdv *r, u32 from, u32 to)
{
	return 1 + from * r->nranks + to;
}

static u32 party_of(const struct hb_rdv *r, u32 chan)
{
	return chan ? (chan - 1) / r->nranks != r->rank : r->rank;
}

static long futex(u32 *word, int op, u32 value, const struct timespec *t)
{
	return syscall(SYS_futex, word, op, value, t, NULL, 0);
}

static void wake(struct slot *s)
{
	__atomic_fetch_add(&s->word, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&s->waiters, __ATOMIC_SEQ_CST))
		futex(&s->word, FUTEX_WAKE, INT32_MAX, NULL);
}

static int map_shared(struct hb_rdv *r, const char id[128])
{
	struct flock own = {.l_type = F_WRLCK, .l_start = r->rank, .l_len = 1};
	unsigned long long a, b;

	memcpy(&a, id, 8);
	memcpy(&b, id + 8, 8);
	snprintf(r->name, sizeof(r->name), "/hb-sim-nccl-%016llx%016llx", a, b);
	r->fd = shm_open(r->name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (r->fd < 0)
		return -errno;
	r->size = offset(r->nranks, 1 + r->nranks * r->nranks);
	if (ftruncate(r->fd, (off_t)r->size) || fcntl(r->fd, F_SETLK, &own))
		return -errno;
	r->sh = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, r->fd, 0);
	return r->sh == MAP_FAILED ? -errno : 0;
}

static int join(struct hb_rdv *r)
{
	struct shared *sh = r->sh;
	u64 deadline = hb_now() + JOIN_NS;
	struct timespec t = {.tv_nsec = 50000000};
	u32 zero = 0, seen;

	__atomic_compare_exchange_n(&sh->nranks, &zero, r->nranks, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	if (sh->nranks != r->nranks || sh->pid[r->rank])
		return -EINVAL;
	sh->pid[r->rank] = (u32)getpid();
	seen = __atomic_add_fetch(&sh->joined, 1, __ATOMIC_SEQ_CST);
	futex(&sh->joined, FUTEX_WAKE, INT32_MAX, NULL);
	while (seen < r->nranks) {
		if (hb_now() > deadline)
			return -ETIMEDOUT;
		futex(&sh->joined, FUTEX_WAIT, seen, &t);
		seen = __atomic_load_n(&sh->joined, __ATOMIC_SEQ_CST);
	}
	shm_unlink(r->name); /* all have it mapped */
	return 0;
}

static void give_up(struct hb_rdv *r)
{
	if (r->sh && r->sh != MAP_FAILED)
		munmap(r->sh, r->size);
	if (r->fd >= 0)
		close(r->fd);
	free(r);
}

struct hb_rdv *hb_rdv__open(const char id[128], u32 nranks, u32 rank, int *err)
{
	struct hb_rdv *r;

	*err = -EINVAL;
	if (!nranks || nranks > MAX_RANKS || rank >= nranks)
		return NULL;
	*err = -ENOMEM;
	r = calloc(1, sizeof(*r) + (1 + nranks * nranks) * sizeof(u64));
	if (!r)
		return NULL;
	r->nranks = nranks;
	r->rank = rank;
	*err = map_shared(r, id);
	if (!*err)
		*err = join(r);
	if (!*err) {
		if (hb_ctx__current())
			hb_fault__rank(hb_ctx__current()->device, rank, nranks);
		return r;
	}
	give_up(r);
	return NULL;
}

/* The object stays: moments of streams and events may still point at it. A communicator is made once in a
 * while. */
void hb_rdv__close(struct hb_rdv *r)
{
	__atomic_store_n(&r->closed, true, __ATOMIC_RELEASE);
}

void hb_rdv__abort(struct hb_rdv *r)
{
	__atomic_store_n(&r->sh->aborted, 1, __ATOMIC_SEQ_CST);
}

bool hb_rdv__aborted(const struct hb_rdv *r)
{
	return __atomic_load_n(&r->sh->aborted, __ATOMIC_RELAXED);
}

static void slot_lock(struct hb_rdv *r, struct slot *s)
{
	/* Held for nanoseconds; a holder that was killed must not hang the others. */
	for (u32 spins = 0; __atomic_exchange_n(&s->lock, 1, __ATOMIC_ACQUIRE); spins++) {
		if (spins > 100)
			syscall(SYS_sched_yield);
		if (spins > 1000000) {
			hb_rdv__abort(r);
			return;
		}
	}
}

static void slot_unlock(struct slot *s)
{
	__atomic_store_n(&s->lock, 0, __ATOMIC_RELEASE);
}

static bool evaluate(struct hb_rdv *r, struct slot *s, u32 n, u64 *ns)
{
	u64 start = 0, e;

	for (u32 i = 0; i < n; i++) {
		const struct arrival *a = &s->arrival[i];
		u64 t = a->at;

		if (a->chan) {
			if (!hb_rdv__end(r, a->chan - 1, a->seq, &e))
				return false;
			t = e + a->plus > t ? e + a->plus : t;
		}
		start = t > start ? t : start;
	}
	*ns = start + s->cost;
	return true;
}

bool hb_rdv__end(struct hb_rdv *r, u32 chan, u64 seq, u64 *ns)
{
	struct slot *s = slot_of(r, chan, seq);
	u64 tag = __atomic_load_n(&s->tag, __ATOMIC_ACQUIRE);

	*ns = ABORTED_END; /* also of an operation so old that its slot has another use */
	if (tag > seq + 1 || hb_rdv__aborted(r))
		return true;
	if (tag < seq + 1)
		return false;
	*ns = __atomic_load_n(&s->end, __ATOMIC_ACQUIRE);
	if (*ns)
		return true;
	if (__atomic_load_n(&s->arrived, __ATOMIC_ACQUIRE) < parties(r, chan) ||
	    !evaluate(r, s, parties(r, chan), ns))
		return false;
	__atomic_store_n(&s->end, *ns, __ATOMIC_RELEASE);
	return true;
}

static bool alive(const struct hb_rdv *r, u32 rank)
{
	struct flock other = {.l_type = F_WRLCK, .l_start = rank, .l_len = 1};

	/* A lock goes with its process, whoever has yet to reap it and whatever its pid is called here. */
	return r->sh->pid[rank] == (u32)getpid() || fcntl(r->fd, F_GETLK, &other) || other.l_type != F_UNLCK;
}

/* A rank that died would be waited for without end. */
static void look_for_dead(struct hb_rdv *r)
{
	u64 now = hb_now();

	if (now - r->checked < 100000000)
		return;
	r->checked = now;
	for (u32 i = 0; i < r->nranks; i++)
		if (!alive(r, i))
			hb_rdv__abort(r);
}

void hb_rdv__wait(struct hb_rdv *r, u32 chan, u64 seq, u64 ns)
{
	struct slot *s = slot_of(r, chan, seq);
	struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
	u32 word = __atomic_load_n(&s->word, __ATOMIC_SEQ_CST);
	u64 end;

	__atomic_fetch_add(&s->waiters, 1, __ATOMIC_SEQ_CST);
	if (!hb_rdv__end(r, chan, seq, &end))
		futex(&s->word, FUTEX_WAIT, word, &t);
	__atomic_fetch_sub(&s->waiters, 1, __ATOMIC_SEQ_CST);
	look_for_dead(r);
}

/* The slot's former operation must have ended before it is used again. Called with the core's lock held. */
static void wait_for_slot(struct hb_rdv *r, u32 chan, u64 seq)
{
	u64 ring = chan ? RING_PAIR : RING_ALL, end;

	while (seq >= ring && !hb_rdv__end(r, chan, seq - ring, &end)) {
		hb_unlock();
		hb_rdv__wait(r, chan, seq - ring, 2000000);
		hb_lock();
	}
	if (seq >= ring)
		hb_operation__settle(false); /* while its end can still be read */
}

void hb_rdv__arrive(struct hb_rdv *r, u32 chan, struct hb_moment *m, u64 cost)
{
	u64 seq = r->next[chan]++, end;
	struct slot *s = slot_of(r, chan, seq);
	struct arrival *a = &s->arrival[party_of(r, chan)];
	u64 ns;

	/* A dependency on another communicator cannot be announced here. */
	if (m->rdv && m->rdv != r && !hb_moment__known(m, &ns))
		m->rdv = NULL;
	wait_for_slot(r, chan, seq);
	slot_lock(r, s);
	if (s->tag < seq + 1) {
		s->arrived = 0;
		s->end = 0;
		s->cost = 0;
		__atomic_store_n(&s->tag, seq + 1, __ATOMIC_RELEASE);
	}
	*a = (struct arrival){m->at, m->plus, m->seq, m->rdv ? m->chan + 1 : 0, 0};
	s->cost = cost > s->cost ? cost : s->cost;
	__atomic_add_fetch(&s->arrived, 1, __ATOMIC_RELEASE);
	slot_unlock(s);
	if (hb_rdv__end(r, chan, seq, &end))
		wake(s);
	*m = (struct hb_moment){.rdv = r, .chan = chan, .seq = seq};
}
