/* SPDX-License-Identifier: Apache-2.0 */
#include "owed.h"

#include <sched.h>

#include "tick.h"

#define SLOTS 8192
#define PROBES 8
#define LOW 8      /* if all counts of the probe sequence are above this, take over the slot of a dead process */
#define KNOWN 1024 /* entries of known[], a power of two */
#define KNOWN_MOST 4096
#define HALTED 64
#define CLAIMED 1 /* value of halted.process while a thread fills the entry; no pid has this value */
#define CROWD 32  /* open questions beyond which no call pauses */

enum { QUIET, OPEN, TOLD }; /* the states of a question: none, open, given to the asker */

static struct slot {
    _Alignas(64) _Atomic uint64_t process;
    struct stack_function function;
    _Atomic uint32_t count, next; /* next: the count at which to open a question */
    _Atomic uint32_t returns;
    _Atomic uint32_t lowest; /* the lowest `count` since the last owed_read() */
    _Atomic uint8_t question;
    _Atomic bool trusted, void_now; /* trusted: the calls really nest; void_now: the next call resets the counts */
    uint16_t waits;                 /* calls since the question opened */
} slots[SLOTS];
static _Atomic bool slots_used; /* a slot has ever been taken */

/*
 * The depth to which calls of a function are known to nest, found by a hash of the function. If two functions share an
 * entry, a question is only delayed.
 */
static _Atomic uint32_t known[KNOWN];
static struct halted {
    _Atomic uint64_t process;
    struct stack_function function;
    _Atomic bool full;         /* the process has made OWED_WAITING calls of the function: reject its further calls */
    _Atomic uint32_t rejected; /* rejected calls */
    _Atomic uint32_t frames;   /* calls of the function that passed since `full` was set */
    _Atomic uint32_t returns;  /* slot->returns at the last call of the function */
} halted[HALTED];
static _Atomic uint32_t crowd; /* questions without an answer at the last scan */
/* A hash table; owed_end() adds entries, and only owed_begin() removes them. */
static struct ended {
    struct stack_function function;
    _Atomic bool used;
    _Atomic bool released; /* the worker has stopped tracing the results of the function */
} ended[2 * OWED_ENDLESS];
static uint32_t ended_count;
static stack_alive_fn *is_alive;

static uint64_t hash_function(const struct stack_function *f)
{
    return (f->name ^ f->module << 7 ^ (uint64_t)f->arity << 3) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Multiplies process and function separately, so that the processor does both multiplications at once. */
static struct slot *slot_at(uint64_t process, const struct stack_function *f, unsigned probe)
{
    return &slots[((unsigned)((process * UINT64_C(0xd1b54a32d192ed03) ^ hash_function(f)) >> 51) + probe) % SLOTS];
}

static uint32_t load_relaxed(_Atomic uint32_t *at)
{
    return atomic_load_explicit(at, memory_order_relaxed);
}

static void store_relaxed(_Atomic uint32_t *at, uint32_t value)
{
    atomic_store_explicit(at, value, memory_order_relaxed);
}

/* Returns how many results of the function a process may owe before the asker looks at its stack. */
static uint32_t known_depth(const struct stack_function *f)
{
    return 2 * load_relaxed(&known[hash_function(f) >> 54]);
}

static bool is_of(struct slot *slot, uint64_t process)
{
    return atomic_load_explicit(&slot->process, memory_order_acquire) == process;
}

static inline bool is_slot_of(struct slot *slot, uint64_t process, const struct stack_function *f)
{
    return is_of(slot, process) && stack_same(&slot->function, f);
}

static struct slot *find_slot(uint64_t process, const struct stack_function *f)
{
    for (unsigned probe = 0; probe < PROBES; probe++) {
        struct slot *slot = slot_at(process, f, probe);
        if (is_slot_of(slot, process, f))
            return slot;
    }
    return NULL;
}

static struct slot *slot_with_lowest_count(uint64_t process, const struct stack_function *f)
{
    struct slot *best = slot_at(process, f, 0);
    for (unsigned probe = 1; probe < PROBES && load_relaxed(&best->count); probe++)
        if (load_relaxed(&slot_at(process, f, probe)->count) < load_relaxed(&best->count))
            best = slot_at(process, f, probe);
    return best;
}

static struct slot *slot_of_dead_process(void *env, uint64_t process, const struct stack_function *f)
{
    for (unsigned probe = 0; probe < PROBES; probe++) {
        struct slot *slot = slot_at(process, f, probe);
        if (!is_alive(env, atomic_load_explicit(&slot->process, memory_order_relaxed)))
            return slot;
    }
    return NULL;
}

static struct slot *take_slot(void *env, uint64_t process, const struct stack_function *f)
{
    struct slot *slot = slot_with_lowest_count(process, f), *dead = NULL;
    if (load_relaxed(&slot->count) > LOW && (dead = slot_of_dead_process(env, process, f)))
        slot = dead;
    uint64_t other = atomic_load_explicit(&slot->process, memory_order_relaxed);
    atomic_store(&slots_used, true);
    /* The slot belongs to no process while it changes */
    if (!atomic_compare_exchange_strong(&slot->process, &other, 0))
        return NULL;
    uint32_t deep = known_depth(f);
    slot->function = *f;
    store_relaxed(&slot->count, 0);
    store_relaxed(&slot->next, deep > OWED_ASK ? deep : OWED_ASK);
    store_relaxed(&slot->returns, 0);
    store_relaxed(&slot->lowest, UINT32_MAX);
    atomic_store(&slot->question, QUIET);
    atomic_store(&slot->trusted, false);
    atomic_store(&slot->void_now, false);
    atomic_store_explicit(&slot->process, process, memory_order_release);
    return slot;
}

void owed_clear(void)
{
    /* Most traces take no slot, and a new library has no memory for them yet. */
    const unsigned used = atomic_load(&slots_used) ? SLOTS : 0;
    for (unsigned i = 0; i < used; i++) {
        atomic_store(&slots[i].process, 0);
        atomic_store(&slots[i].question, QUIET);
        store_relaxed(&slots[i].count, 0);
    }
    owed_release(NULL);
}

void owed_begin(stack_alive_fn *alive)
{
    is_alive = alive;
    owed_clear();
    for (unsigned i = 0; i < KNOWN; i++)
        store_relaxed(&known[i], 0);
    ended_count = 0;
    for (unsigned i = 0; i < 2 * OWED_ENDLESS; i++)
        atomic_store_explicit(&ended[i].used, false, memory_order_relaxed);
}

/* Returns the entry of the function, or the free entry for it. The table is never more than half full. */
static struct ended *ended_place(const struct stack_function *f, bool *ret_used)
{
    for (uint64_t at = hash_function(f) >> 32;; at++) {
        struct ended *e = &ended[at % (2 * OWED_ENDLESS)];
        *ret_used = atomic_load_explicit(&e->used, memory_order_acquire);
        if (!*ret_used || stack_same(&e->function, f))
            return e;
    }
}

static struct ended *find_ended(const struct stack_function *f)
{
    bool used;
    struct ended *e = ended_place(f, &used);
    return used ? e : NULL;
}

static struct halted *halt_of(uint64_t process, const struct stack_function *f)
{
    for (unsigned i = 0; i < HALTED; i++)
        if (atomic_load_explicit(&halted[i].process, memory_order_acquire) == process &&
            stack_same(&halted[i].function, f))
            return &halted[i];
    return NULL;
}

/* Finds or adds the halt of a process in this function. Returns NULL if the table is full. */
static struct halted *halt_process(uint64_t process, const struct stack_function *f)
{
    struct halted *h = halt_of(process, f);
    for (unsigned i = 0; i < HALTED && !h; i++) {
        uint64_t none = 0;
        if (!atomic_compare_exchange_strong(&halted[i].process, &none, CLAIMED))
            continue;
        h = &halted[i];
        h->function = *f;
        atomic_store(&h->full, false);
        store_relaxed(&h->rejected, 0);
        store_relaxed(&h->frames, 0);
        atomic_store_explicit(&h->process, process, memory_order_release);
    }
    return h;
}

/* Ends the halts of a process in this function, or in all functions if f is NULL. */
static void end_halts(uint64_t process, const struct stack_function *f)
{
    for (unsigned i = 0; i < HALTED; i++)
        if (atomic_load(&halted[i].process) == process && (!f || stack_same(&halted[i].function, f)))
            atomic_store(&halted[i].process, 0);
}

/* Closes the question of a slot and ends its halt. The next question opens when the count reaches `next`. */
static void close_question(struct slot *slot, uint64_t process, const struct stack_function *f, uint32_t next)
{
    store_relaxed(&slot->next, next);
    atomic_store(&slot->question, QUIET);
    end_halts(process, f);
}

/*
 * Decides about a call if the count has reached slot->next. Opens a question. Exceptions: a question is open already,
 * the count is to be reset (void_now), or the function is known to loop or to recurse.
 */
static __attribute__((noinline)) enum owed open_question(struct slot *slot, uint64_t process,
                                                         const struct stack_function *f, uint32_t count)
{
    uint8_t quiet = QUIET;
    struct ended *loop = find_ended(f);
    if (loop) {
        if (!atomic_load(&loop->released))
            return OWED_WAITS;
        store_relaxed(&slot->count, count - 1); /* this call adds no frame to the stack */
        return OWED_FINE;
    }
    if (atomic_exchange(&slot->void_now, false)) {
        store_relaxed(&slot->count, 1);
        store_relaxed(&slot->next, OWED_ASK);
        atomic_store(&slot->question, QUIET);
        return OWED_FINE;
    }
    if (count > OWED_MOST && !atomic_load(&slot->trusted))
        return OWED_STUCK;
    if (count < load_relaxed(&slot->next)) /* the asker has just answered */
        return OWED_FINE;
    if (count < known_depth(f)) { /* the asker has found that the function recurses in another process */
        close_question(slot, process, f, known_depth(f));
        return OWED_FINE;
    }
    if (!atomic_compare_exchange_strong(&slot->question, &quiet, OPEN))
        return OWED_WAITS;
    slot->waits = 0;
    return OWED_ASKS;
}

static inline enum owed add_pending(struct slot *slot, uint64_t process, const struct stack_function *f)
{
    uint32_t count = load_relaxed(&slot->count) + 1;
    store_relaxed(&slot->count, count);
    return __builtin_expect(count < load_relaxed(&slot->next), 1) ? OWED_FINE : open_question(slot, process, f, count);
}

static inline void subtract_pending(struct slot *slot)
{
    uint32_t count = load_relaxed(&slot->count);
    count -= count > 0;
    store_relaxed(&slot->count, count);
    store_relaxed(&slot->returns, load_relaxed(&slot->returns) + 1);
    if (count < load_relaxed(&slot->lowest))
        store_relaxed(&slot->lowest, count);
}

static __attribute__((noinline)) enum owed add_in_other_slot(void *env, uint64_t process,
                                                             const struct stack_function *f)
{
    struct slot *slot = find_slot(process, f);
    if (!slot && !(slot = take_slot(env, process, f)))
        return OWED_FINE; /* another thread has just taken that slot: do not count this call */
    return add_pending(slot, process, f);
}

static __attribute__((noinline)) void subtract_in_other_slot(uint64_t process, const struct stack_function *f)
{
    struct slot *slot = find_slot(process, f);
    if (slot)
        subtract_pending(slot);
}

/* owed_more() and owed_less() try the first slot of the probe sequence first: it is nearly always the right one. */
enum owed owed_more(void *env, uint64_t process, const struct stack_function *f)
{
    struct slot *slot = slot_at(process, f, 0);
    if (__builtin_expect(is_slot_of(slot, process, f), 1))
        return add_pending(slot, process, f);
    return add_in_other_slot(env, process, f);
}

void owed_less(uint64_t process, const struct stack_function *f)
{
    struct slot *slot = slot_at(process, f, 0);
    if (__builtin_expect(is_slot_of(slot, process, f), 1))
        subtract_pending(slot);
    else
        subtract_in_other_slot(process, f);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

void owed_reopen(void)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        uint8_t told = TOLD;
        atomic_compare_exchange_strong(&slots[i].question, &told, OPEN);
    }
}

bool owed_question(uint32_t *at, uint64_t *ret_process, struct stack_function *ret)
{
    if (!*at)
        store_relaxed(&crowd, 0);
    for (; *at < SLOTS; ++*at) {
        struct slot *slot = &slots[*at];
        uint8_t open = OPEN, now = atomic_load_explicit(&slot->question, memory_order_relaxed);
        if (now != QUIET && !owed_ended(&slot->function))
            store_relaxed(&crowd, load_relaxed(&crowd) + 1);
        if (now != OPEN || !atomic_compare_exchange_strong(&slot->question, &open, TOLD))
            continue;
        *ret_process = atomic_load(&slot->process);
        *ret = slot->function;
        if (*ret_process)
            return true;
    }
    return false;
}

bool owed_read(uint64_t process, const struct stack_function *f, struct owed_count *ret)
{
    struct slot *slot = find_slot(process, f);
    if (!slot || atomic_load(&slot->question) == QUIET)
        return false;
    /* If the process stores a lower count at the same time, that count is valid, too. */
    const uint32_t lowest = atomic_exchange(&slot->lowest, UINT32_MAX), count = load_relaxed(&slot->count);
    *ret = (struct owed_count){.count = count,
                               .returns = load_relaxed(&slot->returns),
                               .lowest = lowest < count ? lowest : count};
    for (unsigned i = 0; i < SLOTS; i++)
        if (is_of(&slots[i], process))
            ret->total += load_relaxed(&slots[i].count);
    return ret->count;
}

void owed_answer(uint64_t process, const struct stack_function *f, uint32_t more, bool trusted)
{
    struct slot *slot = find_slot(process, f);
    if (!slot)
        return;
    uint32_t count = load_relaxed(&slot->count);
    if (trusted) {
        atomic_store(&slot->trusted, true);
        store_relaxed(&known[hash_function(f) >> 54], count < KNOWN_MOST ? count : KNOWN_MOST);
    }
    close_question(slot, process, f, count > UINT32_MAX - more ? UINT32_MAX : count + more);
}

void owed_forget(uint64_t process)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (is_of(&slots[i], process)) {
            atomic_store(&slots[i].void_now, true);
            store_relaxed(&slots[i].next, 0); /* makes the next call of the process look at void_now */
        }
    end_halts(process, NULL);
}

/* ---- endless functions ------------------------------------------------------------------------------------------- */

void owed_halt(uint64_t process, const struct stack_function *f)
{
    struct slot *slot = find_slot(process, f);
    struct halted *h = halt_process(process, f);
    if (h && slot && slot->waits >= OWED_WAITING && !atomic_load(&h->full)) {
        store_relaxed(&h->returns, load_relaxed(&slot->returns));
        atomic_store(&h->full, true);
    }
}

/*
 * Returns true if the calls of a halted process must still be rejected. If the function has returned since its last
 * call, calls may pass: the next call adds no frame to those of that time. Returns false also for a halt without an
 * open question, which a late callback may have made for an earlier session.
 */
static bool is_rejecting(struct halted *h, struct slot *slot)
{
    if (!atomic_load(&h->full) || (slot && load_relaxed(&slot->returns) != load_relaxed(&h->returns)))
        return false;
    /* The worker may have released the function after the last pause of the process and before its halt. */
    struct ended *loop = find_ended(&h->function);
    return loop ? !atomic_load(&loop->released) : slot && atomic_load(&slot->question) != QUIET;
}

/*
 * Returns true for one call in OWED_REJECTS + 1 on average, by a hash. A simple counter could always choose the call of
 * the same function, if each iteration of a loop makes OWED_REJECTS + 1 calls.
 */
static bool is_turn(uint32_t rejected)
{
    return (rejected * UINT64_C(0x9e3779b97f4a7c15) >> 40) % (OWED_REJECTS + 1) == 0;
}

/* Returns true if the stack may get one more frame of the function: the call that passes may be a call of it. */
static bool has_room(struct halted *h, struct slot *slot)
{
    return owed_ended(&h->function) ? slot && load_relaxed(&slot->count) < OWED_FRAMES
                                    : load_relaxed(&h->frames) < OWED_PASSED;
}

__attribute__((noinline)) enum owed owed_halts(uint64_t process)
{
    enum owed owed = OWED_FINE;
    for (unsigned i = 0; i < HALTED; i++) {
        struct halted *h = &halted[i];
        if (atomic_load_explicit(&h->process, memory_order_acquire) != process)
            continue;
        struct slot *slot = find_slot(process, &h->function);
        if (!is_rejecting(h, slot))
            continue;
        uint32_t rejected = load_relaxed(&h->rejected) + 1;
        store_relaxed(&h->rejected, rejected);
        if (rejected > OWED_REJECTED && !owed_ended(&h->function))
            return OWED_STUCK;
        if (!is_turn(rejected) || !has_room(h, slot))
            owed = OWED_WAITS;
    }
    return owed;
}

bool owed_is_halted(uint64_t process)
{
    for (unsigned i = 0; i < HALTED; i++)
        if (atomic_load_explicit(&halted[i].process, memory_order_acquire) == process &&
            is_rejecting(&halted[i], find_slot(process, &halted[i].function)))
            return true;
    return false;
}

bool owed_is_halting(void)
{
    for (unsigned i = 0; i < HALTED; i++)
        if (atomic_load(&halted[i].process))
            return true;
    return false;
}

void owed_release(const struct stack_function *f)
{
    for (unsigned i = 0; i < 2 * OWED_ENDLESS; i++)
        if (atomic_load(&ended[i].used) && (!f || stack_same(&ended[i].function, f)))
            atomic_store(&ended[i].released, true);
    for (unsigned i = 0; i < HALTED; i++) {
        uint64_t process = atomic_load_explicit(&halted[i].process, memory_order_acquire);
        if (process > CLAIMED && (!f || stack_same(&halted[i].function, f)))
            atomic_store(&halted[i].process, 0);
    }
}

static bool is_over(struct slot *slot, const struct stack_function *f)
{
    const struct ended *loop = find_ended(f);
    if (loop)
        return atomic_load(&loop->released);
    return atomic_load(&slot->question) == QUIET || load_relaxed(&slot->count) < known_depth(f);
}

/*
 * Returns the length of a pause, in units of the `ticks` of owed_pause(). The first calls pause only briefly, because
 * the asker usually answers at once. Later calls pause longer, because the asker may be late on a busy host.
 */
static unsigned pause_factor(unsigned waits)
{
    if (load_relaxed(&crowd) > CROWD)
        return 0;
    return waits < OWED_WAITING / 2 || waits >= OWED_WAITING ? 1 : waits < OWED_WAITING * 3 / 4 ? 10 : 40;
}

bool owed_pause(uint64_t process, const struct stack_function *f, uint64_t ticks)
{
    struct slot *slot = find_slot(process, f);
    struct halted *h;
    if (!slot)
        return false;
    uint64_t begin = tick_now();
    for (ticks *= pause_factor(slot->waits); tick_now() - begin < ticks && !is_over(slot, f);)
        sched_yield(); /* the asker may need this processor */
    if (slot->waits < OWED_WAITING)
        slot->waits++;
    if (slot->waits < OWED_WAITING || is_over(slot, f) || !(h = halt_process(process, f)))
        return false;
    store_relaxed(&h->returns, load_relaxed(&slot->returns));
    if (atomic_exchange(&h->full, true))
        store_relaxed(&h->frames, load_relaxed(&h->frames) + 1);
    return true;
}

bool owed_end(const struct stack_function *f)
{
    bool used;
    struct ended *e = ended_place(f, &used);
    if (used)
        return true;
    if (ended_count == OWED_ENDLESS)
        return false;
    ended_count++;
    e->function = *f;
    atomic_store(&e->released, false);
    atomic_store_explicit(&e->used, true, memory_order_release);
    return true;
}

bool owed_ended(const struct stack_function *f)
{
    return find_ended(f);
}
