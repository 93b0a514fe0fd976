/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the node's count of requests with real threads: pairs, callers that time out while their server replies, late
 * replies, and more open requests than there are places. The sums must be exact.
 *
 * Terms are plain numbers here, and this file stands in for the code that reads and encodes them.
 */
#include "request_count.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "frame.h"
#include "imm.h"
#include "tap.h"
#include "tick.h"
#include "tracer.h"

enum { PAIRS = 2, FLOODS = 3, NEED = 1024, RING = 16384, PLACES = 132096, MODULE = 1000, SHAPE = 7 };

static uint64_t events_each = 50000;
static _Atomic uint64_t refs = 1;
static _Atomic int running;

/* ---- what stands in for terms ------------------------------------------------------------------------------------ */

bool imm_known = true;
ERL_NIF_TERM imm_nil = 0x3b;
struct imm_turn imm_pids, imm_ports;

uint64_t imm_ask_tracee(ErlNifEnv *env, ERL_NIF_TERM t)
{
    (void)env;
    return t;
}

int enif_get_local_pid(ErlNifEnv *env, ERL_NIF_TERM t, ErlNifPid *ret)
{
    (void)env;
    ret->pid = t;
    return 1;
}

uint64_t requests_key(ERL_NIF_TERM ref)
{
    uint64_t h = ref * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
    return h ^ h >> 31;
}

uint8_t *requests_put_shape(struct encoder *e, uint8_t *at, ERL_NIF_TERM request, bool coarse)
{
    (void)e;
    return put64(at, coarse ? 0 : request);
}

uint8_t *requests_put_function(struct encoder *e, uint8_t *at, ERL_NIF_TERM mfa)
{
    (void)e;
    return put64(at, mfa);
}

/* The tests pass a callback in place of the arguments. */
bool requests_read_callback(ErlNifEnv *env, ERL_NIF_TERM module, ERL_NIF_TERM name, unsigned arity, ERL_NIF_TERM args,
                            struct requests_callback *ret)
{
    (void)env, (void)module, (void)name, (void)arity;
    *ret = *(const struct requests_callback *)(uintptr_t)args;
    return true;
}

uint8_t *encode_apart(struct encoder *e, uint8_t *at, const uint8_t *end, const struct encode_held *held)
{
    (void)e, (void)end, (void)held;
    return put8(at, ETW_T_ELIDED);
}

static bool is_alive(void *env, uint64_t process)
{
    (void)env;
    return process != 0;
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static ERL_NIF_TERM pid(unsigned n)
{
    return (ERL_NIF_TERM)n << 4 | IMM_PID;
}

static uint64_t new_ref(void)
{
    return atomic_fetch_add(&refs, 1);
}

static void message(ERL_NIF_TERM process, enum requests_message what, uint64_t ref, ERL_NIF_TERM caller, bool sends)
{
    const ERL_NIF_TERM elements[5] = {[2] = SHAPE};
    const struct requests_read read = {.message = what, .elements = elements, .pid = caller, .ref = ref, .alias = true};
    request_count_message(NULL, lane_mine(), process, &read, sends);
}

static void asks(ERL_NIF_TERM caller, uint64_t ref)
{
    message(caller, REQUESTS_CALL, ref, caller, true);
}

static void arrives(ERL_NIF_TERM server, uint64_t ref, ERL_NIF_TERM caller)
{
    message(server, REQUESTS_CALL, ref, caller, false);
}

static void begins(ERL_NIF_TERM server, uint64_t ref, ERL_NIF_TERM caller)
{
    const struct requests_callback c = {REQUESTS_WORK_CALL,
                                        false,
                                        MODULE,
                                        SHAPE,
                                        {.message = REQUESTS_CALL, .pid = caller, .ref = ref, .alias = true}};
    const struct stack_function f = {0};
    request_count_call(NULL, lane_mine(), server, &f, (ERL_NIF_TERM)(uintptr_t)&c);
}

static void replies(ERL_NIF_TERM server, uint64_t ref)
{
    message(server, REQUESTS_REPLY, ref, 0, true);
}

static void gets(ERL_NIF_TERM caller, uint64_t ref)
{
    message(caller, REQUESTS_REPLY, ref, 0, false);
}

static void goes_down(ERL_NIF_TERM caller, uint64_t ref)
{
    message(caller, REQUESTS_DOWN, ref, 0, false);
}

static void gives_up(ERL_NIF_TERM caller)
{
    message(caller, REQUESTS_TIMEOUT, 0, 0, false);
}

/* ---- sums -------------------------------------------------------------------------------------------------------- */

static struct sums {
    int64_t counts[ETW_ROW_COUNTS], open, open_timed;
    uint64_t values[ETW_ROW_VALUES];
    int64_t elsewhere, given_up;
} sums;

/* The frame: {Kind, Server, Shape, Behind} and the figures. The pid of a server takes nine bytes, the rest one each. */
static void add_frame(const uint8_t *at)
{
    struct etw_row row;
    bool all = at[1] == 2;
    at += 2;
    at += *at == ETW_T_PID ? 9 : 1;
    memcpy(&row, at + 2 + 13, sizeof row);
    if (all) {
        sums.elsewhere += row.counts[0];
        sums.given_up += row.counts[1];
        return;
    }
    for (unsigned i = 0; i < ETW_ROW_COUNTS; i++)
        sums.counts[i] += row.counts[i];
    for (unsigned i = 0; i < ETW_ROW_VALUES; i++)
        sums.values[i] += row.values[i].count;
    sums.open += row.gauges[0];
    sums.open_timed += row.gauges[1];
}

/* Reads whole rounds until all events are in the sums, and no thread makes more of them. */
static void read_rounds(void)
{
    static uint8_t bytes[REQUEST_COUNT_BYTES];
    size_t length;
    for (bool last = false; !last;) {
        last = atomic_load(&running) == 0;
        enum tally_took took;
        do {
            int64_t work = 4096;
            while ((took = request_count_take(NULL, &work, bytes, &length)) == TALLY_TOOK)
                add_frame(bytes);
        } while (took != TALLY_END);
        last = last && keyed_is_told();
    }
}

static void open_anew(void)
{
    while (tally_open(8, tick_per_ms(), is_alive) == TALLY_CLEARING)
        continue;
    while (request_count_open(is_alive) == TALLY_CLEARING)
        continue;
    sums = (struct sums){0};
}

static void with_threads(unsigned many, void *(*run)(void *))
{
    pthread_t threads[8];
    atomic_store(&running, (int)many);
    for (uintptr_t i = 0; i < many; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    read_rounds();
    for (unsigned i = 0; i < many; i++)
        pthread_join(threads[i], NULL);
}

/* ---- tests ------------------------------------------------------------------------------------------------------- */

static void test_order(void)
{
    uint64_t pair = new_ref(), late = new_ref(), waits = new_ref(), never = new_ref();
    open_anew();
    asks(pid(1), pair), arrives(pid(2), pair, pid(1)), begins(pid(2), pair, pid(1)), replies(pid(2), pair),
        gets(pid(1), pair);
    asks(pid(1), late), arrives(pid(2), late, pid(1)), gives_up(pid(1)), begins(pid(2), late, pid(1)),
        replies(pid(2), late);
    asks(pid(1), waits), arrives(pid(2), waits, pid(1)), begins(pid(2), waits, pid(1)), gives_up(pid(1));
    replies(pid(2), waits), gets(pid(1), waits);
    asks(pid(1), never), arrives(pid(2), never, pid(1)), gives_up(pid(1));
    read_rounds();
    is_number(sums.counts[REQUEST_COUNT_CALLS], 3, "a request with a reply is counted");
    is_number((int64_t)sums.values[0], 3, "each of them has waited");
    is_number((int64_t)sums.values[1], 3, "the server has worked on each of them");
    is_number((int64_t)sums.values[2], 2, "a caller has received two of the replies");
    is_number(sums.counts[REQUEST_COUNT_TIMED_OUT], 1, "a caller that receives its reply after all has not timed out");
    is_number(sums.counts[REQUEST_COUNT_LATE], 1, "the reply to a caller that gave up is late");
    ok(sums.open == 1 && sums.open_timed == 1, "a request without a reply is open, and its caller gave up");
    is_number(sums.given_up, 0, "no request is given up while there are places");
}

static void test_elsewhere(void)
{
    uint64_t answered = new_ref(), late = new_ref(), never = new_ref();
    open_anew();
    asks(pid(1), answered), gets(pid(1), answered);
    asks(pid(1), never), gives_up(pid(1));
    read_rounds();
    is_number(sums.elsewhere, 2, "requests that no traced process received are elsewhere, with a reply or without");
    asks(pid(3), late), gives_up(pid(3));
    read_rounds();
    is_number(sums.elsewhere, 3, "and so is one that its server has not received yet");
    arrives(pid(2), late, pid(3)), begins(pid(2), late, pid(3));
    read_rounds();
    is_number(sums.elsewhere, 2, "until the server receives it");
    is_number((int64_t)sums.values[0], 1, "it has waited, although it has no reply");
    replies(pid(2), late);
    read_rounds();
    is_number((int64_t)sums.values[0], 1, "and with the reply, its wait is not counted again");
    is_number(sums.elsewhere, 2, "the others stay elsewhere");
}

static void test_full(void)
{
    enum { MANY = 2 * PLACES, NEWEST = 4096 };
    open_anew();
    uint64_t first = atomic_fetch_add(&refs, MANY);
    for (uint64_t i = 0; i < MANY; i++)
        arrives(pid(2), first + i, pid(1));
    read_rounds();
    is_number(sums.given_up + sums.open, MANY, "each request is open or given up");
    is_number(sums.counts[REQUEST_COUNT_CALLS], sums.given_up, "a request that is given up is counted once");
    ok(sums.open > PLACES / 2 && sums.open <= PLACES, "the other places stay in use");
    int64_t before = sums.counts[REQUEST_COUNT_CALLS];
    for (uint64_t i = MANY - NEWEST; i < MANY; i++)
        replies(pid(2), first + i);
    read_rounds();
    is_number(sums.counts[REQUEST_COUNT_CALLS] - before, NEWEST, "the newest requests are not given up");
    for (uint64_t i = 0; i < MANY - NEWEST; i++)
        replies(pid(2), first + i);
    read_rounds();
    is_number(sums.counts[REQUEST_COUNT_CALLS], MANY, "a reply to a request that was given up does not count it again");
    is_number(sums.open, 0, "no request stays open");
    uint64_t again = new_ref();
    asks(pid(1), again), arrives(pid(2), again, pid(1)), begins(pid(2), again, pid(1)), replies(pid(2), again),
        gets(pid(1), again);
    read_rounds();
    is_number((int64_t)sums.values[2], 1, "after that, requests are paired as before");
}

/* Callers that ask until the table is full, before their server receives anything. */
static void test_full_of_calls(void)
{
    enum { MANY = 2 * PLACES };
    open_anew();
    uint64_t first = atomic_fetch_add(&refs, MANY);
    for (uint64_t i = 0; i < MANY; i++)
        asks(pid(1), first + i);
    read_rounds();
    ok(sums.given_up >= MANY - PLACES && sums.given_up < MANY, "the requests beyond the table are given up");
    is_number(sums.elsewhere, 0, "none of them is elsewhere, because a server may receive it yet");
    for (uint64_t i = 0; i < MANY; i++)
        arrives(pid(2), first + i, pid(1));
    for (uint64_t i = 0; i < MANY; i++)
        replies(pid(2), first + i);
    read_rounds();
    is_number(sums.counts[REQUEST_COUNT_CALLS], MANY, "each request counts once when its server has received it");
    is_number(sums.elsewhere, 0, "and none is elsewhere");
}

/* A caller that gave up, and then asked again until the table was full. */
static void test_full_timed_out(void)
{
    open_anew();
    uint64_t ref = new_ref(), first = atomic_fetch_add(&refs, PLACES * 3);
    for (unsigned i = 0; i < 2 * PLACES; i++)
        arrives(pid(2), first + i, pid(3));
    asks(pid(1), ref), arrives(pid(2), ref, pid(1)), gives_up(pid(1));
    for (unsigned i = 2 * PLACES; i < 3 * PLACES; i++)
        arrives(pid(2), first + i, pid(3));
    asks(pid(1), new_ref()), gives_up(pid(1));
    read_rounds();
    ok(sums.counts[REQUEST_COUNT_TIMED_OUT] + sums.open_timed == 1, "a request that is given up may have timed out before");
}

/* The requests of a caller and the replies of its server. */
static struct line {
    _Atomic uint64_t asked, replied; /* how many requests, and how many replies */
    uint64_t refs[1 << 10], ignored, got;
} lines[PAIRS];

static void wait_for(const _Atomic uint64_t *count, uint64_t least)
{
    while (atomic_load_explicit(count, memory_order_acquire) < least)
        nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
}

static void serve(struct line *line, ERL_NIF_TERM self, ERL_NIF_TERM caller)
{
    for (uint64_t i = 0; i < events_each / 10; i++) {
        wait_for(&line->asked, i + 1);
        uint64_t ref = line->refs[i % 1024];
        arrives(self, ref, caller);
        begins(self, ref, caller);
        replies(self, ref);
        atomic_store_explicit(&line->replied, i + 1, memory_order_release);
    }
}

/* Gives up two of three requests, at about the time of the reply. It receives the reply to one of these nevertheless. */
static void call(struct line *line, ERL_NIF_TERM self)
{
    for (uint64_t i = 0; i < events_each / 10; i++) {
        uint64_t ref = line->refs[i % 1024] = new_ref();
        asks(self, ref);
        atomic_store_explicit(&line->asked, i + 1, memory_order_release);
        for (volatile unsigned pause = 0; pause < ref % 64 * 16; pause++)
            continue;
        if (i % 3)
            gives_up(self);
        wait_for(&line->replied, i + 1);
        if (i % 3 < 2)
            gets(self, ref), line->got++;
        else
            line->ignored++;
    }
}

static void *call_or_serve(void *arg)
{
    unsigned n = (unsigned)(uintptr_t)arg;
    struct line *line = &lines[n / 2];
    if (n % 2)
        serve(line, pid(100 + n), pid(100 + n - 1));
    else
        call(line, pid(100 + n));
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void test_pairs(void)
{
    int64_t all = PAIRS * (int64_t)(events_each / 10), got = 0, ignored = 0;
    open_anew();
    with_threads(2 * PAIRS, call_or_serve);
    for (unsigned i = 0; i < PAIRS; i++)
        got += (int64_t)lines[i].got, ignored += (int64_t)lines[i].ignored;
    is_number(sums.counts[REQUEST_COUNT_CALLS], all, "with threads, each request is counted once");
    is_number(sums.counts[REQUEST_COUNT_CALLERS], all, "the caller of each request is known");
    is_number((int64_t)sums.values[0], all, "each request has waited");
    is_number((int64_t)sums.values[1], all, "the server has worked on each request");
    is_number((int64_t)sums.values[2], got, "each received reply is counted");
    is_number(sums.counts[REQUEST_COUNT_TIMED_OUT], ignored, "each caller that gave up for good has timed out");
    ok(sums.counts[REQUEST_COUNT_LATE] >= 0 && sums.counts[REQUEST_COUNT_LATE] <= ignored, "only their replies are late");
    ok(sums.open == 0 && sums.given_up == 0, "no request is open or given up");
}

/* The server dies with each request, at about the time at which another process replies to it. */
static void *fail_or_reply(void *arg)
{
    unsigned n = (unsigned)(uintptr_t)arg;
    struct line *line = &lines[n / 2];
    ERL_NIF_TERM caller = pid(100 + n);
    for (uint64_t i = 0; i < events_each / 10; i++) {
        if (n % 2) {
            wait_for(&line->asked, i + 1);
            replies(pid(400 + n), line->refs[i % 1024]);
            atomic_store_explicit(&line->replied, i + 1, memory_order_release);
            continue;
        }
        uint64_t ref = line->refs[i % 1024] = new_ref();
        asks(caller, ref);
        arrives(pid(300 + n), ref, caller);
        atomic_store_explicit(&line->asked, i + 1, memory_order_release);
        for (volatile unsigned pause = 0; pause < ref % 64 * 16; pause++)
            continue;
        goes_down(caller, ref);
        wait_for(&line->replied, i + 1);
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void test_failures(void)
{
    int64_t all = PAIRS * (int64_t)(events_each / 10);
    uint64_t ref = new_ref(), next = new_ref();
    open_anew();
    asks(pid(1), ref), arrives(pid(2), ref, pid(1)), goes_down(pid(1), ref);
    asks(pid(1), next), arrives(pid(2), next, pid(1)), replies(pid(3), ref), gives_up(pid(1));
    read_rounds();
    is_number(sums.counts[REQUEST_COUNT_CALLS], 1, "a request whose server dies is counted");
    is_number(sums.counts[REQUEST_COUNT_DOWN], 1, "as one that failed");
    is_number(sums.counts[REQUEST_COUNT_LATE], 0, "and the reply of another process changes nothing");
    ok(sums.open == 1 && sums.open_timed == 1, "the next request of the caller stays open");
    for (unsigned i = 0; i < PAIRS; i++)
        lines[i].asked = lines[i].replied = 0;
    open_anew();
    with_threads(2 * PAIRS, fail_or_reply);
    is_number(sums.counts[REQUEST_COUNT_CALLS], all, "with threads, each request that fails is counted once");
    ok(sums.counts[REQUEST_COUNT_DOWN] > 0 && sums.counts[REQUEST_COUNT_DOWN] <= all,
       "some fail before another process replies");
    ok(sums.open == 0 && sums.given_up == 0 && sums.elsewhere == 0, "and none stays open");
}

/* Keeps more requests open than there are places, all threads together, and replies to the oldest of its own. */
static void *flood(void *arg)
{
    enum { WINDOW = PLACES / FLOODS + 1000 };
    unsigned n = (unsigned)(uintptr_t)arg;
    uint64_t many = events_each + WINDOW, first = atomic_fetch_add(&refs, many);
    for (uint64_t i = 0; i < many + WINDOW; i++) {
        if (i < many)
            begins(pid(200 + n), first + i, pid(1));
        if (i >= WINDOW)
            replies(pid(200 + n), first + i - WINDOW);
    }
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void test_floods(void)
{
    int64_t all = FLOODS * (int64_t)(events_each + PLACES / FLOODS + 1000);
    open_anew();
    with_threads(FLOODS, flood);
    printf("# %" PRId64 " of %" PRId64 " requests were given up\n", sums.given_up, all);
    is_number(sums.counts[REQUEST_COUNT_CALLS], all, "with a full table, each request is counted once");
    is_number((int64_t)sums.values[1] + sums.given_up, all, "each request has its reply, or is given up");
    ok(sums.given_up > 0, "some requests are given up");
    ok(sums.open == 0 && sums.elsewhere == 0, "no request stays open");
}

int main(void)
{
    if (getenv("ETRACE_ALL") && *getenv("ETRACE_ALL"))
        events_each = 100000;
    if (getenv("EVENTS"))
        events_each = strtoull(getenv("EVENTS"), NULL, 10);
    tick_start();
    ok(lanes_open(1 + 2 * PAIRS + FLOODS, RING, NEED, (struct encode_limits){0}), "the lanes open");
    test_order();
    test_elsewhere();
    test_full();
    test_full_of_calls();
    test_full_timed_out();
    test_pairs();
    test_failures();
    test_floods();
    request_count_unmap();
    tally_unmap();
    lanes_unmap();
    return tap_end();
}
