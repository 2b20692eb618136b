// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Mapping events of real mappings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/clock.h"
#include "capture/session/mmap_events.h"

#define PAGE 4096UL
#define UGLY "/tmp/hb-test-mmap-\033[31m-XXXXXX"

struct seen {
	unsigned n;
	struct hb_mmap_event last;
	char path[256];
};

/* Other processes of the machine map things too. */
static void take(const struct hb_mmap_event *ev, void *arg)
{
	struct seen *s = arg;

	if (ev->pid != (u32)getpid())
		return;
	s->n++;
	s->last = *ev;
	snprintf(s->path, sizeof(s->path), "%s", ev->path);
}

static struct hb_mmap_events *events(void)
{
	struct hb_error e = {0};
	struct hb_mmap_events *m = hb_mmap_events__new(&e);

	if (!m)
		fail_msg("%s", e.text);
	return m;
}

static int file(char *path)
{
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4 * PAGE), 0);
	return fd;
}

static bool not_root(void)
{
	if (geteuid() == 0)
		return false;
	printf("skip: watching the machine's mappings needs root\n");
	return true;
}

static void an_executable_mapping_is_told(void **state)
{
	char path[] = "/tmp/hb-test-mmap-XXXXXX";
	struct seen s = {0};
	struct hb_mmap_events *m;
	struct pollfd p;
	struct stat st;
	u64 from, to;
	void *at;
	int fd;

	if (not_root())
		skip();
	fd = file(path);
	m = events();
	from = hb_clock__now();
	at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, PAGE);
	to = hb_clock__now();
	assert_ptr_not_equal(at, MAP_FAILED);
	p = (struct pollfd){.fd = hb_mmap_events__fd(m), .events = POLLIN};
	assert_int_equal(poll(&p, 1, 10000), 1);
	hb_mmap_events__read(m, take, &s);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.last.tid, gettid());
	assert_int_equal(s.last.addr, (u64)at);
	assert_int_equal(s.last.len, 2 * PAGE);
	assert_int_equal(s.last.pgoff, PAGE);
	assert_int_equal(s.last.ino, st.st_ino);
	assert_int_equal(s.last.dev, major(st.st_dev) << 20 | minor(st.st_dev));
	assert_true(s.last.ts >= from && s.last.ts <= to);
	assert_string_equal(s.path, path);
	munmap(at, 2 * PAGE);
	close(fd);
	unlink(path);
	hb_mmap_events__free(m);
}

static void data_and_memory_without_a_file_are_not(void **state)
{
	char path[] = "/tmp/hb-test-mmap-XXXXXX";
	struct seen s = {0};
	struct hb_mmap_events *m;
	void *data, *jit;
	int fd;

	if (not_root())
		skip();
	fd = file(path);
	m = events();
	data = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	jit = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(data, MAP_FAILED);
	assert_ptr_not_equal(jit, MAP_FAILED);
	hb_mmap_events__read(m, take, &s);
	assert_int_equal(s.n, 0);
	assert_int_equal(mprotect(data, PAGE, PROT_READ | PROT_EXEC),
			 0); /* some loaders do it in two steps */
	hb_mmap_events__read(m, take, &s);
	assert_int_equal(s.n, 1);
	assert_string_equal(s.path, path);
	munmap(data, PAGE);
	munmap(jit, PAGE);
	close(fd);
	unlink(path);
	hb_mmap_events__free(m);
}

static void paths_cannot_reach_a_terminal(void **state)
{
	char path[] = UGLY;
	struct seen s = {0};
	struct hb_mmap_events *m;
	void *at;
	int fd;

	if (not_root())
		skip();
	fd = file(path);
	m = events();
	at = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	hb_mmap_events__read(m, take, &s);
	assert_int_equal(s.n, 1);
	assert_null(strchr(s.path, '\033'));
	assert_non_null(strstr(s.path, "/tmp/hb-test-mmap-"));
	munmap(at, PAGE);
	close(fd);
	unlink(path);
	hb_mmap_events__free(m);
}

/* Through the ring's end many times over, then more than it holds: seen and lost are all that were made. */
static void seen_and_lost_are_all_there_were(void **state)
{
	char path[] = "/tmp/hb-test-mmap-XXXXXX";
	const unsigned batch = 100, batches = 40, flood = 3000;
	struct seen s = {0};
	struct hb_mmap_events *m;
	unsigned made = 0;
	cpu_set_t one, all;
	int fd;

	if (not_root())
		skip();
	fd = file(path);
	m = events();
	for (unsigned i = 0; i < batches; i++) {
		for (unsigned k = 0; k < batch; k++)
			munmap(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0), PAGE);
		hb_mmap_events__read(m, take, &s);
	}
	made = batch * batches;
	assert_int_equal(s.n, made);
	assert_int_equal(hb_mmap_events__lost(m), 0);
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	for (unsigned k = 0; k < flood; k++)
		munmap(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0), PAGE);
	hb_mmap_events__read(m, take, &s);
	/* The kernel says how many it dropped when the next one fits. */
	munmap(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0), PAGE);
	hb_mmap_events__read(m, take, &s);
	made += flood + 1;
	assert_true(hb_mmap_events__lost(m) > 0);
	/* Others on this CPU can have lost some of theirs meanwhile. */
	assert_in_range(s.n + hb_mmap_events__lost(m), made, made + 2000);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	close(fd);
	unlink(path);
	hb_mmap_events__free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_executable_mapping_is_told),
	    cmocka_unit_test(data_and_memory_without_a_file_are_not),
	    cmocka_unit_test(paths_cannot_reach_a_terminal),
	    cmocka_unit_test(seen_and_lost_are_all_there_were),
	};

	return cmocka_run_group_tests_name("mmap_events", tests, NULL, NULL);
}
