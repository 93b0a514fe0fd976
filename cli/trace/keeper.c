/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper.h"

#include <stdlib.h>

#include "../events/scroll.h"
#include "../ground/loop.h"
#include "../ground/mem.h"
#include "../pipeline/assert.h"

#define TIMED_MOST ((size_t)64 << 20) /* limit for the kept bytes if --ring is a time */
#define PARTS 32                      /* the ages of events are marked in steps of 1/PARTS of --ring TIME */
#define AT_ONCE ((size_t)4 << 20)     /* bytes to pass on before the loop serves everything else again */

enum keeper_state { KEEPS, SENDS, RESTS };

/* A mark in the scrollback: no event before `place` is younger than the wall clock time `at_ns`. */
struct aged {
    uint64_t place;
    int64_t at_ns;
};

struct keeper {
    struct keeper_options o;
    enum keeper_state state;
    int64_t until; /* SENDS, RESTS: loop_now() time at which the state ends */
    struct scroll *scroll;
    struct source *reader;
    struct pipeline *judge;
    struct asserts *trigger;
    bool of_rows;  /* the condition is about figures of keys, not about single events */
    uint64_t held; /* number of times that the condition held since the state began */
    size_t most;
    /* Wall clock times of the nodes, so that ages and figures do not depend on when this program reads the events. */
    int64_t wall_ns, came;       /* of the latest batch: its wall clock time, and the loop_now() time of its arrival */
    int64_t counted_from;        /* wall clock time at which the figures began */
    struct aged ages[PARTS + 2]; /* marks of ages, the oldest first */
    size_t nages;
};

struct keeper *keeper_new(const struct keeper_options *o, struct err *e)
{
    struct keeper *k = mem_zalloc(sizeof(*k));
    struct pipeline_options judge = o->judge;

    k->o = *o;
    k->most = o->ring->most_ms ? TIMED_MOST : o->ring->bytes;
    /* keeper_step() keeps the bytes below `most`, and at most one batch comes between two calls. */
    k->scroll = scroll_new(2 * k->most);
    k->reader = scroll_read(k->scroll, false);
    scroll_act_as_recorder(k->reader);
    k->of_rows = where_is_of_rows(o->when);
    k->trigger = asserts_new_trigger(o->when, e);
    judge.nviews = 0;
    judge.asserts = k->trigger;
    judge.notice = NULL;
    judge.reached = NULL;
    judge.attached = NULL;
    judge.limit = 0;
    k->judge = k->trigger ? pipeline_new(&judge, e) : NULL;
    if (k->judge)
        return k;
    keeper_free(k);
    return NULL;
}

void keeper_free(struct keeper *k)
{
    if (!k)
        return;
    pipeline_free(k->judge);
    asserts_free(k->trigger);
    source_close(k->reader);
    scroll_free(k->scroll);
    free(k);
}

struct pipeline *keeper_judge(struct keeper *k)
{
    return k->judge;
}

/* ---- the condition ---- */

static void count_anew(struct keeper *k)
{
    pipeline_clear_groups(k->judge);
    k->counted_from = k->wall_ns;
}

static void look_at_condition(struct keeper *k)
{
    const uint64_t held = asserts_take_held(k->trigger);

    k->held += held;
    if (k->of_rows && held)
        count_anew(k);
}

/*
 * Marks the age of the events so far. The new mark replaces the latest one unless it is at least 1/PARTS of --ring TIME
 * younger than the mark before that.
 */
static void note_age(struct keeper *k)
{
    const int64_t most_ns = (int64_t)k->o.ring->most_ms * 1000000;

    if (!most_ns)
        return;
    if (k->nages > 1 && (k->nages == ARRAY_LEN(k->ages) || k->wall_ns - k->ages[k->nages - 2].at_ns < most_ns / PARTS))
        k->nages--;
    k->ages[k->nages++] = (struct aged){scroll_end(k->scroll), k->wall_ns};
}

bool keeper_batch(struct keeper *k, unsigned node, struct str bytes, struct err *e)
{
    const int64_t within_ns = (int64_t)k->o.ring->within_ms * 1000000;
    struct etw_batch head;

    if (!scroll_batch(k->scroll, node, bytes, e)) /* checks the header */
        return false;
    memcpy(&head, bytes.at, sizeof(head));
    k->wall_ns = MAX(k->wall_ns, head.wall_ns);
    k->came = loop_now();
    note_age(k);
    if (within_ns && k->wall_ns - k->counted_from >= within_ns)
        count_anew(k);
    if (pipeline_batch(k->judge, node, bytes, e) == PIPELINE_FAILED)
        return false;
    look_at_condition(k);
    return true;
}

bool keeper_note(struct keeper *k, unsigned node, struct str bytes, struct err *e)
{
    scroll_note(k->scroll, node, bytes);
    return pipeline_note(k->judge, node, bytes, e) != PIPELINE_FAILED;
}

/* ---- events ---- */

/* Removes the events before a place, and counts them as overwritten. */
static bool keeper_overwrite_until(struct keeper *k, uint64_t place, struct err *e)
{
    struct source_item item;
    bool ok = true;

    while (ok && scroll_place(k->reader) < place)
        if (scroll_overwrite_oldest(k->reader, &item))
            ok = k->o.take(k->o.data, &item, e);
    scroll_clear(k->scroll, scroll_place(k->reader));
    return ok;
}

static void forget_ages(struct keeper *k, size_t n)
{
    k->nages -= n;
    memmove(k->ages, k->ages + n, k->nages * sizeof(*k->ages));
}

/* Overwrites events that are too old or too many. Passes on their notes, and the first and last batches of nodes. */
static bool keeper_overwrite(struct keeper *k, struct err *e)
{
    const int64_t most_ns = (int64_t)k->o.ring->most_ms * 1000000;
    const int64_t now_ns = k->wall_ns + (loop_now() - k->came) * 1000000;
    size_t old = 0;
    bool ok = true;

    while (old < k->nages && now_ns - k->ages[old].at_ns >= most_ns)
        old++;
    if (old) {
        ok = keeper_overwrite_until(k, k->ages[old - 1].place, e);
        forget_ages(k, old);
    }
    while (ok && (scroll_ahead(k->reader) > k->most || scroll_oldest_is_eventless(k->reader)))
        ok = keeper_overwrite_until(k, scroll_place(k->reader) + 1, e);
    return ok;
}

/* Passes on some of the events. *ret_dry: no event is left. */
static bool keeper_pass_on(struct keeper *k, bool *ret_dry, struct err *e)
{
    struct source_item item;
    size_t bytes = 0;
    bool ok = true;

    *ret_dry = false;
    while (ok && bytes < AT_ONCE && !(*ret_dry = source_next(k->reader, &item, 0, e) != SOURCE_ITEM)) {
        bytes += item.bytes.len;
        ok = k->o.take(k->o.data, &item, e);
    }
    scroll_clear(k->scroll, scroll_place(k->reader));
    k->nages = 0;
    return ok;
}

/* ---- states ---- */

static bool keeper_begin_snapshot(struct keeper *k, struct err *e)
{
    const bool ok = keeper_overwrite(k, e);

    k->state = SENDS;
    k->until = loop_now() + k->o.ring->after_ms;
    k->held = 0;
    scroll_begin_snapshot(k->reader);
    if (k->of_rows)
        count_anew(k);
    return ok;
}

/* Ends the snapshot after all its events were passed on. */
static bool keeper_end_snapshot(struct keeper *k, struct err *e)
{
    bool dry;

    k->state = RESTS;
    k->until = loop_now() + k->o.ring->interval_ms;
    scroll_end_snapshot(k->reader);
    return keeper_pass_on(k, &dry, e);
}

static void end_rest(struct keeper *k)
{
    k->state = KEEPS;
    if (k->held)
        k->o.skipped(k->o.data, k->held);
    k->held = 0;
}

bool keeper_fire(struct keeper *k, struct err *e)
{
    if (k->state == RESTS)
        end_rest(k);
    return k->state == SENDS || keeper_begin_snapshot(k, e);
}

static bool keeper_send(struct keeper *k, bool ends, bool *ret_dry, struct err *e)
{
    return keeper_pass_on(k, ret_dry, e) && (!ends || !*ret_dry || keeper_end_snapshot(k, e));
}

bool keeper_step(struct keeper *k, bool may_send, struct err *e)
{
    bool dry;

    look_at_condition(k);
    if (k->state == RESTS && loop_now() >= k->until)
        end_rest(k);
    if (k->state == KEEPS && k->held && !keeper_begin_snapshot(k, e))
        return false;
    if (k->state != SENDS)
        return keeper_overwrite(k, e);
    return !may_send || keeper_send(k, loop_now() >= k->until, &dry, e);
}

int64_t keeper_next(const struct keeper *k, bool may_send)
{
    const int64_t most_ms = k->o.ring->most_ms;
    const int64_t ages = k->nages ? loop_now() + MAX(most_ms / PARTS, 10) : -1;

    if (k->state == SENDS)
        return !may_send ? -1 : scroll_ahead(k->reader) ? loop_now() : k->until;
    return k->state == RESTS ? loop_sooner(k->until, ages) : ages;
}

bool keeper_end(struct keeper *k, bool *ret_more, struct err *e)
{
    bool dry = true;

    *ret_more = false;
    scroll_end_runs(k->scroll);
    if (k->state == KEEPS && k->held && !keeper_begin_snapshot(k, e))
        return false;
    if (k->state == SENDS && !keeper_send(k, true, &dry, e))
        return false;
    *ret_more = !dry;
    if (*ret_more)
        return true;
    end_rest(k);
    if (!keeper_overwrite_until(k, scroll_end(k->scroll), e))
        return false;
    scroll_end_recorder(k->reader);
    return keeper_pass_on(k, &dry, e);
}
