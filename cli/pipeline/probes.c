/* SPDX-License-Identifier: Apache-2.0 */
#include "probes.h"

#include <stdlib.h>
#include <string.h>

#include "../erlang/wire_order.h"
#include "../ground/glob.h"
#include "../ground/mem.h"

#define CACHE 4096 /* number of cached functions; a power of two */

enum fit { NO, PERHAPS, YES };

struct probes {
    const struct spec *const *specs;
    size_t n;
    const struct spec *sends, *receives;
    bool events; /* some specs request @events, and no action of a spec can enable further events */
    struct cached {
        const struct fun *fun;
        const struct spec *spec;
        uint8_t arity, wants;
        bool shared; /* several specs may match the function */
    } cache[CACHE];
    bool atoms;          /* collected terms may have marked names in place of atoms (name_atoms()) */
    struct buf unmarked; /* event.ms of the current event after name_atoms() */
    struct buf united;   /* event.ms of the current event after unpack_all() */
    struct combos *combos;
    struct answer *answers; /* the specs that the current event answers; room for all specs */
    size_t nanswers;        /* length of `answers` if the node has sent several answers, otherwise 0 */
};

bool probes_switches(const struct spec *s)
{
    for (size_t i = 0; i < s->nclauses; i++)
        if (s->clauses[i].actions & ACT_FLAGS)
            return true;
    return false;
}

struct probes *probes_new(const struct spec *const *specs, size_t n, struct combos *combos)
{
    struct probes *p = mem_zalloc(sizeof(*p));
    bool flags = false;

    p->specs = specs;
    p->n = n;
    p->combos = combos;
    p->answers = mem_alloc((n + 1) * sizeof(*p->answers));
    for (size_t i = 0; i < n; i++) {
        if (specs[i]->kind == SPEC_SEND)
            p->sends = specs[i];
        else if (specs[i]->kind == SPEC_RECV)
            p->receives = specs[i];
        else if (specs[i]->kind == SPEC_EVENT)
            p->events = true;
        flags |= probes_switches(specs[i]);
        p->atoms |= specs[i]->natoms > 0;
    }
    p->events &= !flags;
    return p;
}

void probes_free(struct probes *p)
{
    if (p) {
        buf_release(&p->unmarked);
        buf_release(&p->united);
        free(p->answers);
    }
    free(p);
}

/* ---- functions ---- */

static enum fit name_fits(const struct sel_name *n, struct str name)
{
    switch (n->how) {
    case SEL_ANY:
        return YES;
    case SEL_ATOM:
        return str_same(n->text, name) ? YES : NO;
    case SEL_GLOB:
        return glob_matches(n->text, name, true, 0) ? YES : NO;
    case SEL_APP:
    case SEL_BEHAVIOUR:
    case SEL_REGEX:
        break;
    }
    return PERHAPS;
}

static enum fit module_fits(const struct selector *sel, struct str module)
{
    enum fit fits = name_fits(&sel->module, module);

    for (size_t i = 0; i < sel->nwithout; i++)
        fits = MIN(fits, YES - name_fits(&sel->without[i], module));
    return fits;
}

static enum fit spec_fits(const struct spec *s, const struct event *e)
{
    enum fit best = NO;

    for (size_t i = 0; i < s->nselectors; i++) {
        const struct selector *sel = &s->selectors[i];
        if (e->arity < sel->arity_lo || e->arity > sel->arity_hi)
            continue;
        enum fit m = module_fits(sel, raw_view(e->fun->module)), f = name_fits(&sel->function, raw_view(e->fun->name));
        best = MAX(best, MIN(m, f));
    }
    return best;
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
            c->wants = (uint8_t)combo_wants(c->spec, -1);
        }
    }
    return c;
}

/* ---- events ---- */

static const int8_t of_kind[ETW_LOST] = {
#define PROBED(name, number, id, layout, first, second, flag, doc) [number] = 1 + SPEC_EV_##id,
#include "event_kinds.def"
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

/* Returns the spec that requests this kind of @event. If several specs request it, returns a combined spec. */
static const struct spec *of_event(struct probes *p, const struct event *e)
{
    int bit = event_bit(e);
    size_t n = 0;

    for (size_t i = 0; bit >= 0 && i < p->n; i++)
        if (p->specs[i]->kind == SPEC_EVENT && p->specs[i]->events & SPEC_EVENT_BIT(bit) &&
            (p->specs[i]->flags != SPEC_F_PORTS || e->who->id & ETW_TRACEE_PORT))
            p->answers[n++] = (struct answer){.spec = p->specs[i]};
    return n > 1 ? combos_get(p->combos, p->answers, n) : n ? p->answers[0].spec : NULL;
}

static const struct spec *by_kind(struct probes *p, const struct event *e)
{
    switch (event_kinds[e->kind].layout) {
    case ETW_LAYOUT_CALL:
    case ETW_LAYOUT_RETURN:
    case ETW_LAYOUT_RETURN_TO:
        return e->fun ? of_function(p, e)->spec : NULL;
    case ETW_LAYOUT_EXTRA_TERM:
        return p->sends;
    case ETW_LAYOUT_TERM:
        return e->kind == ETW_RECEIVE ? p->receives : of_event(p, e);
    case ETW_LAYOUT_TERM_EXTRA:
    case ETW_LAYOUT_TAG_TERM:
    case ETW_LAYOUT_LABEL:
        return of_event(p, e);
    case ETW_LAYOUT_OWN:
    case ETW_LAYOUT_LOST:
    case ETW_LAYOUT_TALLY:
    case ETW_LAYOUT_NO_FRAME:
        break;
    }
    return NULL;
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

static const struct spec *spec_numbered(const struct probes *p, int64_t number)
{
    if (number >= 0 && (size_t)number < p->n && p->specs[number]->number == (size_t)number)
        return p->specs[number];
    for (size_t i = 0; i < p->n; i++)
        if (p->specs[i]->number == (uint64_t)number)
            return p->specs[i];
    return NULL;
}

/* Returns the index of the spec's clause that matched, from the collected term `at`; -1: unknown. */
static int64_t clause_of(const struct spec *s, const uint8_t *at)
{
    const uint8_t *item;
    uint32_t arity;
    int64_t clause = 0;

    if (s->nclauses <= 1)
        return 0;
    if (!at || !s->npack || wire_tuple(at, &arity, &item) != (int64_t)s->npack)
        return -1;
    for (size_t i = 0; i < s->npack; i++, item = wire_skip(item))
        if (s->pack[i] == PACK_CLAUSE)
            return wire_int(item, &clause) && clause >= 0 && (size_t)clause < s->nclauses ? clause : -1;
    return -1;
}

/*
 * Converts marked names in event.ms to atoms. The node collects a marked name in place of each atom that did not exist
 * on the node (lang/fit.h).
 */
static void name_atoms(struct probes *p, struct event *e)
{
    buf_clear(&p->unmarked);
    if (!wire_unmark(&p->unmarked, &e->env, e->ms.at, SPEC_ATOM_MARK))
        return;
    e->ms.at = (const uint8_t *)p->unmarked.data;
    e->ms.end = e->ms.at + p->unmarked.len;
}

/*
 * Reads the answers in {etrace_probe, {Number, …}, Term, …}. Each number, in rising order, is that of a spec, with the
 * term that the spec collected. The term `true` means that the spec collected nothing.
 */
static const struct spec *read_answers(struct probes *p, struct event *e)
{
    uint32_t arity, many;
    const uint8_t *term, *number;
    int64_t index, last = -1;

    if (p->atoms)
        name_atoms(p, e);
    int64_t terms = wire_tuple(e->ms.at, &arity, &term) - 2;
    number = wire_skip(term);
    term = wire_skip(number);
    p->nanswers = 0;
    for (int64_t i = 0, n = wire_tuple(number, &many, &number); i < n; i++, number = wire_skip(number)) {
        const uint8_t *own = i < terms ? term : NULL;
        const struct spec *spec = wire_int(number, &index) && index > last ? spec_numbered(p, index) : NULL;
        last = spec ? index : last;
        if (own)
            term = wire_skip(term);
        if (own && wire_is_atom(&e->env, own, "true"))
            own = NULL;
        if (spec && p->nanswers < p->n)
            p->answers[p->nanswers++] = (struct answer){spec, clause_of(spec, own), own};
    }
    return p->nanswers ? combos_get(p->combos, p->answers, p->nanswers) : NULL;
}

/*
 * Reads and removes the mark that says which specs the event answers. The result of a match specification, event.ms,
 * has a mark if several specs share a function, or if the specs change during the trace: {etrace_probe, Number},
 * {etrace_probe, Number, Term}, or the form that read_answers() reads. Returns the spec; NULL: no valid mark.
 */
static const struct spec *take_mark(struct probes *p, struct event *e)
{
    uint32_t arity;
    const uint8_t *item;
    int64_t index, n = e->ms.at < e->ms.end ? wire_tuple(e->ms.at, &arity, &item) : -1;

    if (n < 2 || !wire_is_atom(&e->env, item, "etrace_probe"))
        return NULL;
    item = wire_skip(item);
    if (wire_int(item, &index)) {
        const struct spec *spec = arity == n && n <= 3 ? spec_numbered(p, index) : NULL;
        item = wire_skip(item);
        e->ms.at = n == 3 && !wire_is_atom(&e->env, item, "true") ? item : e->ms.end;
        return spec;
    }
    return wire_tuple(item, &arity, &item) > 0 ? read_answers(p, e) : NULL;
}

const struct spec *probes_find(struct probes *p, struct event *e)
{
    p->nanswers = 0;
    if (!p->n)
        return NULL;
    const struct spec *spec = take_mark(p, e);
    return spec ? spec : by_kind(p, e);
}

void probes_collected(const struct spec *s, struct event *e, const uint8_t *at)
{
    uint32_t arity;
    const uint8_t *item;

    if (s && spec_packs_sender_only(s) && wire_tuple(at, &arity, &item) < 0) {
        *(*at == ETW_T_PID ? &e->sender : &e->sender_node) = at;
        return;
    }
    if (!s || !s->npack || wire_tuple(at, &arity, &item) != (int64_t)s->npack || arity != s->npack) {
        e->user = at;
        return;
    }
    int64_t clause = clause_of(s, at);
    unsigned has = clause < 0 || (size_t)clause >= s->nclauses ? ~0u : s->clauses[clause].has;
    for (size_t i = 0; i < s->npack; i++, item = wire_skip(item)) {
        if (!(has & 1u << s->pack[i]))
            continue;
        switch (s->pack[i]) {
        case PACK_NODE:
            e->sender_node = item;
            break;
        case PACK_SENDER:
            e->sender = item;
            break;
        case PACK_CALLER:
            e->caller = item;
            break;
        case PACK_STACK:
            e->stack = item;
            break;
        case PACK_DUMP:
            e->dump = item;
            break;
        case PACK_USER:
            e->user = item;
            break;
        case PACK_CLAUSE:
        case PACK_ITEMS:
            break;
        }
    }
}

static size_t put_term(struct buf *to, const uint8_t *at)
{
    size_t place = to->len;

    buf_add(to, at, (size_t)(wire_skip(at) - at));
    return place;
}

/* Writes the term of msg(), or a list of the distinct terms of several specs. Returns the offset in the buffer. */
static size_t put_users(struct buf *to, const struct term_env *env, const uint8_t **users, size_t n)
{
    const size_t place = to->len;
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        size_t k = 0;
        while (k < kept && wire_compare(env, users[k], env, users[i], true) != WIRE_EQUAL)
            k++;
        if (k == kept)
            users[kept++] = users[i];
    }
    if (kept == 1)
        return put_term(to, users[0]);
    buf_char(to, (char)ETW_T_LIST);
    for (size_t i = 0; i < kept; i++)
        put_term(to, users[i]);
    buf_char(to, (char)ETW_T_END);
    return place;
}

/*
 * Sets the event's fields to the values that the match specifications of all its specs have collected. Copies the
 * values into one tuple and makes this tuple event.ms, because event_keep() keeps only values inside of event.ms.
 */
static void unpack_all(struct probes *p, struct event *e)
{
    struct event x = {.env = e->env};
    const uint8_t **fields[] = {&e->caller, &e->stack, &e->dump, &e->sender, &e->sender_node, &e->user};
    const uint8_t *const *found[] = {&x.caller, &x.stack, &x.dump, &x.sender, &x.sender_node};
    const uint8_t **users = mem_alloc(p->nanswers * sizeof(*users));
    size_t places[ARRAY_LEN(fields)] = {0}, nusers = 0;

    for (size_t i = 0; i < p->nanswers; i++) {
        const uint8_t *stack = x.stack;
        x.user = NULL;
        if (p->answers[i].term)
            probes_collected(p->answers[i].spec, &x, p->answers[i].term);
        if (stack && x.stack && wire_skip(stack) - stack > wire_skip(x.stack) - x.stack)
            x.stack = stack;
        if (x.user)
            users[nusers++] = x.user;
    }
    buf_clear(&p->united);
    buf_char(&p->united, 0);
    unsigned n = 0;
    for (size_t i = 0; i < ARRAY_LEN(found); i++)
        if (*found[i]) {
            places[i] = put_term(&p->united, *found[i]);
            n++;
        }
    if (nusers) {
        places[ARRAY_LEN(found)] = put_users(&p->united, &e->env, users, nusers);
        n++;
    }
    free(users);
    p->united.data[0] = (char)(ETW_T_TUPLE0 + n);
    e->ms.at = (const uint8_t *)p->united.data;
    e->ms.end = e->ms.at + p->united.len;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++)
        *fields[i] = places[i] ? e->ms.at + places[i] : NULL;
}

void probes_unpack(struct probes *p, const struct spec *s, struct event *e)
{
    if (e->ms.at == e->ms.end)
        return;
    if (p->nanswers) {
        unpack_all(p, e);
    } else {
        if (s && s->natoms)
            name_atoms(p, e);
        probes_collected(s, e, e->ms.at);
    }
    if (e->sender && wire_is_atom(&e->env, e->sender, "undefined"))
        e->sender = NULL;
}

void probes_project(const struct spec *s, struct event *e)
{
    if (!s || !s->nclauses)
        return;
    const int64_t clause = s->nparts ? 0 : clause_of(s, e->ms.at < e->ms.end ? e->ms.at : NULL);
    if (clause < 0)
        return;
    const struct spec_clause *c = &s->clauses[clause];
    e->by_arity = c->actions & ACT_ARITY;
    e->args_shown = c->actions & ACT_PROJECT ? c->args : NULL;
}

int probes_wants_return(struct probes *p, const struct event *e)
{
    if (!p->n || !e->fun)
        return 0;
    const struct cached *c = of_function(p, e);
    const struct spec *s = e->spec ? e->spec : c->spec;
    if (c->shared && e->kind != ETW_CALL)
        return 2;
    unsigned wanted = s == c->spec ? c->wants : combo_wants(s, -1);
    if (wanted != 2 || s->nparts || e->kind != ETW_CALL)
        return (int)wanted;
    const int64_t clause = clause_of(s, e->ms.at < e->ms.end ? e->ms.at : NULL);
    return clause < 0 ? 2 : (s->clauses[clause].actions & (ACT_RETURN | ACT_RETURN_TRACE)) != 0;
}

bool probes_reports(const struct spec *s)
{
    return combo_wants(s, -1) != 0;
}
