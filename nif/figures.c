/* SPDX-License-Identifier: Apache-2.0 */
#include "figures.h"

#include <string.h>

#include "tick.h"
#include "tracer.h"

#define NAME_BYTES 1024 /* more than the longest atom in UTF-8 */

struct tally_frame {
    struct etw_tally head;
    struct etw_bucket buckets[ETW_BUCKETS];
};

static bool rows_told; /* this round has reported all rows */

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

static enum rows_took put_row(ErlNifEnv *env, int64_t *work, uint8_t **at)
{
    size_t length;
    uint64_t tracee = 0;
    enum rows_took took = by_take(env, work, apart_begin(*at, 0, 0), &length, &tracee);
    if (took == ROWS_TOOK)
        *at = apart_end(*at, apart_begin(*at, tick_now(), tracee) + length, ETW_ROW);
    return took;
}

static enum rows_took put_tally(ErlNifEnv *env, int64_t *work, uint8_t **at)
{
    struct tally_frame t;
    struct stack_function function;
    enum rows_took took = tally_take(work, &function, &t.head, t.buckets);
    if (took != ROWS_TOOK)
        return took;
    size_t bytes = sizeof t.head + t.head.buckets * sizeof *t.buckets;
    uint8_t *to = put_definition(env, apart_begin(*at, tick_now(), 0), &function);
    memcpy(to, &t, bytes);
    *at = apart_end(*at, to + bytes, ETW_TALLY);
    return took;
}

/* Ends the round of rows and the round of functions together: first all rows, then all functions. */
enum rows_took figures_put(ErlNifEnv *env, bool rows, int64_t *work, uint8_t **at)
{
    if (rows && !rows_told) {
        enum rows_took took = put_row(env, work, at);
        if (took != ROWS_END)
            return took;
        rows_told = true;
    }
    enum rows_took took = put_tally(env, work, at);
    rows_told = rows_told && took != ROWS_END;
    return took;
}

static uint8_t *put_atom(ErlNifEnv *env, uint8_t *at, ERL_NIF_TERM atom)
{
    return put_name(env, put16(put8(at, ETW_T_ATOMTEXT), 0), atom, at + 1);
}

ERL_NIF_TERM figures_put_waits(ErlNifEnv *env, bool rows, uint8_t **at)
{
    static const char name[] = "waits";
    const uint64_t now = tick_now(), second = UINT64_C(1000) * tick_per_ms();
    struct stack_waits w;

    stacks_waits(env, now - second, rows ? by_counts : tally_counts, &w);
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
    uint8_t *to = put_definition(env, apart_begin(at, tick_now(), 0), f);
    memcpy(to, figures, sizeof *figures);
    return apart_end(at, to + sizeof *figures, ETW_TALLY);
}
