/* SPDX-License-Identifier: Apache-2.0 */
#include "stack.h"

#include "pages.h"

#define STACKS 2048
#define PROBES 8

_Static_assert(sizeof(struct stack_call) % 8 == 0, "calls lie one behind the other");

static struct stack *stacks;
static stack_alive_fn *is_alive;

void stacks_unmap(void)
{
    if (stacks)
        munmap(stacks, sizeof(struct stack) * STACKS);
    stacks = NULL;
}

bool stacks_open(stack_alive_fn *alive)
{
    is_alive = alive;
    if (!stacks)
        stacks = pages_map(sizeof(struct stack) * STACKS);
    return stacks;
}

bool stacks_clear(size_t *at, size_t bytes)
{
    return stacks && pages_clear(stacks, sizeof(struct stack) * STACKS, at, bytes);
}

static struct stack *stack_at(uint64_t process, unsigned probe)
{
    return &stacks[((unsigned)((process >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 52) + probe) % STACKS];
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
 * Returns the first stack of the probe sequence that is free or already belongs to the process. So if a process has
 * several stacks, the first one has the newest calls. The first probe nearly always succeeds.
 */
static struct stack *take(void *env, uint64_t process)
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

struct stack_call *stack_push(void *env, uint64_t process, const struct stack_call *call)
{
    struct stack *s = take(env, process);
    uint32_t needs = (uint32_t)sizeof *call + (call->bytes + 7) / 8 * 8;
    if (!s)
        return NULL;
    if (s->over || s->used > sizeof s->bytes || needs > sizeof s->bytes - s->used) {
        s->over++;
        return NULL;
    }
    struct stack_call *place = call_at(s, s->used);
    *place = *call;
    place->below = s->top;
    s->top = s->used;
    s->used += needs;
    return place;
}

/*
 * Checks an offset before use. A late callback may have written to a stack that belongs to another process now, so its
 * content may be garbage. The check keeps every access inside the stack.
 */
static bool lies_in(const struct stack_call *call, uint32_t at, uint32_t used)
{
    return used <= sizeof((struct stack *)0)->bytes && at < used && used - at >= sizeof *call &&
           used - at - sizeof *call >= call->bytes && at % 8 == 0;
}

static struct stack_call *newest_of(struct stack *s, const struct stack_function *f)
{
    uint32_t at = s->top, used = s->used;
    while (used) {
        struct stack_call *call = call_at(s, at);
        if (!lies_in(call, at, used)) {
            s->used = 0;
            break;
        }
        used = at;
        at = call->below;
        if (stack_same(&call->function, f)) {
            s->top = at;
            s->used = used;
            return call;
        }
    }
    return NULL;
}

/* Empties the process's stacks in earlier slots: their calls are newer and can no longer return. */
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
    *ret_stack = NULL;
    for (unsigned probe = 0; probe < PROBES; probe++) {
        struct stack *s = stack_at(process, probe);
        if (owner_of(s) != process)
            continue;
        *ret_stack = s;
        if (s->over) {
            s->over--;
            return NULL;
        }
        struct stack_call *call = newest_of(s, f);
        if (call) {
            forget_newer(process, probe);
            return call;
        }
    }
    return NULL;
}

void stack_rest(struct stack *s)
{
    if (!s->used && !s->over)
        atomic_store_explicit(&s->process, 0, memory_order_release);
}
