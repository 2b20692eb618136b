/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "cli/unfinished.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static const char *volatile unfinished;

static void on_signal(int sig)
{
	if (unfinished)
		unlink(unfinished);
	signal(sig, SIG_DFL);
	raise(sig);
}

void hb_unfinished__catch(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction a = {.sa_handler = on_signal};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaction(signals[i], &a, NULL);
}

void hb_unfinished__set(const char *path)
{
	unfinished = path;
}
