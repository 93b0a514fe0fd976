/*
 * Which return belongs to which call.
 *
 * Every process has a stack of the open calls whose result was asked for. A result closes the newest open call of its
 * function; calls above that one ended without telling (their results were lost) and count as incomplete. After events
 * of a node were lost, nothing that was open then can be paired with certainty any more: its result is shown without a
 * duration and counts as incomplete, instead of one being invented; but ETW_LOST_RATE is of whole calls. The table is bounded; the
 * oldest open call goes first.
 *
 * Collections and time slices are paired the same way, by process: one table says what begins and what ends.
 */
#ifndef ETRACE_CALLS_H
#define ETRACE_CALLS_H

#include "../events/event.h"

enum call_fate {
    CALL_SHOWN,
    CALL_AROUND, /* does not pass, but is shown around one that does */
    CALL_FILTERED,
    CALL_HELD, /* undecided until its result */
};

/* What is known of a call when its result comes. Borrowed until the next event. */
struct event_call {
    int64_t mono_ns, wall_ns;
    struct event *event; /* the call itself; NULL: not kept */
    enum call_fate fate;
    const struct spec *spec; /* of the call */
    bool complete; /* the pair is certain: the result's dur_ns is set */
};

struct calls_options {
    size_t max;  /* open calls */
    bool keep;   /* keep the calls themselves, not only their times; calls_keep() changes it */
    size_t keep_bytes;
    /* Whether this call reports its result: 0 no, 1 yes, 2 perhaps (then a missing result is not counted). */
    int (*wants_return)(void *ctx, const struct event *e);
    /* A held call leaves the table undecided: it was never shown. */
    void (*dropped)(void *ctx, const struct event *call);
    void *ctx;
};

struct calls;

struct calls *calls_new(const struct calls_options *o);
void calls_free(struct calls *c);

void calls_keep(struct calls *c, bool keep);

/* The kinds (bit K: kind K) whose events begin what those of `kinds` end, but for calls: without them there is no duration. */
uint64_t calls_begin(uint64_t kinds);

/* Fills call, dur_ns, depth and expects_return of the event. */
void calls_event(struct calls *c, struct event *e);

/* Says what became of the call that calls_event() was given last, for its result to know. */
void calls_fate(struct calls *c, enum call_fate fate);

/*
 * Tells the open calls that the event happened in and that were not shown yet, the outermost first: they are CALL_AROUND now. Was: their
 * fate before. A call that is not kept is left out.
 */
void calls_around(struct calls *c, const struct event *e, void (*show)(void *ctx, const struct event *call, enum call_fate was), void *ctx);

/* Whether that call is kept itself: then, and only then, options.dropped may be called for it. */
bool calls_kept(const struct calls *c);

/* Forgets the open calls of a node (it begins anew), or of all with node -1; they are incomplete. */
void calls_forget(struct calls *c, int node);

uint64_t calls_incomplete(const struct calls *c);

/*
 * A function of a node does not return: its open calls are closed, without being incomplete, and later ones expect no result. A call
 * that waited for its result is dropped: a condition on a result that never comes does not hold.
 */
void calls_end(struct calls *c, int node, struct raw module, struct raw function, int64_t arity);
bool calls_ended(const struct calls *c, const struct event *e); /* whether the event is about such a function */
uint64_t calls_endless(const struct calls *c);                  /* such functions so far */

#endif
