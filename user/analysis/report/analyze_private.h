/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What an analysis is made of. analyze.c builds it, analyze_text.c and analyze_json.c print it. */
#ifndef HB_ANALYZE_PRIVATE_H
#define HB_ANALYZE_PRIVATE_H

#include "analysis/model/device.h"
#include "analysis/report/analyze.h"
#include "analysis/report/verdict.h"

struct hb_analysis {
	struct hb_window *w;
	struct hb_analysis_opts o;
	struct hb_model *m;
	struct hb_devices *d;
	struct hb_verdict verdict;
};

#endif
