/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defines the state of an encoder: the names that its ring has defined, the limits for an event, and the flags of the
 * current frame. Only the thread of the encoder's lane uses it. Each event resets the flags.
 */
#ifndef ETRACE_ENCODER_H
#define ETRACE_ENCODER_H

#include <stdint.h>

#include "intern.h"

/* How much of the terms of one event is encoded. */
struct encode_limits {
    uint32_t bytes, depth, items; /* items: elements of a list, tuple or map */
};

#define ENCODER_WORDS 1024

struct encoder {
    struct enif_environment_t *env; /* the environment of the callback */
    uint64_t tick;                  /* when the event began */
    struct encode_limits limits;
    uint32_t flags;  /* flags of the current frame: ETW_F_CUT and others */
    uint32_t copied; /* bytes of binaries that were read since examine_binary(), in all events (encode.c) */
    uint32_t steps;  /* steps of the event with tick `stepped` (encode.c) */
    uint64_t stepped;
    /*
     * NULL, or a table of atoms for terms that are not written to a ring yet. With a table, the encoder writes an atom
     * as ETW_T_ATOM with its index in the table, and `names.atoms` stays empty. encode_anew() later replaces the index
     * with an id of a ring. word_count includes atoms that did not fit the table.
     */
    uint64_t *words;
    uint32_t word_count;
    struct intern names;
};

#endif
