/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"
#include "stdatomic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <ucontext.h>

enum {
    PLACES = 192,
    MESSAGES = 24,
    CHOICES = 4096,
    BYTES = 1 << 16,
    STATES = 1 << 20,
    STACK = 512 << 10,
    RUNS_MOST = 3000000
};

struct view {
    uint8_t seen[PLACES]; /* index of the oldest message that the thread may still read, by place */
    /* vector clock: for each thread, the time up to which its operations happened before */
    uint16_t clock[MODEL_THREADS];
};

struct message {
    uint64_t value, time, hash;
    struct view view; /* a thread that acquires the message joins this view */
};

static struct place {
    volatile void *at;
    unsigned size, count;
    struct message messages[MESSAGES];
} places[PLACES];
static unsigned place_count;

static struct thread {
    ucontext_t first;
    jmp_buf next; /* unlike swapcontext(), jumps make no system call */
    void *stack;
    bool begun, ended;
    struct view now, acquirable, released; /* the view of now; after an acquire fence; at the last release fence */
    uint64_t history, since; /* hash of all values read; the clock at the last signal fence or clock read */
    bool stored;             /* has stored since then */
} threads[MODEL_THREADS];

/* Bytes of plain accesses: the last writer and its time, and the last reads. */
static struct byte {
    uintptr_t at;
    unsigned sessions;
    int8_t writer;
    uint16_t written, read[MODEL_THREADS];
} bytes[BYTES];

/*
 * The writers of each place that earlier passes have found. A thread does not yield before it loads a place that only
 * this thread writes. A pass reads `known` and records `found`; learned() makes `found` the next pass's `known`, so
 * all runs of a pass make the same choices.
 */
static struct writers {
    volatile void *at;
    unsigned known, found;
} writers[PLACES];

static struct {
    uint16_t chosen, of;
} choices[CHOICES];
static unsigned depth, choice_count, runs;
static uint64_t *states;
static uint64_t now;
static int running = -1;
static bool pruned;
static const char *why;
static jmp_buf scheduler;
static const struct model *model;

void model_fail(const char *text)
{
    if (!why)
        why = text;
}

static void too_large(const char *what)
{
    fprintf(stderr, "model: more %s than there is room for\n", what);
    exit(1);
}

/* ---- choices ---- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t hash_view(uint64_t hash, const struct view *view)
{
    for (unsigned i = 0; i < place_count; i++)
        hash = mix(hash, view->seen[i]);
    for (unsigned i = 0; i < MODEL_THREADS; i++)
        hash = mix(hash, view->clock[i]);
    return hash;
}

/* Hashes all state that the rest of a run depends on.
 * The values that a thread has read determine its next operation. */
static uint64_t hash_state(void)
{
    uint64_t hash = mix(now, (uint64_t)running);
    for (unsigned i = 0; i < MODEL_THREADS; i++) {
        hash = mix(hash, threads[i].history + threads[i].ended);
        hash = mix(hash, threads[i].since + threads[i].stored);
        hash = hash_view(hash_view(hash_view(hash, &threads[i].now), &threads[i].acquirable), &threads[i].released);
    }
    for (unsigned i = 0; i < place_count; i++)
        for (unsigned k = 0; k < places[i].count; k++)
            hash = mix(hash, places[i].messages[k].hash);
    return hash ? hash : 1;
}

/* Adds the state to the table. False: an earlier run has been in it. */
static bool is_new(uint64_t state)
{
    for (uint64_t at = state, tries = 0; tries < STATES; at++, tries++) {
        uint64_t *there = &states[at % STATES];
        if (*there == state)
            return false;
        if (!*there) {
            *there = state;
            return true;
        }
    }
    too_large("states");
    return false;
}

/* Returns one of `of` alternatives. `kind` distinguishes two choices in the same state. */
static unsigned choose(unsigned of, unsigned kind)
{
    if (of <= 1 || pruned)
        return 0;
    if (depth == CHOICES)
        too_large("choices");
    if (depth == choice_count) {
        /* If an earlier run was in this state, the search covers all continuations from there. */
        if (!is_new(mix(mix(hash_state(), of), kind))) {
            pruned = true;
            return 0;
        }
        choices[depth].chosen = 0;
        choices[depth].of = (uint16_t)of;
        choice_count++;
    }
    if (choices[depth].of != of) {
        fprintf(stderr, "model: a run is not like the one that it repeats\n");
        exit(1);
    }
    return choices[depth++].chosen;
}

static bool next_run(void)
{
    while (choice_count && choices[choice_count - 1].chosen + 1u >= choices[choice_count - 1].of)
        choice_count--;
    if (!choice_count)
        return false;
    choices[choice_count - 1].chosen++;
    return true;
}

static void yield(void)
{
    if (!_setjmp(threads[running].next))
        _longjmp(scheduler, 1);
}

/* ---- views of threads ---- */

static void join(struct view *to, const struct view *from)
{
    for (unsigned i = 0; i < place_count; i++)
        if (to->seen[i] < from->seen[i])
            to->seen[i] = from->seen[i];
    for (unsigned i = 0; i < MODEL_THREADS; i++)
        if (to->clock[i] < from->clock[i])
            to->clock[i] = from->clock[i];
}

static uint64_t raw_load(const volatile void *at, unsigned size)
{
    uint64_t value = 0;
    memcpy(&value, (const void *)at, size);
    return value;
}

static void raw_store(volatile void *at, unsigned size, uint64_t value)
{
    memcpy((void *)at, &value, size);
}

static unsigned place_of(volatile void *at, unsigned size)
{
    for (unsigned i = 0; i < place_count; i++)
        if (places[i].at == at)
            return i;
    if (place_count == PLACES)
        too_large("places");
    places[place_count] = (struct place){.at = at, .size = size, .count = 1};
    places[place_count].messages[0].value = raw_load(at, size);
    return place_count++;
}

static struct writers *writers_of(volatile void *at)
{
    unsigned i = 0;
    for (; i < PLACES && writers[i].at && writers[i].at != at; i++)
        ;
    if (i == PLACES)
        too_large("places that are written");
    writers[i].at = at;
    return &writers[i];
}

static bool others_write(volatile void *at)
{
    return writers_of(at)->known & ~(1u << running);
}

/* Makes the writers that the pass has found known. True: some are new, so another pass is needed. */
static bool learned(void)
{
    bool more = false;
    for (unsigned i = 0; i < PLACES; i++) {
        more |= writers[i].known != writers[i].found;
        writers[i].known = writers[i].found;
    }
    return more;
}

static bool acquires(memory_order o)
{
    return o == memory_order_acquire || o >= memory_order_acq_rel;
}
static bool releases(memory_order o)
{
    return o >= memory_order_release;
}

static uint64_t read_message(unsigned p, unsigned which, memory_order order)
{
    struct thread *t = &threads[running];
    const struct message *m = &places[p].messages[which];
    t->now.seen[p] = (uint8_t)which;
    join(&t->acquirable, &m->view);
    t->acquirable.seen[p] = t->acquirable.seen[p] < which ? (uint8_t)which : t->acquirable.seen[p];
    if (acquires(order))
        join(&t->now, &m->view);
    t->history = mix(mix(t->history, p), m->value);
    return m->value;
}

static void write_message(unsigned p, uint64_t value, memory_order order, const struct view *sequence)
{
    struct thread *t = &threads[running];
    struct place *place = &places[p];
    if (place->count == MESSAGES)
        too_large("messages");
    writers_of(place->at)->found |= 1u << running;
    t->stored = true;
    struct message *m = &place->messages[place->count];
    t->now.seen[p] = t->acquirable.seen[p] = (uint8_t)place->count;
    m->value = value;
    m->time = now;
    m->view = releases(order) ? t->now : t->released;
    m->view.seen[p] = (uint8_t)place->count;
    if (sequence)
        join(&m->view, sequence);
    m->hash = hash_view(mix(value, now), &m->view);
    place->count++;
    t->now.clock[running]++; /* the message does not carry what the thread does after the store */
    t->acquirable.clock[running] = t->now.clock[running];
    raw_store(place->at, place->size, value);
}

/* ---- operations ---- */

uint64_t model_load(const volatile void *at, unsigned size, memory_order order)
{
    if (running < 0 || pruned)
        return raw_load(at, size);
    bool foreign = others_write((volatile void *)at);
    if (foreign)
        yield();
    if (pruned)
        return raw_load(at, size);
    unsigned p = place_of((volatile void *)at, size), least = threads[running].now.seen[p];
    return read_message(p, least + choose(places[p].count - least, p + 2), order);
}

void model_store(volatile void *at, unsigned size, uint64_t value, memory_order order)
{
    if (running < 0 || pruned)
        raw_store(at, size, value);
    else
        write_message(place_of(at, size), value, order, NULL);
}

static uint64_t updated(char how, uint64_t before, uint64_t value)
{
    switch (how) {
    case '+':
        return before + value;
    case '-':
        return before - value;
    case '|':
        return before | value;
    case '&':
        return before & value;
    default:
        return value;
    }
}

uint64_t model_update(volatile void *at, unsigned size, char how, uint64_t value, memory_order order)
{
    if (running >= 0 && !pruned && others_write(at))
        yield();
    if (running < 0 || pruned) {
        uint64_t before = raw_load(at, size);
        raw_store(at, size, updated(how, before, value));
        return before;
    }
    unsigned p = place_of(at, size), last = places[p].count - 1;
    uint64_t before = read_message(p, last, order);
    write_message(p, updated(how, before, value), order, &places[p].messages[last].view);
    return before;
}

bool model_exchange_if(volatile void *at, unsigned size, uint64_t *expected, uint64_t value)
{
    if (running >= 0 && !pruned && others_write(at))
        yield();
    uint64_t before = raw_load(at, size);
    unsigned p = 0, last = 0;
    if (running >= 0 && !pruned) {
        p = place_of(at, size);
        last = places[p].count - 1;
        before = read_message(p, last, memory_order_acq_rel);
    }
    if (before != *expected) {
        *expected = before;
        return false;
    }
    if (running < 0 || pruned)
        raw_store(at, size, value);
    else
        write_message(p, value, memory_order_acq_rel, &places[p].messages[last].view);
    return true;
}

void model_fence(memory_order order)
{
    if (running < 0 || pruned)
        return;
    struct thread *t = &threads[running];
    if (acquires(order))
        t->now = t->acquirable;
    if (releases(order)) {
        t->released = t->now;
        t->now.clock[running]++;
        t->acquirable.clock[running] = t->now.clock[running];
    }
}

void model_signal_fence(void)
{
    if (running < 0)
        return;
    threads[running].stored = false;
    threads[running].since = now;
}

uint64_t model_clock(void)
{
    if (running < 0 || pruned)
        return now;
    yield();
    struct thread *t = &threads[running];
    now++;
    for (unsigned i = 0; i < place_count; i++)
        for (unsigned k = t->now.seen[i]; k < places[i].count; k++)
            if (places[i].messages[k].time + MODEL_SLACK <= now)
                t->now.seen[i] = (uint8_t)k;
    uint64_t read = t->stored && choose(2, 1) ? t->since : now;
    t->history = mix(t->history, read);
    t->stored = false;
    t->since = now;
    return read;
}

/* ---- plain accesses ---- */

static struct byte *byte_of(uintptr_t at)
{
    for (unsigned i = (unsigned)(at * UINT64_C(0x9e3779b97f4a7c15) >> 40), tries = 0; tries < BYTES; i++, tries++) {
        struct byte *b = &bytes[i % BYTES];
        if (b->sessions != runs) {
            *b = (struct byte){.at = at, .sessions = runs, .writer = -1};
            return b;
        }
        if (b->at == at)
            return b;
    }
    too_large("bytes");
    return NULL;
}

static void access_plainly(uintptr_t from, size_t size, bool is_write)
{
    if (running < 0 || pruned)
        return;
    struct thread *t = &threads[running];
    if (from - (uintptr_t)t->stack < STACK)
        return;
    for (uintptr_t at = from; at < from + size; at++) {
        struct byte *b = byte_of(at);
        if (b->writer >= 0 && b->writer != running && t->now.clock[b->writer] < b->written)
            model_fail(is_write ? "a data race of two stores" : "a data race: a load of what may not be visible yet");
        for (int i = 0; is_write && i < MODEL_THREADS; i++)
            if (i != running && b->read[i] && t->now.clock[i] < b->read[i] - 1u)
                model_fail("a data race: a store over what may still be read");
        if (is_write) {
            b->writer = (int8_t)running;
            b->written = t->now.clock[running];
        } else {
            b->read[running] = (uint16_t)(t->now.clock[running] + 1);
        }
    }
}

#define ACCESS(n)                                                                                                      \
    void __tsan_read##n(void *at);                                                                                     \
    void __tsan_read##n(void *at)                                                                                      \
    {                                                                                                                  \
        access_plainly((uintptr_t)at, n, false);                                                                       \
    }                                                                                                                  \
    void __tsan_write##n(void *at);                                                                                    \
    void __tsan_write##n(void *at)                                                                                     \
    {                                                                                                                  \
        access_plainly((uintptr_t)at, n, true);                                                                        \
    }                                                                                                                  \
    void __tsan_unaligned_read##n(void *at);                                                                           \
    void __tsan_unaligned_read##n(void *at)                                                                            \
    {                                                                                                                  \
        access_plainly((uintptr_t)at, n, false);                                                                       \
    }                                                                                                                  \
    void __tsan_unaligned_write##n(void *at);                                                                          \
    void __tsan_unaligned_write##n(void *at)                                                                           \
    {                                                                                                                  \
        access_plainly((uintptr_t)at, n, true);                                                                        \
    }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)

void __tsan_read_range(void *at, size_t n);
void __tsan_read_range(void *at, size_t n)
{
    access_plainly((uintptr_t)at, n, false);
}
void __tsan_write_range(void *at, size_t n);
void __tsan_write_range(void *at, size_t n)
{
    access_plainly((uintptr_t)at, n, true);
}
void __tsan_func_entry(void *at);
void __tsan_func_entry(void *at)
{
    (void)at;
}
void __tsan_func_exit(void);
void __tsan_func_exit(void)
{
}
void __tsan_init(void);
void __tsan_init(void)
{
}

/* ---- runs ---- */

static void body(void)
{
    model->threads[running]();
    threads[running].ended = true;
    _longjmp(scheduler, 1);
}

static void resume(struct thread *t)
{
    if (t->begun)
        _longjmp(t->next, 1);
    t->begun = true;
    setcontext(&t->first);
}

static unsigned alive(int *ret)
{
    unsigned n = 0;
    for (int i = 0; i < MODEL_THREADS; i++)
        if (!threads[i].ended)
            ret[n++] = i;
    return n;
}

static void run(void)
{
    int ready[MODEL_THREADS];
    running = -1;
    pruned = false;
    place_count = depth = 0;
    now = 10;
    model->begin();
    for (int i = 0; i < MODEL_THREADS; i++) {
        struct thread *t = &threads[i];
        void *stack = t->stack ? t->stack : malloc(STACK);
        *t = (struct thread){.stack = stack, .ended = !model->threads[i]};
        t->now.clock[i] = t->acquirable.clock[i] = 1;
        t->since = now;
        if (t->ended)
            continue;
        getcontext(&t->first);
        t->first.uc_stack.ss_sp = stack;
        t->first.uc_stack.ss_size = STACK;
        makecontext(&t->first, body, 0);
    }
    for (unsigned n; (n = alive(ready));) {
        running = ready[choose(n, 0)];
        if (!_setjmp(scheduler))
            resume(&threads[running]);
    }
    running = -1;
    if (!pruned)
        model->end();
}

bool model_check(const struct model *m, const char **ret_why, unsigned *ret_runs)
{
    model = m;
    states = calloc(STATES, sizeof *states);
    memset(writers, 0, sizeof writers);
    *ret_runs = 0;
    why = NULL;
    do {
        choice_count = 0;
        memset(states, 0, STATES * sizeof *states);
        do {
            runs++;
            if (++*ret_runs > RUNS_MOST)
                too_large("runs");
            run();
        } while (!why && next_run());
    } while (!why && learned());
    free(states);
    *ret_why = why;
    return !why;
}
