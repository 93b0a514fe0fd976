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
    uint64_t tick, tracee;
    const struct fun **funs; /* by id, ETW_FUNCTIONS entries; NULL: undefined */
    struct wire_atoms atoms;
    const struct tracee *who; /* cache of `tracee`, valid while the tracee table has this generation */
    uint32_t who_generation;
    /* The terms of a frame in which an atom id has two meanings, with all atoms spelled out. */
    struct buf spelled;
    uint64_t lost[ETW_LOSSES];
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

/* Reads the head of the next frame without a change of the ring's state. */
bool decode_peek(const struct decode_ring *r, const uint8_t *at, const uint8_t *end, struct decode_head *ret,
                 struct decode_error *bad);

/*
 * Decodes the frame that decode_peek() read. Fills all of `e` except the times, and except what call pairing and specs
 * add later (NULL, -1 or 0). For ETW_LOST, e->lost points to the ring's cumulative counters.
 */
bool decode_frame(struct decode_ring *r, struct decode_node *n, const uint8_t *at, const struct decode_head *head,
                  struct event *e, struct decode_error *bad);

/*
 * Writes what the frames of the ring have defined. decode_ring_load() reads it into a new ring; it takes the functions
 * by their serial numbers from `funs`.
 */
void decode_ring_save(const struct decode_ring *r, struct buf *to);
bool decode_ring_load(struct decode_ring *r, const struct fun *const *funs, size_t nfuns, struct state_in *in);

#endif
