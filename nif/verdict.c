/* SPDX-License-Identifier: Apache-2.0 */
#include "verdict.h"

#include <stdatomic.h>

#define SLACK_NS 1000 /* the client's duration may differ from ours by this plus 1/SLACK_PART of ours */
#define SLACK_PART 32

enum value { NO, YES, LATER, FAILED };

uint32_t verdict_steps;
bool verdict_measured;
enum verdict verdict_sizeless = VERDICT_SHOWS;
static struct etw_filter_step steps[ETW_FILTER_MOST];
static struct verdict_programs programs;
static _Atomic uint64_t least_ns = UINT64_MAX, most_ns;
static _Atomic bool example_sent;

bool verdict_set(const uint8_t *bytes, size_t n, const struct verdict_programs *p)
{
    struct etw_filter_step given[ETW_FILTER_MOST];
    size_t count = n / sizeof *given;
    if (n % sizeof *given || count > ETW_FILTER_MOST)
        return false;
    if (count) {
        __builtin_memcpy(given, bytes, n);
        if (!etw_filter_valid(given, count, p ? p->count : 0))
            return false;
        if (p)
            programs = *p;
        __builtin_memcpy(steps, given, n);
    }
    atomic_store_explicit(&least_ns, UINT64_MAX, memory_order_relaxed); /* as in note_time() */
    atomic_store_explicit(&most_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&example_sent, false, memory_order_relaxed);
    verdict_steps = (uint32_t)count;
    verdict_measured = etw_filter_measures(steps, count);
    verdict_sizeless = verdict_call(0, true);
    return true;
}

/* Bounds of a number that may be known only approximately. */
struct about {
    int64_t least, most;
};

static struct about exact_number(uint64_t n)
{
    int64_t known = n < INT64_MAX ? (int64_t)n : INT64_MAX;
    return (struct about){known, known};
}

/* Compares a number with that of a step. Returns LATER if the outcome depends on where the number is in its bounds. */
static enum value compare_number(const struct etw_filter_step *s, struct about with)
{
    enum value least = LATER, most = LATER;
    switch ((enum etw_filter_compare)s->compare) {
    case ETW_FILTER_GT:
        least = with.least > s->value, most = with.most > s->value;
        break;
    case ETW_FILTER_GE:
        least = with.least >= s->value, most = with.most >= s->value;
        break;
    case ETW_FILTER_LT:
        least = with.least < s->value, most = with.most < s->value;
        break;
    case ETW_FILTER_LE:
        least = with.least <= s->value, most = with.most <= s->value;
        break;
    case ETW_FILTER_EQ:
    case ETW_FILTER_NE:
    case ETW_FILTER_COMPARES:
        if (s->value < with.least || s->value > with.most)
            return s->compare == ETW_FILTER_NE;
        return with.least != with.most ? LATER : s->compare == ETW_FILTER_EQ ? YES : NO;
    }
    return least == most ? least : LATER;
}

/* Combines two operands like `andalso`: if the left operand is false or fails, the right operand does not matter. */
static enum value combine_and(enum value a, enum value b)
{
    if (a == NO || a == FAILED)
        return a;
    return a == LATER && b != NO && b != FAILED ? LATER : b;
}

/* Ignores an operand that fails, unless both operands fail. */
static enum value combine_or(enum value a, enum value b)
{
    if (a == YES || b == FAILED)
        return a;
    return a == LATER && b != YES ? LATER : b;
}

static enum value combine_xor(enum value a, enum value b)
{
    if (a >= LATER || b >= LATER)
        return a >= LATER ? a : b;
    return a != b;
}

static enum value test_result_value(const struct etw_filter_step *s, const struct verdict_end *end)
{
    const void *program = programs.programs[s->value % ETW_FILTER_PROGRAMS];
    return program && programs.accepts(end->env, program, end->value) ? YES : NO;
}

/*
 * Evaluates the filter. absent: the outcome of a test for a duration, a class or a return value that the event does not
 * have.
 */
static enum value value_of(struct about bytes, struct about ns, const struct verdict_end *end, enum value absent)
{
    enum value values[ETW_FILTER_DEEP] = {NO};
    unsigned n = 0; /* length of the stack, used modulo ETW_FILTER_DEEP: a half-written filter may be invalid */
#define TOP(k) values[(n - (k)) % ETW_FILTER_DEEP]
    for (uint32_t i = 0; i < verdict_steps && i < ETW_FILTER_MOST; i++) {
        const struct etw_filter_step *s = &steps[i];
        switch ((enum etw_filter_what)s->what) {
        case ETW_FILTER_DUR:
            TOP(0) = ns.least < 0 ? absent : compare_number(s, ns);
            n++;
            break;
        case ETW_FILTER_SIZE:
            TOP(0) = compare_number(s, bytes);
            n++;
            break;
        case ETW_FILTER_CLASS:
            TOP(0) = end->class == ETW_CLASSES ? absent : compare_number(s, exact_number(end->class));
            n++;
            break;
        case ETW_FILTER_RET:
            TOP(0) = end->returned ? test_result_value(s, end) : absent;
            n++;
            break;
        case ETW_FILTER_NOT:
            TOP(1) = TOP(1) == NO ? YES : TOP(1) == YES ? NO : TOP(1);
            break;
        case ETW_FILTER_AND:
            n--;
            TOP(1) = combine_and(TOP(1), TOP(0));
            break;
        case ETW_FILTER_OR:
            n--;
            TOP(1) = combine_or(TOP(1), TOP(0));
            break;
        case ETW_FILTER_XOR:
        case ETW_FILTER_WHATS:
            n--;
            TOP(1) = combine_xor(TOP(1), TOP(0));
            break;
        }
    }
    return TOP(1);
#undef TOP
}

enum verdict verdict_call_slowly(uint64_t bytes, bool returns)
{
    const struct verdict_end none = {.class = ETW_CLASSES};
    enum value v = value_of(exact_number(bytes), (struct about){-1, -1}, &none, returns ? LATER : FAILED);
    return v == LATER ? VERDICT_WAITS : v == YES ? VERDICT_SHOWS : VERDICT_HIDES;
}

/*
 * Keeps the shortest and the longest duration. The loads are relaxed, because no other memory depends on these numbers.
 * An exchange fails only if another thread has changed the number towards ours.
 */
static void note_time(uint64_t ns)
{
    uint64_t least = atomic_load_explicit(&least_ns, memory_order_relaxed);
    uint64_t most = atomic_load_explicit(&most_ns, memory_order_relaxed);
    while (ns < least && !atomic_compare_exchange_strong(&least_ns, &least, ns))
        continue;
    while (ns > most && !atomic_compare_exchange_strong(&most_ns, &most, ns))
        continue;
}

bool verdict_times(uint64_t *ret_least_ns, uint64_t *ret_most_ns)
{
    *ret_least_ns = atomic_load_explicit(&least_ns, memory_order_relaxed); /* as in note_time() */
    *ret_most_ns = atomic_load_explicit(&most_ns, memory_order_relaxed);
    return *ret_least_ns <= *ret_most_ns;
}

bool verdict_result(uint64_t bytes, uint64_t ns, const struct verdict_end *end)
{
    note_time(ns);
    return value_of(exact_number(bytes), exact_number(ns), end, FAILED) == YES;
}

bool verdict_result_untimed(const struct verdict_end *end)
{
    return value_of(exact_number(0), (struct about){-1, -1}, end, FAILED) == YES;
}

/* Returns true once after verdict_set(). */
static bool takes_example(void)
{
    return !atomic_load_explicit(&example_sent, memory_order_relaxed) && !atomic_exchange(&example_sent, true);
}

bool verdict_result_may(uint64_t ns, const struct verdict_end *end)
{
    note_time(ns);
    int64_t known = ns < INT64_MAX / 2 ? (int64_t)ns : INT64_MAX / 2, slack = known / SLACK_PART + SLACK_NS;
    struct about time = {known > slack ? known - slack : 0, known + slack};
    enum value v = value_of((struct about){0, INT64_MAX}, time, end, FAILED);
    return v == YES || v == LATER || takes_example();
}
