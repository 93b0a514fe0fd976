/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gives each thread of the VM a lane: the ring that it writes, the names that the ring has defined, and the tracees
 * that it met.
 *
 * All lanes are in one mapping. The first lanes_open() makes it. lanes_unmap() frees it when the library is unloaded,
 * when no callback can run, so no callback loses its lane. A thread claims a lane at its first event and keeps it. When
 * a thread has ended, a new thread with the same thread pointer takes over its lane. If no lane is left, lanes.no_lane
 * counts the events of the thread. A new session increments lanes.epoch. Each producer clears its own lane at its first
 * event after that.
 *
 * The owner calls lanes_open(), and the unloading of the library calls lanes_unmap(). Any thread calls lane_mine().
 * ring.h says who may use a ring.
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

/* Counts the events of one function that this thread has dropped as unasked (unasked.h). */
struct lane_unasked {
    _Atomic uint64_t module, name;
    _Atomic uint32_t arity, count;
};

/* A tracee whose name the owner should look up, or a process with an atom that it has got or lost as its name. */
struct newcomer {
    uint64_t tracee;
    uint64_t name; /* the atom, or 0: look up the name */
};

struct lane {
    struct ring ring;
    uint32_t epoch, slot;
    uintptr_t thread;  /* the thread that owns the lane (lane_thread()) */
    uint64_t tracee;   /* the raw term of the tracee of the ring's last frame */
    int64_t time_left; /* the time that this thread had left for events, in ticks, at the moment time_at (gate.h) */
    uint64_t time_at;
    _Atomic uint64_t admitted, rejected; /* calls that the budget has admitted and rejected (gate.h) */
    _Atomic uint64_t counted;            /* odd while the thread changes figures (tally.h) */
    struct encoder encoder;
    struct encoder held; /* encodes terms that are held outside of the ring (hold.h) or only measured */
    uint64_t words[ENCODER_WORDS];
    uint64_t met[LANE_MET];                    /* tracees that the thread met lately: a direct-mapped cache */
    struct lane_unasked unasked[LANE_UNASKED]; /* a direct-mapped cache by function */

    /* A queue of newcomers from the producer to the drain. */
    _Alignas(RING_LINE) _Atomic uint32_t newcomers_head;
    struct newcomer newcomers[LANE_NEWCOMERS];
    _Alignas(RING_LINE) _Atomic uint32_t newcomers_tail;

    /* The counters that the drain reported last. Only the drain uses these fields. */
    uint64_t told_seen, told_overwritten;
    bool told_amid; /* the thread was processing an event then, so the reported counters may be incomplete */
};

/* A round: one report of all figures (rows.h), made by several calls of the owner. Only the drain uses it. */
struct round {
    bool begun;
    /* The field `counted` of each lane. looked: when this round began. told: when the last complete round began. */
    uint64_t looked[LANES_MAX], told[LANES_MAX];
};

void round_clear(struct round *r);
void round_begin(struct round *r); /* does nothing if a round has begun and not ended */
void round_end(struct round *r);
/*
 * Returns true if the last complete round has reported the figures of every event that the rings count as seen. Returns
 * false if an event was counted since that round began: another round is needed.
 */
bool round_is_told(const struct round *r);

struct lanes {
    uint8_t *mapping;
    size_t mapped, stride;
    uint32_t count, epoch; /* count: all lanes. epoch: changes only while no session is live */
    uint64_t need;         /* bytes of the longest frame */
    /*
     * There is a flight recorder: a full ring overwrites its oldest frames, and no batch takes frames. Only the owner
     * process uses this field.
     */
    bool overwrites;
    _Atomic bool watches;   /* the next lanes_fire() requests a snapshot */
    _Atomic bool still;     /* a snapshot was requested: the rings overwrite nothing (ring.h) */
    _Atomic uint64_t fired; /* calls of lanes_fire() since the last lanes_watch() */
    _Atomic bool *alarm;    /* the alarm of all rings (ring.h); set before the first lanes_open() */
    uint64_t ring_most;     /* bytes to which each ring may grow; set before the first lanes_open(). 0: none grows */
    struct encode_limits limits;
    _Atomic uint32_t claimed;                   /* attempts to claim a lane; may be more than `count` */
    _Atomic uint64_t no_lane;                   /* events of threads without a lane */
    _Atomic bool unnamed;                       /* a queue of newcomers was too full for a changed name */
    _Atomic(struct lane *) places[LANE_PLACES]; /* the claimed lanes: a hash table by thread with linear probing */
};

extern HIDDEN struct lanes lanes;

/*
 * Maps the lanes at the first call, and prepares them for a new session. ring_bytes: the size of a ring, a power of
 * two. need: the bytes of the longest frame. Returns false if memory is missing, or if a ring is less than twice
 * `need`.
 */
bool lanes_open(uint32_t count, uint64_t ring_bytes, uint64_t need, struct encode_limits limits);
void lanes_unmap(void);

/*
 * Makes all rings overwrite their oldest frames. The owner calls it; the first call comes before anything is traced.
 */
void lanes_overwrite(void);
/*
 * Makes the rings keep their frames again, so that batches take frames. The owner calls it. Returns a tick: every event
 * after that tick is in a ring or is counted as lost. Returns 0 if nothing was overwritten.
 */
uint64_t lanes_stop_overwriting(void);

/*
 * Lets the next lanes_fire() request a snapshot. The owner calls it. Returns the number of calls of lanes_fire() since
 * the last lanes_watch().
 */
uint64_t lanes_watch(void);
/*
 * Keeps lanes_fire() from requesting a snapshot until the next lanes_watch(). The owner calls it, and takes a snapshot
 * of its own if this returns true: the next lanes_fire() would have requested one.
 */
bool lanes_unwatch(void);
/*
 * Notes that the condition for a snapshot holds, and requests a snapshot if lanes_watch() allows it. Any thread may
 * call it. Returns true if the caller must wake the owner.
 */
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
 * Queues a name, an atom, that a process has got or lost. Sets lanes.unnamed if the queue is full. Sets the flag
 * lanes.alarm if the queue is half full, because there may be no event that makes the owner drain the queue.
 */
void lane_name(struct lane *lane, uint64_t process, uint64_t name);

/*
 * Takes at most `most` newcomers from the queues, starting with the lane `first`, and sets *ret_more if any are left.
 * The drain calls it.
 */
uint32_t lanes_newcomers(uint32_t first, struct newcomer *ret_newcomers, uint32_t most, bool *ret_more);

/*
 * Returns the lane of this thread, cleared if a session began since the thread's last event. Returns NULL if no lane is
 * left.
 */
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

/* Queues a tracee, so that the owner looks up its name, unless this thread has queued that tracee lately. */
static inline void lane_greet(struct lane *lane, uint64_t word)
{
    if (__builtin_expect(lane->met[(word >> 4) % LANE_MET] != word, 0))
        lane_greet_slowly(lane, word);
}

#endif
