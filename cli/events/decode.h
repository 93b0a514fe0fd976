/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes the frames of one ring into events.
 *
 * Each frame must be decoded exactly once and in order, because frames define names and contain only differences to
 * earlier ones. Frames are untrusted: an error names the malformed byte. Decoding does not allocate in the steady
 * state.
 */
#ifndef ETRACE_DECODE_H
#define ETRACE_DECODE_H

#include "names.h"

struct decode_ring {
    uint32_t id;
    uint64_t tick, tracee;   /* the tick and the process or port of the frame that was decoded last */
    const struct fun **funs; /* ETW_FUNCTIONS entries, by id; an entry is NULL until a frame defines it */
    struct wire_atoms atoms;
    const struct tracee *who; /* the table's entry for `tracee`; valid while the table has the generation below */
    uint32_t who_generation;
    /* The terms of the last frame in which one atom id had two meanings; all their atoms are spelled out. */
    struct buf spelled;
    uint64_t lost[ETW_LOSSES]; /* the counters of the last ETW_LOST */
    struct etw_tally tally;
};

struct decode_head {
    uint32_t bytes;
    uint8_t kind, flags;
    uint64_t tick;
};

/* Shared by all rings of a node. */
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

/* Reads the head of the next frame, and leaves the ring's state unchanged. */
bool decode_peek(const struct decode_ring *r, const uint8_t *at, const uint8_t *end, struct decode_head *ret,
                 struct decode_error *bad);

/*
 * Decodes the frame whose head decode_peek() has read. Leaves the times of `e` to the caller. Sets the members that
 * call pairing and specs fill later to NULL, -1 or 0. For ETW_LOST, e->lost points to the ring's cumulative counters.
 */
bool decode_frame(struct decode_ring *r, struct decode_node *n, const uint8_t *at, const struct decode_head *head,
                  struct event *e, struct decode_error *bad);

/*
 * decode_ring_save() writes the names and counters that the frames of the ring have defined so far. decode_ring_load()
 * reads them into a new ring; funs[N] is the function that had the serial number N when the ring was saved.
 */
void decode_ring_save(const struct decode_ring *r, struct buf *to);
bool decode_ring_load(struct decode_ring *r, const struct fun *const *funs, size_t nfuns, struct state_in *in);

#endif
