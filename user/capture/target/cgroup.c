/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/target/cgroup.h"
#include "capture/target/procfs.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_HIERARCHIES 32

static bool is_cgroup(const char *folder)
{
	char path[4200];

	snprintf(path, sizeof(path), "%s/cgroup.procs", folder);
	return access(path, F_OK) == 0;
}

/* Numbers of one file; true when it could be read. `threads`: they are thread ids. */
static bool add_file(const char *folder, const char *name, bool threads, struct hb_buf *pids)
{
	char path[4200], line[32];
	FILE *f;
	u32 id;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (!hb_procfs__u32(line, &id) || !id) /* 0: lives outside our pid namespace */
			continue;
		if (threads)
			id = hb_thread__pid(id);
		if (id)
			hb_buf__add(pids, &id, sizeof(id));
	}
	ok = !ferror(f);
	fclose(f);
	return ok;
}

static void add_tree(const char *folder, struct hb_buf *pids)
{
	char *roots[] = {strdup(folder), NULL};
	FTS *tree = roots[0] ? fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL) : NULL;
	FTSENT *ent;

	while (tree && (ent = fts_read(tree))) {
		if (ent->fts_info != FTS_D)
			continue;
		if (!add_file(ent->fts_path, "cgroup.procs", false, pids)) /* v2 "threaded": EOPNOTSUPP */
			add_file(ent->fts_path, "cgroup.threads", true, pids);
	}
	if (tree)
		fts_close(tree);
	else
		pids->oom = true;
	free(roots[0]);
}

/* Mount points of all hierarchies, v2 first: on hybrid machines it has the whole tree. */
static u32 hierarchies(char *points[MAX_HIERARCHIES])
{
	char *text = hb_procfs__read((u32)getpid(), "mounts", 4u << 20, NULL, NULL), *line, *save = NULL;
	u32 n = 0;

	for (line = text ? strtok_r(text, "\n", &save) : NULL; line; line = strtok_r(NULL, "\n", &save)) {
		char point[4096], type[64];

		if (n == MAX_HIERARCHIES || sscanf(line, "%*s %4095s %63s", point, type) != 2)
			continue;
		if (strcmp(type, "cgroup") != 0 && strcmp(type, "cgroup2") != 0)
			continue;
		points[n] = strdup(point);
		if (points[n] && n && !type[6]) { /* keep v2 at the front */
			n++;
		} else if (points[n]) {
			char *first = points[0];

			points[0] = points[n];
			points[n++] = first;
		}
	}
	free(text);
	return n;
}

int hb_cgroup__pids(const char *path, struct hb_buf *pids, struct hb_error *e)
{
	char *points[MAX_HIERARCHIES], folder[4160];
	bool found = path[0] == '/' && is_cgroup(path);
	u32 n = found ? 0 : hierarchies(points);

	if (found)
		add_tree(path, pids);
	for (u32 i = 0; i < n; i++) {
		snprintf(folder, sizeof(folder), "%s/%s", points[i], path[0] == '/' ? path + 1 : path);
		if (!pids->size &&
		    is_cgroup(folder)) { /* the same name in another hierarchy may be the full one */
			found = true;
			add_tree(folder, pids);
		}
		free(points[i]);
	}
	if (pids->oom)
		return hb_error__nomem(e, "the processes of a cgroup");
	if (!found)
		return hb_error__set(
		    e, HB_EXIT_TARGET, -ENOENT,
		    "there is no cgroup \"%s\": give a folder that holds cgroup.procs, or a path below the "
		    "mount point of a cgroup hierarchy",
		    path);
	return 0;
}
