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
#include "fault.h"
#include "operation.h"
#include "truth.h"

#define MAX_NAMES    32768
#define MAX_NAME     2000	   /* bytes of a name in the file: template instances can be longer */
#define MAP_BYTES    (16ull << 30) /* virtual and sparse: pages exist as they are written */
#define BLOCK_BYTES  ((u64)HB_TRUTH_BLOCK * sizeof(struct hb_truth_record))
#define SKIP	     0x40 /* or-ed to the layer of names that are left out */
#define NAMES_STEP   65536
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
static u64 map_bytes = MAP_BYTES; /* less with HB_SIM_TRUTH_MAX */
static struct hb_truth_header *header;
static u64 names_space; /* end of what the disk has given for the header and the names */

/* initial-exec: it is touched twice in every call, and small enough for the room glibc keeps for late
 * libraries. */
static __thread __attribute__((tls_model("initial-exec"))) struct {
	struct hb_truth_record *next, *end;
	u32 generation, tid, depth, correlation;
} self;

static struct { /* block of device operations; under the core's lock */
	struct hb_operation *next, *end;
	u32 generation;
} device;

const struct hb_observer *hb_observer;

/* Space is asked for before it is written: a full disk must be a counted loss, not a SIGBUS in the
 * application. File systems that cannot give it beforehand are taken at their word. */
static bool have_space(u64 at, u64 bytes)
{
	int r;

	do
		r = fallocate(fd, 0, (off_t)at, (off_t)bytes);
	while (r && errno == EINTR);
	return !r || errno == EOPNOTSUPP;
}

static bool have_names_until(u64 end)
{
	while (names_space < end) {
		if (!have_space(names_space, NAMES_STEP))
			return false;
		names_space += NAMES_STEP;
	}
	return true;
}

static void write_name(u32 id)
{
	u64 at = HB_TRUTH_NAMES + header->names_len;
	char line[MAX_NAME + 64];
	u8 layer = names.layer[id];
	u64 n = (u64)snprintf(line, sizeof(line), "%u %u %.*s%s\n", id, layer & ~(HB_STUB | SKIP), MAX_NAME,
			      names.name[id], layer & HB_STUB ? " stub" : "");

	if (at + n >= HB_TRUTH_RECORDS || !have_names_until(at + n + 1)) {
		header->unnamed++;
		return;
	}
	memcpy(map + at, line, n);
	header->names_len += n;
}

static char path[4096];

static int open_new(const char *dir)
{
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

static void read_bound(void)
{
	const char *s = getenv("HB_SIM_TRUTH_MAX");
	u64 max = s ? strtoull(s, NULL, 0) : 0;

	if (max && max < MAP_BYTES)
		map_bytes = max > HB_TRUTH_RECORDS ? max : HB_TRUTH_RECORDS;
}

static bool give_up(const char *dir)
{
	fprintf(stderr, "simulated accelerator: no truth log in %s: %s\n", dir, strerror(errno));
	map = NULL;
	if (fd >= 0) {
		close(fd);
		unlink(path);
	}
	fd = -1;
	return false;
}

static bool open_file(void)
{
	const char *dir = getenv("HB_SIM_TRUTH");

	if (!dir || !*dir)
		return false;
	read_bound();
	fd = open_new(dir);
	names_space = 0;
	if (fd < 0 || ftruncate(fd, (off_t)map_bytes) || !have_names_until(NAMES_STEP))
		return give_up(dir);
	map = mmap(NULL, map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (map == MAP_FAILED)
		return give_up(dir);
	header = (struct hb_truth_header *)map;
	memcpy(header->magic, HB_TRUTH_MAGIC, 8);
	header->record_size = sizeof(struct hb_truth_record);
	header->operation_size = sizeof(struct hb_operation);
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
		munmap(map, map_bytes);
	if (fd >= 0)
		close(fd);
	map = NULL;
	header = NULL;
	fd = -1;
	generation++;
	shut = false;
	self.depth = self.correlation = 0;
	hb_operation__forget();
	pthread_mutex_init(&lock, NULL);
	__atomic_store_n(&state, STATE_CLOSED, __ATOMIC_RELEASE);
}

static bool open_once(void)
{
	static bool hooked;
	u32 s;

	pthread_mutex_lock(&lock);
	if (!hooked)
		hooked = !pthread_atfork(NULL, NULL, forked);
	if (state == STATE_CLOSED)
		__atomic_store_n(&state, open_file() ? STATE_OPEN : STATE_OFF, __ATOMIC_RELEASE);
	s = state;
	pthread_mutex_unlock(&lock);
	return s == STATE_OPEN;
}

static inline bool ready(void)
{
	u32 s = __atomic_load_n(&state, __ATOMIC_ACQUIRE);

	if (__builtin_expect(s == STATE_CLOSED, 0))
		return open_once();
	return s == STATE_OPEN;
}

bool hb_truth__open(void)
{
	return ready();
}

/* ---- names ---- */

static bool to_skip(const char *name)
{
	const char *list = getenv("HB_SIM_TRUTH_SKIP");
	size_t n = strlen(name);

	for (const char *p = list; p && *p; p += strcspn(p, ","), p += *p == ',')
		if (strcspn(p, ",") == n && !strncmp(p, name, n))
			return true;
	return false;
}

u32 hb_truth__register(u32 layer, const char *const *list, u32 n)
{
	u32 first;

	pthread_mutex_lock(&lock);
	first = names.n;
	if (n > MAX_NAMES - names.n) { /* whoever reads shows these calls without a name */
		if (state == STATE_OPEN)
			header->unnamed += n;
		first = 0;
		n = 0;
	}
	for (u32 i = 0; i < n; i++, names.n++) {
		names.name[names.n] = list[i];
		names.layer[names.n] = (u8)layer;
		if (layer < HB_DEVICE && to_skip(list[i]))
			names.layer[names.n] |= SKIP;
		if (state == STATE_OPEN)
			write_name(names.n);
	}
	pthread_mutex_unlock(&lock);
	return first;
}

/* ---- blocks ---- */

static char *next_block(void)
{
	u64 at;

	if (__atomic_load_n(&shut, __ATOMIC_ACQUIRE))
		return NULL;
	at = HB_TRUTH_RECORDS + __atomic_fetch_add(&header->blocks, 1, __ATOMIC_RELAXED) * BLOCK_BYTES;
	if (at + BLOCK_BYTES > map_bytes || !have_space(at, BLOCK_BYTES)) {
		__atomic_store_n(&shut, true, __ATOMIC_RELEASE);
		return NULL;
	}
	return map + at;
}

static void renew(void)
{
	self.generation = generation;
	self.tid = (u32)syscall(SYS_gettid);
	self.next = self.end = NULL;
}

static inline struct hb_truth_record *take(void)
{
	if (__builtin_expect(self.generation != generation, 0))
		renew();
	if (__builtin_expect(self.next == self.end, 0)) {
		self.next = (struct hb_truth_record *)next_block();
		self.end = self.next ? self.next + HB_TRUTH_BLOCK : NULL;
	}
	if (!self.next) {
		__atomic_fetch_add(&header->dropped, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	return self.next++;
}

struct hb_operation *hb_truth__operation(void)
{
	if (!ready())
		return NULL;
	if (device.generation != generation || device.next == device.end) {
		device.generation = generation;
		device.next = (struct hb_operation *)next_block();
		device.end = device.next ? device.next + HB_TRUTH_BLOCK / 2 : NULL;
	}
	if (!device.next) {
		__atomic_fetch_add(&header->dropped_operations, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	return device.next++;
}

u32 hb_truth__tid(void)
{
	if (self.generation != generation)
		renew();
	return self.tid;
}

void hb_truth__applied(enum hb_fault_kind kind)
{
	if (ready())
		__atomic_fetch_add(&header->applied[kind], 1, __ATOMIC_RELAXED);
}

/* ---- calls ---- */

/* Runtime calls and the driver calls they make share a number; a library's call has none, those it makes
 * have. */
static inline void correlate(struct hb_call *c, u8 layer)
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

static struct hb_truth_record *slot(u8 layer)
{
	if (!ready())
		return NULL;
	if (layer & SKIP) {
		__atomic_fetch_add(&header->skipped, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	return take();
}

void hb_truth__enter(struct hb_call *c, u32 function)
{
	u8 layer = names.layer[function];
	struct hb_truth_record *r = slot(layer);

	layer &= (u8) ~(HB_STUB | SKIP);
	correlate(c, layer);
	c->rec = r;
	/* The clock is half of what a call costs: left alone where nobody wants to know. */
	c->enter = r || hb_observer || hb_fault_look_at != UINT64_MAX ? hb_now() : 0;
	if (r) {
		r->tid = self.tid;
		r->function = (u16)function;
		r->layer = layer;
		r->depth = (u8)self.depth;
		r->correlation = c->correlation;
		__atomic_store_n(&r->enter, c->enter, __ATOMIC_RELEASE);
	}
	self.depth++;
	hb_fault__look(c->enter);
	if (__builtin_expect(hb_observer != NULL, 0) && hb_observer->enter)
		hb_observer->enter(c, layer, names.name[function]);
}

void hb_truth__leave(struct hb_call *c, s32 result, u64 stream, u64 bytes)
{
	struct hb_truth_record *r = c->rec;

	self.depth--;
	if (c->outermost)
		self.correlation = 0;
	if (__builtin_expect(hb_observer != NULL, 0) && hb_observer->leave)
		hb_observer->leave(c, result);
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
	hb_lock();
	hb_operation__settle(true);
	hb_unlock();
	__atomic_store_n(&shut, true, __ATOMIC_SEQ_CST);
	blocks = __atomic_load_n(&header->blocks, __ATOMIC_SEQ_CST) + 64;
	if (HB_TRUTH_RECORDS + blocks * BLOCK_BYTES < map_bytes &&
	    ftruncate(fd, (off_t)(HB_TRUTH_RECORDS + blocks * BLOCK_BYTES)))
		return;
}
