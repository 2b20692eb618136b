/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "truth.h"

#define MAX_NAMES    4096
#define MAP_BYTES    (16ull << 30) /* virtual and sparse: pages exist as they are written */
#define BLOCK_BYTES  ((u64)HB_TRUTH_BLOCK * sizeof(struct hb_truth_record))
#define STATE_CLOSED 0
#define STATE_OPEN   1
#define STATE_OFF    2 /* not asked for, or could not be opened */

static struct {
	const char *name[MAX_NAMES];
	u8 layer[MAX_NAMES];
	u32 n;
} names = {.n = 1}; /* id 0 is no function */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static u32 state;
static u32 generation =
    1; /* of the file: the child of a fork has its own, and no thread may use an old block */
static int fd = -1;
static bool shut; /* the disk was full once, or the process ends: the file grows no more */
static char *map;
static struct hb_truth_header *header;

/* initial-exec: it is touched twice in every call, and small enough for the room glibc keeps for late
 * libraries. */
static __thread __attribute__((tls_model("initial-exec"))) struct {
	struct hb_truth_record *next, *end;
	u32 generation, tid, depth, correlation;
} self;

static void write_name(u32 id)
{
	char *at = map + HB_TRUTH_NAMES + header->names_len;
	size_t room = HB_TRUTH_RECORDS - HB_TRUTH_NAMES - header->names_len;
	u8 layer = names.layer[id];
	int n = snprintf(at, room, "%u %u %s%s\n", id, layer & ~HB_STUB, names.name[id],
			 layer & HB_STUB ? " stub" : "");

	if (n > 0 && (size_t)n < room)
		header->names_len += (u64)n;
	else
		*at = 0;
}

static int open_new(const char *dir)
{
	char path[4096];
	int f = -1;

	/* A process that execs keeps its pid: each image gets a number of its own. */
	for (int i = 0; i < 1000 && f < 0; i++) {
		snprintf(path, sizeof(path), "%s/%d.%d.truth", dir, (int)getpid(), i);
		f = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		if (f < 0 && errno != EEXIST)
			break;
	}
	return f;
}

static bool open_file(void)
{
	const char *dir = getenv("HB_SIM_TRUTH");

	if (!dir || !*dir)
		return false;
	fd = open_new(dir);
	if (fd < 0 || ftruncate(fd, MAP_BYTES)) {
		fprintf(stderr, "simulated accelerator: no truth log in %s: %s\n", dir, strerror(errno));
		return false;
	}
	map = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (map == MAP_FAILED) {
		map = NULL;
		return false;
	}
	header = (struct hb_truth_header *)map;
	memcpy(header->magic, HB_TRUTH_MAGIC, 8);
	header->record_size = sizeof(struct hb_truth_record);
	header->block = HB_TRUTH_BLOCK;
	header->pid = (u32)getpid();
	header->start = hb_now();
	for (u32 i = 1; i < names.n; i++)
		write_name(i);
	return true;
}

static void forked(void)
{
	/* The mapping still belongs to the parent's file: leave it and open another at the next call. */
	if (map)
		munmap(map, MAP_BYTES);
	if (fd >= 0)
		close(fd);
	map = NULL;
	header = NULL;
	fd = -1;
	generation++;
	shut = false;
	self.depth = self.correlation = 0;
	pthread_mutex_init(&lock, NULL);
	__atomic_store_n(&state, STATE_CLOSED, __ATOMIC_RELEASE);
}

static bool ready(void)
{
	static bool hooked;
	u32 s = __atomic_load_n(&state, __ATOMIC_ACQUIRE);

	if (s == STATE_OPEN)
		return true;
	if (s == STATE_OFF)
		return false;
	pthread_mutex_lock(&lock);
	if (!hooked)
		hooked = !pthread_atfork(NULL, NULL, forked);
	if (state == STATE_CLOSED)
		__atomic_store_n(&state, open_file() ? STATE_OPEN : STATE_OFF, __ATOMIC_RELEASE);
	s = state;
	pthread_mutex_unlock(&lock);
	return s == STATE_OPEN;
}

u32 hb_truth__register(u32 layer, const char *const *list, u32 n)
{
	u32 first;

	pthread_mutex_lock(&lock);
	first = names.n;
	for (u32 i = 0; i < n && names.n < MAX_NAMES; i++) {
		names.name[names.n] = list[i];
		names.layer[names.n] = (u8)layer;
		if (state == STATE_OPEN)
			write_name(names.n);
		names.n++;
	}
	pthread_mutex_unlock(&lock);
	return first;
}

static bool next_block(void)
{
	u64 at;

	if (__atomic_load_n(&shut, __ATOMIC_ACQUIRE))
		return false;
	at = HB_TRUTH_RECORDS + __atomic_fetch_add(&header->blocks, 1, __ATOMIC_RELAXED) * BLOCK_BYTES;
	/* The space is asked for here: a full disk must be a counted loss, not a SIGBUS in the application.
	 */
	if (at + BLOCK_BYTES > MAP_BYTES ||
	    (fallocate(fd, 0, (off_t)at, BLOCK_BYTES) && errno != EOPNOTSUPP)) {
		__atomic_store_n(&shut, true, __ATOMIC_RELEASE);
		return false;
	}
	self.next = (struct hb_truth_record *)(map + at);
	self.end = self.next + HB_TRUTH_BLOCK;
	return true;
}

static struct hb_truth_record *take(void)
{
	if (self.generation != generation) {
		self.generation = generation;
		self.tid = (u32)syscall(SYS_gettid);
		self.next = self.end = NULL;
	}
	if (self.next == self.end && !next_block()) {
		__atomic_fetch_add(&header->dropped, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	return self.next++;
}

/* Runtime calls and the driver calls they make share a number; a library's call has none, those it makes
 * have. */
static void correlate(struct hb_call *c, u8 layer)
{
	static u32 last;

	c->outermost = layer != HB_LIBRARY && !self.correlation;
	if (c->outermost)
		self.correlation = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	c->correlation = layer == HB_LIBRARY ? 0 : self.correlation;
}

u32 hb_truth__correlation(void)
{
	return self.correlation;
}

void hb_truth__enter(struct hb_call *c, u32 function)
{
	struct hb_truth_record *r = ready() ? take() : NULL;
	u8 layer = names.layer[function] & (u8)~HB_STUB;

	c->rec = r;
	correlate(c, layer);
	c->enter = hb_now();
	if (r) {
		r->tid = self.tid;
		r->function = (u16)function;
		r->layer = layer;
		r->correlation = c->correlation;
		r->depth = (u8)self.depth;
		__atomic_store_n(&r->enter, c->enter, __ATOMIC_RELEASE);
	}
	self.depth++;
}

void hb_truth__leave(struct hb_call *c, s32 result, u64 stream, u64 bytes)
{
	struct hb_truth_record *r = c->rec;

	self.depth--;
	if (c->outermost)
		self.correlation = 0;
	if (!r || self.generation != generation)
		return;
	r->result = result;
	r->stream = stream;
	r->bytes = bytes;
	__atomic_store_n(&r->exit, hb_now(), __ATOMIC_RELEASE);
}

void hb_truth__nest(int by)
{
	self.depth += (u32)by;
}

/* A process that ends normally leaves a file of honest size; the slack is for threads that still take blocks.
 */
__attribute__((destructor)) static void shrink(void)
{
	u64 blocks;

	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != STATE_OPEN)
		return;
	__atomic_store_n(&shut, true, __ATOMIC_SEQ_CST);
	blocks = __atomic_load_n(&header->blocks, __ATOMIC_SEQ_CST) + 64;
	if (ftruncate(fd, (off_t)(HB_TRUTH_RECORDS + blocks * BLOCK_BYTES)))
		return;
}
