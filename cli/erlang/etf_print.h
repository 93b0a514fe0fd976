/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints terms of the external format within limits, for messages and logs. The text cannot be read back: it leaves out
 * what exceeds a limit.
 */
#ifndef ETRACE_ETF_PRINT_H
#define ETRACE_ETF_PRINT_H

#include "../ground/buf.h"
#include "etf.h"

struct etf_limits {
    unsigned depth; /* the most levels of containers in containers */
    size_t items;   /* the most items of one container */
    size_t text;    /* the most bytes of one string, binary or, without `quotes`, atom */
    size_t all;     /* the most bytes of the whole text, except for brackets and marks after the last item */
    bool quotes;    /* quote atoms, strings and binaries as Erlang does, and print the term that a binary encodes */
};

/* Reads one term and appends it. */
void etf_print(struct buf *to, struct etf *r, const struct etf_limits *limits);

#endif
