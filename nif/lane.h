/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives each thread of the VM a lane: the ring that it writes, the names that the ring has defined, and the tracees
 * that it met.
 *
 * All lanes are in one mapping. The first lanes_open() makes it; lanes_unmap() frees it at unload, when no callback can
 * run, so no callback loses its lane. A thread claims a lane at its first event and keeps it. When a thread has ended,
 * a new thread at the same address takes over its lane. If no lane is left, lanes.no_lane counts the events of the
 * thread. A new session increments lanes.epoch, and each producer clears its own lane when it notices.
 *
 * The owner calls lanes_open(), and the unload lanes_unmap(). Any thread calls lane_mine(). ring.h says who may use a
 * ring.
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
#define LANE_NEWCOMERS 1024
#define LANE_UNASKED 64
#define LANE_UNASKED_BUSY 64 /* calls */

/* How often this thread has seen a function whose events are dropped (unasked.h). */
struct lane_unasked {
    _Atomic uint64_t module, name;
    _Atomic uint32_t arity, count;
};

/* A tracee whose name the owner should find, or the name, an atom, that a process has got or lost. */
struct newcomer {
    uint64_t tracee;
    uint64_t name; /* 0: none */
};

struct lane {
    struct ring ring;
    uint32_t epoch, slot;
    uintptr_t thread;  /* the thread that owns the lane (lane_thread()) */
    uint64_t tracee;   /* the word of the tracee of the ring's last frame */
    int64_t time_left; /* ticks that this thread may still spend on events, as of time_at (gate.h) */
    uint64_t time_at;
    _Atomic uint64_t admitted, rejected; /* calls, by the budget (gate.h) */
    _Atomic uint64_t counted;            /* odd while the thread changes figures (tally.h) */
    struct encoder encoder;
    struct encoder held; /* encodes terms that are held outside of the ring (hold.h) or only measured */
    uint64_t words[ENCODER_WORDS];
    uint64_t met[LANE_MET];                    /* words of tracees, direct-mapped */
    struct lane_unasked unasked[LANE_UNASKED]; /* direct-mapped */

    /* A queue from producer to drain */
    _Alignas(RING_LINE) _Atomic uint32_t newcomers_head;
    struct newcomer newcomers[LANE_NEWCOMERS];
    _Alignas(RING_LINE) _Atomic uint32_t newcomers_tail;

    /* The last report of the drain. Only the drain uses these. */
    uint64_t told_seen, told_overwritten;
    bool told_amid; /* the thread was processing an event then, so those counters may have been incomplete */
};

/*
 * A round reports all figures (rows.h), in several calls of the owner. Only the drain uses it.
 */
struct round {
    bool begun;
    uint64_t looked[LANES_MAX], told[LANES_MAX]; /* `counted` of each lane as this and the last whole one began */
};

void round_clear(struct round *r);
void round_begin(struct round *r); /* unless it has begun */
void round_end(struct round *r);
/*
 * Whether the last round reported the figures of every event that the rings count as seen. False: an event was counted
 * during the round or after it, so another round is needed.
 */
bool round_is_told(const struct round *r);

struct lanes {
    uint8_t *mapping;
    size_t mapped, stride;
    uint32_t count, epoch; /* epoch: changes only while no session is live */
    uint64_t need;
    /* only the owner uses it: all rings overwrite their oldest frames, and no batch takes frames */
    bool overwrites;
    _Atomic bool watches;   /* the next lanes_fire() asks for a snapshot */
    _Atomic bool still;     /* a snapshot is asked for: the rings overwrite nothing (ring.h) */
    _Atomic uint64_t fired; /* calls of lanes_fire() since the last lanes_watch() */
    _Atomic bool *alarm;    /* the alarm of all rings (ring.h); set before the first lanes_open() */
    uint64_t ring_most;     /* the size to which each ring may grow; set before the first lanes_open(). 0: none grows */
    struct encode_limits limits;
    _Atomic uint32_t claimed;                   /* number of lanes claimed; may be more than count */
    _Atomic uint64_t no_lane;                   /* events of threads without a lane */
    _Atomic bool unnamed;                       /* a queue of newcomers had no room for a name */
    _Atomic(struct lane *) places[LANE_PLACES]; /* the claimed lanes: a hash table by thread with linear probing */
};

extern HIDDEN struct lanes lanes;

/* Ring bytes: a power of two. Later calls keep the first mapping, and fail if its rings are too small for `need`. */
bool lanes_open(uint32_t count, uint64_t ring_bytes, uint64_t need, struct encode_limits limits);
void lanes_unmap(void);

/* Owner: from now on all rings overwrite their oldest frames. The first call comes before anything is traced. */
void lanes_overwrite(void);
/*
 * Owner: ends that, so that batches take frames again. Returns a tick: every event after it is in a ring or is counted
 * as lost. 0: nothing was overwritten.
 */
uint64_t lanes_stop_overwriting(void);

/* Owner: lets the next lanes_fire() ask for a snapshot. Returns how often it was called since the last time. */
uint64_t lanes_watch(void);
/* Owner: no lanes_fire() asks for a snapshot until the next lanes_watch(). True: the next one would have. */
bool lanes_unwatch(void);
/* Any thread: the condition for a snapshot holds. True: the caller must wake the owner. */
bool lanes_fire(void);

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
 * Identifies the calling thread by its thread pointer, the register that addresses thread-local variables. A
 * thread-local variable of our own would cost a function call at each event, because this library is loaded at run
 * time.
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

/*
 * Queues a name, an atom, that a process has got or lost. If the queue is full, sets lanes.unnamed; if it is half full,
 * lanes.alarm, because no event makes the owner drain it.
 */
void lane_name(struct lane *lane, uint64_t process, uint64_t name);

/* Drain: takes at most `most` newcomers from the queues, starting with the lane `first`. *ret_more: some are left. */
uint32_t lanes_newcomers(uint32_t first, struct newcomer *ret_newcomers, uint32_t most, bool *ret_more);

/* Returns the lane of this thread, cleared if a session began since its last event. NULL: all lanes are taken. */
static inline struct lane *lane_mine(void)
{
    uintptr_t thread = lane_thread();
    /*
     * Acquire: lane_claim() sets a lane's thread before it publishes the lane. The owner sets the epoch before the
     * session is live.
     */
    struct lane *lane = atomic_load_explicit(&lanes.places[lane_place(thread)], memory_order_acquire);
    if (__builtin_expect(!lane || lane->thread != thread || lane->epoch != lanes.epoch, 0))
        return lane_claim(thread);
    return lane;
}

void lane_greet_slowly(struct lane *lane, uint64_t word);

/* Queues a tracee for the owner to name, unless this thread has met it lately. */
static inline void lane_greet(struct lane *lane, uint64_t word)
{
    if (__builtin_expect(lane->met[(word >> 4) % LANE_MET] != word, 0))
        lane_greet_slowly(lane, word);
}

#endif
