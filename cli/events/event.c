/* SPDX-License-Identifier: Apache-2.0 */
#include "event.h"

#include <stdlib.h>

#include "../erlang/term_print.h"
#include "../ground/mem.h"
#include "names.h"

const struct event_kind event_kinds[ETW_KINDS] = {
#define KIND(name, number, tag, json, layout, ...) [number] = {tag, json, ETW_LAYOUT_##layout, {__VA_ARGS__}},
#define NAMED(name, type)                                                                                              \
    {                                                                                                                  \
#name, sizeof(#name) - 1, type                                                                                 \
    }
#define TERM(name) NAMED(name, EVENT_TERM)
#define PROCESS(name) NAMED(name, EVENT_PROCESS)
#define MFA(name) NAMED(name, EVENT_MFA)
#define INFO(name) NAMED(name, EVENT_INFO)
#define LABEL(name) NAMED(name, EVENT_TERM)
#define NONE NAMED(, EVENT_NO_TERM)
#include "event_kinds.def"
};

/* Fails to compile if two rows have the same number. */
UNUSED static void check_numbers(enum etw_kind kind)
{
    switch (kind) {
#define KIND(name, number, ...) case number:
#include "event_kinds.def"
        break;
    }
}

const char *const event_losses[ETW_LOSSES] = {
    [ETW_LOST_RING] = "ring",
    [ETW_LOST_RATE] = "rate",
    [ETW_LOST_GUARD] = "guard",
    [ETW_LOST_NORING] = "no_ring",
    [ETW_LOST_QUEUE] = "queue",
    [ETW_LOST_HALF] = "rate",
    [ETW_LOST_OVERWRITTEN] = "overwritten",
    [ETW_LOST_REQUEST] = "request",
};

bool event_begins_snapshot(const struct event *e, int64_t *ret_from, int64_t *ret_us)
{
    const uint8_t *at;
    uint32_t arity;

    return e->kind == ETW_NOTICE && wire_is_atom(&e->env, e->terms.at, "snapshot") &&
           wire_tuple(wire_skip(e->terms.at), &arity, &at) == 2 && wire_int(at, ret_from) &&
           wire_int(wire_skip(at), ret_us) && *ret_from >= 0;
}

const struct tracee *event_who(const struct event *e, uint64_t tracee)
{
    return e->tracees ? tracees_find(e->tracees, tracee) : NULL;
}

struct tracee event_tracee(const struct event *e, uint64_t tracee)
{
    const struct tracee *known = event_who(e, tracee);
    struct tracee t = {.id = tracee};

    if (known)
        return *known;
    t.text_len = (uint8_t)print_tracee(t.text, tracee);
    return t;
}

bool event_process(const struct event *e, const uint8_t *at, struct tracee *ret)
{
    uint64_t id;

    if (wire_pid(at, &id)) {
        *ret = event_tracee(e, id);
        return true;
    }
    if (*at != ETW_T_TEXT)
        return false;
    const struct raw text = raw_bytes(at + 4, wire_u16(at + 2));
    *ret = (struct tracee){.id = 0};
    safe_copy(ret->text, sizeof(ret->text), text.len ? text : raw_text("…"));
    ret->text_len = (uint8_t)strlen(ret->text);
    return true;
}

struct kept {
    struct event event;
    struct tracee who;
    size_t size; /* allocated bytes, including this struct */
    uint8_t bytes[];
};

/*
 * Maps a position in `from` to the same position in the copy `to`. Both have the same tokens; only the sizes of atoms
 * differ.
 */
static const uint8_t *map_position(const uint8_t *at, struct wire from, struct wire to)
{
    const uint8_t *f = from.at, *t = to.at;

    if (!at)
        return NULL;
    while (f < at) {
        f = wire_token(f);
        t = wire_token(t);
    }
    return t;
}

struct event *event_keep(const struct event *e, size_t max, struct event *spare, size_t *ret_bytes)
{
    struct buf b = {.data = (char *)spare, .cap = spare ? ((struct kept *)(void *)spare)->size : 0};
    struct kept *k;

    buf_room(&b, sizeof(*k));
    b.len = sizeof(*k);
    bool good = wire_copy(&b, &e->env, e->terms, max);
    size_t ms = b.len;
    if (!good || !wire_copy(&b, &e->env, e->ms, max)) {
        buf_release(&b);
        return NULL;
    }
    k = (struct kept *)(void *)b.data;
    k->size = *ret_bytes = b.cap;
    k->event = *e;
    k->who = *e->who;
    k->event.who = &k->who;
    k->event.env.atoms = NULL;
    k->event.call = NULL;
    k->event.terms = (struct wire){k->bytes, (const uint8_t *)b.data + ms};
    k->event.ms = (struct wire){k->event.terms.end, (const uint8_t *)b.data + b.len};
    k->event.caller = map_position(e->caller, e->ms, k->event.ms);
    k->event.stack = map_position(e->stack, e->ms, k->event.ms);
    k->event.dump = map_position(e->dump, e->ms, k->event.ms);
    k->event.user = map_position(e->user, e->ms, k->event.ms);
    k->event.sender = map_position(e->sender, e->ms, k->event.ms);
    k->event.sender_node = map_position(e->sender_node, e->ms, k->event.ms);
    return &k->event;
}
