/* SPDX-License-Identifier: Apache-2.0 */
#include "figures.h"

#include <string.h>

#include "gate.h"
#include "tick.h"
#include "tracer.h"

#define NAME_BYTES 1024 /* more than the longest atom in UTF-8 */

static uint8_t *put_name(ErlNifEnv *env, uint8_t *at, ERL_NIF_TERM atom, uint8_t *length)
{
    int n = enif_get_atom(env, atom, (char *)at, NAME_BYTES, ENCODING_UTF8);
    n = n > 0 ? n - 1 : 0;
    put16(length, (uint64_t)n);
    return at + n;
}

static uint8_t *put_definition(ErlNifEnv *env, uint8_t *at, const struct stack_function *f)
{
    if (!f->module)
        return put8(put16(at, ETW_NO_FUNCTION), 0);
    uint8_t *lengths = put8(put16(at, ETW_DEF), f->arity);
    return put_name(env, put_name(env, lengths + 4, f->module, lengths), f->name, lengths + 2);
}

/* Without buckets, their number in figures is 0. */
static void put_tally(ErlNifEnv *env, const struct stack_function *f, const struct etw_tally *figures,
                      const struct etw_bucket *buckets, uint8_t **at)
{
    uint8_t *to = put_definition(env, apart_begin(*at, tick_now(), 0), f);
    memcpy(to, figures, sizeof *figures);
    to += sizeof *figures;
    if (buckets) {
        memcpy(to, buckets, figures->buckets * sizeof *buckets);
        to += figures->buckets * sizeof *buckets;
    }
    *at = apart_end(*at, to, ETW_TALLY);
}

static void put_function_row(ErlNifEnv *env, const struct rows_growth *g, const struct etw_bucket *buckets,
                             uint8_t **at)
{
    struct stack_function f;
    const struct etw_tally figures = tally_of(g, &f);
    put_tally(env, &f, &figures, buckets, at);
}

/* Returns true if the figures of a key grew. If only its numbers of seen or hidden events grew, it gets no frame. */
static bool has_grown(const struct etw_row *row)
{
    bool any = false;
    for (unsigned i = 0; i < ETW_ROW_COUNTS; i++)
        any |= row->counts[i] != 0;
    for (unsigned i = 0; i < ETW_ROW_VALUES; i++)
        any |= row->values[i].count || row->values[i].sum || row->buckets[i];
    return any;
}

static void put_key_row(ErlNifEnv *env, const struct rows_growth *g, const struct etw_bucket *buckets, uint8_t **at)
{
    struct etw_row row = {.counts = {[0] = g->by.counts[TALLY_EVENTS], [ETW_BY_OPEN] = g->by.counts[TALLY_OPEN]}};
    uint64_t tracee;
    size_t bytes = sizeof row;
    for (unsigned i = 0; i < ETW_ROW_VALUES; i++) {
        row.counts[1 + i] = g->by.counts[TALLY_SKIPPED + i];
        row.values[i] = g->by.values[i];
        row.buckets[i] = g->by.buckets[i];
        bytes += row.buckets[i] * sizeof *buckets;
    }
    if (!has_grown(&row))
        return;
    uint8_t *to = by_put_key(env, apart_begin(*at, 0, 0), g->row, &tracee);
    apart_begin(*at, tick_now(), tracee);
    to = put32(put64(put8(to, ETW_T_BIN), bytes), (uint32_t)bytes);
    memcpy(to, &row, sizeof row);
    memcpy(to + sizeof row, buckets, bytes - sizeof row);
    *at = apart_end(*at, to + bytes, ETW_ROW);
}

/* Writes a frame without a function, with the numbers of events that were seen and hidden. */
static void put_totals(ErlNifEnv *env, uint8_t **at)
{
    const struct etw_tally all = tally_totals();
    if (all.seen || all.filtered)
        put_tally(env, &(struct stack_function){0}, &all, NULL, at);
}

enum rows_took figures_put(ErlNifEnv *env, int64_t *work, uint8_t **at)
{
    static struct etw_bucket buckets[ROWS_VALUES * ETW_BUCKETS];
    const bool by_key = gate_route(gate_rules()) == ROUTE_BY;
    struct rows_growth g;
    const enum rows_took took = tally_take(work, &g, buckets);
    if (took == ROWS_TOOK)
        (by_key ? put_key_row : put_function_row)(env, &g, buckets, at);
    else if (took == ROWS_END && by_key)
        put_totals(env, at);
    return took;
}

static uint8_t *put_atom(ErlNifEnv *env, uint8_t *at, ERL_NIF_TERM atom)
{
    return put_name(env, put16(put8(at, ETW_T_ATOMTEXT), 0), atom, at + 1);
}

ERL_NIF_TERM figures_put_waits(ErlNifEnv *env, uint8_t **at)
{
    static const char name[] = "waits";
    const uint64_t now = tick_now(), second = UINT64_C(1000) * tick_per_ms();
    struct stack_waits w;

    stacks_waits(env, now - second, tally_counts, &w);
    if (!w.calls)
        return 0;
    uint8_t *to = put16(put8(apart_begin(*at, now, 0), ETW_T_ATOMTEXT), sizeof name - 1);
    memcpy(to, name, sizeof name - 1);
    to = put64(put8(put8(to + sizeof name - 1, ETW_T_TUPLE0 + 4), ETW_T_INT64), w.calls);
    to = put64(put8(to, ETW_T_INT64), tally_ns(w.tick, now));
    to = put8(put64(put8(to, ETW_T_PID), tracer_tracee_data(env, w.process)), ETW_T_TUPLE0 + 3);
    to = put_atom(env, put_atom(env, to, w.function.module), w.function.name);
    *at = apart_end(*at, put64(put8(to, ETW_T_INT64), w.function.arity), ETW_NOTICE);
    return w.process;
}

uint8_t *figures_counted(ErlNifEnv *env, uint8_t *at, const struct stack_function *f, const struct etw_tally *figures)
{
    put_tally(env, f, figures, NULL, &at);
    return at;
}
