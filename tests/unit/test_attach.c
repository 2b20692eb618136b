// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The accelerator call programs on real calls of a real process: tests/unit/fixtures/hbdrv.c and hbrt.c,
 * mapped by a child that calls them known numbers of times. Every scene runs over uprobe_multi links and over
 * single uprobes.
 */
#include "bpf_rig.h"

#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/text.h"
#include "capture/probes/probes.h"

enum { READY = 0, GO = 1, DONE = 2, END = 3 }; /* slots */
#define THREADS 4
#define CALLS	250

static const char table[] =
    "api demo-driver\n"
    "libhbdrv.so*  drvLaunch    launch  driver  entry   nothrow  function=a0 grid=a1,a2,a3 block=a4,a5,s0 "
    "shm=s1 stream=s2\n"
    "libhbdrv.so*  drvLaunchEx  launch  driver  entry   nothrow  function=a1 grid=*(a0),*(a0+4),*(a0+8) "
    "block=*(a0+12),*(a0+16),*(a0+20) shm=*(a0+24) stream=*(a0+32)\n"
    "libhbdrv.so*  drvCopy      copy    driver  return  nothrow  bytes=a2 kind=2\n"
    "libhbdrv.so*  drvTail      copy    driver  return  nothrow  bytes=a2\n"
    "libhbdrv.so*  drvNop       sync    driver  return  nothrow  stream=a0 bytes=a0>>8:u8\n"
    "libhbdrv.so*  drvJump      sync    driver  return  nothrow  stream=a0\n"
    "libhbdrv.so*  drvNest      sync    driver  return  nothrow\n"
    "libhbdrv.so*  drvWait      sync    driver  return  nothrow\n"
    "api demo-runtime\n"
    "libhbrt*.so*  rtLaunch     launch  runtime entry   nothrow  function=a0 grid=a1\n"
    "libhbrt*.so*  rtHidden     launch  runtime entry   nothrow  function=a0 grid=a1\n"
    "libhbrt*.so*  rtCopy       copy    runtime return  nothrow  bytes=a2\n";

/* ---- the target ---- */

struct config {
	unsigned gx, gy, gz, bx, by, bz, shm;
	void *stream;
};

static struct {
	int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
		      void **);
	int (*launch_ex)(const struct config *, void *);
	int (*copy)(void *, const void *, size_t, int);
	int (*tail)(void *, const void *, size_t, int);
	int (*nop)(long);
	int (*jump)(jmp_buf);
	int (*nest)(int);
	int (*wait)(int);
	int (*rt_launch)(void *, unsigned);
	int (*rt_hidden)(void *, unsigned);
	int (*rt_copy)(void *, const void *, size_t, int);
} f;

static const char *fixture(const char *name)
{
	static char path[PATH_MAX + 64];
	char exe[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	assert_true(n > 0);
	exe[n] = 0;
	snprintf(path, sizeof(path), "%s/fixtures/%s", dirname(exe), name);
	return path;
}

static void *need(void *lib, const char *name)
{
	void *p = dlsym(lib, name);

	if (!p)
		_exit(99);
	return p;
}

static void map_libraries(void)
{
	void *drv = dlopen(fixture("libhbdrv.so.1"), RTLD_NOW),
	     *rt = dlopen(fixture("libhbrt.so.1"), RTLD_NOW);

	if (!drv || !rt)
		_exit(98);
	f.launch = need(drv, "drvLaunch");
	f.launch_ex = need(drv, "drvLaunchEx");
	f.copy = need(drv, "drvCopy");
	f.tail = need(drv, "drvTail");
	f.nop = need(drv, "drvNop");
	f.jump = need(drv, "drvJump");
	f.nest = need(drv, "drvNest");
	f.wait = need(drv, "drvWait");
	f.rt_launch = need(rt, "rtLaunch");
	f.rt_hidden = need(rt, "rtHidden");
	f.rt_copy = need(rt, "rtCopy");
}

/* Every child: map, say so, call when told to, say so, live until told to end. */
static int live(_Atomic u64 *slot, void (*calls)(_Atomic u64 *slot))
{
	map_libraries();
	slot[READY] = 1;
	if (!rig_wait_slot(&slot[GO]))
		return 97;
	calls(slot);
	slot[DONE] = 1;
	return rig_wait_slot(&slot[END]) ? 0 : 96;
}

static void *calls_of_a_thread(void *arg)
{
	struct config c = {2, 3, 4, 5, 6, 7, 8, (void *)0x5555};
	long k = (long)arg;

	for (int i = 0; i < CALLS; i++) {
		f.launch((void *)0x1000, 1 + (unsigned)i, 20, 30, 40, 50, 60, 70, (void *)0x7777, NULL);
		f.launch_ex(&c, (void *)0x2000);
		f.copy(NULL, NULL, 1000 + (size_t)k, i % 2 ? 0 : 701);
		f.nop(0x54242);
	}
	return NULL;
}

static void scene_threads(_Atomic u64 *slot)
{
	pthread_t t[THREADS];

	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, calls_of_a_thread, (void *)i))
			_exit(95);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
}

static void scene_layers(_Atomic u64 *slot)
{
	for (int i = 0; i < CALLS; i++) {
		f.rt_launch((void *)0x1000, 9);
		f.rt_copy(NULL, NULL, 64, 3);
		f.launch((void *)0x3000, 1, 1, 1, 1, 1, 1, 0, NULL, NULL);
	}
}

static void scene_hidden(_Atomic u64 *slot)
{
	for (int i = 0; i < CALLS; i++) {
		f.rt_hidden((void *)0x1000, 9);
		f.launch((void *)0x3000, 1, 1, 1, 1, 1, 1, 0, NULL, NULL);
	}
}

static void scene_jumps(_Atomic u64 *slot)
{
	jmp_buf env;

	for (volatile int i = 0; i < CALLS; i++) {
		if (!setjmp(env))
			f.jump(env);
		f.copy(NULL, NULL, 5, 2);
	}
}

static void scene_nests(_Atomic u64 *slot)
{
	f.nest(11); /* 12 frames: 8 are followed */
	f.copy(NULL, NULL, 5, 0);
}

static void scene_tails(_Atomic u64 *slot)
{
	for (int i = 0; i < CALLS; i++)
		f.tail(NULL, NULL, 77, 3);
}

static void scene_unreadable(_Atomic u64 *slot)
{
	f.launch_ex((void *)8,
		    (void *)0x2000); /* nothing is mapped there; not called through by the function */
	f.launch_ex(NULL, (void *)0x2000);
}

static void *stays_inside(void *arg)
{
	f.wait(*(int *)arg);
	return NULL;
}

static void scene_inside(_Atomic u64 *slot)
{
	static int never[2];
	pthread_t t;

	if (pipe(never) || pthread_create(&t, NULL, stays_inside, &never[0]))
		_exit(95);
	while (!slot[10])
		usleep(500);
}

static void scene_flood(_Atomic u64 *slot)
{
	for (int i = 0; i < 5000; i++)
		f.launch((void *)0x1000, 1, 1, 1, 1, 1, 1, 0, NULL, NULL);
}

static void scene_confined(_Atomic u64 *slot)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit_group, 3, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clock_nanosleep, 2, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_nanosleep, 1, 0),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog p = {sizeof(code) / sizeof(*code), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p))
		_exit(94);
	for (int i = 0; i < 10; i++)
		f.copy(NULL, NULL, 5, 4);
}

#define SCENE(name)                                                                                          \
	static int child_##name(_Atomic u64 *slot)                                                           \
	{                                                                                                    \
		return live(slot, scene_##name);                                                             \
	}
SCENE(threads)
SCENE(layers)
SCENE(hidden)
SCENE(jumps)
SCENE(nests)
SCENE(tails)
SCENE(unreadable)
SCENE(inside)
SCENE(flood)
SCENE(confined)

/* ---- the tool's side ---- */

struct accel {
	struct rig *rig;
	struct rig_child child;
	struct hb_tables *tables;
	struct hb_plan *plan;
	struct hb_attach *attach;
	struct hb_process *proc;
	bool single;
};

static struct rig *accel_rig(unsigned ring_bytes)
{
	struct rig *r = rig__open();
	struct bpf_program *multi[] = {r->skel->progs.accel_entry_multi, r->skel->progs.accel_return_multi};

	for (int i = 0; i < 2; i++) {
		bpf_program__set_autoload(multi[i], hb_attach__has_multi());
		bpf_program__set_expected_attach_type(multi[i], HB_UPROBE_MULTI);
	}
	bpf_program__set_autoload(r->skel->progs.accel_entry, true);
	bpf_program__set_autoload(r->skel->progs.accel_return, true);
	r->ring_bytes = ring_bytes;
	rig__rings(r);
	assert_int_equal(herschel__load(r->skel), 0);
	for (u32 i = 0; i < r->n_rings; i++) {
		assert_int_equal(
		    bpf_map_update_elem(bpf_map__fd(r->skel->maps.rings), &i, &r->fds[i], BPF_ANY), 0);
		if (!r->rb)
			r->rb = ring_buffer__new(r->fds[i], rig__take, r, NULL);
		else
			assert_int_equal(ring_buffer__add(r->rb, r->fds[i], rig__take, r), 0);
	}
	assert_non_null(r->rb);
	return r;
}

static struct hb_attach_ops ops_of(const struct rig *r, bool single)
{
	bool multi = !single && hb_attach__has_multi();

	return (struct hb_attach_ops){
	    .entry_multi = multi ? bpf_program__fd(r->skel->progs.accel_entry_multi) : -1,
	    .ret_multi = multi ? bpf_program__fd(r->skel->progs.accel_return_multi) : -1,
	    .entry_single = bpf_program__fd(r->skel->progs.accel_entry),
	    .ret_single = bpf_program__fd(r->skel->progs.accel_return),
	};
}

/* Puts new descriptors into the array and attaches what the plan says: what a session does. */
static int sync_plan(struct accel *a)
{
	struct hb_error e = {0};
	int n;

	for (u32 id = 1; id <= hb_plan__n_probes(a->plan); id++)
		assert_int_equal(bpf_map_update_elem(bpf_map__fd(a->rig->skel->maps.probes), &id,
						     hb_plan__desc(a->plan, id), BPF_ANY),
				 0);
	n = hb_attach__process(a->attach, a->plan, a->proc, NULL, NULL, &e);
	if (n < 0)
		fail_msg("%s", e.text);
	return n;
}

static struct accel start(int (*child)(_Atomic u64 *), enum hb_layers layers, bool single,
			  unsigned ring_bytes)
{
	struct accel a = {.rig = accel_rig(ring_bytes), .single = single};
	struct hb_plan_opts po = {.layers = layers};
	struct hb_attach_ops ops = ops_of(a.rig, single);
	struct hb_error e = {0};

	a.child = rig_child__fork(child);
	rig_child__go(&a.child);
	assert_true(rig_wait_slot(&a.child.slot[READY]));
	a.tables = hb_tables__new();
	assert_int_equal(hb_tables__add_text(a.tables, "test", table, sizeof(table) - 1, &e), 0);
	a.plan = hb_plan__new(a.tables, &po);
	a.attach = hb_attach__new(&ops);
	a.proc = hb_process__read((u32)a.child.pid, &e);
	assert_non_null(a.proc);
	assert_true(hb_plan__add_process(a.plan, a.proc, &e) > 0);
	assert_true(sync_plan(&a) > 0);
	rig__target(a.rig, a.child.pid, 0);
	return a;
}

static void run_calls(struct accel *a)
{
	a->child.slot[GO] = 1;
	assert_true(rig_wait_slot(&a->child.slot[DONE]));
	rig__drain(a->rig);
}

/* The target must be healthy at the end: it returns from its last sleep and exits 0. */
static void stop(struct accel *a)
{
	hb_attach__detach(a->attach, hb_clock__now() + RIG_DEADLINE);
	assert_int_equal(hb_attach__links(a->attach), 0);
	hb_attach__detach(a->attach, hb_clock__now() + RIG_DEADLINE);
	a->child.slot[END] = 1;
	assert_int_equal(rig_child__wait(&a->child), 0);
	rig_child__drop(&a->child);
	hb_attach__free(a->attach);
	hb_plan__free(a->plan);
	hb_tables__free(a->tables);
	hb_process__free(a->proc);
	rig__free(a->rig);
}

static const struct hb_rec_accel *rec(const struct rig_record *r)
{
	return (const struct hb_rec_accel *)r->bytes;
}

static const char *symbol_of(const struct accel *a, u32 probe)
{
	u32 n;
	const struct hb_plan_file *files = hb_plan__files(a->plan, &n);

	for (u32 i = 0; i < n; i++)
		for (u32 k = 0; k < files[i].n_sites; k++)
			if (files[i].sites[k].probe == probe)
				return files[i].sites[k].symbol;
	fail_msg("no probe %u in the plan", probe);
	return NULL;
}

/* Next accel record of a function after *pos. */
static const struct rig_record *next_of(struct accel *a, unsigned *pos, const char *symbol)
{
	struct rig_record *r;

	while ((r = rig__next(a->rig, pos, HB_TYPE_accel, 0)))
		if (!strcmp(symbol_of(a, rec(r)->probe), symbol))
			return r;
	return NULL;
}

static unsigned count_of(struct accel *a, const char *symbol)
{
	unsigned n = 0, pos = 0;

	while (next_of(a, &pos, symbol))
		n++;
	return n;
}

static u64 hits_of(struct accel *a, const char *symbol)
{
	u32 n = hb_plan__n_probes(a->plan);
	u64 *sums = calloc(n + 1, sizeof(*sums)), total = 0;

	assert_non_null(sums);
	assert_int_equal(hb_probes__sum(bpf_map__fd(a->rig->skel->maps.hits), n, sums), 0);
	for (u32 id = 1; id <= n; id++)
		if (!strcmp(symbol_of(a, id), symbol))
			total += sums[id];
	free(sums);
	return total;
}

static u64 lost(struct accel *a, u32 cause)
{
	return rig__lost(a->rig, cause, HB_TYPE_accel);
}

static void assert_nothing_lost(struct accel *a)
{
	for (u32 cause = 0; cause < HB_LOSS_COUNT; cause++)
		assert_int_equal(lost(a, cause), 0);
}

/* ---- the scenes ---- */

static void check_launch(const struct hb_rec_accel *r)
{
	assert_int_equal(r->handle, 0x1000);
	assert_true(r->gx >= 1 && r->gx <= CALLS);
	assert_int_equal(r->gy, 20);
	assert_int_equal(r->gz, 30);
	assert_int_equal(r->bx, 40);
	assert_int_equal(r->by, 50);
	assert_int_equal(r->bz, 60);
	assert_int_equal(r->shm, 70);
	assert_int_equal(r->stream, 0x7777);
	assert_int_equal(r->dur, 0);
	assert_int_equal(r->flags, 0);
}

static void check_launch_ex(const struct hb_rec_accel *r)
{
	assert_int_equal(r->handle, 0x2000);
	assert_int_equal(r->gx, 2);
	assert_int_equal(r->gy, 3);
	assert_int_equal(r->gz, 4);
	assert_int_equal(r->bx, 5);
	assert_int_equal(r->by, 6);
	assert_int_equal(r->bz, 7);
	assert_int_equal(r->shm, 8);
	assert_int_equal(r->stream, 0x5555);
}

static void counts_and_arguments(bool single)
{
	struct accel a = start(child_threads, HB_LAYERS_DRIVER, single, 4 << 20);
	const struct rig_record *r;
	unsigned pos = 0, failed = 0, grid = 0, bytes[THREADS] = {0};

	run_calls(&a);
	assert_nothing_lost(&a);
	while ((r = next_of(&a, &pos, "drvLaunch"))) {
		check_launch(rec(r));
		grid += rec(r)->gx;
	}
	assert_int_equal(grid, THREADS * CALLS * (CALLS + 1) / 2);
	for (pos = 0; (r = next_of(&a, &pos, "drvLaunchEx"));)
		check_launch_ex(rec(r));
	for (pos = 0; (r = next_of(&a, &pos, "drvCopy"));) {
		assert_int_equal(rec(r)->flags, HB_AFLAG_RET | HB_AFLAG_TIMED);
		assert_int_equal(rec(r)->kind, 2);
		assert_true(rec(r)->dur > 0 && rec(r)->dur < RIG_DEADLINE);
		failed += rec(r)->ret == 701;
		assert_true(rec(r)->bytes >= 1000 && rec(r)->bytes < 1000 + THREADS);
		bytes[rec(r)->bytes - 1000]++;
	}
	assert_int_equal(failed, THREADS * CALLS / 2);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(bytes[i], CALLS);
	for (pos = 0; (r = next_of(&a, &pos, "drvNop"));)
		assert_true(rec(r)->ret == 0x54242 && rec(r)->stream == 0x54242 && rec(r)->bytes == 0x42);
	assert_int_equal(count_of(&a, "drvLaunch"), THREADS * CALLS);
	assert_int_equal(count_of(&a, "drvLaunchEx"), THREADS * CALLS);
	assert_int_equal(count_of(&a, "drvNop"), THREADS * CALLS);
	assert_int_equal(hits_of(&a, "drvCopy"), THREADS * CALLS);
	assert_int_equal(hb_probes__open_calls(bpf_map__fd(a.rig->skel->maps.open_calls)), 0);
	stop(&a);
}

static void both_layers(bool single)
{
	struct accel a = start(child_layers, HB_LAYERS_BOTH, single, 4 << 20);
	unsigned pos = 0, inner = 0, direct = 0;
	const struct rig_record *r;

	run_calls(&a);
	assert_nothing_lost(&a);
	for (pos = 0; (r = next_of(&a, &pos, "drvLaunch"));) {
		inner += (rec(r)->flags & HB_AFLAG_INNER) != 0;
		direct += rec(r)->handle == 0x3000 && !(rec(r)->flags & HB_AFLAG_INNER);
	}
	assert_int_equal(inner, CALLS);
	assert_int_equal(direct, CALLS);
	for (pos = 0; (r = next_of(&a, &pos, "rtLaunch"));)
		assert_true(rec(r)->nested == 1 && rec(r)->flags == (HB_AFLAG_RET | HB_AFLAG_TIMED));
	for (pos = 0; (r = next_of(&a, &pos, "rtCopy"));)
		assert_true(rec(r)->nested == 1 && rec(r)->ret == 3);
	for (pos = 0; (r = next_of(&a, &pos, "drvCopy"));)
		assert_true(rec(r)->flags & HB_AFLAG_INNER);
	assert_int_equal(count_of(&a, "rtLaunch"), CALLS);
	assert_int_equal(count_of(&a, "rtCopy"), CALLS);
	assert_int_equal(count_of(&a, "drvCopy"), CALLS);
	stop(&a);
}

/* A call that is left by longjmp has no end: counted, and nothing after it is confused. */
static void left_by_longjmp(bool single)
{
	struct accel a = start(child_jumps, HB_LAYERS_DRIVER, single, 4 << 20);
	unsigned pos = 0;
	const struct rig_record *r;
	u64 open;

	run_calls(&a);
	assert_int_equal(count_of(&a, "drvCopy"), CALLS);
	while ((r = next_of(&a, &pos, "drvCopy"))) {
		assert_int_equal(rec(r)->ret, 2);
		assert_int_equal(rec(r)->flags, HB_AFLAG_RET | HB_AFLAG_TIMED); /* not inside drvJump */
	}
	assert_int_equal(count_of(&a, "drvJump"), 0);
	open = hb_probes__open_calls(bpf_map__fd(a.rig->skel->maps.open_calls));
	assert_int_equal(lost(&a, HB_LOSS_UNFINISHED) + open, CALLS);
	stop(&a);
}

static void nested_too_deep(bool single)
{
	struct accel a = start(child_nests, HB_LAYERS_DRIVER, single, 4 << 20);
	unsigned pos = 0, timed = 0;
	const struct rig_record *r;
	int depth = 11;

	run_calls(&a);
	assert_int_equal(count_of(&a, "drvNest"), 12);
	assert_int_equal(lost(&a, HB_LOSS_NESTING), 4);
	assert_int_equal(lost(&a, HB_LOSS_UNFINISHED), 0);
	while ((r = next_of(&a, &pos, "drvNest")))
		timed += (rec(r)->flags & HB_AFLAG_TIMED) != 0;
	assert_int_equal(timed, 8);
	for (pos = 0; (r = next_of(&a, &pos, "drvNest"));)
		if (rec(r)->ret > depth - 8) /* results of the eight outer ones, innermost first */
			assert_true(rec(r)->flags & HB_AFLAG_RET);
	assert_int_equal(count_of(&a, "drvCopy"), 1);
	stop(&a);
}

static void tail_calls(bool single)
{
	struct accel a = start(child_tails, HB_LAYERS_DRIVER, single, 4 << 20);
	const struct rig_record *r;
	unsigned pos = 0;

	run_calls(&a);
	assert_nothing_lost(&a);
	assert_int_equal(count_of(&a, "drvTail"), CALLS);
	assert_int_equal(count_of(&a, "drvCopy"), CALLS);
	while ((r = next_of(&a, &pos, "drvCopy")))
		assert_true(rec(r)->flags & HB_AFLAG_INNER);
	assert_int_equal(hb_probes__open_calls(bpf_map__fd(a.rig->skel->maps.open_calls)), 0);
	stop(&a);
}

static void unreadable_arguments(bool single)
{
	struct accel a = start(child_unreadable, HB_LAYERS_DRIVER, single, 4 << 20);
	const struct rig_record *r;
	unsigned pos = 0;

	run_calls(&a);
	r = next_of(&a, &pos, "drvLaunchEx");
	assert_non_null(r);
	assert_int_equal(rec(r)->flags, HB_AFLAG_ARGS);
	assert_int_equal(rec(r)->handle, 0x2000);
	assert_int_equal(rec(r)->gx, 0);
	r = next_of(&a, &pos, "drvLaunchEx");
	assert_non_null(r);
	assert_int_equal(rec(r)->flags, 0); /* NULL: not given */
	assert_int_equal(lost(&a, HB_LOSS_ARGS), 1);
	stop(&a);
}

static void in_flight_at_the_end(bool single)
{
	struct accel a = start(child_inside, HB_LAYERS_DRIVER, single, 4 << 20);
	int open = bpf_map__fd(a.rig->skel->maps.open_calls);
	u64 deadline = hb_clock__now() + RIG_DEADLINE;

	a.child.slot[GO] = 1;
	while (hb_probes__open_calls(open) == 0 && hb_clock__now() < deadline)
		usleep(1000);
	assert_int_equal(hb_probes__open_calls(open), 1);
	a.child.slot[10] = 1;
	assert_true(rig_wait_slot(&a.child.slot[DONE]));
	rig__drain(a.rig);
	assert_int_equal(count_of(&a, "drvWait"), 0);
	stop(&a);
}

static void full_ring(bool single)
{
	struct accel a = start(child_flood, HB_LAYERS_DRIVER, single, 65536);
	unsigned n;

	run_calls(&a);
	n = count_of(&a, "drvLaunch");
	assert_true(n > 0 && n < 5000);
	assert_int_equal(n + lost(&a, HB_LOSS_RING_FULL), 5000);
	assert_int_equal(hits_of(&a, "drvLaunch"), 5000);
	stop(&a);
}

/* ---- the arrival check, as a session does it ---- */

static void check_arrivals(struct accel *a, bool moves)
{
	u32 n, probes = hb_plan__n_probes(a->plan);
	const struct hb_plan_file *const *files = hb_plan__check_files(a->plan, a->proc->pid, &n);
	const struct hb_plan_file *file = n ? files[0] : NULL;
	u64 *hits = calloc(probes + 1, sizeof(u64)), *inner = calloc(probes + 1, sizeof(u64));
	struct hb_error e = {0};

	assert_int_equal(n, 1);
	assert_true(hits && inner);
	assert_true(hb_attach__file(a->attach, a->proc, hb_plan_file__mapping(file, a->proc), file, &e) > 0);
	run_calls(a);
	assert_int_equal(hb_attach__drop(a->attach, a->proc->pid, file), 0);
	assert_int_equal(hb_attach__drop(a->attach, a->proc->pid, file), -ENOENT);
	assert_int_equal(hb_probes__sum(bpf_map__fd(a->rig->skel->maps.hits), probes, hits), 0);
	assert_int_equal(hb_probes__sum(bpf_map__fd(a->rig->skel->maps.inner), probes, inner), 0);
	assert_int_equal(hb_plan__check(a->plan, a->proc->pid, hits, inner), moves);
	free(hits);
	free(inner);
}

static void launches_that_arrive_stay_at_the_driver(bool single)
{
	struct accel a = start(child_layers, HB_LAYERS_AUTO, single, 4 << 20);
	const struct rig_record *r;
	unsigned pos = 0;

	check_arrivals(&a, false);
	assert_int_equal(count_of(&a, "rtLaunch"), 0); /* counted only */
	assert_int_equal(hits_of(&a, "rtLaunch"), CALLS);
	assert_int_equal(count_of(&a, "drvLaunch"), 2 * CALLS);
	while ((r = next_of(&a, &pos, "drvLaunch")))
		assert_int_equal(rec(r)->flags, 0); /* what encloses it is not recorded */
	assert_int_equal(count_of(&a, "rtCopy"), CALLS);
	assert_int_equal(count_of(&a, "drvCopy"), 0);
	assert_nothing_lost(&a);
	stop(&a);
}

static void launches_that_do_not_move_to_the_runtime(bool single)
{
	struct accel a = start(child_hidden, HB_LAYERS_AUTO, single, 4 << 20);
	u32 n;
	const struct hb_plan_file *const *files = hb_plan__files_of(a.plan, a.proc->pid, &n), *before = NULL;
	const char *const *remarks;
	bool said = false;

	for (u32 i = 0; i < n; i++)
		if (!strcmp(hb_text__basename(files[i]->path), "libhbrt.so.1"))
			before = files[i];
	assert_non_null(before);
	check_arrivals(&a, true);
	assert_true(sync_plan(&a) > 0);
	/* What was recorded before still is, by the same probes: those of the check are added. */
	assert_int_equal(hb_attach__drop(a.attach, a.proc->pid, before), 0);
	remarks = hb_plan__remarks(a.plan, &n);
	for (u32 i = 0; i < n; i++)
		said = said || strstr(remarks[i], "do not arrive");
	assert_true(said);
	stop(&a);
}

/* ---- attaching itself ---- */

static void a_bad_offset_is_refused_alone(bool single)
{
	struct accel a = start(child_threads, HB_LAYERS_DRIVER, single, 4 << 20);
	u32 n, n_ref;
	const struct hb_plan_file *good = hb_plan__files_of(a.plan, a.proc->pid, &n)[0];
	struct hb_plan_file bad = *good;
	const struct hb_refusal *ref;
	struct hb_error e = {0};
	u32 links = hb_attach__links(a.attach);

	bad.sites = calloc(good->n_sites, sizeof(*bad.sites));
	assert_non_null(bad.sites);
	memcpy(bad.sites, good->sites, good->n_sites * sizeof(*bad.sites));
	bad.sites[2].offset = 1ULL << 40;
	assert_int_equal(hb_attach__drop(a.attach, a.proc->pid, good), 0);
	assert_true(hb_attach__links(a.attach) < links);
	assert_int_equal(hb_attach__file(a.attach, a.proc, hb_plan_file__mapping(good, a.proc), &bad, &e),
			 good->n_sites - 1);
	ref = hb_attach__refusals(a.attach, &n_ref);
	assert_int_equal(n_ref, 1);
	assert_string_equal(ref[0].symbol, good->sites[2].symbol);
	run_calls(&a);
	assert_nothing_lost(&a);
	for (u32 i = 0; i < good->n_sites; i++)
		if (!strcmp(good->sites[i].symbol, "drvLaunch") ||
		    !strcmp(good->sites[i].symbol, "drvCopy") || !strcmp(good->sites[i].symbol, "drvNop"))
			assert_int_equal(count_of(&a, good->sites[i].symbol), i == 2 ? 0 : THREADS * CALLS);
	stop(&a);
	free(bad.sites);
}

static void again_is_nothing_new(bool single)
{
	struct accel a = start(child_threads, HB_LAYERS_DRIVER, single, 4 << 20);
	u32 links = hb_attach__links(a.attach);

	assert_int_equal(sync_plan(&a), 0);
	assert_int_equal(hb_attach__links(a.attach), links);
	run_calls(&a);
	assert_int_equal(count_of(&a, "drvLaunch"), THREADS * CALLS);
	hb_attach__forget(a.attach, a.proc->pid);
	assert_int_equal(hb_attach__links(a.attach), 0);
	stop(&a);
}

static void a_process_that_is_gone(bool single)
{
	struct accel a = start(child_threads, HB_LAYERS_DRIVER, single, 4 << 20);
	u32 n;
	const struct hb_plan_file *file = hb_plan__files_of(a.plan, a.proc->pid, &n)[0];
	const struct hb_mapping *m = hb_plan_file__mapping(file, a.proc);
	struct hb_error e = {0};

	hb_attach__drop(a.attach, a.proc->pid, file);
	run_calls(&a);
	a.child.slot[END] = 1;
	assert_int_equal(rig_child__wait(&a.child), 0);
	assert_true(hb_attach__file(a.attach, a.proc, m, file, &e) < 0);
	assert_true(e.err < 0 && e.text[0]);
	assert_int_equal(hb_attach__links(a.attach), 0);
	a.child = rig_child__fork(child_threads); /* stop() ends it */
	rig_child__go(&a.child);
	a.child.slot[GO] = 1;
	stop(&a);
}

/* The return probes of a target that may do next to nothing: safe or not used, as the trial said. */
static void confined_target(bool single)
{
	struct accel a;

#ifdef __SANITIZE_ADDRESS__
	print_message(
	    "skip: before _exit the sanitizer makes a system call of its own, which the filter kills\n");
	skip();
#endif
	a = start(child_confined, HB_LAYERS_DRIVER, single, 4 << 20);
	if (!hb_plan__confined_returns_work()) {
		print_message("skipped: this kernel kills a confined process at a return probe\n");
		hb_attach__forget(a.attach, a.proc->pid);
		run_calls(&a);
	} else {
		run_calls(&a);
		assert_int_equal(count_of(&a, "drvCopy"), 10);
	}
	stop(&a);
}

/* First byte of a function in the target: int3 while a probe is there. */
static u8 first_byte(int pid, u64 addr)
{
	char path[64];
	u8 b = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &b, 1, (off_t)addr), 1);
	close(fd);
	return b;
}

static u64 address_of(const struct hb_process *proc, const struct hb_plan_file *file, u64 offset)
{
	for (u32 i = 0; i < proc->n_maps; i++) {
		const struct hb_mapping *m = &proc->maps[i];

		if (m->ino == file->ino && offset >= m->pgoff && offset < m->pgoff + (m->end - m->start))
			return m->start + (offset - m->pgoff);
	}
	fail_msg("offset %llx is not mapped", (unsigned long long)offset);
	return 0;
}

/* A tool that is killed leaves nothing in its target. */
static void killed_tool(bool single)
{
	struct rig_child target = rig_child__fork(child_threads);
	u64 deadline = hb_clock__now() + RIG_DEADLINE, addr;
	int told[2], b;
	pid_t tool;

	rig_child__go(&target);
	assert_true(rig_wait_slot(&target.slot[READY]));
	assert_int_equal(pipe2(told, O_CLOEXEC), 0);
	fflush(NULL);
	tool = fork();
	if (!tool) {
		struct accel a = {.rig = accel_rig(65536), .child = target, .single = single};
		struct hb_plan_opts po = {.layers = HB_LAYERS_DRIVER};
		struct hb_attach_ops ops = ops_of(a.rig, single);
		const struct hb_plan_file *file;
		u32 n;

		a.tables = hb_tables__new();
		hb_tables__add_text(a.tables, "test", table, sizeof(table) - 1, NULL);
		a.plan = hb_plan__new(a.tables, &po);
		a.attach = hb_attach__new(&ops);
		a.proc = hb_process__read((u32)target.pid, NULL);
		hb_plan__add_process(a.plan, a.proc, NULL);
		sync_plan(&a);
		rig__target(a.rig, target.pid, 0);
		file = hb_plan__files_of(a.plan, a.proc->pid, &n)[0];
		addr = address_of(a.proc, file, file->sites[0].offset);
		if (write(told[1], &addr, sizeof(addr)) != sizeof(addr))
			_exit(1);
		pause();
		_exit(1);
	}
	assert_int_equal(read(told[0], &addr, sizeof(addr)), sizeof(addr));
	assert_int_equal(first_byte(target.pid, addr), 0xcc);
	target.slot[GO] = 1; /* it is killed while the target calls */
	kill(tool, SIGKILL);
	waitpid(tool, NULL, 0);
	while ((b = first_byte(target.pid, addr)) == 0xcc && hb_clock__now() < deadline)
		usleep(10000);
	assert_int_not_equal(b, 0xcc);
	assert_true(rig_wait_slot(&target.slot[DONE]));
	target.slot[END] = 1;
	assert_int_equal(rig_child__wait(&target), 0);
	rig_child__drop(&target);
	close(told[0]);
	close(told[1]);
}

/* A deadline in the past: the rest is closed behind our back, and it is closed. */
static void detach_without_waiting(bool single)
{
	struct accel a = start(child_threads, HB_LAYERS_DRIVER, single, 4 << 20);
	u32 n;
	const struct hb_plan_file *file = hb_plan__files_of(a.plan, a.proc->pid, &n)[0];
	u64 addr = address_of(a.proc, file, file->sites[0].offset), deadline = hb_clock__now() + RIG_DEADLINE;
	int b;

	hb_attach__detach(a.attach, hb_clock__now());
	assert_int_equal(hb_attach__links(a.attach), 0);
	while ((b = first_byte(a.child.pid, addr)) == 0xcc && hb_clock__now() < deadline)
		usleep(10000);
	assert_int_not_equal(b, 0xcc);
	run_calls(&a);
	assert_int_equal(a.rig->n, 0);
	stop(&a);
}

#define BOTH(name)                                                                                           \
	static void name##_multi(void **state)                                                               \
	{                                                                                                    \
		RIG_NEEDS_ROOT();                                                                            \
		if (!hb_attach__has_multi()) {                                                               \
			print_message("skipped: this kernel has no uprobe_multi\n");                         \
			skip();                                                                              \
		}                                                                                            \
		name(false);                                                                                 \
	}                                                                                                    \
	static void name##_single(void **state)                                                              \
	{                                                                                                    \
		RIG_NEEDS_ROOT();                                                                            \
		name(true);                                                                                  \
	}
#define TESTS(name) cmocka_unit_test(name##_multi), cmocka_unit_test(name##_single)
BOTH(counts_and_arguments)
BOTH(both_layers)
BOTH(left_by_longjmp)
BOTH(nested_too_deep)
BOTH(tail_calls)
BOTH(unreadable_arguments)
BOTH(in_flight_at_the_end)
BOTH(full_ring)
BOTH(launches_that_arrive_stay_at_the_driver)
BOTH(launches_that_do_not_move_to_the_runtime)
BOTH(a_bad_offset_is_refused_alone)
BOTH(again_is_nothing_new)
BOTH(a_process_that_is_gone)
BOTH(confined_target)
BOTH(killed_tool)
BOTH(detach_without_waiting)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TESTS(counts_and_arguments),
	    TESTS(both_layers),
	    TESTS(left_by_longjmp),
	    TESTS(nested_too_deep),
	    TESTS(tail_calls),
	    TESTS(unreadable_arguments),
	    TESTS(in_flight_at_the_end),
	    TESTS(full_ring),
	    TESTS(launches_that_arrive_stay_at_the_driver),
	    TESTS(launches_that_do_not_move_to_the_runtime),
	    TESTS(a_bad_offset_is_refused_alone),
	    TESTS(again_is_nothing_new),
	    TESTS(a_process_that_is_gone),
	    TESTS(confined_target),
	    TESTS(killed_tool),
	    TESTS(detach_without_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
