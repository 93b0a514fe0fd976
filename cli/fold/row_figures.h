/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the figures of an ETW_ROW frame: events that the node has counted by a key (nif/rows.h). */
#ifndef ETRACE_ROW_FIGURES_H
#define ETRACE_ROW_FIGURES_H

#include "../erlang/term_wire.h"

/* Reads the binary of an ETW_ROW. Returns its buckets, whose numbers are in range. NULL: malformed or cut. */
static inline const uint8_t *row_figures(const uint8_t *at, struct etw_row *ret)
{
    struct etw_bucket b;
    uint64_t buckets = 0;

    if (*at != ETW_T_BIN || wire_u32(at + 9) < sizeof(*ret) || wire_u64(at + 1) != wire_u32(at + 9))
        return NULL;
    const uint8_t *first = at + 13 + sizeof(*ret);
    memcpy(ret, at + 13, sizeof(*ret));
    for (size_t i = 0; i < ETW_ROW_VALUES; i++)
        buckets += ret->buckets[i];
    if (buckets * sizeof(b) != wire_u32(at + 9) - sizeof(*ret))
        return NULL;
    for (uint64_t i = 0; i < buckets; i++) {
        memcpy(&b, first + i * sizeof(b), sizeof(b));
        if (b.bucket >= ETW_BUCKETS)
            return NULL;
    }
    return first;
}

#endif
