/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles @events: finds the flags that they need, and converts their heads to conditions that the client checks. */
#include <string.h>

#include "compile.h"
#include "meant.h"

static const struct {
    const char *name;
    unsigned flag;
    int nargs;
} events[] = {
#define EVENT(id, name, flag, nargs, doc) {name, flag, nargs},
#include "events.def"
};

/* The events that both processes and ports have: registration and links. They have the flag of processes. */
#define ALSO_PORTS                                                                                                     \
    (SPEC_EVENT_BIT(SPEC_EV_register) | SPEC_EVENT_BIT(SPEC_EV_unregister) | SPEC_EVENT_BIT(SPEC_EV_getting_linked) |  \
     SPEC_EVENT_BIT(SPEC_EV_getting_unlinked))

static const struct {
    const char *name;
    unsigned flags;
    uint64_t also; /* events of the family that have a different flag in events.def */
} families[] = {
    {"procs", SPEC_F_PROCS, 0},     {"ports", SPEC_F_PORTS, ALSO_PORTS},
    {"running", SPEC_F_RUNNING, 0}, {"exiting", SPEC_F_EXITING, 0},
    {"gc", SPEC_F_GC, 0},           {"garbage_collection", SPEC_F_GC, 0},
    {"system", SPEC_F_SYSTEM, 0},
};

const char *spec_event_name(enum spec_event ev)
{
    return events[ev].name;
}

static bool compile_event_find(struct check *k, const struct ast_probe *p, struct spec *s, int *ret_nargs)
{
    struct guess g;

    guess_init(&g, p->event);
    for (int i = 0; i < SPEC_EVENTS; i++) {
        guess_offer(&g, str_of(events[i].name));
        if (str_is(p->event, events[i].name)) {
            s->events = SPEC_EVENT_BIT(i);
            s->flags = events[i].flag;
            *ret_nargs = events[i].nargs;
            return true;
        }
    }
    for (size_t f = 0; f < ARRAY_LEN(families); f++) {
        guess_offer(&g, str_of(families[f].name));
        if (!str_is(p->event, families[f].name))
            continue;
        s->flags = families[f].flags;
        *ret_nargs = -1;
        s->events = families[f].also;
        for (int i = 0; i < SPEC_EVENTS; i++)
            if (events[i].flag == s->flags)
                s->events |= SPEC_EVENT_BIT(i);
        return true;
    }
    diag(k->c, p->event_from, p->event.len + 1, "unknown event '@" STR_FMT "'", STR_ARG(p->event));
    if (!diag_guess(k->c, &g) && !k->c->err->note[0])
        diag_note(k->c, "such as @spawn @exit @link @register @running @gc @ports @long_gc; etrace-expr(7) has all");
    return meant_note(k->c, MEANT_EVENT, p->event, NULL);
}

static bool check_head_count(struct check *k, const struct ast_probe *p, const struct ast_clause *cl, int nargs)
{
    if (nargs >= 0 && cl->nhead == (size_t)nargs && !cl->prefix)
        return true;
    if (cl->prefix)
        return diag(k->c, cl->head_from, cl->head_len, "'...' is only allowed in the arguments of calls");
    if (nargs <= 0)
        return diag(k->c, cl->head_from, cl->head_len, "@" STR_FMT " takes no arguments", STR_ARG(p->event));
    return diag(k->c, cl->head_from, cl->head_len, "@" STR_FMT " takes %d argument%s, not %zu", STR_ARG(p->event),
                nargs, PLURAL(nargs), cl->nhead);
}

/* Reads the arguments of @long_gc(100) and the like, which are numbers and not patterns. */
static bool read_params(struct check *k, const struct ast_probe *p, struct spec *s, const struct ast_clause *cl,
                        int nargs)
{
    if (!cl->has_head && nargs > 0) {
        diag(k->c, p->event_from, p->event.len + 1, "@" STR_FMT " takes %d number%s", STR_ARG(p->event), nargs,
             PLURAL(nargs));
        return diag_note(k->c, nargs == 2 ? "@long_message_queue(Off, On)" : "as in @" STR_FMT "(100)",
                         STR_ARG(p->event));
    }
    if (cl->has_head && !check_head_count(k, p, cl, nargs))
        return false;
    for (size_t i = 0; i < cl->nhead; i++) {
        const struct ast *n = cl->head[i];
        if (n->type != A_LIT || n->value->type != TERM_INT || n->value->integer < 0) {
            diag(k->c, n->from, n->len, "expected a number");
            return false;
        }
        s->params[s->nparams++] = n->value->integer;
    }
    if (s->nparams == 2 && s->params[0] >= s->params[1]) {
        diag(k->c, cl->head_from, cl->head_len, "Off must be below On");
        return diag_note(k->c, "@long_message_queue(Off, On)");
    }
    return true;
}

static bool system_event(struct check *k, const struct ast_probe *p, struct spec *s, const struct ast_clause *cl,
                         int nargs)
{
    if (k->c->opt->otp && k->c->opt->otp < 28) {
        diag(k->c, p->event_from, p->event.len + 1, "system events need OTP 28");
        return diag_note(k->c, "this node has OTP %d", k->c->opt->otp);
    }
    s->needs_otp = 28;
    if (nargs < 0) {
        diag(k->c, p->event_from, p->event.len + 1, "system events must be named one by one");
        return diag_note(k->c, "such as @long_gc(100) or @busy_port");
    }
    return read_params(k, p, s, cl, nargs);
}

/* Joins the patterns of the head to one pattern for the list of the event's parts. */
bool compile_event_head(struct unit *u)
{
    struct check *k = &u->k;
    const struct ast_probe *p = u->probe;
    const struct ast_clause *cl = &p->clauses[0];
    struct mclause m = {.k = k, .a = k->c->arena};
    struct where *w = arena_alloc(m.a, sizeof(*w)), *args = arena_alloc(m.a, sizeof(*args));

    if (!cl->has_head || u->spec->flags == SPEC_F_SYSTEM)
        return true;
    if (!mspec_head(&m, cl, 0))
        return false;
    if (m.guards.count) {
        diag(k->c, cl->head_from, cl->head_len, "a pattern of an event can only contain literals and variables");
        return diag_note(k->c, "put the rest after 'where'");
    }
    if (compile_takes_everything(cl))
        return true;
    *args = (struct where){.type = WHERE_NAME,
                           .property = PROPERTY_args,
                           .from = ast_place(p, cl->head_from),
                           .len = cl->head_len};
    *w = (struct where){.type = WHERE_MATCH, .kind = WT_BOOL, .constant = m.head, .from = args->from, .len = args->len};
    w->items = arena_alloc(m.a, sizeof(*w->items));
    w->items[0] = args;
    w->count = 1;
    ptrs_add(&u->where, m.a, w);
    return true;
}

bool compile_event(struct unit *u)
{
    struct ast_probe *p = u->probe;
    struct ast_clause *cl = &p->clauses[0];
    int nargs;

    if (!compile_event_find(&u->k, p, u->spec, &nargs))
        return false;
    if (u->spec->flags == SPEC_F_SYSTEM)
        return system_event(&u->k, p, u->spec, cl, nargs);
    if (!cl->has_head)
        return true;
    if (!check_head_count(&u->k, p, cl, nargs))
        return false;
    for (size_t i = 0; i < cl->nhead; i++)
        if (!(cl->head[i] = check_pattern(&u->k, cl->head[i])))
            return false;
    return true;
}
