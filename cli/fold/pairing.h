/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pairs results with calls, and ends with beginnings of garbage collections and time slices.
 *
 * Each process has a stack of open calls whose result was requested. A result closes the newest open call of its
 * function. If other calls are above that call on the stack, their results were lost, so they count as incomplete.
 *
 * When a node loses events, its open calls can no longer be paired with certainty: their results have no duration and
 * count as incomplete. Losses of whole calls are exempt (event_loss_tears()). The table is bounded; the oldest open
 * call is dropped first.
 *
 * After a pause of a node (pairing_resume()), a result has a duration if its call began after the pause, or if the
 * result can belong to no other open call. Other results have no duration and count as incomplete.
 *
 * Garbage collections and time slices are paired by process. A table in pairing.c lists the events that begin or end
 * them.
 */
#ifndef ETRACE_PAIRING_H
#define ETRACE_PAIRING_H

#include "../events/event.h"

enum call_fate {
    CALL_SHOWN,
    CALL_FILTERED,
    CALL_HELD, /* the result will decide whether the call is shown */
};

/* The call of the current result. Borrowed until the next event. */
struct event_call {
    int64_t mono_ns, wall_ns;
    uint64_t number;     /* event.number of the call */
    struct event *event; /* copy of the call; NULL: not kept */
    enum call_fate fate;
    bool around; /* the call is not CALL_SHOWN, but the views have it, because an event inside of the call was shown */
    const struct spec *spec;  /* the spec of the call */
    const struct spec *shown; /* CALL_SHOWN: the parts of the spec for which the call was shown */
    bool complete;            /* the pair is certain, so the result has a duration */
};

struct pairing_options {
    size_t max;        /* limit for the open calls of all processes; 0: a default */
    bool keep;         /* keep copies of calls, not only their times (pairing_keep()) */
    size_t keep_bytes; /* limit for the copies in bytes; 0: a default */
    /* Returns 0 if a call reports no result, 1 if it reports its result, 2 if unknown: then a missing result is normal.
     */
    int (*wants_return)(void *ctx, const struct event *e);
    /* Gets a held call that is removed before its result has come. The call was never shown. */
    void (*dropped)(void *ctx, const struct event *call);
    void *ctx;
};

struct pairing;

struct pairing *pairing_new(const struct pairing_options *o);
void pairing_free(struct pairing *c);

void pairing_keep(struct pairing *c, bool keep);
/*
 * Sets whether the trace has events only from inside of certain calls. If so, a garbage collection or time slice that
 * begins in one outermost call of a process cannot end in the next one.
 */
void pairing_scope(struct pairing *c, bool scoped);

/*
 * Returns the kinds of events that begin the garbage collections and time slices that events of `kinds` end. Bit K
 * stands for kind K. The end events have a duration only if the begin events are traced, too.
 */
uint64_t pairing_begin(uint64_t kinds);

/* Fills call, dur_ns, depth and expects_return of the event. */
void pairing_event(struct pairing *c, struct event *e);

/*
 * Stores the fate of the call that pairing_event() got last. `shown` is the spec with which the call was shown; NULL:
 * it was not shown. The call's result later has both in event_call.
 */
void pairing_fate(struct pairing *c, enum call_fate fate, const struct spec *shown);

/*
 * Calls show() for the open calls around the event that the views do not have yet, outermost first, and marks them as
 * `around`. Skips calls that have no copy.
 */
void pairing_around(struct pairing *c, const struct event *e,
                    void (*show)(void *ctx, const struct event *call, enum call_fate fate), void *ctx);

/* Returns true if pairing_event() kept a copy of the call that it got last. Only such calls get to options.dropped().
 */
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
/* The same for a node that begins a new run. Its loops (pairing_end()) are forgotten, too. */
void pairing_begin_run(struct pairing *c, int node);

/* Notes that the node traces calls again after a pause, in which results of open calls were not traced. */
void pairing_resume(struct pairing *c, const struct event_node *node);

uint64_t pairing_incomplete(const struct pairing *c);

/*
 * Marks a function of a node as endless: it calls itself in a loop. Closes its open calls without counting them as
 * incomplete; its later calls expect no result. Drops its held calls, because a condition on a result does not hold if
 * the result never arrives.
 */
void pairing_end(struct pairing *c, int node, struct raw module, struct raw function, int64_t arity);
/* Returns true if the event's function is endless. */
bool pairing_ended(const struct pairing *c, const struct event *e);
uint64_t pairing_endless(const struct pairing *c); /* returns the number of endless functions */

#endif
