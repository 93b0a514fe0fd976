/*
 * Frames to events: the state of one ring, and the step from one frame to the next.
 *
 * Frames of a ring are decoded once each and in their order, for they define names and tell only differences. Nothing
 * in them is trusted: what is wrong is said with its place. In the steady state a step allocates nothing.
 */
#ifndef ETRACE_DECODE_H
#define ETRACE_DECODE_H

#include "names.h"

struct decode_ring {
    uint32_t id;
    uint64_t tick, tracee;
    const struct fun **funs; /* ETW_FUNCTIONS of them, NULL: not defined */
    struct wire_atoms atoms;
    const struct tracee *who; /* of `tracee`, while the generation of the table of tracees is the same */
    uint32_t who_generation;
    struct buf spelled;       /* terms of a frame whose ids stand for two names each */
    uint64_t lost[ETW_LOSSES];
};

struct decode_head {
    uint32_t bytes;
    uint8_t kind, flags;
    uint64_t tick;
};

/* What the rings of a node share. */
struct decode_node {
    struct event_node *node;
    struct funs *funs;
    struct tracees tracees;
};

struct decode_error {
    const uint8_t *at;
    const char *why;
};

void decode_ring_init(struct decode_ring *r, uint32_t id);
void decode_ring_release(struct decode_ring *r);

/* The beginning of the next frame, without taking it. */
bool decode_peek(const struct decode_ring *r, const uint8_t *at, const uint8_t *end, struct decode_head *ret,
                 struct decode_error *bad);

/*
 * Takes the frame that decode_peek() saw. Fills all of e but the times and what comes from pairing calls and from specs
 * (these are NULL, -1, 0). e->lost of ETW_LOST are the ring's counters as they stand in the frame.
 */
bool decode_frame(struct decode_ring *r, struct decode_node *n, const uint8_t *at, const struct decode_head *head,
                  struct event *e, struct decode_error *bad);

#endif
