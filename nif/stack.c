/* SPDX-License-Identifier: Apache-2.0 */
#include "stack.h"

#include "pages.h"

#define STACKS 2048
#define PROBES 8
#define GAPS 4096 /* a power of two */

_Static_assert(sizeof(struct stack_call) % 8 == 0, "calls lie one after the other");
_Static_assert(STACK_BYTES <= UINT16_MAX, "an offset fits stack_call.below");

static struct stack *stacks;
static stack_alive_fn *is_alive;
static _Atomic uint32_t current_epoch;
/*
 * Set if the stacks of a process lack calls that may still return, indexed by a hash of the process. If two processes
 * share an entry, stack_pop() only marks fewer calls as sure.
 */
static _Atomic bool gaps[GAPS];

void stacks_unmap(void)
{
    if (stacks)
        munmap(stacks, sizeof(struct stack) * STACKS);
    stacks = NULL;
}

bool stacks_open(stack_alive_fn *alive)
{
    is_alive = alive;
    for (unsigned i = 0; i < GAPS; i++)
        atomic_store_explicit(&gaps[i], false, memory_order_relaxed);
    if (!stacks)
        stacks = pages_map(sizeof(struct stack) * STACKS);
    return stacks;
}

bool stacks_clear(size_t *at, size_t bytes)
{
    return stacks && pages_clear(stacks, sizeof(struct stack) * STACKS, at, bytes);
}

void stacks_resume(void)
{
    atomic_store(&current_epoch, atomic_load(&current_epoch) + 1);
}

static uint32_t epoch_now(void)
{
    return atomic_load_explicit(&current_epoch, memory_order_relaxed);
}

static unsigned hash_process(uint64_t process)
{
    return (unsigned)((process >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 52);
}

static struct stack *stack_at(uint64_t process, unsigned probe)
{
    return &stacks[(hash_process(process) + probe) % STACKS];
}

static _Atomic bool *gap_of(uint64_t process)
{
    return &gaps[hash_process(process) % GAPS];
}

static uint64_t owner_of(const struct stack *s)
{
    return atomic_load_explicit(&s->process, memory_order_relaxed);
}

static bool take_from(struct stack *s, uint64_t owner, uint64_t process)
{
    if (!atomic_compare_exchange_strong(&s->process, &owner, process))
        return false;
    s->top = s->used = s->over = 0;
    return true;
}

/*
 * Returns the first stack of the probe sequence that is free or already belongs to the process, or else a stack of a
 * dead process. So if a process has several stacks, the first one has the newest calls. The first probe nearly always
 * succeeds.
 */
static struct stack *take_process_stack(void *env, uint64_t process)
{
    for (unsigned probe = 0; probe < PROBES; probe++) {
        struct stack *s = stack_at(process, probe);
        uint64_t owner = owner_of(s);
        if (owner == process || (!owner && take_from(s, 0, process)))
            return s;
    }
    for (unsigned probe = 0; probe < PROBES; probe++) {
        struct stack *s = stack_at(process, probe);
        uint64_t owner = owner_of(s);
        if ((!owner || !is_alive(env, owner)) && take_from(s, owner, process))
            return s;
    }
    return NULL;
}

static struct stack_call *call_at(struct stack *s, uint32_t at)
{
    return (struct stack_call *)(void *)(s->bytes + at);
}

static uint32_t bytes_of(const struct stack_call *call)
{
    return (uint32_t)sizeof *call + (call->bytes + 7) / 8 * 8;
}

/*
 * Returns true if the call at the offset `at` lies inside its stack. It may not: a late callback of another process may
 * have written garbage to the stack.
 */
static bool lies_in(const struct stack_call *call, uint32_t at, uint32_t used)
{
    return used <= sizeof((struct stack *)0)->bytes && at < used && used - at >= sizeof *call &&
           used - at - sizeof *call >= call->bytes && at % 8 == 0;
}

/*
 * Begins an epoch in a stack. Empties a stack that is more than half full. Forgets the calls that found no room,
 * because they may have returned.
 */
static void begin_epoch(struct stack *s, uint64_t process, uint32_t epoch)
{
    s->epoch = epoch;
    s->over = 0;
    if (s->used <= sizeof s->bytes / 2)
        return;
    s->used = 0;
    atomic_store_explicit(gap_of(process), true, memory_order_relaxed);
}

/* Notes that a call found no room. Returns NULL, which makes stack_push() return NULL. */
static __attribute__((noinline)) struct stack_call *no_room(struct stack *s, uint64_t process)
{
    if (s)
        s->over++;
    atomic_store_explicit(gap_of(process), true, memory_order_relaxed);
    return NULL;
}

struct stack_call *stack_push(void *env, uint64_t process, const struct stack_call *call)
{
    struct stack *s = take_process_stack(env, process);
    uint32_t needs = bytes_of(call), epoch = epoch_now();
    if (!s)
        return no_room(s, process);
    if (__builtin_expect(s->epoch != epoch, 0))
        begin_epoch(s, process, epoch);
    if (s->over || s->used > sizeof s->bytes || needs > sizeof s->bytes - s->used)
        return no_room(s, process);
    const struct stack_call *below = call_at(s, s->top);
    bool follows = lies_in(below, s->top, s->used) && below->epoch == epoch;
    struct stack_call *place = call_at(s, s->used);
    *place = *call;
    place->epoch = epoch;
    place->follows = follows;
    place->below = (uint16_t)s->top;
    s->top = s->used;
    s->used += needs;
    return place;
}

/* Finds the newest call of a function. Returns NULL if there is none, or the content is garbage. */
static struct stack_call *find_call(struct stack *s, const struct stack_function *f)
{
    uint32_t at = s->top, used = s->used;
    while (used) {
        struct stack_call *call = call_at(s, at);
        if (!lies_in(call, at, used))
            return NULL;
        if (stack_same(&call->function, f))
            return call;
        used = at;
        at = call->below;
    }
    return NULL;
}

static bool is_dropped(const struct stack_call *call)
{
    return !call->function.name;
}

/* Removes dropped calls (stack_drop()) from the top of the stack. Empties the stack if its content is garbage. */
static void trim_dropped(struct stack *s)
{
    while (s->used) {
        const struct stack_call *call = call_at(s, s->top);
        if (!lies_in(call, s->top, s->used)) {
            s->used = 0;
            return;
        }
        if (!is_dropped(call))
            return;
        s->used = s->top;
        s->top = call->below;
    }
}

/* Removes the newest call of a function and all newer calls. Returns the call of the function, or NULL. */
static struct stack_call *newest_of(struct stack *s, const struct stack_function *f)
{
    struct stack_call *call = find_call(s, f);
    if (call) {
        s->used = (uint32_t)((uint8_t *)call - s->bytes);
        s->top = call->below;
    }
    trim_dropped(s);
    return call;
}

/*
 * Returns true if a result certainly belongs to the call of an earlier epoch that was just popped. That is so if the
 * stacks lack no call of the process and have no other call of the function.
 */
static bool is_only(uint64_t process, struct stack *s, unsigned probe, const struct stack_function *f)
{
    if (atomic_load_explicit(gap_of(process), memory_order_relaxed) || find_call(s, f))
        return false;
    while (++probe < PROBES)
        if (owner_of(stack_at(process, probe)) == process && find_call(stack_at(process, probe), f))
            return false;
    return true;
}

/* Moves the call below a popped call to this epoch, if it is known to have been open when the popped call began. */
static void confirm_below(struct stack *s, const struct stack_call *call, uint32_t epoch)
{
    struct stack_call *below = call_at(s, s->top);
    if (call->follows && lies_in(below, s->top, s->used) && below->epoch != epoch)
        below->epoch = epoch;
}

/* Empties the process's stacks in earlier slots than `than`: their calls are newer and can no longer return. */
static void forget_newer(uint64_t process, unsigned than)
{
    for (unsigned probe = 0; probe < than; probe++) {
        struct stack *s = stack_at(process, probe);
        if (owner_of(s) != process)
            continue;
        s->used = s->over = 0;
        stack_rest(s);
    }
}

struct stack_call *stack_pop(uint64_t process, const struct stack_function *f, struct stack **ret_stack)
{
    uint32_t epoch = epoch_now();
    *ret_stack = NULL;
    for (unsigned probe = 0; probe < PROBES; probe++) {
        struct stack *s = stack_at(process, probe);
        if (owner_of(s) != process)
            continue;
        *ret_stack = s;
        if (s->over && s->epoch != epoch)
            s->over = 0;
        if (s->over) {
            s->over--;
            return NULL;
        }
        struct stack_call *call = newest_of(s, f);
        if (call) {
            call->sure = call->epoch == epoch || is_only(process, s, probe, f);
            if (call->sure)
                confirm_below(s, call, epoch);
            forget_newer(process, probe);
            return call;
        }
    }
    return NULL;
}

struct stack_call *stack_drop(uint64_t process, const struct stack_function *f, struct stack **ret_stack)
{
    for (unsigned probe = 0; probe < PROBES; probe++) {
        struct stack *s = *ret_stack = stack_at(process, probe);
        struct stack_call *call = owner_of(s) == process ? find_call(s, f) : NULL;
        if (!call)
            continue;
        /* no result finds a call without a function; trim_dropped() removes that call when no newer call is left */
        call->function = (struct stack_function){0};
        trim_dropped(s);
        return call;
    }
    *ret_stack = NULL;
    return NULL;
}

void stack_rest(struct stack *s)
{
    if (!s->used && !s->over)
        atomic_store_explicit(&s->process, 0, memory_order_release);
}

/*
 * Counts the open calls of a stack, from the oldest one on. Skips the calls of earlier epochs, because they may have
 * returned in a pause.
 */
static void count_waits(struct stack *s, uint64_t before, bool (*counts)(const struct stack_call *),
                        struct stack_waits *ret)
{
    for (uint32_t at = 0; ret->calls < STACK_WAITS_MOST; at += bytes_of(call_at(s, at))) {
        const struct stack_call *call = call_at(s, at);
        if (!lies_in(call, at, s->used) || call->tick >= before)
            return;
        if (call->epoch != epoch_now() || is_dropped(call) || !counts(call))
            continue;
        if (!ret->calls++ || call->tick < ret->tick) {
            ret->process = owner_of(s);
            ret->tick = call->tick;
            ret->function = call->function;
        }
    }
}

void stacks_waits(void *env, uint64_t before, bool (*counts)(const struct stack_call *), struct stack_waits *ret)
{
    *ret = (struct stack_waits){0};
    for (unsigned i = 0; stacks && i < STACKS; i++) {
        uint64_t owner = owner_of(&stacks[i]);
        if (owner && stacks[i].used && is_alive(env, owner))
            count_waits(&stacks[i], before, counts, ret);
    }
}
