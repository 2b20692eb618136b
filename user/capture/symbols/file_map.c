/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/symbols/file_map.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct hb_file_map {
	char *data;
	size_t size;
	atomic_bool torn;
	struct hb_file_map *next;
};

/* The handler takes the lock as well: a SIGBUS comes from reading a mapping, which nobody does while holding
 * it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct hb_file_map *maps;
static uintptr_t page_mask;

static struct hb_file_map *covering(uintptr_t addr)
{
	struct hb_file_map *m = maps;

	while (m && addr - (uintptr_t)m->data >= m->size)
		m = m->next;
	return m;
}

/* Zeros from the page that is gone to the end, at once: after a truncation all of that is gone. The last page
 * of a file is mapped whole, hence the rounding. */
static bool patch(struct hb_file_map *m, uintptr_t addr)
{
	uintptr_t from = addr & page_mask, end = ((uintptr_t)m->data + m->size + ~page_mask) & page_mask;

	atomic_store(&m->torn, true);
	return mmap((void *)from, end - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
	       MAP_FAILED;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	struct hb_file_map *m = NULL;
	bool done = false;

	(void)context;
	/* One that was sent (kill, a memory error seen elsewhere) has no address of ours. */
	if (info->si_code == BUS_ADRERR || info->si_code == BUS_OBJERR) {
		pthread_mutex_lock(&lock);
		m = covering((uintptr_t)info->si_addr);
		done = m && patch(m, (uintptr_t)info->si_addr);
		pthread_mutex_unlock(&lock);
	}
	if (done)
		return;
	/* Not ours: dies of it as without us, once the instruction is repeated. */
	signal(sig, SIG_DFL);
	if (info->si_code <= 0)
		raise(sig);
}

/* With every mapping: a library or a test frame may have set a handler of its own meanwhile. */
static void catch_sigbus(void)
{
	struct sigaction sa = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_RESTART};

	page_mask = ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
	sigaction(SIGBUS, &sa, NULL);
}

struct hb_file_map *hb_file_map__new(int fd, size_t size)
{
	struct hb_file_map *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (m->data == MAP_FAILED) {
		free(m);
		return NULL;
	}
	m->size = size;
	pthread_mutex_lock(&lock);
	catch_sigbus();
	m->next = maps;
	maps = m;
	pthread_mutex_unlock(&lock);
	return m;
}

void hb_file_map__free(struct hb_file_map *m)
{
	struct hb_file_map **p = &maps;

	if (!m)
		return;
	pthread_mutex_lock(&lock);
	while (*p != m)
		p = &(*p)->next;
	*p = m->next;
	pthread_mutex_unlock(&lock);
	munmap(m->data, m->size);
	free(m);
}

const void *hb_file_map__data(const struct hb_file_map *m)
{
	return m->data;
}

bool hb_file_map__torn(const struct hb_file_map *m)
{
	return atomic_load(&m->torn);
}
