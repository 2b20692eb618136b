/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What there is to say of one process: may it be looked at, can its libraries be opened from here. */
#include "capture/session/doctor_impl.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "capture/python/python.h"
#include "capture/session/survey.h"

static struct hb_diagnosis *new_row(struct hb_doctor *d, u32 pid, const char *id, const char *title,
				    enum hb_need need)
{
	struct hb_diagnosis *row = hb_doctor__add(d);

	if (!row)
		return NULL;
	row->pid = pid;
	row->id = id;
	row->title = title;
	row->need = need;
	row->needed_for = "tracing this process";
	return row;
}

static void access_row(struct hb_doctor *d, const struct hb_process *p)
{
	struct hb_diagnosis *row =
	    new_row(d, p->pid, "target-access", "process may be inspected", HB_NEED_MUST);

	if (!row)
		return;
	if (!p->denied) {
		hb_check__yes(row, "%s (%.200s)", p->comm, p->exe);
		return;
	}
	hb_check__no(row, "%s: %s", p->comm, strerror(-p->denied));
	hb_check__remedy(row, "%s", hb_process__denied_remedy());
}

static void machine_row(struct hb_doctor *d, const struct hb_process *p)
{
	struct hb_diagnosis *row = new_row(d, p->pid, "target-64bit", "64-bit program", HB_NEED_MUST);

	if (!row)
		return;
	if (!p->is_32bit) {
		hb_check__yes(row, "%s", "");
		return;
	}
	hb_check__no(row, "a 32-bit program, or one of another machine");
	hb_check__remedy(row, "such processes cannot be traced; use a 64-bit build of the program");
}

static void seccomp_row(struct hb_doctor *d, const struct hb_process *p)
{
	struct hb_diagnosis *row =
	    new_row(d, p->pid, "target-seccomp", "not confined by seccomp", HB_NEED_FACT);

	if (!row)
		return;
	row->needed_for = "return probes (durations, results) on every kernel";
	if (!p->seccomp) {
		hb_check__yes(row, "%s", "");
		return;
	}
	hb_check__no(row, "a filter is on; return probes are tried in a confined child first, else only "
			  "calls are recorded");
	hb_check__remedy(row,
			 "nothing has to be done; a kernel >= 6.12 tells calls and returns apart safely");
}

static void library_row(struct hb_doctor *d, u32 pid, const struct hb_survey_library *lib)
{
	struct hb_diagnosis *row = new_row(d, pid, "target-library", "library visible", HB_NEED_FEATURE);

	if (!row)
		return;
	row->needed_for = "accelerator calls";
	if (lib->visible && lib->probes)
		hb_check__yes(row, "%s %.200s: %u probes", lib->api, lib->path, lib->probes);
	else if (lib->visible)
		hb_check__yes(row, "%s %.200s: nothing to probe with --layers auto", lib->api, lib->path);
	else
		hb_check__no(row, "%s %.150s: %s", lib->api, lib->path, lib->why);
	if (!lib->visible)
		hb_check__remedy(row, "run as root, or with CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE");
	hb_text__clean(row->detail);
}

static void runtime_row(struct hb_doctor *d, const struct hb_survey_row *s)
{
	struct hb_diagnosis *row =
	    new_row(d, s->p->pid, "target-runtime", "an accelerator library is mapped", HB_NEED_FACT);

	if (!row)
		return;
	row->needed_for = "accelerator calls";
	if (s->n_libs) {
		hb_check__yes(row, "%u", s->n_libs);
		return;
	}
	hb_check__no(row, "none yet%s%s", s->python[0] ? "; Python " : "", s->python);
	hb_check__remedy(
	    row,
	    "nothing has to be done: a library loaded during the window is probed at once; system calls, "
	    "scheduling and CPU samples work without");
}

static void python_rows(struct hb_doctor *d, const struct hb_process *p)
{
	struct hb_python *py = p->denied ? NULL : hb_python__new(p);
	const struct hb_py_runtime *r;
	u32 n = 0;

	r = py ? hb_python__runtimes(py, &n) : NULL;
	for (u32 i = 0; i < n; i++) {
		struct hb_diagnosis *row =
		    new_row(d, p->pid, "target-python", "Python stacks", HB_NEED_FEATURE);
		char line[900];

		if (!row)
			break;
		row->needed_for = "Python functions in stacks";
		hb_py_runtime__describe(&r[i], line, sizeof(line));
		if (r[i].state != HB_PY_REFUSED) {
			hb_check__yes(row, "%s", line);
			continue;
		}
		hb_check__no(row, "%s", line);
		hb_check__remedy(row, "everything else works; CPython 3.8 to 3.14 is known");
	}
	hb_python__free(py);
}

static void remark_row(struct hb_doctor *d, u32 pid, const char *text)
{
	struct hb_diagnosis *row = new_row(d, pid, "target-remark", "remark", HB_NEED_FACT);

	if (row)
		hb_check__yes(row, "%s", text);
}

void hb_doctor__examine_process(struct hb_doctor *d, u32 pid)
{
	struct hb_survey *s = hb_survey__new(&pid, 1, NULL);
	const struct hb_survey_row *row;
	u32 n = 0;

	row = s ? hb_survey__rows(s, &n) : NULL;
	if (n) {
		access_row(d, row->p);
		machine_row(d, row->p);
		seccomp_row(d, row->p);
		runtime_row(d, row);
		python_rows(d, row->p);
		for (u32 i = 0; i < row->n_libs; i++)
			library_row(d, pid, &row->libs[i]);
		for (u32 i = row->n_obstacles; i < row->n_remarks; i++)
			remark_row(d, pid, row->remarks[i]);
	}
	hb_survey__free(s);
}
