/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds a word to suggest for a misspelt one: the known word with the smallest edit distance (with swaps), if that is
 * small enough.
 *
 * If the misspelt word has at least three bytes and the candidate begins with it, the distance is at most 1. If the
 * candidate has at least three bytes and the misspelt word begins with it, the candidate is always near enough. A
 * difference only in case has distance 1. The shortest of equally near candidates wins.
 */
#ifndef ETRACE_NEAR_H
#define ETRACE_NEAR_H

#include "macros.h"

struct near {
    struct str word;
    const char *best;            /* the nearest candidate so far, borrowed from the caller of near_try(), or NULL */
    unsigned distance, accepted; /* the distance of `best`, and the largest distance that is near enough */
};

struct near near_start(const char *word, size_t len);
void near_try(struct near *n, const char *candidate);

#endif
