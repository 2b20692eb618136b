/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The page's own text, made at build time from the files of this folder (scripts/mk/analysis.mk). */
#ifndef HB_HTML_EMBEDDED_H
#define HB_HTML_EMBEDDED_H

struct hb_blob {
	const char *text, *end;
	const char *sha256; /* base64, as a content security policy wants it */
};
extern const struct hb_blob hb_html_page, hb_html_style, hb_html_script;

#endif
