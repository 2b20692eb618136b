/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A finished token waits for a timer, a loop or a backlog before it is sent. No window holds the records of
 * this yet. */
#include "analysis/patterns/patterns.h"

HB_PATTERN(p41_token_held) = {
    .id = "P41",
    .layer = "frontend",
    .title = "token held at ingress or egress",
    .rank = HB_RANK_OWN,
    .needs = HB_NEED_REQUEST | HB_NEED_NET,
    .rule = "time from the step that made a token to its socket write is long against the step",
    .fix = "batch timer to 0, more workers, smaller pieces",
    .ref = "ray-project/ray#59681 (64.8 to 26.3 ms); sgl-project/sglang#34740",
    .traps = "a slow reader (P48)",
    .settle = "wake edges of the front end",
};
