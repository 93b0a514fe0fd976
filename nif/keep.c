/* SPDX-License-Identifier: Apache-2.0 */
#include "keep.h"

#include <string.h>

#include "gate.h"
#include "hold.h"
#include "tally.h"
#include "tick.h"

static void count_hidden(struct lane *lane, int open)
{
    tally_begin(lane);
    tally_waiting(lane, 1, open);
    ring_count_seen(&lane->ring);
    tally_end(lane);
}

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
    count_hidden(lane, k->roots);
}

static bool accepts(const struct inside_closed *closed, uint64_t tick, const struct verdict_end *end)
{
    return verdict_result(0, tally_ns(closed->call.tick, tick), end);
}

void keep_inner(struct tree *t, const struct inside_closed *closed, uint64_t tick, const struct verdict_end *end)
{
    if (accepts(closed, tick, end))
        tree_choose(t, closed->call.number);
}

/* The event counts as seen and as hidden already. */
static void send_kept(ErlNifEnv *env, struct lane *lane, uint32_t rules, ERL_NIF_TERM process, struct tree_event *e)
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

    tally_waiting(lane, -1, 0);
    const bool result = e->kind == ETW_RETURN_FROM || e->kind == ETW_EXCEPTION_FROM;
    if (!result && !gate_admits_waited(rules))
        ring_lose_seen(&lane->ring, ETW_LOST_RATE);
    else if (!ring_has_room(&lane->ring))
        ring_lose_seen(&lane->ring, ETW_LOST_RING);
    else
        hold_send(env, lane, process, (enum etw_kind)e->kind, e->flags, e->tick, &held);
}

bool keep_end(ErlNifEnv *env, struct lane *lane, uint32_t rules, ERL_NIF_TERM process,
              const struct inside_closed *closed, const struct verdict_end *end)
{
    struct tree *t = closed->tree;
    const bool accepted = accepts(closed, tick_now(), end);

    tally_begin(lane);
    tally_waiting(lane, 0, t->count ? -1 : 0); /* there is no event if even the root's call was lost */
    for (struct tree_event *e = NULL; (e = tree_next(t, e));)
        if (accepted || e->chosen)
            send_kept(env, lane, rules, process, e);
    for (uint32_t i = 0; accepted && i < t->gap; i++) {
        tally_waiting(lane, -1, 0);
        ring_lose_seen(&lane->ring, ETW_LOST_GUARD);
    }
    tally_end(lane);
    tree_free(t);
    if (!accepted)
        count_hidden(lane, 0);
    return accepted;
}
