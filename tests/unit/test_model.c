/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the ring and its drain, the rules, the newcomers and the figures in the model checker (model/model.h), in every
 * order that C11 allows. It compiles the sources of nif/, so a memory order that is too weak fails here on any
 * machine.
 */
#include "batch.h"
#include "frame.h"
#include "gate.h"
#include "tally.h"

#include "model/model.h"
#include "tap.h"

enum { EVENTS = 3, PLANS = 2, NEED = 256, SMALL = 512, LARGE = 4096 };

struct session session;
struct excluded;

static struct lane *lane;
static uint8_t memory[LARGE + NEED];
static struct {
    uint64_t end, tick; /* end and tick of the frame; end is 0 if the event was lost */
} events[EVENTS + 1];
static struct batch_plan plans[PLANS];
static unsigned planned;

/* ---- the ring and its drain ---- */

static void begin_ring(uint64_t size)
{
    lane = lane_at(0);
    atomic_store(&lanes.claimed, 1);
    ring_init(&lane->ring, memory, size, size, NEED);
    ring_begin(&lane->ring, NEED, 1);
    atomic_store(&lane->ring.busy, 0);
    lane->told_seen = 0;
    lane->told_amid = false;
    memset(events, 0, sizeof events);
    planned = 0;
}

static void begin_large(void)
{
    begin_ring(LARGE);
}
static void begin_small(void)
{
    begin_ring(SMALL);
}

static void write_event(unsigned i, bool lost, unsigned bytes)
{
    struct ring *ring = &lane->ring;
    if (lost || !ring_has_room(ring)) {
        ring_lose(ring, ETW_LOST_RING);
        return;
    }
    ring_busy(ring);
    struct frame frame = frame_begin(ring, model_clock(), 42);
    uint8_t *at = frame.next;
    for (; bytes; bytes -= 8)
        at = put64(at, i);
    frame_end(ring, frame, at, ETW_EXIT);
    events[i].tick = frame.tick;
    events[i].end = ring_own(&ring->head);
}

static void produce(void)
{
    for (unsigned i = 0; i < EVENTS; i++)
        write_event(i, i == 1, 8);
}

static void produce_large(void)
{
    for (unsigned i = 0; i < EVENTS + 1; i++)
        write_event(i, false, 168);
}

/* Reads the same bytes as the copy into a batch. */
static void read_bytes(const struct ring *ring, uint64_t from, uint64_t to)
{
    for (uint64_t at = from; at < to; at++)
        if (ring->bytes[at & ring->mask] == 255)
            model_fail("a byte is read that no producer has written");
}

static void make_plan(bool last)
{
    static struct batch_state state;
    struct batch_plan *plan = &plans[planned];
    struct batch_clock clock = {.tick = model_clock()};
    if (!planned)
        memset(&state, 0, sizeof state);
    batch_plan(&state, &clock, MODEL_SLACK, LARGE, NULL, 0, last, plan);
    read_bytes(&lane->ring, plan->parts[0].view.tail, plan->parts[0].to);
    planned++;
}

static void drain_once(void)
{
    make_plan(true);
}

/* Advances the clock between two drains, so that a slow producer may read its clock long before it stores. */
static void drain_twice(void)
{
    make_plan(false);
    model_clock();
    model_clock();
    make_plan(false);
}

static void drain_and_release(void)
{
    for (int i = 0; i < 2; i++) {
        struct ring_view view = ring_look(&lane->ring);
        read_bytes(&lane->ring, view.tail, view.head);
        ring_release(&lane->ring, view.head, view.tick);
    }
}

static void check_plans(void)
{
    for (unsigned k = 0; k < planned; k++) {
        const struct batch_part *part = &plans[k].parts[0];
        uint64_t lost = 0, frames = 0;
        /* the last batch moves the watermark to the clock, because no more frames follow */
        bool last = plans[k].flags & ETW_BATCH_LAST;
        for (int i = 0; i < ETW_LOSSES; i++)
            lost += part->lost[i];
        for (unsigned i = 0; i < EVENTS; i++) {
            frames += events[i].end && events[i].end <= part->to;
            if (events[i].end > part->to && events[i].tick < part->tick)
                model_fail("the drain gives a frame a later tick than its successor");
            if (!last && events[i].end > part->to && events[i].tick <= plans[k].watermark)
                model_fail("a frame comes after its watermark");
        }
        if (lost > part->seen)
            model_fail("more events are lost than seen");
        if (last && part->seen != frames + lost)
            model_fail("the last batch counts an event as seen that it neither has nor counts as lost");
    }
}

/* ---- rules ---- */

static uint64_t table;

static void begin_rules(void)
{
    atomic_store(&session.rules, 0);
    table = 0;
}

static void set_rules(void)
{
    table = 7;
    atomic_fetch_or(&session.rules, ROUTE_TALLY);
}

static void read_rules(void)
{
    if (gate_route(gate_rules()) == ROUTE_TALLY && table != 7)
        model_fail("a rule is in force before the table that it uses");
}

/* ---- newcomers ---- */

static void begin_newcomers(void)
{
    begin_large();
    atomic_store(&lane->newcomers_head, LANE_NEWCOMERS - 2); /* the queue has room for two */
    atomic_store(&lane->newcomers_tail, 0);
    for (unsigned i = LANE_NEWCOMERS - 2; i < LANE_NEWCOMERS + 2; i++)
        lane->newcomers[i % LANE_NEWCOMERS] = (struct newcomer){0};
}

static void greet(void)
{
    for (uint64_t word = 1; word <= 3; word++)
        lane_greet_slowly(lane, word << 4);
}

static void meet(void)
{
    static struct newcomer met[LANE_NEWCOMERS];
    bool more;
    uint32_t n = 0;
    for (int i = 0; i < 2; i++)
        n += lanes_newcomers(0, met + n, i ? LANE_NEWCOMERS - 1 - n : 2, &more);
    for (uint32_t i = LANE_NEWCOMERS - 2; i < n; i++)
        if (met[i].tracee >> 4 != i - (LANE_NEWCOMERS - 2) + 1)
            model_fail("a newcomer is reported before its arrival");
}

/* ---- figures ---- */

static uint64_t figures;
static bool told;

static bool alive(void *env, uint64_t process)
{
    (void)env, (void)process;
    return true;
}

static void open_figures(unsigned claimed)
{
    begin_large();
    atomic_store(&lanes.claimed, claimed);
    const struct rows_room room = tally_functions(1);
    while (tally_open(&room, 1000, alive) == ROWS_CLEARING)
        ;
    atomic_store(&lane->counted, 0);
    figures = 0;
    told = false;
}

static void begin_figures(void)
{
    open_figures(1);
}

static void count(void)
{
    const struct stack_function f = {.module = 1, .name = 2, .arity = 3};
    tally_call(NULL, lane, 16, &f, 1, 0, true);
    tally_result(lane, 16, &f, &(struct tally_result){.tick = 1});
}

static void take(void)
{
    struct stack_function f;
    struct rows_growth g;
    struct etw_bucket buckets[ETW_BUCKETS];
    int64_t work = INT64_MAX;
    while (tally_take(&work, &g, buckets) == ROWS_TOOK)
        figures += tally_of(&g, &f).seen;
    make_plan(true);
    told = plans[0].flags & ETW_BATCH_LAST && tally_is_told();
    if (told && figures != plans[0].parts[0].seen)
        model_fail("figures that are said to be complete do not cover every seen event");
}

/* Two threads number the same function concurrently. */
static void begin_numbers(void)
{
    open_figures(2);
    ring_init(&lane_at(1)->ring, memory, LARGE, LARGE, NEED);
    atomic_store(&lane_at(1)->counted, 0);
}

static void number_in(uint32_t slot)
{
    const struct stack_function f = {.module = 1, .name = 2, .arity = 3};
    tally_call(NULL, lane_at(slot), 16 + 16 * slot, &f, 1, 0, false);
}

static void number_first(void)
{
    number_in(0);
}
static void number_second(void)
{
    number_in(1);
}

static void end_numbers(void)
{
    struct stack_function f;
    struct rows_growth g;
    struct etw_bucket buckets[ETW_BUCKETS];
    int64_t work = INT64_MAX;
    while (tally_take(&work, &g, buckets) == ROWS_TOOK) {
        figures += tally_of(&g, &f).seen;
        if (f.module != 1 || f.name != 2 || f.arity != 3)
            model_fail("figures belong to no function");
    }
    if (figures != 2)
        model_fail("a call is counted twice, or not at all");
}

static void nothing(void)
{
}

int main(void)
{
    static const struct model models[] = {
        {"the last batch of a ring is exact while a producer runs", begin_large, {produce, drain_once}, check_plans},
        {"no frame comes after its watermark", begin_large, {produce, drain_twice}, check_plans},
        {"a producer never overwrites bytes that are being read",
         begin_small,
         {produce_large, drain_and_release},
         check_plans},
        {"a rule is in force only after the table that it uses", begin_rules, {set_rules, read_rules}, nothing},
        {"a newcomer is reported after its arrival, and its slot is reused later",
         begin_newcomers,
         {greet, meet},
         nothing},
        {"figures that are said to be complete cover every seen event", begin_figures, {count, take}, nothing},
        {"two threads can number a function at the same time",
         begin_numbers,
         {number_first, number_second},
         end_numbers},
    };
    lanes_open(2, LARGE, NEED, (struct encode_limits){0});
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const char *why;
        unsigned runs;
        bool good = model_check(&models[i], &why, &runs);
        ok(good, "%s (%u runs)", models[i].name, runs);
        if (why)
            printf("# %s\n", why);
    }
    tally_unmap();
    lanes_unmap();
    return tap_end();
}
