/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the stacks of open calls: two processes with the same slot find their own calls, the newest first. */
#include "stack.h"

#include <stdlib.h>

#include "tap.h"

enum { PROCESSES = 2, DEPTH = 100, FUNCTIONS = 5 };

static struct {
    uint64_t word;
    struct stack_call calls[DEPTH];
    unsigned depth;
} processes[PROCESSES];

static uint64_t dead;

static bool lives(void *env, uint64_t process)
{
    (void)env;
    return process != dead;
}

static void empty(void)
{
    size_t at = 0;

    while (stacks_clear(&at, 1 << 20))
        ;
}

static struct stack_function function(unsigned n)
{
    return (struct stack_function){.module = 11, .name = 75 + n * 64, .arity = n % 2};
}

/* Returns where the first call of a process without a stack would be stored. */
static struct stack_call *place_of(uint64_t process)
{
    struct stack_call call = {.function = function(0)};
    struct stack *s;
    struct stack_call *place = stack_push(NULL, process, &call);

    stack_pop(process, &call.function, &s);
    stack_rest(s);
    return place;
}

/* Chooses two processes with the same first slot. */
static void choose(void)
{
    uint64_t word = 0x103;

    processes[0].word = word;
    do
        word += 16;
    while (place_of(word) != place_of(processes[0].word));
    processes[1].word = word;
}

static bool push(unsigned who, unsigned f, uint64_t tick)
{
    struct stack_call call = {.function = function(f), .tick = tick, .bytes = (uint32_t)tick % 20};
    struct stack_call *place = stack_push(NULL, processes[who].word, &call);

    if (place)
        memset(stack_beside(place), (int)tick, call.bytes);
    processes[who].calls[processes[who].depth++] = call;
    return place;
}

static bool pop(unsigned who, unsigned f)
{
    const struct stack_function fun = function(f);
    struct stack *s;
    struct stack_call *call = stack_pop(processes[who].word, &fun, &s);
    unsigned n = processes[who].depth;
    bool good;

    while (n && !stack_same(&processes[who].calls[n - 1].function, &fun))
        n--;
    good = n ? call && call->tick == processes[who].calls[n - 1].tick : !call;
    for (uint32_t i = 0; good && call && i < call->bytes; i++)
        good = stack_beside(call)[i] == (uint8_t)call->tick;
    if (n)
        processes[who].depth = n - 1;
    if (s)
        stack_rest(s);
    return good;
}

static bool at_random(uint64_t steps)
{
    for (uint64_t tick = 1; tick <= steps; tick++) {
        unsigned who = (unsigned)rand() % PROCESSES, f = (unsigned)rand() % FUNCTIONS;
        bool calls = (unsigned)rand() % 8 < (tick / 200 % 2 ? 2 : 5);
        if (calls && processes[who].depth < DEPTH ? !push(who, f, tick) : !pop(who, f)) {
            printf("# step %" PRIu64 "\n", tick);
            return false;
        }
    }
    return true;
}

static bool push_one(uint64_t process)
{
    return stack_push(NULL, process, &(struct stack_call){.function = function(1)});
}

static bool has_one(uint64_t process)
{
    const struct stack_function f = function(1);
    struct stack *s;

    return stack_pop(process, &f, &s) && push_one(process);
}

/* With more processes than slots, a process keeps its slot until it dies, and push fails for a process without one. */
static void test_places(void)
{
    unsigned with = 0, kept = 0;

    empty();
    for (uint64_t p = 1; p <= 10000; p++)
        with += push_one(p << 4 | 3);
    for (uint64_t p = 1; p <= 10000; p++)
        kept += has_one(p << 4 | 3);
    ok(with > 1000 && kept == with, "%u of ten thousand processes get a stack, and %u keep it", with, kept);
    for (uint64_t p = 1; p <= 10000 && !dead; p++)
        dead = has_one(p << 4 | 3) ? p << 4 | 3 : 0;
    with = 0;
    for (uint64_t p = 10001; p <= 100000; p++)
        with += push_one(p << 4 | 3);
    ok(with == 1 && !has_one(dead), "one process takes over the stack of a dead process");
    dead = 0;
}

/* Processes die inside their calls and return no stack. The next process takes the slot over. */
static bool all_are_dead(void *env, uint64_t process)
{
    (void)env, (void)process;
    return false;
}

static void test_deaths(void)
{
    unsigned with = 0;

    empty();
    stacks_open(all_are_dead);
    for (uint64_t p = 1; p <= 100000; p++)
        with += push_one(p << 4 | 3);
    is_number(with, 100000, "each of a hundred thousand processes that die in a call gets a stack");
    stacks_open(lives);
}

/* Calls above a full stack are counted, so that each result still finds its own call. */
static void test_full(void)
{
    unsigned pushed = 0, popped = 0, without = 0;
    const struct stack_function f = function(2);
    struct stack *s = NULL;

    empty();
    for (unsigned i = 0; i < STACK_CALLS + 100; i++)
        pushed += stack_push(NULL, 19, &(struct stack_call){.function = f, .tick = i}) != NULL;
    is_number(pushed, STACK_CALLS, "a stack has room for STACK_CALLS calls");
    for (unsigned i = STACK_CALLS + 100; i-- > 0;) {
        const struct stack_call *call = stack_pop(19, &f, &s);
        without += !call;
        popped += call && call->tick == i;
    }
    ok(without == 100 && popped == STACK_CALLS,
       "each result finds its own call, and results of calls without room find none");
    stack_rest(s);
    ok(!stack_pop(19, &f, &s) && !s, "an empty stack is free");
}

/* Returns the tick of the call, negative if the call is not sure; 0: unknown. */
static int64_t returned(unsigned f)
{
    const struct stack_function fun = function(f);
    struct stack *s;
    const struct stack_call *call = stack_pop(19, &fun, &s);
    int64_t tick = !call ? 0 : call->sure ? (int64_t)call->tick : -(int64_t)call->tick;

    if (s)
        stack_rest(s);
    return tick;
}

static bool called(unsigned f, uint64_t tick)
{
    return stack_push(NULL, 19, &(struct stack_call){.function = function(f), .tick = tick});
}

static unsigned dropped(unsigned f)
{
    const struct stack_function fun = function(f);
    struct stack *s;
    unsigned n = 0;

    for (; stack_drop(19, &fun, &s); n++)
        stack_rest(s);
    return n;
}

/* The calls of a function are dropped, and those of others between them still find their results. */
static void test_drop(void)
{
    bool good = true;

    empty();
    for (unsigned i = 1; i <= 60; i++)
        good &= called(i % 3 ? 1 : 2, i);
    is_number(dropped(1), 40, "all calls of a function are dropped");
    for (unsigned i = 60; i > 0; i -= 3)
        good &= returned(2) == i;
    ok(good && !dropped(1) && !returned(2), "the calls between them keep their results");
    for (unsigned i = 1; i <= STACK_CALLS; i++)
        good &= called(1, i);
    ok(good && dropped(1) == STACK_CALLS && called(2, 7) && returned(2) == 7, "dropped calls make room");
}

/* In a pause, calls return without a result. */
static void test_pauses(void)
{
    unsigned pushed = 0;

    empty();
    stacks_open(lives);
    called(0, 1), called(1, 2), called(1, 3), called(1, 4);
    stacks_resume();
    ok(returned(1) == -4, "a result after a pause that may belong to several calls belongs to none for sure");
    called(1, 5);
    ok(returned(1) == 5, "a call after the pause gets its result");
    ok(returned(1) == -3 && returned(1) == 2, "the last call of a function gets its result");
    ok(returned(0) == 1, "and so does a call of another function");

    called(0, 1), called(1, 2), called(1, 3), called(2, 4);
    stacks_resume();
    ok(returned(2) == 4 && returned(1) == 3 && returned(1) == 2 && returned(0) == 1,
       "if a call surely did not return in the pause, the calls around it did not either");

    called(1, 1);
    stacks_resume();
    called(1, 2), called(2, 3);
    stacks_resume();
    ok(returned(2) == 3 && returned(1) == 2,
       "the call around another one of the same epoch is open as long as that one");
    ok(returned(1) == 1, "a call that is alone in the end is sure");
    called(1, 1);
    stacks_resume();
    called(2, 2);
    stacks_resume();
    ok(returned(2) == 2 && returned(1) == 1, "a call of an earlier epoch is found below");
    called(1, 1), called(1, 2);
    stacks_resume();
    called(2, 3);
    stacks_resume();
    ok(returned(2) == 3 && returned(1) == -2, "but it may have returned before the call above it began");
    returned(1);

    for (unsigned i = 0; i < STACK_CALLS + 10; i++)
        called(1, i + 1);
    for (unsigned i = 0; i < 10 * STACK_CALLS; i++) {
        stacks_resume();
        pushed += called(2, i + 1);
    }
    is_number(pushed, 10 * STACK_CALLS, "calls that returned in pauses do not fill the stack");
    stacks_resume();
    ok(returned(2) < 0, "without the dropped calls no result is sure after a pause");
    called(2, 1);
    ok(returned(2) == 1, "and each is sure without a pause");
    empty();
    stacks_open(lives);
}

static bool is_even(const struct stack_call *call)
{
    return call->tick % 2 == 0;
}

static void waits(uint64_t before, struct stack_waits *ret)
{
    stacks_waits(NULL, before, is_even, ret);
}

/* The calls that have not returned. */
static void test_waits(void)
{
    struct stack_waits w;

    waits(100, &w);
    ok(w.calls == 0, "no call waits on empty stacks");
    push(0, 1, 11);
    push(0, 2, 20);
    push(0, 3, 40);
    push(1, 4, 18);
    push(1, 0, 22);
    push(1, 1, 30);
    waits(30, &w);
    const struct stack_function f = function(4);
    ok(w.calls == 3 && w.tick == 18 && w.process == processes[1].word && stack_same(&w.function, &f),
       "the calls before a tick that count, and the oldest of them");
    struct stack *s;
    stack_drop(processes[1].word, &f, &s);
    waits(30, &w);
    ok(w.calls == 2 && w.tick == 20, "a dropped call does not wait");
    dead = processes[1].word;
    waits(30, &w);
    ok(w.calls == 1 && w.tick == 20, "a dead process has none");
    dead = 0;
    stacks_resume();
    push(0, 4, 60);
    waits(100, &w);
    ok(w.calls == 1 && w.tick == 60, "a call from before a pause may have returned");
    processes[0].depth = processes[1].depth = 0;
    empty();
    stacks_open(lives);
    for (uint64_t i = 0; i < 150; i++)
        for (unsigned n = 0; n < STACK_CALLS; n++)
            stack_push(NULL, 0x1003 + 16 * i, &(struct stack_call){.function = function(1), .tick = 2});
    waits(100, &w);
    ok(w.calls == STACK_WAITS_MOST, "the look is bounded");
    empty();
    stacks_open(lives);
}

int main(void)
{
    ok(stacks_open(lives), "the stacks open");
    choose();
    push(0, 0, 1);
    push(1, 1, 2);
    ok(pop(0, 0) && push(1, 2, 3) && pop(1, 2) && pop(1, 1), "a call is found although a slot between was freed");
    push(0, 0, 4);
    push(1, 1, 5);
    pop(0, 0);
    push(1, 2, 6);
    ok(pop(1, 3) && pop(1, 1) && pop(1, 2),
       "popping an older call also removes newer ones, and popping an unknown call removes none");
    ok(place_of(processes[0].word) == place_of(processes[1].word), "every slot is free again");
    ok(at_random(200000), "the table equals its model over random steps");
    test_places();
    test_deaths();
    test_full();
    test_drop();
    test_pauses();
    test_waits();
    stacks_unmap();
    return tap_end();
}
