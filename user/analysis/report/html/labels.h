/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of a page's data, each once: pieces and frames carry its number. */
#ifndef HB_HTML_LABELS_H
#define HB_HTML_LABELS_H

#include "base/json.h"
#include "base/map.h"
#include "schema/schema.h"

struct hb_labels;

struct hb_labels *hb_labels__new(void); /* NULL: out of memory */
void hb_labels__free(struct hb_labels *t);
/* All texts together; names beyond are all "...". A page stays small even where each thing has a name of its
 * own. */
#define HB_LABELS_BYTES (2u << 20)

/* Number of a text, cut to 160 bytes in its middle; 0 is "" and, when out of memory, every other. */
u32 hb_labels__add(struct hb_labels *t, const char *text);
bool hb_labels__oom(const struct hb_labels *t);
/* Member `key`: an array of all of them in order of number. */
void hb_labels__put(const struct hb_labels *t, struct hb_json *j, const char *key);

#endif
