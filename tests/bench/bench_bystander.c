/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a process that is not traced pays: a loop of getppid, and a byte sent to and fro between two
 * processes. Prints the medians of the rounds as JSON. usage: bench_bystander [ROUNDS]
 */
#include <signal.h>
#include <sys/wait.h>

#include "bench.h"

#define CALLS 50000
#define TURNS 5000

static double syscalls(void)
{
	u64 t = hb_clock__now();

	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	return (double)(hb_clock__now() - t) / CALLS;
}

static void answer(int in, int out)
{
	char b;

	while (read(in, &b, 1) == 1 && write(out, &b, 1) == 1)
		;
	_exit(0);
}

/* To the other process and back: two sleeps, two wake-ups, two switches at least. */
static double turns(int out, int in)
{
	u64 t = hb_clock__now();
	char b = 0;

	for (int i = 0; i < TURNS; i++)
		if (write(out, &b, 1) != 1 || read(in, &b, 1) != 1)
			exit(1);
	return (double)(hb_clock__now() - t) / TURNS;
}

int main(int argc, char **argv)
{
	int rounds = argc > 1 ? atoi(argv[1]) : 5, to[2], back[2];
	struct bench_values call = {0}, turn = {0};
	pid_t child;

	if (pipe(to) || pipe(back) || (child = fork()) < 0)
		return 1;
	if (!child) {
		close(to[1]);
		answer(to[0], back[1]);
	}
	for (int i = 0; i < rounds; i++) {
		bench__add(&call, syscalls());
		bench__add(&turn, turns(to[1], back[0]));
	}
	close(to[1]);
	waitpid(child, NULL, 0);
	printf("{\"getppid_ns\": %.1f, \"turn_ns\": %.1f}\n", bench__at(&call, .5), bench__at(&turn, .5));
	return 0;
}
