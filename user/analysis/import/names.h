/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of a trace, each kept once, with what else goes by it: a location, a probe. Numbers start at 1; 0 is
 * none. */
#ifndef HB_IMPORT_NAMES_H
#define HB_IMPORT_NAMES_H

#include "analysis/import/text.h"
#include "window/window.h"

struct hb_names;

struct hb_names *hb_names__new(void); /* NULL: out of memory */
void hb_names__free(struct hb_names *n);

/* Number of a text; 0: out of memory, or empty. */
u32 hb_names__id(struct hb_names *n, struct hb_piece text);
const char *hb_names__text(const struct hb_names *n, u32 id); /* "" for 0 */

/* The name of a Python function as a location; of an operator. 0: out of memory. */
u32 hb_names__python(struct hb_names *n, u32 name);
u32 hb_names__operator(struct hb_names *n, u32 name);
/* The name of a call as a probe, in this layer unless the tables know the name. `api`, `cls`: from the trace,
 * where it says so (one of our own), else empty. 0: out of memory. */
u32 hb_names__probe(struct hb_names *n, u32 name, enum hb_layer layer, struct hb_piece api,
		    struct hb_piece cls);
enum hb_layer hb_names__layer(const struct hb_names *n, u32 probe);
enum hb_class hb_names__class(const struct hb_names *n, u32 probe);

/* Gives all of it to the writer; after that the numbers below. 0 or -ENOMEM. */
int hb_names__write(struct hb_names *n, struct hb_window_writer *w);
u32 hb_names__string(const struct hb_names *n, u32 id);	  /* in the window's table */
u32 hb_names__location(const struct hb_names *n, u32 id); /* in the window's table */

#endif
