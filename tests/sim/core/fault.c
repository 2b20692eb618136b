/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "fault.h"
#include "operation.h"
#include "truth.h"

#define LOOK_NS	    50000000
#define MAX_FAULTS  32
#define MAX_DEVICES 64

enum key { RANK, FACTOR, DELAY_US, DEVICE, US, BYTES, EVERY, MS, N_KEYS };
static const char *const key_names[N_KEYS] = {"rank", "factor", "delay_us", "device",
					      "us",   "bytes",	"every",    "ms"};
#define K(key) (1u << (key))

static const struct {
	const char *name;
	u32 needed, allowed; /* bits of enum key */
	bool glob;
} kinds[HB_FAULTS] = {
    [HB_FAULT_SLOW_RANK] = {"slow_rank", K(RANK), K(RANK) | K(FACTOR) | K(DELAY_US), false},
    [HB_FAULT_CLOCK] = {"clock_throttled", K(FACTOR), K(FACTOR) | K(DEVICE), false},
    [HB_FAULT_PAGEABLE] = {"pageable_copies", 0, 0, false},
    [HB_FAULT_BLOCKING_D2H] = {"blocking_d2h", K(US), K(US) | K(BYTES), false},
    [HB_FAULT_CONTENTION] = {"copy_contention", K(FACTOR), K(FACTOR), false},
    [HB_FAULT_SLOW_KERNEL] = {"slow_kernel", K(FACTOR), K(FACTOR), true},
    [HB_FAULT_STALL] = {"launch_stall", K(US) | K(EVERY), K(US) | K(EVERY), false},
    [HB_FAULT_LOST_EVENT] = {"lost_event", K(EVERY), K(EVERY) | K(MS), false},
};

struct fault {
	enum hb_fault_kind kind;
	u32 given;
	double value[N_KEYS];
	char glob[120], line[240];
	u64 turns; /* launches or events so far, for `every` */
};

static struct fault faults[MAX_FAULTS];
static u32 n_faults, generation;
static struct {
	int rank;
	u32 ranks;
} rank_of[MAX_DEVICES]; /* rank + 1; 0: in no communicator */
u32 hb_fault_kinds;
u64 hb_fault_look_at;

/* ---- the control file ---- */

static bool set(struct fault *f, const char *key, const char *value)
{
	if (kinds[f->kind].glob && !strcmp(key, "glob")) {
		snprintf(f->glob, sizeof(f->glob), "%s", value);
		return *value && strlen(value) < sizeof(f->glob);
	}
	for (u32 k = 0; k < N_KEYS; k++) {
		if (strcmp(key, key_names[k]) || !(kinds[f->kind].allowed & K(k)))
			continue;
		f->given |= K(k);
		return hb_settings__number(value, &f->value[k]) && f->value[k] < 1e12;
	}
	return false;
}

static bool parse(struct fault *f, char *words)
{
	char *save = NULL, *word = strtok_r(words, " \t", &save), *value;

	for (f->kind = 0; f->kind < HB_FAULTS && strcmp(word, kinds[f->kind].name); f->kind++)
		;
	if (f->kind == HB_FAULTS)
		return false;
	f->value[FACTOR] = 1;
	f->value[MS] = 200;
	f->value[BYTES] = 1 << 20;
	while ((word = strtok_r(NULL, " \t", &save))) {
		value = strchr(word, '=');
		if (!value)
			return false;
		*value++ = 0;
		if (!set(f, word, value))
			return false;
	}
	return (f->given & kinds[f->kind].needed) == kinds[f->kind].needed &&
	       (!kinds[f->kind].glob || *f->glob) && (!(f->given & K(EVERY)) || f->value[EVERY] >= 1);
}

static u32 read_file(const char *path, struct fault *out)
{
	char buf[240];
	u32 n = 0, complaints = 0;
	FILE *file = hb_settings__open(path, "HB_SIM_FAULTS");

	while (file && fgets(buf, sizeof(buf), file)) {
		struct fault f = {0};

		buf[strcspn(buf, "#\r\n")] = 0;
		snprintf(f.line, sizeof(f.line), "%s", buf + strspn(buf, " \t"));
		if (!*f.line)
			continue;
		if (n < MAX_FAULTS && parse(&f, buf))
			out[n++] = f;
		else
			hb_settings__complain(&complaints, "HB_SIM_FAULTS", f.line);
	}
	if (file)
		fclose(file);
	return n;
}

static const struct fault *same(const struct fault *list, u32 n, const struct fault *f)
{
	for (u32 i = 0; i < n; i++)
		if (!strcmp(list[i].line, f->line))
			return &list[i];
	return NULL;
}

static void say(const struct fault *f, bool on, u64 now)
{
	char *line = strdup(f->line);

	if (line)
		hb_operation__fault(line, on, now); /* keeps it: it is a name of the log from now on */
}

static void take_over(struct fault *list, u32 n, u64 now)
{
	u32 bits = 0;

	for (u32 i = 0; i < n_faults; i++)
		if (!same(list, n, &faults[i]))
			say(&faults[i], false, now);
	for (u32 i = 0; i < n; i++) {
		const struct fault *before = same(faults, n_faults, &list[i]);

		if (before)
			list[i].turns = before->turns;
		else
			say(&list[i], true, now);
		bits |= 1u << list[i].kind;
	}
	memcpy(faults, list, n * sizeof(*list));
	n_faults = n;
	generation++;
	__atomic_store_n(&hb_fault_kinds, bits, __ATOMIC_RELEASE);
}

void hb_fault__read(u64 now)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct stat seen;
	const char *path = getenv("HB_SIM_FAULTS");
	struct fault list[MAX_FAULTS];
	struct stat st = {0};
	u32 n;

	if (!path || !*path) {
		hb_fault_look_at = UINT64_MAX;
		return;
	}
	if (pthread_mutex_trylock(&lock))
		return; /* another thread is at it */
	__atomic_store_n(&hb_fault_look_at, now + LOOK_NS, __ATOMIC_RELAXED);
	if (stat(path, &st))
		memset(&st, 0, sizeof(st));
	if (memcmp(&st.st_mtim, &seen.st_mtim, sizeof(st.st_mtim)) || st.st_size != seen.st_size ||
	    st.st_ino != seen.st_ino) {
		seen = st;
		n = read_file(path, list);
		hb_lock();
		take_over(list, n, hb_now());
		hb_unlock();
	}
	pthread_mutex_unlock(&lock);
}

/* ---- taking effect ---- */

static u64 ns_of(const struct fault *f, enum key k)
{
	return (u64)(f->value[k] * (k == MS ? 1e6 : 1e3));
}

static bool turn(struct fault *f)
{
	return ++f->turns % (u64)f->value[EVERY] == 0;
}

static bool of_rank(const struct fault *f, int device)
{
	int rank = rank_of[device].rank ? rank_of[device].rank - 1 : device;

	return rank == (int)f->value[RANK];
}

static bool slows(const struct fault *f, const char *name, int device)
{
	switch (f->kind) {
	case HB_FAULT_SLOW_RANK:
		return of_rank(f, device);
	case HB_FAULT_CLOCK:
		return !(f->given & K(DEVICE)) || device == (int)f->value[DEVICE];
	case HB_FAULT_SLOW_KERNEL:
		return !fnmatch(f->glob, name, 0);
	default:
		return false;
	}
}

/* Which of the faults concern a kernel's name is looked up once after each change of the file. */
double hb_fault__kernel(struct hb_function *f, int device)
{
	double factor = 1;

	if (f->fault_generation != generation) {
		f->fault_generation = generation;
		f->faults = 0;
		for (u32 i = 0; i < n_faults; i++)
			if (faults[i].kind != HB_FAULT_SLOW_KERNEL || slows(&faults[i], f->name, device))
				f->faults |= 1u << i;
	}
	for (u32 i = 0; i < n_faults; i++) {
		const struct fault *x = &faults[i];

		if (!(f->faults & 1u << i) || (x->kind != HB_FAULT_SLOW_KERNEL && !slows(x, f->name, device)))
			continue;
		factor *= x->value[FACTOR];
		if (x->given & K(FACTOR))
			hb_truth__applied(x->kind);
	}
	return factor;
}

static struct fault *active(enum hb_fault_kind kind)
{
	for (u32 i = 0; hb_fault__on(kind) && i < n_faults; i++)
		if (faults[i].kind == kind)
			return &faults[i];
	return NULL;
}

double hb_fault__copy(void)
{
	const struct fault *f = active(HB_FAULT_CONTENTION);

	if (!f)
		return 1;
	hb_truth__applied(f->kind);
	return f->value[FACTOR];
}

u64 hb_fault__late(int device)
{
	u64 ns = 0;

	for (u32 i = 0; hb_fault__on(HB_FAULT_SLOW_RANK) && i < n_faults; i++) {
		const struct fault *f = &faults[i];

		if (f->kind != HB_FAULT_SLOW_RANK || !(f->given & K(DELAY_US)) || !of_rank(f, device))
			continue;
		ns += ns_of(f, DELAY_US);
		hb_truth__applied(f->kind);
	}
	return ns;
}

u64 hb_fault__lost(void)
{
	struct fault *f = active(HB_FAULT_LOST_EVENT);

	if (!f || !turn(f))
		return 0;
	hb_truth__applied(f->kind);
	return ns_of(f, MS);
}

bool hb_fault__d2h(u64 *ns, u64 *bytes)
{
	const struct fault *f = active(HB_FAULT_BLOCKING_D2H);

	if (!f)
		return false;
	hb_truth__applied(f->kind);
	*ns = ns_of(f, US);
	*bytes = (u64)f->value[BYTES];
	return true;
}

void hb_fault__rank(int device, u32 rank, u32 ranks)
{
	if (device < 0 || device >= MAX_DEVICES || ranks <= rank_of[device].ranks)
		return;
	rank_of[device].rank = (int)rank + 1;
	rank_of[device].ranks = ranks;
}

void hb_fault__stall(void)
{
	struct timespec t = {0};
	struct fault *f;
	u64 ns = 0;

	if (!hb_fault__on(HB_FAULT_STALL))
		return;
	hb_lock();
	f = active(HB_FAULT_STALL);
	if (f && turn(f)) {
		ns = ns_of(f, US);
		hb_truth__applied(f->kind);
	}
	hb_unlock();
	if (ns < 20000) { /* shorter than a sleep can be */
		hb_costs__spin(hb_now(), ns);
		return;
	}
	t.tv_sec = (time_t)(ns / 1000000000u);
	t.tv_nsec = (long)(ns % 1000000000u);
	nanosleep(&t, NULL);
}

bool hb_fault__pageable(void)
{
	if (!hb_fault__on(HB_FAULT_PAGEABLE))
		return false;
	hb_truth__applied(HB_FAULT_PAGEABLE);
	return true;
}
