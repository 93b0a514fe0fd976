/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Did you mean": finds the known word nearest to a misspelt one, by edit distance with swaps, if it is near enough to
 * suggest.
 *
 * A common beginning of three bytes or more also counts: a candidate that continues the word has at most distance 1,
 * and a candidate that is a prefix of the word is always near enough. A difference in case alone has distance 1. The
 * shortest of equally near candidates wins.
 */
#ifndef ETRACE_NEAR_H
#define ETRACE_NEAR_H

#include "macros.h"

struct near {
    struct str word;
    const char *best; /* the nearest candidate, borrowed from the caller of near_try(); NULL: none is near enough */
    unsigned distance, accepted;
};

struct near near_start(const char *word, size_t len);
void near_try(struct near *n, const char *candidate);

#endif
