/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Speed of light, as members of an analysis; docs/analyze-json.md. */
#include "analysis/report/analyze_private.h"

static void put_known(struct hb_json *j, const char *key, double v, int decimals)
{
	hb_json__key(j, key);
	if (v > 0)
		hb_json__real(j, v, decimals);
	else
		hb_json__null(j);
}

static void put_place(struct hb_json *j, const struct hb_analysis *a, u32 device)
{
	const struct hb_device *v = hb_devices__at(a->d, device);

	hb_json__ku64(j, "device", v->number);
	hb_json__ku64(j, "pid", v->pid);
}

static void put_sizes(struct hb_json *j, const struct hb_roof_row *r)
{
	hb_json__kobject(j, "size");
	for (unsigned z = 0; z < HB_ROOF_SIZE_COUNT; z++)
		if (r->in.size[z] > 0)
			hb_json__kreal(j, hb_roof__size_name(z), r->in.size[z], 0);
	hb_json__end(j);
}

static void put_types(struct hb_json *j, const struct hb_roof_row *r)
{
	const struct {
		const char *key;
		u8 type;
	} types[] = {{"in", r->in.in}, {"weight", r->in.weight}, {"out", r->in.out}, {"state", r->in.state}};

	hb_json__kobject(j, "types");
	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (types[i].type)
			hb_json__kstring(j, types[i].key, hb_dtype__name(types[i].type));
	hb_json__end(j);
}

static void put_row(struct hb_doc *d, const struct hb_analysis *a, const struct hb_roof_row *r)
{
	struct hb_json *j = d->j;
	char size[96];

	hb_json__object(j);
	put_place(j, a, r->device);
	hb_json__kstring(j, "name", r->name);
	hb_json__kstring(j, "basis", hb_roof__basis(r->basis));
	hb_json__kstring(j, "model", hb_roof__formula(r->kind)->name);
	hb_json__kstring(j, "shape", hb_roof_row__size(r, size, sizeof(size)));
	put_sizes(j, r);
	put_types(j, r);
	hb_doc__known(d, "kernel", r->kernel);
	hb_json__ku64(j, "count", r->dur.count);
	hb_json__ku64(j, "total_ns", r->dur.total);
	hb_json__ku64(j, "min_ns", r->dur.min);
	hb_json__ku64(j, "p50_ns", r->dur.p50);
	hb_json__ku64(j, "p95_ns", r->dur.p95);
	hb_json__ku64(j, "max_ns", r->dur.max);
	hb_json__kreal(j, "mean_ns", r->dur.mean, 3);
	hb_json__kreal(j, "flops", r->flops, 0);
	hb_json__kreal(j, "bytes", r->bytes, 0);
	hb_json__kreal(j, "tflops_per_s", r->tflops, 6);
	hb_json__kreal(j, "tb_per_s", r->tbytes, 6);
	put_known(j, "light_ns", r->light_ns, 1);
	put_known(j, "of_light", hb_roof_row__light(r), 4);
	put_known(j, "of_ceiling", hb_roof_row__ceiling(r), 4);
	hb_json__kstring(j, "bound", r->bound ? hb_roof__bound(r->bound) : NULL);
	hb_json__kbool(j, "model_error", r->wrong);
	hb_json__end(j);
}

static void put_devices(struct hb_doc *d, const struct hb_analysis *a)
{
	const struct hb_roof_device *v;
	struct hb_json *j = d->j;

	hb_json__karray(j, "roofline_devices");
	for (u32 i = 0; (v = hb_roofline__device(a->roofline, i)); i++) {
		if (!hb_devices__at(a->d, i)->n_ops)
			continue;
		hb_json__object(j);
		put_place(j, a, i);
		hb_json__kstring(j, "name", v->name);
		hb_json__kstring(j, "peaks", v->peak ? v->peak->table : NULL);
		if (v->peak) {
			hb_json__ku64(j, "line", v->peak->line);
			for (unsigned t = 1; t < HB_RATES; t++)
				if (v->peak->tflops[t] > 0)
					hb_json__kreal(j, hb_rate__name(t), v->peak->tflops[t], 3);
			put_known(j, "hbm", v->peak->memory, 3);
			put_known(j, "link", v->peak->link, 3);
		}
		hb_json__kbool(j, "other_size", v->other);
		hb_json__end(j);
	}
	hb_json__end(j);
}

static void put_rest(struct hb_doc *d, const struct hb_analysis *a)
{
	u32 n;
	const struct hb_roof_rest *r = hb_roofline__rest(a->roofline, &n);

	hb_json__karray(d->j, "roofline_no_model");
	for (u32 i = 0; i < hb_doc__shown(d, n); i++) {
		hb_json__object(d->j);
		hb_json__kstring(d->j, "kernel", hb_doc__str(d, r[i].name));
		hb_doc__known(d, "operator", r[i].operator);
		hb_json__kstring(d->j, "reason", hb_roof__why(r[i].why));
		hb_json__ku64(d->j, "count", r[i].count);
		hb_json__ku64(d->j, "total_ns", r[i].total);
		hb_json__end(d->j);
	}
	hb_json__end(d->j);
	hb_doc__left(d, "roofline_no_model", n);
}

void hb_analysis__put_roofline(const struct hb_analysis *a, struct hb_doc *d)
{
	const struct hb_roof_counts *c = hb_roofline__counts(a->roofline);
	u32 n;
	const struct hb_roof_row *r = hb_roofline__rows(a->roofline, &n);

	hb_json__karray(d->j, "roofline");
	for (u32 i = 0; i < hb_doc__shown(d, n); i++)
		put_row(d, a, &r[i]);
	hb_json__end(d->j);
	hb_doc__left(d, "roofline", n);
	put_rest(d, a);
	put_devices(d, a);
	hb_json__kobject(d->j, "roofline_counts");
	hb_json__ku64(d->j, "kernels", c->kernels);
	hb_json__ku64(d->j, "kernels_ns", c->ns);
	hb_json__ku64(d->j, "modelled", c->modelled);
	hb_json__ku64(d->j, "modelled_ns", c->modelled_ns);
	hb_json__ku64(d->j, "steps", c->steps);
	hb_json__ku64(d->j, "steps_as_the_model", c->planned);
	hb_json__ku64(d->j, "steps_otherwise", c->unplanned);
	hb_json__end(d->j);
}
