/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A plan file: what a further window should record to settle what the first one left open. `analyze
 * --plan-out` writes it, a person approves it, `trace --plan` records by it. JSON; docs/plans.md describes
 * it.
 *
 * Its contents have a canonical text (everything but the approval) and a hash of that. An approval is of one
 * hash: whatever is changed afterwards, it is no longer approved.
 */
#ifndef HB_PLANFILE_H
#define HB_PLANFILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"
#include "base/sha256.h"
#include "schema/schema.h"

#define HB_PLANFILE_VERSION   1
#define HB_PLANFILE_SIZE      (256U << 10) /* bytes of a file, at most */
#define HB_PLANFILE_TEXT      1023	   /* bytes of one text */
#define HB_PLANFILE_PROCESSES 128
#define HB_PLANFILE_OPTIONS   192
#define HB_PLANFILE_REASONS   64
#define HB_PLANFILE_COSTS     64
#define HB_PLANFILE_SIGNATURE 64 /* lines */

struct hb_planfile_process { /* as recorded: start tells a reused pid apart */
	u64 pid;
	u64 start_ns; /* monotonic */
	char *name;   /* of its program; NULL: not known */
};

struct hb_planfile_option { /* of `trace`, without its dashes; value "" for one that takes none */
	const char *name;
	char *value;
};

struct hb_planfile_reason { /* which finding is open, and what would settle it; texts may be NULL */
	char *pattern, *title, *confidence, *why, *records, *settle;
};

struct hb_planfile_cost {
	char *what;
	bool known;
	u64 rate;	   /* hits per second, as the first window counted them; 0: not a matter of hits */
	u64 price_ns;	   /* of one */
	u64 ns_per_s;	   /* CPU time per second of the window; only when known */
	u64 most_ns_per_s; /* not known, but no more than this; 0: no such limit is known either */
	char *basis;	   /* where the numbers are from, or why there are none */
};

struct hb_approval {
	char *plan;				/* hash that was approved; NULL: there is no approval */
	char *by, *host, *at, *method;		/* at: UTC, "2026-11-30T09:00:00Z"; method: "yes" or "ssh" */
	u64 uid;				/* who wrote it */
	char *machine, *boot;			/* "yes": where it is valid */
	char *signature[HB_PLANFILE_SIGNATURE]; /* "ssh": lines */
	u32 n_signature;
};

struct hb_planfile {
	u64 version;
	char *tool; /* that made it */
	char *window_id, *window_file, *window_host;
	u64 window_start_ns, window_end_ns; /* monotonic */
	char *boot;			    /* id of the boot in which it was recorded */
	struct hb_planfile_process process[HB_PLANFILE_PROCESSES];
	u32 n_processes;
	struct hb_planfile_option
	    option[HB_PLANFILE_OPTIONS]; /* in the order of hb_planfile__option_name() */
	u32 n_options;
	struct hb_planfile_reason reason[HB_PLANFILE_REASONS];
	u32 n_reasons;
	struct hb_planfile_cost cost[HB_PLANFILE_COSTS];
	u32 n_costs;
	struct hb_approval approval;
};

struct hb_planfile *hb_planfile__new(void); /* NULL: out of memory */
void hb_planfile__free(struct hb_planfile *p);

/* A text for a plan: cleaned, and cut where it is too long. The caller's; NULL: out of memory, or NULL given.
 */
char *hb_planfile__text(const char *s);

/* ---- what may be recorded ---- */

/* Names of the options that a plan may hold, i-th; NULL at the end. */
const char *hb_planfile__option_name(u32 i);
/* Adds an option; one that is no list replaces its value, a list leaves out what it has already. -EINVAL: no
 * option of a plan, or too long or with control characters; -E2BIG: too many; -ENOMEM. */
int hb_planfile__set(struct hb_planfile *p, const char *name, const char *value);
/* Value of an option that is no list; NULL: not there. */
const char *hb_planfile__get(const struct hb_planfile *p, const char *name);

/* ---- the file ---- */

/* From text. NULL with one sentence (HB_EXIT_USAGE): no plan, cut off, a member that there is none of, twice,
 * missing, or of another type. `name` is for the sentence. */
struct hb_planfile *hb_planfile__parse(const char *name, const char *text, size_t size, struct hb_error *e);

struct hb_planfile_owner { /* of the file as it was read */
	u64 uid;
	u32 mode; /* permission bits */
};
/* Reads a file; `owner` may be NULL. Sentences as above, and those of files that cannot be read. */
struct hb_planfile *hb_planfile__read(const char *path, struct hb_planfile_owner *owner, struct hb_error *e);
/* Writes it, whole or not at all; an existing file is replaced only with `force`. 0 or -errno with a
 * sentence. */
int hb_planfile__write(const struct hb_planfile *p, const char *path, bool force, struct hb_error *e);
/* JSON, indented; 0 or -errno. */
int hb_planfile__print(const struct hb_planfile *p, FILE *out);

/* SHA-256 of the canonical text. 0 or -ENOMEM. */
int hb_planfile__hash(const struct hb_planfile *p, char hash[HB_SHA256_TEXT]);

/* ---- approval ---- */

struct hb_planfile_by {
	const char *key;  /* for ssh-keygen -Y sign -f; NULL: without a key, valid on this machine only */
	const char *name; /* who; NULL: the user that runs this, or sudo's */
};
/* Approves the plan as it is; an approval there was is replaced. 0 or -errno with a sentence. */
int hb_planfile__approve(struct hb_planfile *p, const struct hb_planfile_by *by, struct hb_error *e);

#define HB_PLANFILE_WHO 2400 /* three texts */
/* Whether it is approved, here and as it is: 0 and in `who` by whom and how, or -EACCES with a sentence
 * (HB_EXIT_TARGET) that says why not and what to do. `path` is for the sentence; `owner`: of the file;
 * `signers`: allowed signers as in ssh-keygen(1), NULL: ~/.ssh/allowed_signers. */
int hb_planfile__check(const struct hb_planfile *p, const char *path, const struct hb_planfile_owner *owner,
		       const char *signers, char who[HB_PLANFILE_WHO], struct hb_error *e);

/* Ids of this boot and this machine into buf (>= 64 bytes), "" when not known; buf is returned. */
char *hb_planfile__boot(char *buf, size_t size);
char *hb_planfile__machine(char *buf, size_t size);

#endif
