/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The table of subcommands, nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/cli.h"

extern const struct hb_command *const hb_commands[]; /* made at build time from the HB_COMMAND lines */

static void help(FILE *out)
{
	fprintf(out, "Usage: herschel-bpf COMMAND [OPTION...]\n"
		     "Traces what a running accelerator service really does, for a bounded window, and says "
		     "where the time "
		     "went.\n\n");
	for (size_t i = 0; hb_commands[i]; i++)
		fprintf(out, "  %-10s %s\n", hb_commands[i]->name, hb_commands[i]->doc);
	fprintf(out, "\n`herschel-bpf COMMAND --help` explains one command; `herschel-bpf --version` names "
		     "the version.\n");
}

static const struct hb_command *find(const char *name)
{
	for (size_t i = 0; hb_commands[i]; i++)
		if (strcmp(hb_commands[i]->name, name) == 0)
			return hb_commands[i];
	return NULL;
}

/* What was printed must have arrived: a full disk behind `report > file` is a failure, not a success. */
static int finish(int exit)
{
	struct hb_error e = {0};

	errno = 0;
	/* A command that failed has said its sentence. */
	if ((fflush(stdout) == 0 && !ferror(stdout)) || exit)
		return exit;
	/* The reason of an earlier write is gone; writing again brings it back, unless there is room by now.
	 */
	if (!errno && putchar('\n') != EOF)
		fflush(stdout);
	hb_error__set(&e, HB_EXIT_FAILED, -(errno ? errno : EIO), "the output could not be written%s%s",
		      errno ? ": " : "", errno ? strerror(errno) : " completely");
	hb_cli__fail(&e);
	return HB_EXIT_FAILED;
}

static int run(const struct hb_command *c, int argc, char **argv)
{
	char name[64];

	snprintf(name, sizeof(name), "herschel-bpf %s", c->name);
	argv[1] = name;
	return c->run(argc - 1, argv + 1);
}

/* Started with a standard descriptor closed, the next file opened would take its number, and what is meant
 * for the terminal would end up in a window. Read only: writing to it then fails and is reported, as on a
 * closed one. */
static void fill_standard_fds(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* BPF programs, maps and links are descriptors, single uprobes one each: the soft limit, which is there for
 * programs that use select(), is too small for them. */
static void use_all_fds(void)
{
	struct rlimit r;

	if (!getrlimit(RLIMIT_NOFILE, &r) && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	const struct hb_command *c = find(word);
	struct hb_error e = {0};

	fill_standard_fds();
	use_all_fds();
	if (c)
		return finish(run(c, argc, argv));
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0) {
		help(stdout);
		return finish(HB_EXIT_OK);
	}
	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
		printf("herschel-bpf %s\n", HB_VERSION);
		return finish(HB_EXIT_OK);
	}
	if (argc < 2) {
		help(stderr);
		return HB_EXIT_USAGE;
	}
	hb_error__set(&e, HB_EXIT_USAGE, -EINVAL,
		      "there is no command \"%s\"; `herschel-bpf --help` lists them", word);
	return hb_cli__fail(&e);
}
