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

#define ENCODER_WORDS 1024

struct encoder {
    struct enif_environment_t *env; /* the callback's */
    uint64_t tick;                  /* when the event began */
    struct encode_limits limits;
    uint32_t flags; /* of the frame, by what was encoded: ETW_F_CUT and others */
    uint32_t copied;  /* bytes of binaries that were read since one was examined; more than one event adds to it */
    uint32_t steps;   /* that the event of tick `stepped` has made, see encode.c */
    uint64_t stepped;
    /*
     * Where it is set, an atom becomes its place in this table, with ETW_T_ATOM: encode_anew() makes of it what a ring understands.
     * The names are empty then. What has no place any more is counted alike.
     */
    uint64_t *words;
    uint32_t word_count;
    struct intern names;
};

#endif
