/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defines the state of an encoder: the names that its ring has defined, the limits of an event, and the flags of the
 * current frame. Only the producer thread of its lane uses it. The flags are reset with each event.
 */
#ifndef ETRACE_ENCODER_H
#define ETRACE_ENCODER_H

#include <stdint.h>

#include "intern.h"

/* Limits of what is captured of one event. */
struct encode_limits {
    uint32_t bytes, depth, items; /* items: elements of a list, tuple or map */
};

#define ENCODER_WORDS 1024

struct encoder {
    struct enif_environment_t *env; /* the environment of the callback */
    uint64_t tick;                  /* when the event began */
    struct encode_limits limits;
    uint32_t flags;  /* flags of the current frame: ETW_F_CUT and others */
    uint32_t copied; /* bytes of binaries read since the last examined one, over several events (encode.c) */
    uint32_t steps;  /* steps of the event with tick `stepped` (encode.c) */
    uint64_t stepped;
    /*
     * Not NULL: the encoder writes an atom as ETW_T_ATOM with its index in this table, and encode_anew() later replaces
     * the index with an id of a ring. `names.atoms` stays empty. word_count includes atoms that did not fit the table.
     */
    uint64_t *words;
    uint32_t word_count;
    struct intern names;
};

#endif
