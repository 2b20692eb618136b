/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What this kernel's uprobes can do, found by probing ourselves. */
#include "capture/probes/attach_link.h"
#include "capture/probes/probes.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static int load(u32 type, int *map)
{
	LIBBPF_OPTS(bpf_prog_load_opts, o, .expected_attach_type = type);
	struct bpf_insn prog[] = {
	    {.code = BPF_LD | BPF_DW | BPF_IMM, .dst_reg = 1, .src_reg = BPF_PSEUDO_MAP_VALUE},
	    {0},
	    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 2, .imm = 1},
	    {.code = BPF_STX | BPF_DW | BPF_XADD, .dst_reg = 1, .src_reg = 2},
	    {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0},
	    {.code = BPF_JMP | BPF_EXIT},
	};
	int fd;

	*map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "hb_trial", sizeof(u32), sizeof(u64), 1, NULL);
	if (*map < 0)
		return -errno;
	prog[0].imm = *map;
	fd = bpf_prog_load(BPF_PROG_TYPE_KPROBE, "hb_trial", "GPL", prog, sizeof(prog) / sizeof(*prog), &o);
	if (fd < 0) {
		fd = -errno;
		close(*map);
	}
	return fd;
}

int hb_trial__load(bool many, int *map)
{
	return load(many ? HB_UPROBE_MULTI : 0, map);
}

u64 hb_trial__count(int map)
{
	u32 zero = 0;
	u64 n = 0;

	return bpf_map_lookup_elem(map, &zero, &n) ? 0 : n;
}

__attribute__((noinline, noclone)) int hb_trial__function(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x;
}

static int offset_in(struct dl_phdr_info *info, size_t size, void *arg)
{
	u64 at = (u64)(uintptr_t)hb_trial__function - info->dlpi_addr;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && at >= p->p_vaddr && at < p->p_vaddr + p->p_filesz)
			*(u64 *)arg = at - p->p_vaddr + p->p_offset;
	}
	return 1; /* the first object is the program itself */
}

u64 hb_trial__offset(void)
{
	u64 offset = 0;

	dl_iterate_phdr(offset_in, &offset);
	return offset;
}

static void *call_once(void *arg)
{
	hb_trial__function(1);
	return arg;
}

/* Runs of a program of that type while a thread calls the function once; 0 when it cannot be attached. */
static u64 hits_from_a_thread(u32 type)
{
	u64 offset = hb_trial__offset(), cookie = 0, hits = 0;
	struct hb_places at = {.offsets = &offset, .cookies = &cookie, .n = 1};
	int map = -1, link = -1, prog = load(type, &map);
	pthread_t t;

	if (prog < 0)
		return 0;
	if (offset && type == HB_UPROBE_SESSION)
		link = hb_link__session(prog, "/proc/self/exe", &at, (u32)getpid());
	else if (offset)
		link = hb_link__multi(prog, "/proc/self/exe", &at, false, (u32)getpid());
	if (link >= 0 && !pthread_create(&t, NULL, call_once, NULL)) {
		pthread_join(t, NULL);
		hits = hb_trial__count(map);
	}
	if (link >= 0)
		close(link);
	close(prog);
	close(map);
	return hits;
}

static bool multi, session;

static void find_multi(void)
{
	multi = hits_from_a_thread(HB_UPROBE_MULTI) == 1;
}

static void find_session(void)
{
	session = hits_from_a_thread(HB_UPROBE_SESSION) == 2; /* at the entry and at the return */
}

bool hb_attach__has_session(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_session);
	return session;
}

bool hb_attach__has_multi(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_multi);
	return multi;
}
