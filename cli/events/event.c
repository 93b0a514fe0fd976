#include "event.h"

#include <stdlib.h>

#include "../ground/mem.h"
#include "names.h"

const struct event_kind event_kinds[ETW_KINDS] = {
#define KIND(number, tag, json, layout, terms) [number] = {tag, json, layout, terms},
#include "event_kinds.def"
#undef KIND
};

const char *const event_losses[ETW_LOSSES] = {
    [ETW_LOST_RING] = "ring",     [ETW_LOST_RATE] = "rate",   [ETW_LOST_GUARD] = "guard",   [ETW_LOST_NORING] = "no_ring",
    [ETW_LOST_QUEUE] = "queue",   [ETW_LOST_SPARE1] = "other1", [ETW_LOST_SPARE2] = "other2", [ETW_LOST_SPARE3] = "other3",
};

const struct tracee *event_who(const struct event *e, uint64_t tracee)
{
    return e->tracees ? tracees_find(e->tracees, tracee) : NULL;
}

struct kept {
    struct event event;
    struct tracee who;
    uint8_t bytes[];
};

/* The place in the copy of what stood at `at` in the ms result: both have the same tokens, only atoms differ in size. */
static const uint8_t *moved(const uint8_t *at, struct wire from, struct wire to)
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

struct event *event_keep(const struct event *e, size_t max, size_t *ret_bytes)
{
    struct buf terms = {0}, ms = {0};
    struct kept *k = NULL;

    if (wire_copy(&terms, &e->env, e->terms, max) && wire_copy(&ms, &e->env, e->ms, max)) {
        *ret_bytes = sizeof(*k) + terms.len + ms.len;
        k = mem_alloc(*ret_bytes);
        k->event = *e;
        k->who = *e->who;
        k->event.who = &k->who;
        k->event.env.atoms = NULL;
        k->event.call = NULL;
        if (terms.len)
            memcpy(k->bytes, terms.data, terms.len);
        if (ms.len)
            memcpy(k->bytes + terms.len, ms.data, ms.len);
        k->event.terms = (struct wire){k->bytes, k->bytes + terms.len};
        k->event.ms = (struct wire){k->bytes + terms.len, k->bytes + terms.len + ms.len};
        k->event.caller = moved(e->caller, e->ms, k->event.ms);
        k->event.stack = moved(e->stack, e->ms, k->event.ms);
        k->event.dump = moved(e->dump, e->ms, k->event.ms);
        k->event.user = moved(e->user, e->ms, k->event.ms);
        k->event.sender = moved(e->sender, e->ms, k->event.ms);
        k->event.sender_node = moved(e->sender_node, e->ms, k->event.ms);
    }
    buf_release(&terms);
    buf_release(&ms);
    return k ? &k->event : NULL;
}
