/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds the rules of the trace session: which events the callbacks reject, and which processes and ports they exclude.
 * An instance of the library serves one session.
 *
 * The owner's calls write the rules, and every producer thread reads them. The session has a state, a small integer
 * that the VM passes to each callback. A callback first compares that state with session.live, so that it ignores late
 * events of a session that ended. It then rejects:
 *  - calls whose arguments no probe wants (program.h), not counted;
 *  - events of a kind that nobody asked for, which a trace flag for another kind brings, not counted;
 *  - all new events once the limit is reached, not counted;
 *  - new events while the gate is closed, the ring is full, or the rate is used up, each counted once as lost;
 *  - with a rate, new events of a thread that has spent a tenth of its time on events, counted as lost;
 *  - all events of the requests that the rate or a crowded ring leaves out, each counted as lost: see
 *    gate_admits_part();
 *  - calls beyond a budget, not counted as lost: a counter of the VM counts them (tracer_budget.hrl);
 *  - calls and other events outside of roots (inside.h), not counted;
 *  - calls, when a process owes too many results (owed.h), counted as lost.
 * The rate and the limit charge only the call; its result is not charged.
 */
#ifndef ETRACE_GATE_H
#define ETRACE_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hidden.h"
#include "lane.h"

/* The treatment of admitted events of a trace. */
enum gate_route {
    ROUTE_SEND,  /* the events are sent */
    ROUTE_TALLY, /* calls and results are counted by function (tally.h) */
    ROUTE_BY,    /* calls, results and messages are counted by keys (by.h) */
    ROUTE_HOLD,  /* a call waits until its result decides whether to send both (hold.h) */
    ROUTE_TREES, /* what happens inside of a root waits until the root's result decides whether to send it (keep.h) */
    ROUTES
};

#define RULE_ROUTE 7u /* the bits of the rules that hold the enum gate_route */

/* Rules that the owner sets. */
enum gate_rule {
    /*
     * RULE_GIVEN() of RULE_RATE, RULE_LIMIT or RULE_EARLY says that the client asked for the rule. gate_change() sets
     * the rule itself only if it applies on the route.
     */
    RULE_RATE = 1 << 3,
    RULE_LIMIT = 1 << 4,
    /*
     * Lets enabled_call/3 reject calls, before the VM runs the match specification and builds the arguments. If a match
     * specification can reject calls, this rule is not set, because a call that no probe matches could count as lost.
     * Then trace/5 decides.
     */
    RULE_EARLY = 1 << 5,

    RULE_KINDS = 1 << 6,     /* a trace flag brings kinds of events that nobody asked for: ignore these kinds */
    RULE_PLAIN = 1 << 7,     /* no match specification adds a term to a call or a message that is sent */
    RULE_RETURNS = 1 << 8,   /* every traced call has its return traced: count the owed results */
    RULE_OWES = 1 << 9,      /* some calls have their return traced, and say so in their match result: count these */
    RULE_PROGRAMS = 1 << 10, /* some functions have a program that selects their calls (program.h) */
    RULE_MEASURE = 1 << 11,  /* with ROUTE_TALLY: the filter needs the size of each event (verdict.h) */
    RULE_INSIDE = 1 << 12,   /* show calls, and the kinds of session.inside, only inside of roots (inside.h) */
    RULE_LEAVES = 1 << 13,   /* a process without an open root loses all flags of the session */
    RULE_REQUESTS = 1 << 14, /* encode only what the views of requests read, and ignore other messages (requests.h) */
    RULE_TRIGGER = 1 << 15,  /* a result that the filter accepts requests a snapshot (lane.h) */
    RULE_UNASKED = 1 << 16,  /* some traced functions were not asked for: drop their events (unasked.h) */
    RULE_ENDLESS = 1 << 17,  /* some functions loop: do not wait for their results (owed.h) */
    RULE_BUDGET = 1 << 18,   /* enabled_call/3 rejects calls beyond a budget, without counting them as lost */
    RULE_CLOSED = 1 << 19,   /* count all new events as lost */
};

/* The state of the trace. Producers set these rules and the owner clears them; for RULE_ASKED it is the reverse. */
enum gate_state {
    RULE_OVER = 1 << 20, /* the limit was reached */
    RULE_FULL = 1 << 21, /* some ring is full: enabled_call/3 must look whether the thread's ring has room */
    /* A process owes too many results: enabled_call/3 rejects all calls, even without RULE_EARLY. */
    RULE_STUCK = 1 << 22,
    /* Reject calls of processes that run in a loop, until the looping function has no returns traced (owed.h). */
    RULE_HALT = 1 << 23,
    /*
     * The owner sets this rule: enabled_call/3 counts calls for gate_asked(). The callback that counts call number
     * ETW_ASKED_MOST clears the rule, so counting takes no time in a busy trace.
     */
    RULE_ASKED = 1 << 24,
};

#define RULE_GIVEN(rule) ((uint32_t)(rule) << RULE_GIVEN_SHIFT)
#define RULE_GIVEN_SHIFT 26

#define EXCLUDED_MAX 1024
#define EXCLUDED_SLOTS 2048

#define LABELS_MAX 16

/* A hash table of words with linear probing. A word is the raw value of a pid's or port's term. */
struct excluded {
    _Atomic uint64_t slots[EXCLUDED_SLOTS];
};

struct session {
    /* One cache line that every event reads and that is seldom written. */
    _Alignas(RING_LINE) _Atomic uint64_t live; /* the word of the state; 0: no session is live */
    _Atomic uint32_t rules;
    _Atomic uint64_t kinds;            /* bit K: somebody asked for events of kind K */
    _Atomic uint64_t inside;           /* bit K: with RULE_INSIDE, show events of kind K only inside of roots */
    struct excluded *_Atomic excluded; /* the active table */

    _Alignas(RING_LINE) struct excluded tables[2];
    _Atomic uint64_t labels[LABELS_MAX]; /* raw terms: report only trace tokens with one of these labels */
    _Atomic unsigned label_count;        /* 0: report trace tokens with any label */

    _Alignas(RING_LINE) _Atomic int64_t limit_left;
    _Atomic uint64_t window; /* the tick of the bucket's last refill */
    _Atomic int64_t left;    /* events that the token bucket of the rate still admits */
    _Atomic uint32_t share;  /* the rate admits one of 2^share requests */
    _Atomic bool shares;     /* some requests were left out, so later events must be checked for their request */
    _Atomic int64_t low;     /* admit half as many requests when `left` falls below this */
    int64_t bucket, quota;   /* capacity of the token bucket; events that each window adds to it */
    uint64_t window_ticks, ticks_per_ms;
    /* In ticks. time_most: the most time that a thread saves up. event_most: the most that one event is charged. */
    int64_t time_most, event_most;
    _Atomic bool slow; /* some thread has spent its time for events; the owner was woken for this once */

    /* The budget: a token bucket that is refilled when it is empty. */
    _Alignas(RING_LINE) _Atomic int64_t budget_left;
    _Atomic uint64_t budget_at;        /* the tick of the last refill */
    int64_t budget_most, budget_quota; /* tokens in a full bucket; tokens for each window */
    uint64_t budget_ticks;             /* ticks of a window */
    _Atomic bool budget_short;         /* calls were rejected since the last gate_spent() */
    _Atomic uint32_t asked;            /* calls under RULE_ASKED */
};

extern HIDDEN struct session session;

/*
 * Resets the rules; the caller then makes the session live. limit: events of the trace; 0: no limit. rate: events a
 * second; 0: no rate.
 */
void gate_begin(uint64_t limit, uint64_t rate, uint64_t ticks_per_ms);

/*
 * Replaces the set of excluded pids and ports; words beyond EXCLUDED_MAX are ignored. This fills the inactive table and
 * then makes that table active, so a word in the old and the new set stays excluded throughout. A thread that still
 * reads the table that this call fills may decide wrongly about one event.
 */
void gate_exclude(const uint64_t *words, unsigned count);

/*
 * Reads the rules. Acquire: the owner writes the data that a rule needs before it sets the rule. Such data are the
 * filter, the programs, the tables of figures, the stacks and the wanted kinds.
 */
static inline uint32_t gate_rules(void)
{
    return atomic_load_explicit(&session.rules, memory_order_acquire);
}

static inline enum gate_route gate_route(uint32_t rules)
{
    return (enum gate_route)(rules & RULE_ROUTE);
}

/*
 * Clears the rules `off`, then sets the rules `on`. Then sets or clears RULE_RATE, RULE_LIMIT and RULE_EARLY for the
 * route.
 * The owner and the worker call it.
 */
void gate_change(uint32_t off, uint32_t on);

/*
 * Returns true if the session with this state is live. Acquire: the owner initialises lanes and rules before it makes
 * the state live.
 */
static inline bool gate_is_live(uint64_t state)
{
    return __builtin_expect(atomic_load_explicit(&session.live, memory_order_acquire) == state, 1);
}

static inline bool gate_excludes(uint64_t word)
{
    /* acquire: the owner fills a table before it makes that table active */
    struct excluded *table = atomic_load_explicit(&session.excluded, memory_order_acquire);
    for (unsigned at = (unsigned)(word >> 4);; at++) {
        uint64_t there = atomic_load_explicit(&table->slots[at % EXCLUDED_SLOTS], memory_order_relaxed);
        if (__builtin_expect(there == 0, 1))
            return false;
        if (there == word)
            return true;
    }
}

static inline bool gate_wants(uint32_t rules, unsigned kind)
{
    return __builtin_expect(!(rules & RULE_KINDS), 1) ||
           atomic_load_explicit(&session.kinds, memory_order_relaxed) >> kind & 1;
}

/* Returns true if RULE_INSIDE shows events of this kind only inside of roots. */
static inline bool gate_scopes(unsigned kind)
{
    return atomic_load_explicit(&session.inside, memory_order_relaxed) >> kind & 1;
}

void gate_want(uint64_t kinds);

/*
 * Limits the reported trace tokens to those with one of these labels. The labels must be immediate terms. An empty
 * list, or one with more than LABELS_MAX labels, reports all tokens. A producer may see a half-written list.
 */
void gate_want_labels(const uint64_t *words, unsigned count);

static inline bool gate_wants_label(uint64_t word)
{
    unsigned count = atomic_load_explicit(&session.label_count, memory_order_acquire), i = 0;
    while (i < count && atomic_load_explicit(&session.labels[i], memory_order_relaxed) != word)
        i++;
    return !count || i < count;
}

/* Returns true if the rate would admit an event. Charges nothing. */
bool gate_rate_allows(uint64_t tick);

void gate_is_full(struct lane *lane);

/* Clears RULE_FULL, because rings may have room again. The drain calls it. */
static inline void gate_may_have_room(void)
{
    if (gate_rules() & RULE_FULL)
        atomic_fetch_and(&session.rules, ~(uint32_t)RULE_FULL);
}

/*
 * Admits or rejects a new event like gate_admits(), but does not look at the ring's room. rated: the loss reason to
 * count if the rate rejects the event.
 */
bool gate_admits_slowly(struct lane *lane, uint32_t rules, enum etw_loss rated);

/*
 * Admits or rejects a new event: counts a rejected one as lost, charges an admitted one. Call it once for each event.
 */
static inline bool gate_admits(struct lane *lane, uint32_t rules, enum etw_loss rated)
{
    if (__builtin_expect(!ring_has_room_for_new(&lane->ring), 0)) {
        gate_is_full(lane);
        return false;
    }
    return __builtin_expect((rules & (RULE_CLOSED | RULE_RATE | RULE_LIMIT)) == 0, 1) ||
           gate_admits_slowly(lane, rules, rated);
}

/*
 * Admits or rejects a call that will wait for its result. The rate does not apply yet, because the rate bounds sent
 * events. Counts a rejected call as lost and returns the reason. Returns ETW_LOSSES if the call is admitted.
 */
enum etw_loss gate_admits_waiting(struct lane *lane, uint32_t rules);
/*
 * Applies the rate to events that waited, before they are sent. Admits all of them or none: a tree without some of its
 * calls would be wrong. If the admitted events exceed the rate, fewer later events are admitted.
 */
bool gate_admits_waited(uint32_t rules, unsigned events);

/*
 * Admits or rejects an event of a request (requests.h), so that the rate admits or rejects all events of the request.
 * A hash of the request's reference decides at its first event; gate.c remembers the last 65,536 admitted requests.
 * The share of admitted requests halves when the rate is nearly used up, and doubles when less than half of the rate
 * is used. Without a rate, a request is left out if it begins while the ring is crowded, and gate.c remembers the last
 * 65,536 requests that it left out. key: the hash, or 0 if the event belongs to no request. Counts a rejected event as
 * lost.
 */
enum gate_part {
    GATE_OTHER,
    GATE_FIRST,
    GATE_AGAIN, /* a receive: the first event of a request if that came from another node, else a later event */
    GATE_LATER,
    GATE_LAST
};
bool gate_admits_part(struct lane *lane, uint32_t rules, enum gate_part part, uint64_t key);

/* Returns true if the caller must use gate_admits_part(): only then can it decide differently from gate_admits(). */
static inline bool gate_sorts(struct lane *lane, uint32_t rules)
{
    return rules & RULE_RATE || atomic_load_explicit(&session.shares, memory_order_relaxed) ||
           ring_is_crowded(&lane->ring);
}

/*
 * Charges the thread for the time of an event, at most session.event_most. So a thread that was interrupted during the
 * event is not charged for the whole interruption.
 */
static inline void gate_spend(struct lane *lane, uint64_t ticks)
{
    lane->time_left -= ticks < (uint64_t)session.event_most ? (int64_t)ticks : session.event_most;
}

/*
 * Sets the budget, in calls a second. changes: a budget exists already, so the bucket keeps its tokens, unless they are
 * more than a full bucket of the new budget.
 */
void gate_budget(uint32_t calls, bool changes);

/*
 * Charges the budget for a call. Returns false if the budget is used up. A thread without a lane has no budget: its
 * caller lets the call pass.
 */
bool gate_affords(struct lane *lane);

/*
 * gate_ask() sets RULE_ASKED. gate_asked() returns how many calls of traced functions there were since then, at most
 * ETW_ASKED_MOST, whether or not they matched. If a trace shows no events, this number tells whether nobody calls the
 * functions, or no call matches.
 */
void gate_ask(void);
uint32_t gate_asked(void);
void gate_count_asked(void); /* in enabled_call/3, under RULE_ASKED */

/* How many calls of all threads the budget has admitted and rejected since the library was loaded. */
struct gate_spent {
    uint64_t admitted, rejected;
};
struct gate_spent gate_spent(void);

static inline bool gate_is_short(void)
{
    return atomic_load_explicit(&session.budget_short, memory_order_relaxed);
}

/* Notes that a process owes too many results: sets RULE_STUCK, and wakes the owner the first time. */
void gate_is_stuck(void);

/*
 * Returns true if the ring has room for a new event. Otherwise counts the event as lost. For events that are already
 * charged: enabled_call/3 may charge a call without looking at the ring.
 */
static inline bool gate_has_room_for_new(struct lane *lane)
{
    if (__builtin_expect(ring_has_room_for_new(&lane->ring), 1))
        return true;
    gate_is_full(lane);
    return false;
}

/*
 * Returns true if the ring has room for an event that follows from an admitted event, such as a result. Otherwise
 * counts the event as lost.
 */
static inline bool gate_has_room_for_more(struct lane *lane)
{
    if (__builtin_expect(ring_has_room(&lane->ring), 1))
        return true;
    gate_is_full(lane);
    return false;
}

#endif
