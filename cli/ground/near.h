/*
 * "Did you mean": the known word nearest to a misspelt one, by edit distance with swaps, if it is near enough to say. A
 * word that was begun is nearer than most, one that has an end of its own not too far; the shortest of equals
 * wins. A difference in case alone counts as one letter.
 */
#ifndef ETRACE_NEAR_H
#define ETRACE_NEAR_H

#include "macros.h"

struct near {
    struct str word;
    const char *best; /* NULL while nothing is near; borrowed from near_try()'s caller */
    unsigned distance, accepted;
};

struct near near_start(const char *word, size_t len);
void near_try(struct near *n, const char *candidate);

#endif
