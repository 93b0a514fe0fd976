/*
 * A lane: all that one thread of the VM writes - its ring, the names that ring has defined, and the tracees it met.
 *
 * The lanes are one mapping, made at the first lanes_open() and kept until lanes_unmap() at unload, when no callback can
 * run any more: no callback ever finds its lane gone. A thread claims a lane at its first event, for good, and leaves it to
 * the thread that takes its place in memory; when none is left it gets none, and what it loses is counted in lanes.roofless.
 * A session that begins anew bumps lanes.epoch, and each producer clears its own lane when it sees that.
 *
 * lanes_open/unmap: the owner's calls and unload. lane_mine(): any thread. The rest of a lane as ring.h says.
 */
#ifndef ETRACE_LANE_H
#define ETRACE_LANE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hidden.h"
#include "encoder.h"
#include "ring.h"

#define LANES_MAX 256
#define LANE_PLACES 1024 /* a power of two */
#define LANE_MET 4096
#define LANE_NEWCOMERS 256
#define LANE_UNASKED 64
#define LANE_UNASKED_BUSY 64 /* calls */

/* How often this thread has seen a function whose events are dropped (unasked.h). */
struct lane_unasked {
    _Atomic uint64_t module, name;
    _Atomic uint32_t arity, count;
};

struct lane {
    struct ring ring;
    uint32_t epoch, slot;
    uintptr_t thread; /* whose it is */
    uint64_t tracee; /* the word of the ring's last tracee */
    int64_t time_left;  /* ticks that this thread may still spend on events, as of time_at (session.h) */
    uint64_t time_at;
    _Atomic uint64_t counted; /* odd while the thread is at an event that changes figures (tally.h) */
    struct encoder encoder;
    struct encoder held; /* of what waits elsewhere before it comes into a ring */
    uint64_t words[ENCODER_WORDS];
    uint64_t met[LANE_MET]; /* words of tracees, direct-mapped */
    struct lane_unasked unasked[LANE_UNASKED]; /* direct-mapped */

    /* tracees for the owner to name: a queue of words, producer to drain */
    _Alignas(RING_LINE) _Atomic uint32_t newcomers_head;
    uint64_t newcomers[LANE_NEWCOMERS];
    _Alignas(RING_LINE) _Atomic uint32_t newcomers_tail;

    /* the drain's memory of what it told last */
    uint64_t told_seen;
    bool told_amid; /* somebody was at an event then: how that was counted may have to be told yet */
    uint64_t look_counted; /* `counted` when the current round of figures began (tally.h) */
    uint64_t told_counted; /* the same of the last round that is over */
};

struct lanes {
    uint8_t *mapping;
    size_t mapped, stride;
    uint32_t count, epoch; /* epoch: changed only while no session is live */
    uint64_t need;
    _Atomic bool *alarm; /* of the rings (ring.h); written before the first lanes_open() */
    struct encode_limits limits;
    _Atomic uint32_t claimed;  /* may be more than count */
    _Atomic uint64_t roofless; /* events of threads without a lane */
    _Atomic(struct lane *) places[LANE_PLACES]; /* of those that are claimed, by thread, hashed, the next free place when taken */
};

extern HIDDEN struct lanes lanes;

/* Ring bytes: a power of two. Later calls keep the mapping, and fail when need does not fit it. */
bool lanes_open(uint32_t count, uint64_t ring_bytes, uint64_t need, struct encode_limits limits);
void lanes_unmap(void);

static inline struct lane *lane_at(uint32_t slot)
{
    return (struct lane *)(void *)(lanes.mapping + slot * lanes.stride);
}

static inline uint32_t lanes_claimed(void)
{
    uint32_t claimed = atomic_load_explicit(&lanes.claimed, memory_order_acquire);
    return claimed < lanes.count ? claimed : lanes.count;
}

/*
 * What tells a thread from all others that run: the register by which it finds its variables. A variable of our own would be
 * found by it, too, but a library that is loaded late has to call a function for that, at each event.
 */
static inline uintptr_t lane_thread(void)
{
#if defined(__x86_64__)
    uintptr_t thread;
    __asm__("mov %%fs:0, %0" : "=r"(thread));
    return thread;
#else
    return (uintptr_t)__builtin_thread_pointer();
#endif
}

static inline unsigned lane_place(uintptr_t thread)
{
    return (unsigned)((uint64_t)thread * UINT64_C(0x9e3779b97f4a7c15) >> 54);
}

struct lane *lane_claim(uintptr_t thread);

/* Drain: takes so many words of newcomers, those of the lane `first` first. *ret_more: some are left. */
uint32_t lanes_newcomers(uint32_t first, uint64_t *ret_words, uint32_t most, bool *ret_more);

/* This thread's lane, cleared when a session began since its last event; NULL: none is left. */
static inline struct lane *lane_mine(void)
{
    uintptr_t thread = lane_thread();
    /* Acquire: a lane's thread is written before the lane has a place. The epoch is written before the session is live. */
    struct lane *lane = atomic_load_explicit(&lanes.places[lane_place(thread)], memory_order_acquire);
    if (__builtin_expect(!lane || lane->thread != thread || lane->epoch != lanes.epoch, 0))
        return lane_claim(thread);
    return lane;
}

void lane_greet_slowly(struct lane *lane, uint64_t word);

/* Puts a tracee's word into the queue when it has not been met lately. */
static inline void lane_greet(struct lane *lane, uint64_t word)
{
    if (__builtin_expect(lane->met[(word >> 4) % LANE_MET] != word, 0))
        lane_greet_slowly(lane, word);
}

#endif
