/* SPDX-License-Identifier: Apache-2.0 */
#include "drain.h"

#include <string.h>
#include <time.h>

#include "batch.h"
#include "by.h"
#include "figures.h"
#include "gate.h"
#include "leftover.h"
#include "make.h"
#include "snapshot.h"
#include "tick.h"
#include "unasked.h"

/*
 * The limits of one call of drain_figures(): the figures that it reads (rows_take()), the frames that it makes, and the
 * bytes after which it begins no further frame.
 */
#define FIGURES_WORK 4096
#define FIGURES_TAKEN 64
#define FIGURES_BYTES (256u << 10)
#define WAITS_BYTES 4096    /* more than the longest frame of drain_waits() */
#define NEWCOMERS_MOST 4096 /* newcomers that one call of drain_rings() reports */

enum {
    STATUS_MORE = 1,
    STATUS_HELD = 2,
    STATUS_OVER = 4,
    STATUS_STUCK = 8,
    STATUS_SLOW = 16,
    STATUS_UNASKED = 32,
    STATUS_SHORT = 64,
    STATUS_FIRED = 128,
    STATUS_COMPLETE = 256,
    STATUS_UNNAMED = 512
};

static struct batch_state batches;
static uint64_t told_offered; /* the field `seen` of the owner's last section */
static _Atomic bool drains;   /* the owner is in a call between drain_begin() and drain_end() */
static _Atomic bool halts;    /* the node halts, so drain_begin() returns false */

void drain_open(void)
{
    memset(&batches, 0, sizeof batches);
    told_offered = 0;
    snapshot_open();
    leftover_to(NULL, 0);
}

bool drain_begin(void)
{
    atomic_store(&drains, true);
    return !atomic_load(&halts);
}

void drain_end(void)
{
    atomic_store(&drains, false);
}

/* ---- events ------------------------------------------------------------------------------------------------------ */

static uint64_t monotonic_ns(void)
{
    return (uint64_t)enif_monotonic_time(ERL_NIF_NSEC);
}

static struct batch_clock read_clocks(void)
{
    struct tick_moment now = tick_moment(monotonic_ns);
    tick_watch(&now);
    const int64_t mono_ns = (int64_t)now.ns;
    return (struct batch_clock){
        .tick = now.tick,
        .mono_ns = mono_ns,
        .wall_ns = mono_ns + enif_time_offset(ERL_NIF_NSEC),
    };
}

static bool counts_figures(void)
{
    return gate_route(gate_rules()) != ROUTE_SEND;
}

/* Returns true if every event is counted instead of being sent. */
static bool counts_all(void)
{
    const enum gate_route route = gate_route(gate_rules());
    return route == ROUTE_BY || route == ROUTE_TALLY;
}

/* Returns a list of tracees and {Process, Name}. */
static ERL_NIF_TERM take_newcomers(ErlNifEnv *env, bool *ret_more)
{
    static struct newcomer newcomers[NEWCOMERS_MOST];
    ERL_NIF_TERM list = enif_make_list(env, 0);
    uint32_t count = lanes_newcomers(batches.turn, newcomers, NEWCOMERS_MOST, ret_more);
    while (count--) {
        ERL_NIF_TERM tracee = newcomers[count].tracee, name = newcomers[count].name;
        list = enif_make_list_cell(env, name ? enif_make_tuple2(env, tracee, name) : tracee, list);
    }
    return list;
}

/* Remembers the counter `seen` of the owner's own section. It is the first of the sections. */
static void note_own_section(const ErlNifBinary *own)
{
    struct etw_section section;
    if (own->size < sizeof section)
        return;
    memcpy(&section, own->data, sizeof section);
    if (section.ring == ETW_META_RING)
        told_offered = section.seen;
}

static unsigned status_of(const struct batch_plan *plan)
{
    const uint32_t rules = gate_rules();
    return (plan->more ? STATUS_MORE : 0) | (plan->held ? STATUS_HELD : 0) | (rules & RULE_OVER ? STATUS_OVER : 0) |
           (rules & RULE_STUCK ? STATUS_STUCK : 0) | (atomic_load(&session.slow) ? STATUS_SLOW : 0) |
           (unasked_is_busy() ? STATUS_UNASKED : 0) | (rules & RULE_BUDGET && gate_is_short() ? STATUS_SHORT : 0) |
           (lanes.overwrites && atomic_load(&lanes.still) ? STATUS_FIRED : 0) |
           (snapshot_is_complete(plan->watermark) ? STATUS_COMPLETE : 0) |
           (atomic_exchange(&lanes.unnamed, false) ? STATUS_UNNAMED : 0);
}

static ERL_NIF_TERM make_batch(ErlNifEnv *env, const struct batch_plan *plan)
{
    ERL_NIF_TERM batch;
    uint8_t *bytes = enif_make_new_binary(env, plan->bytes, &batch);
    batch_write(&batches, plan, bytes);
    leftover_keep(batches.seq, bytes, plan->bytes);
    if (plan->own_bytes)
        snapshot_told();
    gate_may_have_room();
    enif_consume_timeslice(env, (int)(plan->bytes / (16 * 1024)) + 1);
    return batch;
}

ERL_NIF_TERM drain_rings(ErlNifEnv *env, uint64_t most, const ErlNifBinary *own, bool last)
{
    struct batch_plan plan;
    const size_t bytes = most < ETW_MAX_BATCH ? most : ETW_MAX_BATCH;
    const struct batch_clock clock = read_clocks();
    bool more;
    note_own_section(own);
    batch_plan(&batches, &clock, tick_slack(), bytes, own->data, (uint32_t)own->size, last, &plan);
    if (plan.flags & ETW_BATCH_LAST && counts_figures() && !tally_is_told())
        batch_plan(&batches, &clock, tick_slack(), bytes, own->data, (uint32_t)own->size, false, &plan);
    ERL_NIF_TERM newcomers = take_newcomers(env, &more);
    const unsigned status = status_of(&plan) | (more ? STATUS_MORE : 0);
    ERL_NIF_TERM batch = plan.wanted ? make_batch(env, &plan) : enif_make_atom(env, "none");
    return enif_make_tuple3(env, batch, newcomers, enif_make_uint(env, status));
}

/* ---- figures ----------------------------------------------------------------------------------------------------- */

ERL_NIF_TERM drain_figures(ErlNifEnv *env, uint64_t most)
{
    static uint8_t frames[FIGURES_BYTES + FIGURES_FRAME];
    if (!counts_figures())
        return 0;
    most = most < FIGURES_BYTES ? most : FIGURES_BYTES;
    int64_t work = FIGURES_WORK;
    uint8_t *at = frames;
    enum rows_took took = ROWS_PAUSE;
    for (unsigned taken = 0; taken < FIGURES_TAKEN && at - frames < (int64_t)most; taken++)
        if ((took = figures_put(env, &work, &at)) != ROWS_TOOK)
            break;
    enif_consume_timeslice(env, 20);
    return enif_make_tuple2(env, enif_make_atom(env, took == ROWS_END ? "done" : "more"),
                            make_binary(env, frames, (size_t)(at - frames)));
}

ERL_NIF_TERM drain_waits(ErlNifEnv *env)
{
    uint8_t frame[WAITS_BYTES], *end = frame;
    ERL_NIF_TERM process = counts_all() ? figures_put_waits(env, &end) : 0;
    enif_consume_timeslice(env, 20);
    return process ? enif_make_tuple2(env, make_binary(env, frame, (size_t)(end - frame)), process)
                   : enif_make_atom(env, "none");
}

/* ---- the end of the node ----------------------------------------------------------------------------------------- */

/* Does not report the calls that a counter of the VM counts for a budget: only the owner knows their numbers. */
void drain_leftover(void)
{
    const uint32_t rules = gate_rules();
    struct snapshot_reach reach;

    if (!atomic_exchange(&session.live, 0))
        return;
    const enum leftover_notice notice = snapshot_end(&reach);
    leftover_send(&(struct leftover){
        .batches = &batches,
        .clock = read_clocks,
        .told = tally_is_told,
        .notice = notice,
        .from = reach.from,
        .us = reach.us,
        .offered = told_offered,
        .figures = counts_figures(),
        .waits = counts_all(),
        .exact = !(rules & RULE_BUDGET),
    });
}

/* Waits up to a second for a call of the owner on another scheduler, then drains. No process runs any more. */
void drain_halted(void *priv)
{
    const struct timespec pause = {.tv_nsec = 1000 * 1000};
    (void)priv;
    atomic_store(&halts, true);
    for (unsigned i = 0; i < 1000 && atomic_load(&drains); i++)
        nanosleep(&pause, NULL);
    if (!atomic_load(&drains))
        drain_leftover();
}
