/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Options about the speed of light: the devices and the model, the same for every command that analyses. */
#ifndef HB_CLI_ROOFLINE_ARGS_H
#define HB_CLI_ROOFLINE_ARGS_H

#include "analysis/model/roofline.h"
#include "cli/args.h"

struct hb_roofline_args {
	struct hb_peaks *peaks;
	struct hb_llm *llm; /* NULL: not given */
	struct hb_roofline_opts o;
};

enum hb_roofline_key { HB_KEY_PEAKS = 0x500, HB_KEY_GPU, HB_KEY_MODEL, HB_KEY_TP };

/* Rows for an argp_option array. */
#define HB_ROOFLINE_OPTIONS(group)                                                                           \
	{"peaks",                                                                                            \
	 HB_KEY_PEAKS,                                                                                       \
	 "FILE",                                                                                             \
	 0,                                                                                                  \
	 "What devices can do at best, before the built-in ones (docs/roofline.md)",                         \
	 group},                                                                                             \
	    {"gpu",                                                                                          \
	     HB_KEY_GPU,                                                                                     \
	     "NAME",                                                                                         \
	     0,                                                                                              \
	     "What the devices are, where the window does not say: \"NVIDIA H200\"",                         \
	     group},                                                                                         \
	    {"model",                                                                                        \
	     HB_KEY_MODEL,                                                                                   \
	     "CONFIG.json",                                                                                  \
	     0,                                                                                              \
	     "The model that ran, by the config.json beside its weights: sizes of what graphs launch",       \
	     group},                                                                                         \
	{                                                                                                    \
		"tp", HB_KEY_TP, "N", 0, "Devices that share each layer of the model (default 1)", group     \
	}

/* The built-in peaks. 0 or -errno. */
int hb_cli__roofline_init(struct hb_roofline_args *a, struct hb_error *e);
void hb_cli__roofline_free(struct hb_roofline_args *a);
/* 0 when the key is one of them and was taken, ARGP_ERR_UNKNOWN, or an errno with a sentence. */
int hb_cli__roofline_option(int key, char *arg, struct hb_roofline_args *a, struct hb_error *e);

#endif
