/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#include "capture/probes/plan_private.h"
#include "base/map.h"
#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_launch(u32 cls)
{
	return cls == HB_CLASS_LAUNCH || cls == HB_CLASS_GRAPH;
}

/* Does this process have a probe-able function of that class there? */
static bool has(const struct hb_plan *p, const struct hb_choice *c, u32 family, u32 layer, int cls)
{
	for (u32 i = 0; i < c->n_libs; i++) {
		const struct hb_lib *l = &p->libs[c->libs[i]];

		for (u32 k = 0; k < l->n; k++) {
			const struct hb_row *r = l->cands[k].row;

			if (l->cands[k].family == family && r->layer == layer && (cls < 0 || r->cls == cls))
				return true;
		}
	}
	return false;
}

int hb_plan__layer_of(const struct hb_plan *p, const struct hb_choice *c, u32 family, u32 cls)
{
	u32 first = is_launch(cls) && !c->moved[cls] ? HB_LAYER_DRIVER : HB_LAYER_RUNTIME;
	u32 second = first == HB_LAYER_DRIVER ? HB_LAYER_RUNTIME : HB_LAYER_DRIVER;

	if (p->o.layers == HB_LAYERS_RUNTIME || p->o.layers == HB_LAYERS_DRIVER) {
		first = p->o.layers == HB_LAYERS_RUNTIME ? HB_LAYER_RUNTIME : HB_LAYER_DRIVER;
		second = first;
	}
	if (has(p, c, family, first, (int)cls))
		return (int)first;
	return has(p, c, family, second, (int)cls) ? (int)second : -1;
}

/* The answers of hb_plan__layer_of for all families and classes: candidates are many, answers are few. */
struct layers {
	int8_t of[HB_MAX_FAMILIES][HB_CLASS_COUNT];
};

static void ask_layers(const struct hb_plan *p, const struct hb_choice *c, struct layers *l)
{
	for (u32 f = 0; f < p->n_families; f++)
		for (u32 cls = 0; cls < HB_CLASS_COUNT; cls++)
			l->of[f][cls] = (int8_t)hb_plan__layer_of(p, c, f, cls);
}

static bool is_timed(const struct hb_plan *p, const struct hb_row *r)
{
	return p->o.timed >> r->cls & 1;
}

static bool wanted(const struct hb_plan *p, const struct hb_choice *c, const struct hb_cand *k,
		   const struct layers *l)
{
	const struct hb_row *r = k->row;

	if (p->o.layers == HB_LAYERS_BOTH || r->layer == HB_LAYER_LIBRARY || !hb_plan__layered(p, k->family))
		return true;
	return l->of[k->family][r->cls] == r->layer;
}

static u8 pick(const struct hb_plan *p, const struct hb_choice *c, const struct hb_cand *k, bool force_return)
{
	bool ret = (k->row->ret || force_return) && k->row->nothrow && k->entry && c->returns;

	return ret && !p->o.no_returns ? HB_PICK_RETURN : HB_PICK_ENTRY;
}

/* `both` shows driver calls inside their runtime call, so the runtime call must have an end. */
static bool needs_end(const struct hb_plan *p, const struct hb_row *r)
{
	return p->o.layers == HB_LAYERS_BOTH && r->layer == HB_LAYER_RUNTIME;
}

/* Part of the arrival check: a runtime launch in a process whose launches are taken at the driver. */
static bool to_check(const struct hb_plan *p, const struct hb_cand *k, const struct layers *l)
{
	return p->o.layers == HB_LAYERS_AUTO && hb_plan__layered(p, k->family) && is_launch(k->row->cls) &&
	       k->row->layer == HB_LAYER_RUNTIME && l->of[k->family][k->row->cls] == HB_LAYER_DRIVER;
}

static int append(u32 **array, u32 *n, u32 *cap, int value)
{
	u32 *a;

	if (value < 0)
		return value;
	a = hb_plan__grow(*array, *n, cap, sizeof(*a));
	if (!a)
		return -ENOMEM;
	*array = a;
	a[(*n)++] = (u32)value;
	return 0;
}

/* Picks of one library: the regular ones, or those of the check. Returns how many, -ENOMEM. */
static int pick_lib(const struct hb_plan *p, const struct hb_choice *c, const struct hb_lib *lib,
		    const struct layers *l, bool check, u8 **picks)
{
	int n = 0;

	*picks = calloc(lib->n ? lib->n : 1, 1);
	if (!*picks)
		return -ENOMEM;
	for (u32 i = 0; i < lib->n; i++) {
		const struct hb_cand *k = &lib->cands[i];

		if (check ? !to_check(p, k, l) : !wanted(p, c, k, l))
			continue;
		(*picks)[i] = pick(p, c, k, check || needs_end(p, k->row) || is_timed(p, k->row));
		n++;
	}
	return n;
}

bool hb_plan__woken(const struct hb_plan *p, struct hb_choice *c, u32 file)
{
	const struct hb_plan_file *f = &p->files[file];
	bool any = false;

	for (u32 i = 0; i < f->n_sites; i++) {
		if (p->descs[f->sites[i].probe].flags & HB_PROBE_QUIET)
			continue;
		c->moved[f->sites[i].row->cls] = any = true;
	}
	return any;
}

static int choose_lib(struct hb_plan *p, struct hb_choice *c, u32 lib, const struct layers *l, bool check,
		      u64 salt)
{
	u8 *picks;
	int n = pick_lib(p, c, &p->libs[lib], l, check, &picks), file;

	if (n <= 0) {
		free(picks);
		return n;
	}
	file = hb_plan__file(p, lib, picks, check, salt);
	free(picks);
	if (check && !(file >= 0 && hb_plan__woken(p, c, (u32)file)))
		return append(&c->checks, &c->n_checks, &c->cap_checks, file);
	return append(&c->files, &c->n_files, &c->cap_files, file);
}

/* Hits are counted per probe id, and the check compares those of two libraries: processes with another set of
 * libraries must not share ids. */
static u64 salt_of(const struct hb_plan *p, const struct hb_choice *c, const struct layers *l)
{
	u64 salt = 0;
	bool check = false;

	for (u32 i = 0; i < c->n_libs; i++) {
		const struct hb_lib *lib = &p->libs[c->libs[i]];

		salt += hb_hash64(c->libs[i] + 1);
		for (u32 k = 0; k < lib->n && !check; k++)
			check = to_check(p, &lib->cands[k], l);
	}
	return check ? salt : 0;
}

int hb_plan__choose(struct hb_plan *p, struct hb_choice *c)
{
	struct hb_choice unmoved = *c; /* what was moved is added, it changes nothing else */
	struct layers l;
	u64 salt;
	int err = 0;

	memset(unmoved.moved, 0, sizeof(unmoved.moved));
	ask_layers(p, &unmoved, &l);
	salt = salt_of(p, c, &l);
	c->n_files = c->n_checks = 0;
	for (u32 i = 0; i < c->n_libs && !err; i++) {
		err = choose_lib(p, c, c->libs[i], &l, false, salt);
		if (!err)
			err = choose_lib(p, c, c->libs[i], &l, true, salt);
	}
	return err;
}

/* ---- words about it ---- */

/* Basename of the first library of a layer in this process; NULL: none. */
static const char *lib_name(const struct hb_plan *p, const struct hb_choice *c, u32 family, int layer)
{
	for (u32 i = 0; i < c->n_libs; i++) {
		const struct hb_lib *l = &p->libs[c->libs[i]];

		for (u32 k = 0; k < l->n; k++)
			if (l->cands[k].family == family && l->cands[k].row->layer == layer)
				return hb_text__basename(l->path);
	}
	return NULL;
}

/* "launch, graph" */
static u32 classes_at(const struct hb_plan *p, const struct hb_choice *c, u32 family, int layer, char *buf,
		      size_t size)
{
	size_t len = 0;
	u32 n = 0;

	buf[0] = 0;
	for (u32 cls = 0; cls < HB_CLASS_COUNT; cls++) {
		if (hb_plan__layer_of(p, c, family, cls) != layer || len >= size)
			continue;
		len += (size_t)snprintf(buf + len, size - len, "%s%s", n ? ", " : "",
					hb_word(HB_WORDS_CLASS, cls));
		n++;
	}
	return n;
}

static void explain_layers(struct hb_plan *p, const struct hb_choice *c, u32 family)
{
	const char *driver = lib_name(p, c, family, HB_LAYER_DRIVER);
	const char *runtime = lib_name(p, c, family, HB_LAYER_RUNTIME);
	char at_driver[160], at_runtime[160];
	u32 d = classes_at(p, c, family, HB_LAYER_DRIVER, at_driver, sizeof(at_driver));
	u32 r = classes_at(p, c, family, HB_LAYER_RUNTIME, at_runtime, sizeof(at_runtime));

	if (p->o.layers == HB_LAYERS_BOTH && driver && runtime)
		hb_plan__remark(p, "%s: both layers, %s and %s", p->families[family], driver, runtime);
	else if (d && r)
		hb_plan__remark(p, "%s: %s taken at the driver (%s); %s at the runtime (%s)",
				p->families[family], at_driver, driver, at_runtime, runtime);
	else if (d || r)
		hb_plan__remark(p, "%s: %s taken at the %s (%s)", p->families[family],
				d ? at_driver : at_runtime, d ? "driver" : "runtime", d ? driver : runtime);
}

static void explain_missing(struct hb_plan *p, const struct hb_choice *c, u32 family,
			    const struct hb_process *proc)
{
	const char *driver = lib_name(p, c, family, HB_LAYER_DRIVER);
	const char *name = p->families[family];

	if (lib_name(p, c, family, HB_LAYER_RUNTIME))
		return;
	if (driver && p->o.layers == HB_LAYERS_RUNTIME)
		hb_plan__remark(
		    p,
		    "no %s runtime library is mapped (linked statically, or not used), so --layers runtime "
		    "sees nothing of it: --layers auto covers it at the driver (%s)",
		    name, driver);
	else if (driver)
		hb_plan__remark(
		    p,
		    "no %s runtime library is mapped (linked statically, or not used): what it asks of %s "
		    "is covered there",
		    name, driver);
	else if (hb_plan__has_static(p, proc, name))
		hb_plan__remark(
		    p,
		    "%s has the %s runtime linked in statically, where its functions are not probed; "
		    "covered is what it asks of the driver library, once that is mapped",
		    proc->exe, name);
}

static void explain_confined(struct hb_plan *p, const struct hb_choice *c, const struct hb_process *proc)
{
	if (!c->returns && c->n_files)
		hb_plan__remark(
		    p,
		    "process %u (%s) is confined by seccomp and this kernel lets no return probe through "
		    "such a filter: its calls are recorded without duration and result",
		    proc->pid, proc->comm);
}

void hb_plan__explain(struct hb_plan *p, const struct hb_choice *c, const struct hb_process *proc)
{
	for (u32 f = 0; f < p->n_families; f++) {
		if (!hb_plan__layered(p, f))
			continue;
		explain_layers(p, c, f);
		explain_missing(p, c, f, proc);
	}
	explain_confined(p, c, proc);
}
