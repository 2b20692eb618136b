/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/session/impl.h"
#include "capture/session/pycalls.h"
#include "capture/session/pyfields.h"
#include "capture/target/procfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

static void meta_u64(struct hb_session *s, const char *key, u64 v)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	hb_window_writer__meta(s->writer, key, text);
}

/* Offsets have a sign: the two clocks are read one after the other, and boot time may be the same as ours. */
static void meta_s64(struct hb_session *s, const char *key, s64 v)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)v);
	hb_window_writer__meta(s->writer, key, text);
}

static const char *const layer_words[] = {"auto", "runtime", "driver", "both"};
static const char *const python_words[] = {"off", "stacks", "calls"};
static const char *const syscall_words[] = {"none", "blocking", "all"};
static const char *const exception_words[] = {"off", "types", "hash", "text"};

/* What this window is called by others, such as the one that a plan made of it records. */
static void describe_id(struct hb_session *s)
{
	u64 id[2];
	char text[40];

	if (getrandom(id, sizeof(id), 0) != sizeof(id))
		return;
	snprintf(text, sizeof(text), "%016llx%016llx", (unsigned long long)id[0], (unsigned long long)id[1]);
	hb_window_writer__meta(s->writer, "window_id", text);
}

static void first_line(const char *path, const char *key, struct hb_session *s)
{
	char text[128];
	FILE *f = fopen(path, "re");

	if (f && fgets(text, sizeof(text), f)) {
		text[strcspn(text, "\n")] = 0;
		hb_window_writer__meta(s->writer, key, text);
	}
	if (f)
		fclose(f);
}

static void describe_host(struct hb_session *s)
{
	struct utsname u;

	if (uname(&u) == 0) {
		hb_window_writer__meta(s->writer, "host", u.nodename);
		hb_window_writer__meta(s->writer, "kernel", u.release);
		hb_window_writer__meta(s->writer, "machine", u.machine);
	}
	meta_u64(s, "cpus", (u64)sysconf(_SC_NPROCESSORS_ONLN));
	first_line(BOOT_ID, "boot_id", s);
	/* Offsets are stored, never applied: what a reader adds to a record's ts to get wall-clock or boot
	 * time. */
	meta_s64(s, "realtime_offset_ns", (s64)(hb_clock__read(CLOCK_REALTIME) - hb_clock__now()));
	meta_s64(s, "boottime_offset_ns", (s64)(hb_clock__read(CLOCK_BOOTTIME) - hb_clock__now()));
}

static void describe_plan(struct hb_session *s)
{
	u32 n;
	const struct hb_refusal *refusals = hb_plan__refusals(s->plan, &n);
	const char *const *remarks;

	for (u32 i = 0; i < n && i < 64; i++)
		hb_session__note(s, HB_NOTE_INFO, "not probed: %s in %s: %s", refusals[i].symbol,
				 refusals[i].file, refusals[i].why);
	remarks = hb_plan__remarks(s->plan, &n);
	for (u32 i = 0; i < n; i++)
		hb_session__note(s, HB_NOTE_INFO, "%s", remarks[i]);
	/* Why there will be no calls is said at once: a static runtime, a stripped one. */
	for (u32 i = 0; i < n && !hb_plan__n_probes(s->plan); i++)
		hb_note("%s", remarks[i]);
}

/* What hooks cost here: for whoever wants to know what others would have cost. */
static void describe_prices(struct hb_session *s)
{
	static const char *const keys[HB_HOOK_COUNT] = {[HB_HOOK_STEP] = "price_entry_step_ns",
							[HB_HOOK_EMULATED] = "price_entry_emulated_ns",
							[HB_HOOK_NOP5] = "price_entry_nop5_ns"};

	meta_u64(s, "price_syscall_ns", s->prices.syscall);
	if (s->o.syscalls == HB_SYSCALLS_ALL)
		meta_u64(s, "price_syscalls_all_ns", s->syscall_extra);
	if (!s->prices.measured)
		return;
	for (int i = 0; i < HB_HOOK_COUNT; i++)
		if (s->prices.entry[i])
			meta_u64(s, keys[i], s->prices.entry[i]);
	meta_u64(s, "price_return_ns", s->prices.ret);
}

/* CPU used by this program so far, ns. */
static u64 own_cpu(void)
{
	struct rusage ru;

	if (getrusage(RUSAGE_SELF, &ru))
		return 0;
	return ((u64)ru.ru_utime.tv_sec + (u64)ru.ru_stime.tv_sec) * 1000000000ULL +
	       ((u64)ru.ru_utime.tv_usec + (u64)ru.ru_stime.tv_usec) * 1000ULL;
}

/* The window has just begun: what attaching cost is over. */
static void describe_setup(struct hb_session *s)
{
	s->cpu_at_begin = own_cpu();
	meta_u64(s, "self_cpu_setup_ns", s->cpu_at_begin);
}

void hb_session__window_over(struct hb_session *s)
{
	meta_u64(s, "self_cpu_window_ns", own_cpu() - s->cpu_at_begin);
}

void hb_session__describe(struct hb_session *s)
{
	describe_setup(s);
	describe_id(s);
	hb_window_writer__meta(s->writer, "tool", "herschel-bpf " HB_VERSION);
	hb_window_writer__meta(s->writer, "profile", "standard");
	hb_window_writer__meta(s->writer, "layers", layer_words[s->o.layers]);
	hb_window_writer__meta(s->writer, "syscalls", syscall_words[s->o.syscalls]);
	hb_window_writer__meta(s->writer, "python", python_words[s->o.python]);
	hb_window_writer__meta(s->writer, "exceptions", exception_words[s->o.exceptions]);
	meta_u64(s, "sample_hz", s->o.freq);
	meta_u64(s, "duration_asked_ns", s->o.duration);
	if (hb_plan__simulated(s->plan))
		hb_window_writer__meta(s->writer, "simulated", "1");
	describe_host(s);
	describe_plan(s);
	hb_session_pycalls__describe(s);
	meta_u64(s, "attach_ns", s->attach_ns);
	describe_prices(s);
	for (u32 i = 0; i < s->o.n_facts; i++)
		hb_window_writer__meta(s->writer, s->o.facts[i].key, s->o.facts[i].value);
}

/* ---- accounts at the end ---- */

static void loss_to_window(const struct hb_loss_row *row, void *arg)
{
	struct hb_session *s = arg;

	hb_window_writer__loss(s->writer, row);
}

static void cost_to_window(const char *name, u64 runs, u64 ns, u64 missed, void *arg)
{
	struct hb_session *s = arg;
	struct hb_loss_row loss = {.cause = HB_LOSS_MISSED, .cpu = UINT32_MAX, .count = missed};
	struct hb_rec_price rec = {.hits = runs, .price = runs ? ns / runs : 0, .probe = UINT32_MAX};

	if (missed)
		hb_window_writer__loss(s->writer, &loss);
	/* What uprobe programs run for is inside the price of their probes already. */
	if (!runs || strncmp(name, "accel", 5) == 0)
		return;
	rec.price += hb_session_pycalls__trap(s, name);
	rec.hook = hb_window_writer__string(s->writer, name);
	hb_session__emit(s, HB_TYPE_price, s->pids[0], s->pids[0], s->end, &rec);
}

static u64 site_price(const struct hb_session *s, const struct hb_site *site, enum hb_hook kind)
{
	return s->prices.entry[kind] + (site->ret ? s->prices.ret : 0);
}

/* Kind of the first instruction needs a path that can be opened from here: any process that has the file
 * mapped. */
static enum hb_hook site_kind(const struct hb_session *s, const struct hb_plan_file *f, u64 offset)
{
	char path[512];

	for (u32 i = 0; i < s->n_procs; i++) {
		const struct hb_process *p = s->procs[i].p;

		for (u32 m = 0; m < p->n_maps; m++)
			if (p->maps[m].ino == f->ino && p->maps[m].dev == f->dev &&
			    hb_process__open_path(p, &p->maps[m], path, sizeof(path)) == 0)
				return hb_hook__at(path, offset);
	}
	return hb_hook__at(f->path, offset);
}

static void receipt(struct hb_session *s)
{
	u32 n, ids = hb_plan__n_probes(s->plan);
	const struct hb_plan_file *files = hb_plan__files(s->plan, &n);
	u64 *hits = calloc(2 * ((size_t)ids + 1), sizeof(u64));

	if (!hits)
		return;
	hb_bpf__sums(s->bpf, ids, hits, hits + ids + 1);
	for (u32 i = 0; i < n; i++) {
		for (u32 j = 0; j < files[i].n_sites; j++) {
			const struct hb_site *site = &files[i].sites[j];
			struct hb_rec_price rec = {.hits = hits[site->probe], .probe = site->probe};

			if (!rec.hits)
				continue;
			rec.price = site_price(s, site, site_kind(s, &files[i], site->offset));
			hb_session__emit(s, HB_TYPE_price, s->pids[0], s->pids[0], s->end, &rec);
		}
	}
	free(hits);
}

/* The largest resident size of this program. rusage would do, but remembers that of whoever executed us. */
static u64 peak_rss(void)
{
	char *text = hb_procfs__read((u32)getpid(), "status", 65536, NULL, NULL);
	u64 kib = 0;

	if (text)
		hb_procfs__status(text, "VmHWM", false, &kib);
	free(text);
	return kib * 1024;
}

static void own_use(struct hb_session *s)
{
	meta_u64(s, "self_cpu_ns", own_cpu());
	meta_u64(s, "self_rss", peak_rss());
}

static void lose(struct hb_session *s, enum hb_loss cause, unsigned type, u64 count)
{
	struct hb_loss_row row = {.cause = cause, .type = type, .cpu = UINT32_MAX, .count = count};

	if (count)
		hb_window_writer__loss(s->writer, &row);
}

void hb_session__account(struct hb_session *s)
{
	hb_bpf__each_loss(s->bpf, loss_to_window, s);
	hb_arrival__account(s);
	hb_session_python__account(s);
	hb_session_pyfields__account(s);
	hb_session_pycalls__account(s);
	lose(s, HB_LOSS_MMAP_LOST, 0, hb_mmap_events__lost(s->mmaps));
	lose(s, HB_LOSS_LATE, HB_TYPE_accel, s->life_lost);
	lose(s, HB_LOSS_UNFINISHED, HB_TYPE_accel, hb_bpf__open_calls(s->bpf));
	lose(s, HB_LOSS_UNFINISHED, HB_TYPE_syscall, hb_bpf__open_syscalls(s->bpf));
	hb_bpf__each_cost(s->bpf, cost_to_window, s);
	receipt(s);
	own_use(s);
	meta_u64(s, "detach_ns", s->detach_ns);
	if (s->ended_by)
		hb_window_writer__meta(s->writer, "ended_by", s->ended_by);
}
