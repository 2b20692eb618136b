/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/session/survey.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"

struct hb_survey {
	struct hb_tables *tables;
	struct hb_buf rows; /* struct hb_survey_row */
	u32 hidden;
};

/* ---- Python ---- */

/* "3.11", "3.13t" at the start of `s`; else "?". */
static void version_word(const char *s, char *version, size_t size)
{
	unsigned major, minor;
	int at = 0;

	if (sscanf(s, "%2u.%3u%n", &major, &minor, &at) == 2 && at)
		snprintf(version, size, "%u.%u%s", major, minor, s[at] == 't' ? "t" : "");
	else
		snprintf(version, size, "?");
}

bool hb_survey__python(const char *path, char *version, size_t size)
{
	const char *name = hb_text__basename(path);

	if (strncmp(name, "libpython", 9) == 0 && strstr(name, ".so"))
		version_word(name + 9, version, size);
	else if (strncmp(name, "python", 6) == 0 && name[6 + strspn(name + 6, "0123456789.td")] == 0)
		version_word(name + 6, version, size);
	else
		return false;
	return true;
}

/* The library, where there is one, tells more than a program called "python3". Without permission to see
 * either the thread name is all there is. */
static void find_python(struct hb_survey_row *row)
{
	char v[sizeof(row->python)];

	hb_survey__python(row->p->exe[0] ? row->p->exe : row->p->comm, row->python, sizeof(row->python));
	for (u32 i = 0; i < row->p->n_maps; i++)
		if ((!row->python[0] || row->python[0] == '?') &&
		    hb_survey__python(row->p->maps[i].path, v, sizeof(v)))
			memcpy(row->python, v, sizeof(v));
}

/* ---- accelerator libraries ---- */

static const struct hb_row *table_row(const struct hb_survey *s, const char *path)
{
	u32 n;
	const struct hb_row *rows = hb_tables__rows(s->tables, &n);

	for (u32 i = 0; i < n; i++)
		if (hb_row__covers_library(&rows[i], path))
			return &rows[i];
	return NULL;
}

static bool is_known(const struct hb_survey_row *row, const struct hb_mapping *m)
{
	for (u32 i = 0; i < row->n_libs; i++)
		if (strcmp(row->libs[i].path, m->path) == 0)
			return true;
	return false;
}

static void try_open(const struct hb_process *p, const struct hb_mapping *m, struct hb_survey_library *lib)
{
	char path[4200];
	int rc = hb_process__open_path(p, m, path, sizeof(path));

	lib->visible = rc == 0;
	if (rc == -ESTALE)
		snprintf(lib->why, sizeof(lib->why),
			 "another file lies at that path now; opening the mapped one needs "
			 "CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE");
	else if (rc)
		snprintf(lib->why, sizeof(lib->why), "cannot be opened: %s", strerror(-rc));
}

static int find_libraries(const struct hb_survey *s, struct hb_survey_row *row)
{
	for (u32 i = 0; i < row->p->n_maps; i++) {
		const struct hb_mapping *m = &row->p->maps[i];
		const struct hb_row *r = table_row(s, m->path);
		struct hb_survey_library *libs;

		if (!r || is_known(row, m))
			continue;
		libs = realloc(row->libs, (row->n_libs + 1) * sizeof(*libs));
		if (!libs)
			return -ENOMEM;
		row->libs = libs;
		libs += row->n_libs++;
		*libs = (struct hb_survey_library){
		    .api = r->api, .path = m->path, .layer = r->layer, .deleted = m->deleted};
		try_open(row->p, m, libs);
	}
	return 0;
}

/* ---- the trial plan ---- */

static int remark(struct hb_survey_row *row, const char *text)
{
	char **lines = realloc(row->remarks, (row->n_remarks + 1) * sizeof(*lines));

	if (!lines)
		return -ENOMEM;
	row->remarks = lines;
	lines[row->n_remarks] = strdup(text);
	return lines[row->n_remarks] ? (row->n_remarks++, 0) : -ENOMEM;
}

/* Those that would be there for the whole window: not the ones that only look, for a moment, whether launches
 * arrive at the driver. */
static void count_probes(struct hb_survey_row *row, struct hb_plan *plan)
{
	u32 n;
	const struct hb_plan_file *const *files = hb_plan__files_of(plan, row->p->pid, &n);

	for (u32 i = 0; i < n; i++)
		for (u32 k = 0; k < row->n_libs; k++)
			if (strcmp(files[i]->path, row->libs[k].path) == 0)
				row->libs[k].probes += files[i]->n_sites;
}

static int plan_for(const struct hb_survey *s, struct hb_survey_row *row)
{
	const struct hb_plan_opts o = {.layers = HB_LAYERS_AUTO};
	struct hb_plan *plan = hb_plan__new(s->tables, &o);
	struct hb_error e = {0};
	const char *const *lines;
	char line[160];
	int rc = 0;
	u32 n;

	if (!plan)
		return -ENOMEM;
	if (hb_plan__add_process(plan, row->p, &e) < 0)
		rc = remark(row, e.text);
	count_probes(row, plan);
	lines = hb_plan__remarks(plan, &n);
	for (u32 i = 0; i < n && !rc; i++)
		rc = remark(row, lines[i]);
	hb_plan__refusals(plan, &n);
	if (n && !rc) {
		snprintf(line, sizeof(line),
			 "%u function%s of the tables cannot be probed here: `herschel-bpf probes check -p "
			 "%u` says why",
			 n, n == 1 ? "" : "s", row->p->pid);
		rc = remark(row, line);
	}
	hb_plan__free(plan);
	return rc;
}

static void look_at_program(struct hb_survey_row *row)
{
	char path[64];
	struct hb_elf *f;

	snprintf(path, sizeof(path), "/proc/%u/exe", row->p->pid);
	f = hb_elf__open(path, NULL);
	row->stripped = f && !hb_elf__has_symtab(f);
	hb_elf__close(f);
}

/* ---- rows ---- */

static void free_row(struct hb_survey_row *row)
{
	for (u32 i = 0; i < row->n_remarks; i++)
		free(row->remarks[i]);
	free(row->remarks);
	free(row->libs);
	hb_process__free(row->p);
}

static int what_stands_against_it(struct hb_survey_row *row)
{
	const struct hb_process *p = row->p;
	char line[256];
	int rc = 0;

	if (p->denied) {
		snprintf(line, sizeof(line), "may not be inspected: %s", hb_process__denied_remedy());
		rc = remark(row, line);
	}
	if (p->is_32bit && !rc)
		rc = remark(row, "a 32-bit program, or one of another machine: cannot be traced");
	if (p->seccomp && !rc)
		rc = remark(row, "confined by seccomp: return probes (durations, results) are tried in a "
				 "confined child first");
	return rc;
}

static int examine(const struct hb_survey *s, struct hb_survey_row *row)
{
	int rc = what_stands_against_it(row);

	row->n_obstacles = row->n_remarks;
	if (!rc && row->n_libs && !row->p->is_32bit)
		rc = plan_for(s, row);
	if (!rc && !row->p->denied)
		look_at_program(row);
	return rc;
}

/* Nothing is said of processes that go while we look. */
static int add(struct hb_survey *s, u32 pid, bool keep)
{
	struct hb_survey_row row = {.p = hb_process__peek(pid)};
	int rc;

	if (!row.p)
		return 0;
	find_python(&row);
	rc = find_libraries(s, &row);
	if (!rc && !keep && (row.p->kernel || row.p->state == 'Z' || (!row.n_libs && !row.python[0]))) {
		s->hidden += row.p->denied && !row.p->kernel;
		free_row(&row);
		return 0;
	}
	if (!rc)
		rc = examine(s, &row);
	if (!rc)
		hb_buf__add(&s->rows, &row, sizeof(row));
	if (rc || s->rows.oom) {
		free_row(&row);
		return -ENOMEM;
	}
	return 0;
}

static int look_at_all(struct hb_survey *s, const u32 *pids, u32 n, bool keep)
{
	int rc = 0;

	for (u32 i = 0; i < n && !rc; i++)
		if (pids[i] != (u32)getpid())
			rc = add(s, pids[i], keep);
	return rc;
}

static int look_everywhere(struct hb_survey *s)
{
	u32 n;
	u32 *all = hb_process__all(&n);
	int rc = all ? look_at_all(s, all, n, false) : -ENOMEM;

	free(all);
	return rc;
}

struct hb_survey *hb_survey__new(const u32 *pids, u32 n, struct hb_error *e)
{
	struct hb_survey *s = calloc(1, sizeof(*s));

	if (!s)
		goto nomem;
	s->tables = hb_tables__new();
	if (!s->tables)
		goto nomem;
	if (hb_target__need_proc(e) || hb_tables__add_embedded(s->tables, e))
		goto fail;
	if ((pids ? look_at_all(s, pids, n, true) : look_everywhere(s)) == 0)
		return s;
nomem:
	hb_error__nomem(e, "the list of processes");
fail:
	hb_survey__free(s);
	return NULL;
}

void hb_survey__free(struct hb_survey *s)
{
	u32 n;
	struct hb_survey_row *rows;

	if (!s)
		return;
	rows = (struct hb_survey_row *)hb_survey__rows(s, &n);
	for (u32 i = 0; i < n; i++)
		free_row(&rows[i]);
	hb_buf__free(&s->rows);
	hb_tables__free(s->tables);
	free(s);
}

const struct hb_survey_row *hb_survey__rows(const struct hb_survey *s, u32 *n)
{
	*n = (u32)(s->rows.size / sizeof(struct hb_survey_row));
	return (const struct hb_survey_row *)s->rows.data;
}

u32 hb_survey__hidden(const struct hb_survey *s)
{
	return s->hidden;
}
