/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the node's count by keys with real threads: keys and values of calls and of results, calls that are too deep
 * for a stack, and results that no row can have. The sums must be exact.
 *
 * Terms are plain numbers here, and this file stands in for the code that reads and encodes them.
 */
#include "by.h"

#include <pthread.h>
#include <stdlib.h>

#include "figures.h"
#include "gate.h"
#include "imm.h"
#include "secret.h"
#include "tap.h"
#include "tick.h"
#include "tracer.h"

enum { PRODUCERS = 3, KEYS = 40, DEEP = 20, NEED = 8192, RING = 1 << 20, FUNCTION = 103, FEW = 200 };

static uint64_t events_each = 100000;
static _Atomic int running;

/* ---- what stands in for terms ------------------------------------------------------------------------------------ */

/* The low three bits of a term (imm.h). Lists are addresses. */
enum { REAL = 1, LONG = 2, INTEGER = 3, TUPLE = 4, ATOM = 7 };

static ERL_NIF_TERM term(unsigned tag, uint64_t value)
{
    return value << 3 | tag;
}

struct cell {
    ERL_NIF_TERM head, tail;
};

bool imm_known = true;
ERL_NIF_TERM imm_nil = 0x3b;
struct imm_turn imm_pids, imm_ports;
unsigned secret_names;
struct session session;
static _Atomic uint64_t alone; /* results that were sent in a frame, or had no room in the ring */
static _Atomic bool rate_is_used_up;

int enif_get_list_cell(ErlNifEnv *env, ERL_NIF_TERM list, ERL_NIF_TERM *head, ERL_NIF_TERM *tail)
{
    const struct cell *cell = (const struct cell *)(uintptr_t)list;
    (void)env;
    if (list == imm_nil)
        return 0;
    *head = cell->head;
    *tail = cell->tail;
    return 1;
}

int enif_get_atom(ErlNifEnv *env, ERL_NIF_TERM atom, char *at, unsigned bytes, ErlNifCharEncoding encoding)
{
    (void)env, (void)atom, (void)at, (void)bytes, (void)encoding;
    return 0;
}

int enif_is_empty_list(ErlNifEnv *env, ERL_NIF_TERM t)
{
    (void)env;
    return t == imm_nil;
}

int enif_get_uint(ErlNifEnv *env, ERL_NIF_TERM t, unsigned *ret)
{
    (void)env;
    *ret = (unsigned)(t >> 3);
    return 1;
}

int enif_get_long(ErlNifEnv *env, ERL_NIF_TERM t, long *ret)
{
    (void)env;
    *ret = (long)((int64_t)t >> 3);
    return (t & 7) == INTEGER;
}

int enif_get_double(ErlNifEnv *env, ERL_NIF_TERM t, double *ret)
{
    (void)env;
    *ret = 1.5;
    return (t & 7) == REAL;
}

int enif_is_number(ErlNifEnv *env, ERL_NIF_TERM t)
{
    (void)env;
    return (t & 7) == INTEGER || (t & 7) == REAL;
}

ERL_NIF_TERM enif_make_uint(ErlNifEnv *env, unsigned n)
{
    (void)env;
    return term(INTEGER, n);
}

ERL_NIF_TERM enif_make_atom(ErlNifEnv *env, const char *name)
{
    (void)env, (void)name;
    return term(ATOM, 1);
}

#define IS_NOT(name)                                                                                                   \
    int enif_is_##name(ErlNifEnv *env, ERL_NIF_TERM t)                                                                 \
    {                                                                                                                  \
        (void)env, (void)t;                                                                                            \
        return 0;                                                                                                      \
    }
IS_NOT(atom)
IS_NOT(binary)
IS_NOT(fun)
IS_NOT(list)
IS_NOT(map)
IS_NOT(pid)
IS_NOT(port)
IS_NOT(ref)

int enif_compare(ERL_NIF_TERM one, ERL_NIF_TERM other)
{
    return one < other ? -1 : one > other;
}

int enif_get_tuple(ErlNifEnv *env, ERL_NIF_TERM t, int *arity, const ERL_NIF_TERM **elements)
{
    (void)env, (void)t, (void)arity, (void)elements;
    return 0;
}

int enif_get_map_value(ErlNifEnv *env, ERL_NIF_TERM map, ERL_NIF_TERM key, ERL_NIF_TERM *ret)
{
    (void)env, (void)map, (void)key, (void)ret;
    return 0;
}

bool encode_names_secret(struct encoder *e, ERL_NIF_TERM key)
{
    (void)e, (void)key;
    return false;
}

/* A LONG term takes more bytes than a key.
 * An ATOM, and a TUPLE of one, are encoded by their place in the encoder's table. */
uint8_t *encode_term(struct encoder *e, uint8_t *at, uint32_t most, ERL_NIF_TERM t)
{
    if ((t & 7) == LONG) {
        uint32_t bytes = most < 3000 ? most : 3000;
        e->flags |= bytes < 3000 ? ETW_F_CUT : 0;
        memset(at, 7, bytes);
        return at + bytes;
    }
    if (((t & 7) == ATOM || (t & 7) == TUPLE) && e->words) {
        e->words[e->word_count] = t;
        return put16(put8(at, ETW_T_ATOM), e->word_count++);
    }
    return put64(put8(at, ETW_T_INT64), t);
}

uint8_t *encode_apart(struct encoder *e, uint8_t *at, const uint8_t *end, const struct encode_held *held)
{
    (void)e, (void)end;
    memcpy(at, held->terms, held->bytes);
    at += held->bytes;
    for (unsigned i = 0; i < held->word_count; i++)
        at = put64(at, held->words[i]);
    return at;
}

uint8_t *encode_anew(struct encoder *e, uint8_t *at, const uint8_t *end, const struct encode_held *held)
{
    return encode_apart(e, at, end, held);
}

uint64_t imm_ask_tracee(ErlNifEnv *env, ERL_NIF_TERM t)
{
    (void)env;
    return t;
}

bool gate_admits_waited(uint32_t rules, unsigned events)
{
    (void)rules, (void)events;
    if (atomic_load(&rate_is_used_up))
        return false;
    atomic_fetch_add(&alone, 1);
    return true;
}

void gate_is_full(struct lane *lane)
{
    ring_lose(&lane->ring, ETW_LOST_RING);
}

static bool is_alive(void *env, uint64_t process)
{
    (void)env;
    return process != 0;
}

/* ---- what is counted --------------------------------------------------------------------------------------------- */

static struct {
    int64_t calls, open, skipped[ETW_BY_VALUES], others, filtered;
    uint64_t seen, values[ETW_BY_VALUES];
    int64_t sums[ETW_BY_VALUES];
    size_t longest;      /* bytes of the key of a row */
    int64_t of_key[FEW]; /* calls of an integer */
    unsigned rows;
} sums;

static void add_key(const uint8_t *key, int64_t calls)
{
    uint64_t t;
    memcpy(&t, key + 2, sizeof t);
    if (key[0] == ETW_T_TUPLE0 + 1 && key[1] == ETW_T_INT64 && t >> 3 < FEW)
        sums.of_key[t >> 3] += calls;
}

static void add_row(const uint8_t *terms)
{
    struct etw_row row;
    const uint8_t *at = terms;
    while (*at != ETW_T_BIN) /* only the figures are a binary */
        at++;
    memcpy(&row, at + 13, sizeof row);
    sums.calls += row.counts[0];
    sums.rows++;
    add_key(terms + 2, row.counts[0]);
    sums.others += at - terms <= 2 ? row.counts[0] : 0;
    sums.open += row.counts[ETW_BY_OPEN];
    sums.longest = (size_t)(at - terms) > sums.longest ? (size_t)(at - terms) : sums.longest;
    for (unsigned i = 0; i < ETW_BY_VALUES; i++) {
        sums.skipped[i] += row.counts[1 + i];
        sums.values[i] += row.values[i].count;
        sums.sums[i] += row.values[i].sum;
    }
}

/* Adds a frame of the owner, which has its full tick and tracee, or the figures of all events. */
static void add_frame(const uint8_t *frame, uint32_t head)
{
    struct etw_tally t;
    const uint8_t *terms = frame + 24;
    if (ETW_HEAD_KIND(head) == ETW_ROW) {
        add_row(terms);
        return;
    }
    memcpy(&t, terms + 3, sizeof t);
    sums.seen += t.seen;
    sums.filtered += t.filtered;
}

static void read_round(void)
{
    static uint8_t frames[FIGURES_FRAME];
    enum rows_took took = ROWS_TOOK;
    uint32_t head;
    while (took != ROWS_END) {
        int64_t work = INT64_MAX;
        uint8_t *end = frames;
        took = figures_put(NULL, &work, &end);
        for (const uint8_t *at = frames; at < end; at += ETW_HEAD_BYTES(head)) {
            memcpy(&head, at, sizeof head);
            add_frame(at, head);
        }
    }
}

enum { MOST_PARTS = 3 };

/* Returns a list of parts, {what, place} each, in the caller's cells. */
static ERL_NIF_TERM parts(struct cell (*cells)[3], const unsigned (*of)[2], unsigned count)
{
    ERL_NIF_TERM list = imm_nil;
    while (count--) {
        struct cell *part = cells[count];
        part[0] = (struct cell){(ERL_NIF_TERM)(uintptr_t)&part[1], list};
        part[1] = (struct cell){term(INTEGER, of[count][0]), (ERL_NIF_TERM)(uintptr_t)&part[2]};
        part[2] = (struct cell){term(INTEGER, of[count][1]), imm_nil};
        list = (ERL_NIF_TERM)(uintptr_t)part;
    }
    return list;
}

static bool set(const unsigned (*keys)[2], unsigned nkeys, const unsigned (*values)[2], unsigned nvalues)
{
    struct cell key_cells[MOST_PARTS][3], value_cells[MOST_PARTS][3];
    const struct rows_room room = by_room(ETW_BY_ROWS);
    while (tally_open(&room, tick_per_ms(), is_alive) == ROWS_CLEARING)
        continue;
    memset(&sums, 0, sizeof sums);
    atomic_store(&alone, 0);
    return by_set(NULL, parts(key_cells, keys, nkeys), parts(value_cells, values, nvalues));
}

static bool calls(unsigned process, ERL_NIF_TERM arg)
{
    const struct by_event c = {.kind = ETW_CALL,
                               .process = (ERL_NIF_TERM)process << 4 | IMM_PID,
                               .function = {FUNCTION, FUNCTION, 1},
                               .args = &arg,
                               .count = 1,
                               .returns = true};
    return by_event(NULL, lane_mine(), &c);
}

static bool returns(unsigned process, ERL_NIF_TERM value)
{
    const struct by_result r = {.process = (ERL_NIF_TERM)process << 4 | IMM_PID,
                                .function = {FUNCTION, FUNCTION, 1},
                                .value = value};
    return by_result(NULL, lane_mine(), 0, &r);
}

#define NO_VALUES NULL, 0
static const unsigned by_argument[][2] = {{ETW_BY_TERM, 1}},
                      by_result_too[][2] = {{ETW_BY_TERM, 1}, {ETW_BY_TERM, ETW_BY_RET}},
                      of_results[][2] = {{ETW_BY_BUCKETS, ETW_BY_DUR}, {ETW_BY_TERM, ETW_BY_RET}, {ETW_BY_TERM, 1}};

/* ---- one thread -------------------------------------------------------------------------------------------------- */

static void test_order_of_keys(void)
{
    static const unsigned late_first[][2] = {{ETW_BY_TERM, ETW_BY_RET}, {ETW_BY_TERM, 1}},
                          nowhere[][2] = {{ETW_BY_TERM, ETW_BY_PLACES}};
    ok(!set(late_first, 2, NO_VALUES), "keys of results must follow the others");
    ok(!set(nowhere, 1, NO_VALUES), "an unknown place is refused");
}

static void test_results(void)
{
    ok(set(by_argument, 1, of_results, 3), "keys and values are set");
    ok(calls(1, term(INTEGER, 5)) && calls(1, term(INTEGER, 6)), "calls are counted at once");
    read_round();
    is_number(sums.calls, 2, "a call without a result counts");
    ok(returns(1, term(INTEGER, 30)) && returns(1, term(ATOM, 2)), "results are counted");
    read_round();
    ok(sums.calls == 2 && sums.values[0] == 2, "results have durations, and count no call");
    ok(sums.values[1] == 1 && sums.sums[1] == 30 && sums.skipped[1] == 1, "a value that is no number is skipped");
    ok(sums.values[2] == 2 && sums.sums[2] == 11, "a value of a call counts once");
    ok(!returns(1, term(INTEGER, 1)), "a result without a call is sent");
    ok(calls(1, term(INTEGER, 5)) && returns(1, term(REAL, 0)), "a float needs no event");
    is_number((int64_t)atomic_load(&alone), 1, "a float is sent with its key");
    atomic_store(&rate_is_used_up, true);
    uint64_t lost = ring_own(&lane_mine()->ring.lost[ETW_LOST_RATE]);
    ok(calls(1, term(INTEGER, 5)) && returns(1, term(REAL, 0)), "a rate needs no event");
    atomic_store(&rate_is_used_up, false);
    is_number((int64_t)(ring_own(&lane_mine()->ring.lost[ETW_LOST_RATE]) - lost), 1, "a float beyond the rate is lost");
}

static void test_late_keys(void)
{
    set(by_result_too, 2, NO_VALUES);
    ok(calls(1, term(ATOM, 5)) && calls(1, term(INTEGER, 6)), "calls wait for their keys");
    read_round();
    ok(sums.calls == 0 && sums.open == 2, "waiting calls are open, and are not counted");
    ok(returns(1, term(LONG, 0)) && returns(1, term(ATOM, 9)), "results complete the keys");
    read_round();
    ok(sums.calls == 1 && sums.open == 0 && atomic_load(&alone) == 1, "a key that is too long is sent");
    is_number((int64_t)sums.longest, 2 + 2 * (1 + 3) + 2 * 8, "a key has the atoms of the call and of the result");
    ok(calls(1, term(REAL, 5)) && returns(1, term(ATOM, 9)), "an early key that is no value is encoded");
    ok(calls(1, term(REAL, 5)) && returns(1, term(LONG, 0)), "and sent, if the key is too long");
    read_round();
    ok(sums.calls == 2 && sums.open == 0 && atomic_load(&alone) == 2, "so each of them is counted or sent");
    ok(!calls(1, term(LONG, 0)), "a call with a long argument is sent");
    ok(!returns(1, term(INTEGER, 1)), "and its result, too");
    const struct by_event c = {.process = 1u << 4 | IMM_PID, .function = {FUNCTION, FUNCTION, 1}, .returns = true};
    uint64_t lost = ring_own(&lane_mine()->ring.lost[ETW_LOST_GUARD]);
    by_lost(NULL, &c, ETW_LOST_GUARD);
    ok(returns(1, term(INTEGER, 1)), "the result of a lost call is not sent");
    is_number((int64_t)(ring_own(&lane_mine()->ring.lost[ETW_LOST_GUARD]) - lost), 1, "it is lost for the same reason");
    const struct by_event further = {.process = c.process,
                                     .function = c.function,
                                     .args = &c.function.name,
                                     .count = 1};
    calls(1, term(INTEGER, 1));
    calls(1, term(INTEGER, 2));
    by_endless(&c);
    ok(by_event(NULL, lane_mine(), &further) && !returns(1, term(ATOM, 9)),
       "a function that loops has no results any more");
    read_round();
    ok(sums.calls == 2 && sums.open == 3, "so each of its calls stays without a result");
    set(by_result_too, 2, NO_VALUES);
    ok(calls(1, term(TUPLE, 5)) && calls(1, term(TUPLE, 6)), "a call waits with the atoms of its key");
    ok(returns(1, term(ATOM, 9)) && returns(1, term(ATOM, 9)), "and the call that encloses it, too");
    read_round();
    ok(sums.calls == 2 && sums.rows == 2, "each of them has its own key");
}

static void set_filter(enum etw_filter_what what, enum etw_filter_compare compare, int64_t value)
{
    const struct etw_filter_step step = {.what = (uint8_t)what, .compare = (uint8_t)compare, .value = value};
    verdict_set((const uint8_t *)&step, sizeof step, NULL);
}

/* One call and its result. True: the two events that they are were shown or hidden, as `shows` says. */
static bool decided(bool shows)
{
    read_round();
    const uint64_t seen = sums.seen;
    const int64_t filtered = sums.filtered;
    const bool none_sent = calls(1, term(INTEGER, 5)) && returns(1, term(ATOM, 9));
    read_round();
    return none_sent && sums.seen - seen == (shows ? 2 : 0) && sums.filtered - filtered == (shows ? 0 : 2);
}

static void test_filter(void)
{
    set(by_argument, 1, of_results, 1);
    set_filter(ETW_FILTER_DUR, ETW_FILTER_LT, INT64_MAX);
    ok(calls(1, term(INTEGER, 5)), "a call waits for what the filter tests");
    read_round();
    ok(sums.calls == 0 && sums.open == 0, "it counts nowhere until then");
    ok(returns(1, term(ATOM, 9)) && decided(true), "a result that passes shows its call");
    read_round();
    ok(sums.calls == 2 && sums.values[0] == 2, "and the call counts with its duration");
    set_filter(ETW_FILTER_DUR, ETW_FILTER_GT, INT64_MAX - 1);
    ok(decided(false), "a result that does not pass is hidden with its call");
    set_filter(ETW_FILTER_SIZE, ETW_FILTER_GT, 1000);
    ok(decided(false), "a call that the filter rejects is hidden, and so is its result");
    set(by_result_too, 2, NO_VALUES);
    set_filter(ETW_FILTER_DUR, ETW_FILTER_GT, INT64_MAX - 1);
    ok(decided(false), "so is a call whose key comes with the result");
    set_filter(ETW_FILTER_SIZE, ETW_FILTER_LT, 1000);
    ok(decided(true), "a call that passes counts with its result");
    read_round();
    ok(sums.calls == 1 && sums.open == 0, "each counts once");
    verdict_set(NULL, 0, NULL);
}

static void test_deep(void)
{
    unsigned counted = 0, sent = 0;
    set(by_argument, 1, of_results, 2);
    for (unsigned i = 0; i < 1000; i++)
        *(calls(2, term(INTEGER, 7)) ? &counted : &sent) += 1;
    ok(counted > 100 && sent > 100, "a stack has room for some calls");
    for (unsigned i = 0; i < 1000; i++)
        *(returns(2, term(INTEGER, 1)) ? &counted : &sent) -= 1;
    ok(counted == 0 && sent == 0, "a result is sent if its call was");
    read_round();
    is_number(sums.calls, (int64_t)sums.values[0], "each counted call has its result");
}

/* The same keys get other rows in the next session, and share the lane's memory of recent keys. */
static void test_recent_keys(void)
{
    for (unsigned turn = 0; turn < 2; turn++) {
        bool good = true;
        set(by_argument, 1, NO_VALUES);
        for (unsigned i = 0; i < FEW * FEW; i++) {
            unsigned key = turn ? FEW - 1 - i % FEW : i % FEW;
            if (i / FEW <= key)
                calls(3, term(INTEGER, key));
        }
        read_round();
        for (unsigned i = 0; i < FEW; i++)
            good &= sums.of_key[i] == i + 1;
        ok(good, "each key has its calls, in session %u", turn);
    }
    static const unsigned by_function[][2] = {{ETW_BY_MFA, 0}}, by_process[][2] = {{ETW_BY_TRACEE, 0}};
    set(by_function, 1, NO_VALUES);
    for (unsigned i = 0; i < 30; i++) {
        const struct by_event c = {.process = 3u << 4 | IMM_PID, .function = {FUNCTION, FUNCTION + 8 * (i % 2), i % 3}};
        by_event(NULL, lane_mine(), &c);
    }
    read_round();
    ok(sums.calls == 30 && sums.rows == 6, "each function has a row");
    set(by_process, 1, NO_VALUES);
    for (unsigned i = 0; i < 30; i++)
        calls(3 + i % 5, term(INTEGER, 1));
    read_round();
    ok(sums.calls == 30 && sums.rows == 5, "each process has a row");
}

/* ---- many threads ------------------------------------------------------------------------------------------------ */

/* Makes nested calls of one process. One of 16 results is a float. */
static void *produce(void *arg)
{
    unsigned process = 10 + (unsigned)(uintptr_t)arg;
    for (uint64_t i = 0; i < events_each; i += DEEP) {
        for (unsigned deep = 0; deep < DEEP; deep++)
            calls(process, term(deep % 2 ? INTEGER : ATOM, (i + deep) % KEYS));
        for (unsigned deep = 0; deep < DEEP; deep++)
            returns(process, (i + deep) % 16 ? term(INTEGER, deep) : term(REAL, 0));
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void with_threads(void)
{
    pthread_t threads[PRODUCERS];
    uint64_t rounds = 0;
    atomic_store(&running, PRODUCERS);
    for (unsigned i = 0; i < PRODUCERS; i++)
        pthread_create(&threads[i], NULL, produce, (void *)(uintptr_t)i);
    do {
        read_round();
        rounds++;
    } while (atomic_load(&running) || !tally_is_told());
    for (unsigned i = 0; i < PRODUCERS; i++)
        pthread_join(threads[i], NULL);
    printf("# %" PRIu64 " rounds\n", rounds);
}

static void test_threads(void)
{
    const int64_t all = PRODUCERS * (int64_t)events_each;
    set(by_argument, 1, of_results, 2);
    with_threads();
    is_number(sums.calls, all, "each call is counted once");
    is_number((int64_t)sums.values[1] + (int64_t)atomic_load(&alone), all, "each result is counted, sent or lost");
    is_number((int64_t)sums.values[0], (int64_t)sums.values[1], "each counted result has its duration");
    set(by_result_too, 2, of_results, 1);
    with_threads();
    ok(sums.calls == all && sums.open == 0, "each call counts with its result");
    is_number((int64_t)sums.values[0], all, "each has its duration");
    is_number(sums.others, 0, "each has its key");
}

int main(void)
{
    if (getenv("EVENTS"))
        events_each = strtoull(getenv("EVENTS"), NULL, 10);
    tick_start();
    atomic_store(&session.rules, ROUTE_BY);
    ok(lanes_open(2 + 2 * PRODUCERS, RING, NEED, (struct encode_limits){4096, 10, 10}), "the lanes open");
    test_order_of_keys();
    test_results();
    test_late_keys();
    test_filter();
    test_deep();
    test_recent_keys();
    test_threads();
    tally_unmap();
    lanes_unmap();
    return tap_end();
}
