/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs results with calls, and ends with beginnings of garbage collections and time slices.
 *
 * Each process has a stack of open calls whose result was requested. A result closes the newest open call of its
 * function. The results of the calls above that one were lost, so these calls count as incomplete.
 *
 * When a node loses events, its open calls can no longer be paired with certainty: their results have no duration and
 * count as incomplete. Reasons that drop whole calls are exempt (event_loss_tears()). The table is bounded; the oldest
 * open call is dropped first.
 *
 * After a pause of a node (pairing_resume()), a result has a duration if its call began after the pause, or if no other
 * open call of the process can be meant. Other results have no duration and count as incomplete.
 *
 * Collections and time slices are paired by process; a table in pairing.c lists what begins and what ends.
 */
#ifndef ETRACE_PAIRING_H
#define ETRACE_PAIRING_H

#include "../events/event.h"

enum call_fate {
    CALL_SHOWN,
    CALL_AROUND, /* fails the filters, but is shown because an event inside of it passes */
    CALL_FILTERED,
    CALL_HELD, /* undecided until the result arrives */
};

/* The call of the current result. Borrowed until the next event. */
struct event_call {
    int64_t mono_ns, wall_ns;
    uint64_t number;     /* event.number of the call */
    struct event *event; /* copy of the call; NULL: not kept */
    enum call_fate fate;
    const struct spec *spec; /* the spec of the call */
    bool complete;           /* the pair is certain, so the result has a duration */
};

struct pairing_options {
    size_t max; /* limit for the open calls of all processes */
    bool keep;  /* keep copies of calls, not only their times (pairing_keep()) */
    size_t keep_bytes;
    /* Returns whether a call reports its result: 0 no; 1 yes; 2 perhaps, so that a missing result is not counted. */
    int (*wants_return)(void *ctx, const struct event *e);
    /* Gets a held call that is removed before a decision, so it was never shown. */
    void (*dropped)(void *ctx, const struct event *call);
    void *ctx;
};

struct pairing;

struct pairing *pairing_new(const struct pairing_options *o);
void pairing_free(struct pairing *c);

void pairing_keep(struct pairing *c, bool keep);
/*
 * `scoped`: the trace shows events only inside of calls, so nothing that began in one outermost call ends in the next.
 */
void pairing_scope(struct pairing *c, bool scoped);

/*
 * Returns the kinds (bit K: kind K) of events that begin what events of `kinds` end, except calls. The durations of the
 * ends need these events.
 */
uint64_t pairing_begin(uint64_t kinds);

/* Fills call, dur_ns, depth and expects_return of the event. */
void pairing_event(struct pairing *c, struct event *e);

/*
 * Stores the fate of the call that pairing_event() processed last. The call's result gets the fate in event_call.fate.
 */
void pairing_fate(struct pairing *c, enum call_fate fate);

/*
 * Calls show() for the open calls around the event that were not shown yet, outermost first, and marks them
 * CALL_AROUND. `was` is their previous fate. Skips calls that have no copy.
 */
void pairing_around(struct pairing *c, const struct event *e,
                    void (*show)(void *ctx, const struct event *call, enum call_fate was), void *ctx);

/* Returns true if the latest call has a copy. options.dropped() can only be called for calls with a copy. */
bool pairing_kept(const struct pairing *c);

/* A call that has not returned. */
struct pairing_open {
    const struct fun *fun;
    int arity;
    uint64_t tracee;
    int64_t mono_ns;
};

/* Calls show() for the open calls of a node that certainly report their results and have not returned. */
void pairing_each_open(const struct pairing *c, unsigned node, void (*show)(void *ctx, const struct pairing_open *call),
                       void *ctx);

/* Forgets the open calls of a restarted node, or of all nodes with -1, and counts them as incomplete. */
void pairing_forget(struct pairing *c, int node);

/* Notes that the node has resumed the tracing of calls after a pause, in which it missed the results of open calls. */
void pairing_resume(struct pairing *c, const struct event_node *node);

uint64_t pairing_incomplete(const struct pairing *c);

/*
 * Marks a function of a node as endless: it calls itself in a loop. Its open calls are closed and not counted as
 * incomplete, and its later calls expect no result. Held calls are dropped, because a condition on a result that never
 * arrives does not hold.
 */
void pairing_end(struct pairing *c, int node, struct raw module, struct raw function, int64_t arity);
/* Returns true if the event's function is endless. */
bool pairing_ended(const struct pairing *c, const struct event *e);
uint64_t pairing_endless(const struct pairing *c); /* returns the number of endless functions */

#endif
