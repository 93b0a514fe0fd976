/*
 * What encoding needs beside the terms: the names of the ring, how much of an event is captured, and what came of it. One in each
 * lane, its producer's; begun anew with each event.
 */
#ifndef ETRACE_ENCODER_H
#define ETRACE_ENCODER_H

#include <stdint.h>

#include "intern.h"

/* What is captured of an event. */
struct encode_limits {
    uint32_t bytes, depth, items; /* items: elements of a list, tuple or map */
};

struct encoder {
    struct enif_environment_t *env; /* the callback's */
    uint64_t tick;                  /* when the event began */
    struct encode_limits limits;
    uint32_t flags; /* of the frame, by what was encoded: ETW_F_CUT and others */
    struct intern names;
};

#endif
