/*
 * The rules of the one session that this instance of the library serves: who is traced no more, what is turned away.
 *
 * Written by the owner's calls, read by every producer. The state is a small integer, the VM hands it to each callback;
 * its word is compared before anything else, so what comes late from a session that ended is ignored. Which events are
 * turned away:
 *  - all new ones when the limit was reached; they are not counted, for nobody asked for them any more;
 *  - new ones while the gate is closed, those that find the ring full or the rate used up; each counted once;
 *  - where there is a rate, new ones of a thread that has spent a tenth of its time on events;
 *  - calls, when a process owes more returns than it should (owed.h);
 *  - events of a kind that nobody asked for, though its flag is set for another one; they are not counted either;
 *  - before all that, calls with arguments that nobody asked for (program.h), which are not counted either.
 * A return goes with its call: it is not charged again.
 */
#ifndef ETRACE_SESSION_H
#define ETRACE_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hidden.h"
#include "lane.h"

enum session_rule {
    RULE_OVER = 1,   /* the limit was reached */
    RULE_CLOSED = 2, /* the gate is closed */
    RULE_RATE = 4,
    RULE_LIMIT = 8,
    /*
     * Calls are turned away at the gate, before the match specification and before the VM makes the arguments: right when
     * no specification can reject a call. Else they would be counted though nobody asked for them, so the decision waits.
     */
    RULE_EARLY = 16,
    /*
     * A ring was full. Set by its producer, taken back by the drain: while it is not set, the gate need not look at the
     * thread's ring at all.
     */
    RULE_FULL = 32,
    RULE_RETURNS = 64, /* every traced call has its return traced: those that are owed are counted */
    RULE_STUCK = 128,  /* a process owes too many: no call is let through any more, at the gate in any case */
    RULE_KINDS = 256,  /* a flag of the VM brings kinds of events that nobody asked for: they are as if they were not */
    RULE_TALLY = 512,  /* calls and results are counted by function, and not sent (tally.h) */
    RULE_MEASURE = 1024, /* and the filter of what is counted asks for their size (filter.h) */
    RULE_PLAIN = 2048, /* no match specification has anything to add to a call or to what is sent */
    RULE_OWES = 4096,  /* calls that have their return traced say so: those that are owed are counted */
    RULE_PROGRAMS = 8192, /* some functions have a program that decides about their calls (program.h) */
    RULE_HOLD = 16384, /* calls wait for the result that decides whether both are sent (hold.h) */
    RULE_HALT = 32768, /* some processes' calls are turned away while the function that they loop in loses its pattern (owed.h) */
    RULE_ENDLESS = 65536, /* some functions do not return, so nothing waits for their results (owed.h) */
    RULE_UNASKED = 131072, /* functions are armed that nobody asked for: their events are dropped (unasked.h) */
};

#define EXCLUDED_MAX 128
#define EXCLUDED_SLOTS 256

#define LABELS_MAX 16

/* Words, hashed, the next free slot when taken. */
struct excluded {
    _Atomic uint64_t slots[EXCLUDED_SLOTS];
};

struct session {
    /* one line, read for every event, seldom written */
    _Alignas(RING_LINE) _Atomic uint64_t live; /* the word of the state, 0: none is live */
    _Atomic uint32_t rules;
    _Atomic uint64_t kinds;       /* bit K: events of kind K are wanted */
    struct excluded *_Atomic excluded; /* the table of the two that is in force */

    _Alignas(RING_LINE) struct excluded tables[2];
    _Atomic uint64_t labels[LABELS_MAX]; /* words of the labels of trace tokens whose events are wanted */
    _Atomic unsigned label_count;        /* 0: every label */

    _Alignas(RING_LINE) _Atomic int64_t limit_left;
    _Atomic uint64_t window; /* the tick at which the bucket was filled */
    _Atomic int64_t left;    /* in the bucket */
    int64_t bucket, quota; /* what it holds, and what comes in with each window */
    uint64_t window_ticks, ticks_per_ms;
    int64_t time_most, event_most; /* ticks: what a thread saves up for its events, and what one event is charged at most */
    _Atomic bool slow;             /* some thread had spent its time; said once for each arming */
};

extern HIDDEN struct session session;

/* Not live yet. Limit and rate (events a second): 0 is none. */
void session_begin(uint64_t limit, uint64_t rate, uint64_t ticks_per_ms);

/*
 * These and no others, as many as there is room for. Written beside the table in force, so that whoever is in both is in it at any
 * time; a thread that was held up in a table since the time before last may be wrong about one event.
 */
void session_exclude(const uint64_t *words, unsigned count);

/*
 * Acquire: the owner writes what a rule is about before it sets the rule - the filter, programs, the tables of figures, the stacks, which
 * kinds are wanted.
 */
static inline uint32_t session_rules(void)
{
    return atomic_load_explicit(&session.rules, memory_order_acquire);
}

/* Acquire: the owner has opened lanes and rules before it made the state live. */
static inline bool session_is_live(uint64_t state)
{
    return __builtin_expect(atomic_load_explicit(&session.live, memory_order_acquire) == state, 1);
}

static inline bool session_excludes(uint64_t word)
{
    struct excluded *table = atomic_load_explicit(&session.excluded, memory_order_acquire); /* which is filled before it is in force */
    for (unsigned at = (unsigned)(word >> 4);; at++) {
        uint64_t there = atomic_load_explicit(&table->slots[at % EXCLUDED_SLOTS], memory_order_relaxed);
        if (__builtin_expect(there == 0, 1))
            return false;
        if (there == word)
            return true;
    }
}

static inline bool session_wants(uint32_t rules, unsigned kind)
{
    return __builtin_expect(!(rules & RULE_KINDS), 1)
        || atomic_load_explicit(&session.kinds, memory_order_relaxed) >> kind & 1;
}

void session_want(uint64_t kinds);

/* Events of tokens with these labels, which are immediates; none or too many: of all tokens. A thread may meet half of a new list. */
void session_want_labels(const uint64_t *words, unsigned count);

static inline bool session_wants_label(uint64_t word)
{
    unsigned count = atomic_load_explicit(&session.label_count, memory_order_acquire), i = 0;
    while (i < count && atomic_load_explicit(&session.labels[i], memory_order_relaxed) != word)
        i++;
    return !count || i < count;
}

/* Whether the rate leaves room; changes nothing. */
bool session_rate_allows(uint64_t tick);

void session_is_full(struct lane *lane);

/* Drain: there is room again, or may be. */
static inline void session_may_have_room(void)
{
    if (session_rules() & RULE_FULL)
        atomic_fetch_and(&session.rules, ~(uint32_t)RULE_FULL);
}

/* By the rules but the ring's room; counts what it turns away. Rated: what that is for the rate. */
bool session_admits_slowly(struct lane *lane, uint32_t rules, enum etw_loss rated);

/* Decides about a new event, once for each: what is turned away is counted, what is admitted is charged. */
static inline bool session_admits(struct lane *lane, uint32_t rules, enum etw_loss rated)
{
    if (__builtin_expect(!ring_has_room_for_new(&lane->ring), 0)) {
        session_is_full(lane);
        return false;
    }
    return __builtin_expect((rules & (RULE_CLOSED | RULE_RATE | RULE_LIMIT)) == 0, 1) || session_admits_slowly(lane, rules, rated);
}

/*
 * Of a call that waits for its result: by all rules but the rate, which is for what is sent. Counts what it turns away, and says why;
 * ETW_LOSSES: admitted.
 */
enum etw_loss session_admits_waiting(struct lane *lane, uint32_t rules);
/* By the rate, when it is to be sent. */
bool session_admits_waited(uint32_t rules);

/* What an event has cost its thread. One that was interrupted meanwhile is not charged for that. */
static inline void session_spend(struct lane *lane, uint64_t ticks)
{
    lane->time_left -= ticks < (uint64_t)session.event_most ? (int64_t)ticks : session.event_most;
}

/* A process owes too many returns. */
void session_is_stuck(void);

/* Room for a new event that was charged at the gate; there the ring was perhaps not looked at. */
static inline bool session_has_room_for_new(struct lane *lane)
{
    if (__builtin_expect(ring_has_room_for_new(&lane->ring), 1))
        return true;
    session_is_full(lane);
    return false;
}

/* Room for what follows from an admitted event. */
static inline bool session_has_room_for_more(struct lane *lane)
{
    if (__builtin_expect(ring_has_room(&lane->ring), 1))
        return true;
    session_is_full(lane);
    return false;
}

#endif
