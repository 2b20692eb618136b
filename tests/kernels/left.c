// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * What of BPF is in the kernel, and how many bytes of a process's code differ from its files (a probe left
 * behind is one). Static and without libbpf, for guests that have neither. Prints: programs N maps N links N
 * [patched N]
 */
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static long count(int command)
{
	union bpf_attr attr;
	long n = 0;

	memset(&attr, 0, sizeof(attr));
	while (syscall(SYS_bpf, command, &attr, sizeof(attr)) == 0) {
		attr.start_id = attr.next_id;
		n++;
	}
	return n;
}

static long differ(int mem, unsigned long start, unsigned long end, unsigned long pgoff, const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	unsigned char a[4096], b[4096];
	long n = 0;

	for (unsigned long at = start; file >= 0 && at < end; at += sizeof(a)) {
		if (pread(mem, a, sizeof(a), (off_t)at) != sizeof(a))
			break;
		memset(b, 0, sizeof(b));
		if (pread(file, b, sizeof(b), (off_t)(pgoff + at - start)) <= 0)
			break;
		for (size_t i = 0; i < sizeof(a); i++)
			n += a[i] != b[i];
	}
	if (file >= 0)
		close(file);
	return n;
}

static long patched(const char *pid)
{
	char name[64], line[512], perms[8], path[256];
	unsigned long start, end, pgoff;
	long n = 0;
	FILE *maps;
	int mem;

	snprintf(name, sizeof(name), "/proc/%s/mem", pid);
	mem = open(name, O_RDONLY | O_CLOEXEC);
	snprintf(name, sizeof(name), "/proc/%s/maps", pid);
	maps = fopen(name, "re");
	if (mem < 0 || !maps) {
		perror(name);
		exit(1);
	}
	while (fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %255s", &start, &end, perms, &pgoff, path) == 5 &&
		    perms[2] == 'x' && path[0] == '/')
			n += differ(mem, start, end, pgoff, path);
	fclose(maps);
	close(mem);
	return n;
}

int main(int argc, char **argv)
{
	printf("programs %ld maps %ld links %ld", count(BPF_PROG_GET_NEXT_ID), count(BPF_MAP_GET_NEXT_ID),
	       count(BPF_LINK_GET_NEXT_ID));
	if (argc > 1)
		printf(" patched %ld", patched(argv[1]));
	printf("\n");
	return 0;
}
