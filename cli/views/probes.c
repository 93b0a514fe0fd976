#include "probes.h"

#include <stdlib.h>

#include "../ground/mem.h"

#define CACHE 4096 /* functions whose spec is remembered; a power of two */

enum fit { NO, PERHAPS, YES };

struct probes {
    const struct spec *const *specs;
    size_t n;
    const struct spec *sends, *receives;
    bool events; /* some spec is about events, and none may bring others */
    struct cached {
        const struct fun *fun;
        const struct spec *spec;
        uint8_t arity, wants;
        bool shared; /* several specs may be meant */
    } cache[CACHE];
};

bool probes_switches(const struct spec *s)
{
    for (size_t i = 0; i < s->nclauses; i++)
        if (s->clauses[i].actions & ACT_FLAGS)
            return true;
    return false;
}

struct probes *probes_new(const struct spec *const *specs, size_t n)
{
    struct probes *p = mem_zalloc(sizeof(*p));
    bool flags = false;

    p->specs = specs;
    p->n = n;
    for (size_t i = 0; i < n; i++) {
        if (specs[i]->kind == SPEC_SEND)
            p->sends = specs[i];
        else if (specs[i]->kind == SPEC_RECV)
            p->receives = specs[i];
        else if (specs[i]->kind == SPEC_EVENT)
            p->events = true;
        flags |= probes_switches(specs[i]);
    }
    p->events &= !flags;
    return p;
}

void probes_free(struct probes *p)
{
    free(p);
}

/* ---- functions ---- */

static bool glob(struct str pattern, struct str text)
{
    size_t p = 0, t = 0, star = SIZE_MAX, from = 0;

    while (t < text.len) {
        if (p < pattern.len && pattern.at[p] == '*') {
            star = p++;
            from = t;
        } else if (p < pattern.len && (pattern.at[p] == '?' || pattern.at[p] == text.at[t])) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++from;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.at[p] == '*')
        p++;
    return p == pattern.len;
}

static enum fit name_fits(const struct sel_name *n, struct str name)
{
    switch (n->how) {
    case SEL_ANY: return YES;
    case SEL_ATOM: return str_same(n->text, name) ? YES : NO;
    case SEL_GLOB: return glob(n->text, name) ? YES : NO;
    default: return PERHAPS;
    }
}

static enum fit spec_fits(const struct spec *s, const struct event *e)
{
    enum fit best = NO;

    for (size_t i = 0; i < s->nselectors; i++) {
        const struct selector *sel = &s->selectors[i];
        if (e->arity < sel->arity_lo || e->arity > sel->arity_hi)
            continue;
        enum fit m = name_fits(&sel->module, e->fun->module), f = name_fits(&sel->function, e->fun->name);
        best = MAX(best, MIN(m, f));
    }
    return best;
}

/* Clauses that match and show something: do they all report a result? */
static uint8_t wants(const struct spec *s)
{
    size_t yes = 0, all = 0;

    for (size_t i = 0; i < s->nclauses; i++) {
        unsigned actions = s->clauses[i].actions;
        if (actions & ACT_DROP)
            continue;
        all++;
        yes += (actions & (ACT_RETURN | ACT_RETURN_TRACE)) != 0;
    }
    return !yes ? 0 : yes == all ? 1 : 2;
}

static const struct cached *of_function(struct probes *p, const struct event *e)
{
    struct cached *c = &p->cache[(e->fun->hash + e->arity * 31u) & (CACHE - 1)];
    enum fit best = PERHAPS;

    if (likely(c->fun == e->fun && c->arity == e->arity))
        return c;
    *c = (struct cached){.fun = e->fun, .arity = e->arity};
    for (size_t i = 0; i < p->n; i++) {
        if (p->specs[i]->kind != SPEC_CALL)
            continue;
        enum fit fit = spec_fits(p->specs[i], e);
        if (fit != NO && c->spec)
            c->shared = true;
        if (fit >= best) {
            best = fit;
            c->spec = p->specs[i];
            c->wants = wants(c->spec);
        }
    }
    return c;
}

/* ---- events ---- */

static const int8_t of_kind[ETW_LOST] = {
    [ETW_SPAWN] = 1 + SPEC_EV_spawn,
    [ETW_SPAWNED] = 1 + SPEC_EV_spawned,
    [ETW_EXIT] = 1 + SPEC_EV_exit,
    [ETW_REGISTER] = 1 + SPEC_EV_register,
    [ETW_UNREGISTER] = 1 + SPEC_EV_unregister,
    [ETW_LINK] = 1 + SPEC_EV_link,
    [ETW_UNLINK] = 1 + SPEC_EV_unlink,
    [ETW_GETTING_LINKED] = 1 + SPEC_EV_getting_linked,
    [ETW_GETTING_UNLINKED] = 1 + SPEC_EV_getting_unlinked,
    [ETW_OPEN] = 1 + SPEC_EV_open,
    [ETW_CLOSED] = 1 + SPEC_EV_closed,
    [ETW_IN] = 1 + SPEC_EV_in,
    [ETW_OUT] = 1 + SPEC_EV_out,
    [ETW_IN_EXITING] = 1 + SPEC_EV_in_exiting,
    [ETW_OUT_EXITING] = 1 + SPEC_EV_out_exiting,
    [ETW_OUT_EXITED] = 1 + SPEC_EV_out_exited,
    [ETW_GC_MINOR_START] = 1 + SPEC_EV_gc_minor_start,
    [ETW_GC_MINOR_END] = 1 + SPEC_EV_gc_minor_end,
    [ETW_GC_MAJOR_START] = 1 + SPEC_EV_gc_major_start,
    [ETW_GC_MAJOR_END] = 1 + SPEC_EV_gc_major_end,
    [ETW_GC_MAX_HEAP_SIZE] = 1 + SPEC_EV_gc_max_heap_size,
    [ETW_SEQ_TRACE] = 1 + SPEC_EV_seq_trace,
};

static int event_bit(const struct event *e)
{
    if (e->kind != ETW_SYSTEM)
        return of_kind[e->kind] - 1;
    for (int ev = SPEC_EV_long_gc; ev < SPEC_EVENTS; ev++)
        if (wire_is_atom(&e->env, e->terms.at, spec_event_name((enum spec_event)ev)))
            return ev;
    return -1;
}

static const struct spec *by_kind(struct probes *p, const struct event *e)
{
    switch (e->kind) {
    case ETW_CALL:
    case ETW_RETURN_FROM:
    case ETW_EXCEPTION_FROM:
    case ETW_RETURN_TO:
        return e->fun ? of_function(p, e)->spec : NULL;
    case ETW_SEND:
    case ETW_SEND_NOPROC:
        return p->sends;
    case ETW_RECEIVE:
        return p->receives;
    default: {
        int bit = event_bit(e);
        for (size_t i = p->n; bit >= 0 && i-- > 0;)
            if (p->specs[i]->kind == SPEC_EVENT && p->specs[i]->events & SPEC_EVENT_BIT(bit) &&
                (p->specs[i]->flags != SPEC_F_PORTS || e->who->id & ETW_TRACEE_PORT))
                return p->specs[i];
        return NULL;
    }
    }
}

uint64_t probes_kinds(const struct spec *const *specs, size_t n)
{
    uint64_t events = 0, kinds = ~UINT64_C(0);

    for (size_t i = 0; i < n; i++) {
        events |= specs[i]->kind == SPEC_EVENT ? specs[i]->events : 0;
        if (probes_switches(specs[i]))
            return kinds;
    }
    for (size_t k = 0; events && k < ETW_LOST; k++)
        if (of_kind[k] && !(events & SPEC_EVENT_BIT(of_kind[k] - 1)))
            kinds &= ~(UINT64_C(1) << k);
    return kinds;
}

bool probes_unasked(const struct probes *p, const struct event *e)
{
    return p->events && !e->spec && event_bit(e) >= 0;
}

static const struct spec *numbered(const struct probes *p, int64_t number)
{
    if (number >= 0 && (size_t)number < p->n && p->specs[number]->number == (size_t)number)
        return p->specs[number];
    for (size_t i = 0; i < p->n; i++)
        if (p->specs[i]->number == (uint64_t)number)
            return p->specs[i];
    return NULL;
}

/*
 * Where several specs share a function, or change while they are traced, the node says in the match specification's result
 * which of them an event answers, in front of what that one collects: {etrace_probe, Number} or {etrace_probe, Number, Result}.
 */
static const struct spec *marked(struct probes *p, struct event *e)
{
    uint32_t arity;
    const uint8_t *item;
    int64_t index, n = e->ms.at < e->ms.end ? wire_tuple(e->ms.at, &arity, &item) : -1;

    if ((n != 2 && n != 3) || arity != n || !wire_is_atom(&e->env, item, "etrace_probe"))
        return NULL;
    item = wire_skip(item);
    const struct spec *spec = wire_int(item, &index) ? numbered(p, index) : NULL;
    item = wire_skip(item);
    e->ms.at = n == 3 && !wire_is_atom(&e->env, item, "true") ? item : e->ms.end;
    return spec;
}

/* The index of the clause that matched, -1 when the result does not say. */
static int64_t clause_of(const struct spec *s, const uint8_t *item)
{
    int64_t clause = 0;

    if (s->nclauses <= 1)
        return 0;
    for (size_t i = 0; i < s->npack; i++, item = wire_skip(item))
        if (s->pack[i] == PACK_CLAUSE)
            return wire_int(item, &clause) && clause >= 0 && (size_t)clause < s->nclauses ? clause : -1;
    return -1;
}

const struct spec *probes_find(struct probes *p, struct event *e)
{
    if (!p->n)
        return NULL;
    const struct spec *spec = marked(p, e);
    return spec ? spec : by_kind(p, e);
}

void probes_unpack(const struct spec *s, struct event *e)
{
    uint32_t arity;
    const uint8_t *item;

    if (e->ms.at == e->ms.end)
        return;
    if (s && spec_packs_sender_only(s) && wire_tuple(e->ms.at, &arity, &item) < 0) {
        *(*e->ms.at == ETW_T_PID ? &e->sender : &e->sender_node) = e->ms.at;
        return;
    }
    if (!s || !s->npack || wire_tuple(e->ms.at, &arity, &item) != (int64_t)s->npack || arity != s->npack) {
        e->user = e->ms.at;
        return;
    }
    int64_t clause = clause_of(s, item);
    unsigned has = clause < 0 || (size_t)clause >= s->nclauses ? ~0u : s->clauses[clause].has;
    for (size_t i = 0; i < s->npack; i++, item = wire_skip(item)) {
        if (!(has & 1u << s->pack[i]))
            continue;
        switch (s->pack[i]) {
        case PACK_NODE: e->sender_node = item; break;
        case PACK_SENDER: e->sender = item; break;
        case PACK_CALLER: e->caller = item; break;
        case PACK_STACK: e->stack = item; break;
        case PACK_DUMP: e->dump = item; break;
        case PACK_USER: e->user = item; break;
        default: break;
        }
    }
    if (e->sender && wire_is_atom(&e->env, e->sender, "undefined"))
        e->sender = NULL;
}

void probes_project(const struct spec *s, struct event *e)
{
    uint32_t arity;
    const uint8_t *item = NULL;
    int64_t clause = 0;

    if (!s || !s->nclauses)
        return;
    if (s->nclauses > 1) {
        if (e->ms.at == e->ms.end || !s->npack || wire_tuple(e->ms.at, &arity, &item) != (int64_t)s->npack)
            return;
        clause = clause_of(s, item);
        if (clause < 0)
            return;
    }
    const struct spec_clause *c = &s->clauses[clause];
    e->by_arity = c->actions & ACT_ARITY;
    e->args_shown = c->actions & ACT_PROJECT ? c->args : NULL;
}

int probes_wants_return(struct probes *p, const struct event *e)
{
    uint32_t arity;
    const uint8_t *item;

    if (!p->n || !e->fun)
        return 0;
    const struct cached *c = of_function(p, e);
    const struct spec *s = e->spec ? e->spec : c->spec;
    if (c->shared && e->kind != ETW_CALL)
        return 2;
    uint8_t wanted = s == c->spec ? c->wants : wants(s);
    if (wanted != 2)
        return wanted;
    if (e->kind == ETW_CALL && e->ms.at < e->ms.end && s->npack && wire_tuple(e->ms.at, &arity, &item) == (int64_t)s->npack) {
        int64_t clause = clause_of(s, item);
        if (clause >= 0)
            return (s->clauses[clause].actions & (ACT_RETURN | ACT_RETURN_TRACE)) != 0;
    }
    return 2;
}

bool probes_reports(const struct spec *s)
{
    return s->raw || wants(s) != 0;
}
