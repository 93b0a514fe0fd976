/* SPDX-License-Identifier: Apache-2.0 */
#include "keep.h"

#include <string.h>

#include "gate.h"
#include "hold.h"
#include "tally.h"
#include "tick.h"

void keep_event(struct lane *lane, struct tree *t, const struct keep_event *k)
{
    const struct encoder *e = &lane->held;
    const bool fits = e->word_count <= ENCODER_WORDS;
    struct tree_event *place = tree_add(t, fits ? e->word_count : TREE_TAIL, k->bytes);

    if (place) {
        place->bare = k->bare;
        place->module = k->function.module;
        place->name = k->function.name;
        place->arity = (uint8_t)k->function.arity;
        place->tick = e->tick;
        place->kind = (uint8_t)k->kind;
        place->flags = (uint8_t)e->flags;
        memcpy(tree_words(place), e->words, e->word_count * sizeof *e->words);
        memcpy(tree_terms(place), k->terms, k->bytes);
    }
    tally_hide(lane, k->roots);
}

static bool accepts_root(const struct inside_closed *closed, uint64_t tick, const struct verdict_end *end)
{
    return verdict_result(0, tally_ns(closed->call.tick, tick), end);
}

void keep_inner(struct tree *t, const struct inside_closed *closed, uint64_t tick, const struct verdict_end *end)
{
    if (accepts_root(closed, tick, end))
        tree_choose(t, closed->call.number);
}

static void lose_kept(struct lane *lane, uint32_t events, enum etw_loss why)
{
    for (; events; events--) {
        tally_waiting(lane, -1, 0);
        ring_lose_seen(&lane->ring, why);
    }
}

/*
 * Sends an event of a tree, or counts it as lost if the ring is full. The event already counts as seen and as hidden.
 */
static void send_kept(ErlNifEnv *env, struct lane *lane, ERL_NIF_TERM process, struct tree_event *e)
{
    const struct encode_held held = {
        .module = e->module,
        .name = e->name,
        .words = tree_words(e),
        .terms = tree_terms(e),
        .bytes = e->terms,
        .word_count = e->words,
        .arity = e->arity,
        .bare = e->bare,
    };

    if (!ring_has_room(&lane->ring)) {
        lose_kept(lane, 1, ETW_LOST_RING);
        return;
    }
    tally_waiting(lane, -1, 0);
    hold_send(env, lane, process, (enum etw_kind)e->kind, e->flags, e->tick, &held);
}

/* Returns the number of events to send to which the rate applies: all except results. all: see send_tree(). */
static unsigned count_rated(struct tree *t, bool all)
{
    unsigned n = 0;

    for (struct tree_event *e = NULL; (e = tree_next(t, e));)
        n += (all || e->chosen) && e->kind != ETW_RETURN_FROM && e->kind != ETW_EXCEPTION_FROM;
    return n;
}

/*
 * Sends the events of the tree: all, or only those that tree_choose() has marked. Counts the events that the tree has
 * dropped as lost; the frame behind a gap tells the client their number. Returns false and sends nothing if the rate
 * rejects the tree.
 */
static bool send_tree(ErlNifEnv *env, struct lane *lane, uint32_t rules, ERL_NIF_TERM process, struct tree *t, bool all)
{
    const unsigned rated = count_rated(t, all);
    const bool admitted = !rated || gate_admits_waited(rules, rated), gaps = all || t->doubtful;
    uint32_t next = 0;

    for (struct tree_event *e = NULL; (e = tree_next(t, e)); next = e->number + 1) {
        lose_kept(lane, gaps ? e->number - next : 0, ETW_LOST_GUARD);
        if (!all && !e->chosen)
            continue;
        if (admitted)
            send_kept(env, lane, process, e);
        else
            lose_kept(lane, 1, ETW_LOST_RATE);
    }
    lose_kept(lane, gaps ? t->count - next : 0, ETW_LOST_GUARD);
    return admitted;
}

bool keep_end(ErlNifEnv *env, struct lane *lane, uint32_t rules, ERL_NIF_TERM process,
              const struct inside_closed *closed, const struct verdict_end *end)
{
    struct tree *t = closed->tree;
    const bool accepted = accepts_root(closed, tick_now(), end);

    tally_begin(lane);
    tally_waiting(lane, 0, t->count ? -1 : 0); /* without events, even the root's call was lost and never counted */
    const bool admitted = send_tree(env, lane, rules, process, t, accepted);
    tally_end(lane);
    tree_free(t);
    if (!accepted)
        tally_hide(lane, 0);
    else if (!admitted)
        ring_lose(&lane->ring, ETW_LOST_RATE);
    return accepted && admitted;
}
