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
    unsigned depth; /* limit of containers in containers */
    size_t items;   /* limit of items of one container */
    size_t text;    /* bytes of one atom, string or binary */
    size_t all;     /* limit of bytes of the whole text; the last item may exceed it by brackets and marks */
    bool quotes; /* print atoms, strings and binaries as Erlang does, and binaries that contain a term as that term */
};

/* Reads one term and appends it. */
void etf_print(struct buf *to, struct etf *r, const struct etf_limits *limits);

#endif
