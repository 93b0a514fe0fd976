/* SPDX-License-Identifier: Apache-2.0 */
#include "compile.h"

#include <string.h>

#include "warn_inlined.h"

static const unsigned guards[] = {PLACE_GUARD_CALL, PLACE_GUARD_SEND, PLACE_GUARD_RECV, PLACE_ANY_GUARD};
static const unsigned bodies[] = {PLACE_BODY_CALL, PLACE_BODY_SEND, PLACE_BODY_RECV, 0};

/* A checked clause while it is converted to clauses of the match specification. */
struct made {
    struct mclause m;
    struct mbody body;
    struct ptrs guards; /* guard lists (terms); each of them makes one clause of the match specification */
};

/* ---- one clause ---- */

/* Checks that the head binds each '$N' that the user wrote. */
static bool check_numbers(struct mclause *m, const struct ast *n)
{
    if (n->type == A_LIT && spec_variable(n->value) >= 0) {
        for (size_t i = 0; i < m->nbindings; i++)
            if (term_equal(m->bindings[i].value, n->value))
                return true;
        diag(m->k->c, n->from, n->len, "unbound variable " STR_FMT, STR_ARG(n->value->text));
        return diag_note(m->k->c, "the head does not bind a variable with that number");
    }
    for (size_t i = 0; i < n->count; i++)
        if (n->items[i] && !check_numbers(m, n->items[i]))
            return false;
    return !n->tail || check_numbers(m, n->tail);
}

static term_t with_item(struct arena *a, term_t list, size_t i, term_t item)
{
    term_t *items = arena_alloc(a, list->count * sizeof(*items));

    memcpy(items, list->items, list->count * sizeof(*items));
    items[i] = item;
    return term_list(a, list->count, items, list->tail);
}

static term_t number_after(struct mclause *m)
{
    return term_atom(m->a, arena_printf(m->a, "$%d", m->next++));
}

/*
 * Adds variables for the node and the sender of a received message to the head [Node, Sender, Msg], and sets m->node
 * and m->sender to expressions that read them.
 */
static void take_sender(struct mclause *m)
{
    term_t any = term_atom(m->a, "_"), all = term_atom(m->a, "$_");
    term_t parts[2];

    if (term_is_atom(m->head, "_"))
        m->head = LIST(m->a, any, any, any);
    for (size_t i = 0; i < 2; i++) {
        if (m->head->type == TERM_LIST && m->head->count > i) {
            term_t item = m->head->items[i];
            if (term_is_atom(item, "_")) {
                item = number_after(m);
                m->head = with_item(m->a, m->head, i, item);
            }
            parts[i] = item;
            if (item->type == TERM_ATOM || item->type == TERM_PID)
                continue;
        }
        parts[i] = TUPLE(m->a, term_atom(m->a, "hd"), i ? TUPLE(m->a, term_atom(m->a, "tl"), all) : all);
    }
    m->node = parts[0];
    m->sender = parts[1];
}

static bool make_clause(struct unit *u, struct ast_clause *cl, struct made *ret)
{
    struct check *k = &u->k;

    ret->m = (struct mclause){.k = k, .a = k->c->arena};
    if (!mspec_head(&ret->m, cl, cl->has_head && u->width > cl->nhead ? u->width - cl->nhead : 0))
        return false;
    for (size_t i = 0; i < cl->nguards; i++)
        for (size_t j = 0; j < cl->guards[i].count; j++)
            if (!k->literal_dollars && !check_numbers(&ret->m, cl->guards[i].tests[j]))
                return false;
    for (size_t i = 0; i < cl->nbody; i++)
        if (!k->literal_dollars && !check_numbers(&ret->m, cl->body[i]))
            return false;
    if (k->probe->shape == SHAPE_RECV)
        take_sender(&ret->m);
    mspec_guards(&ret->m, cl, &ret->guards);
    mspec_body(&ret->m, cl, &ret->body);
    ret->body.info.from = ast_place(k->probe, cl->from);
    ret->body.info.len = ast_place(k->probe, cl->from + cl->len) - ret->body.info.from;
    return true;
}

/* ---- the specification ---- */

static void lay_out(struct spec *s, const struct made *made, size_t count)
{
    unsigned has = 0;
    bool shows = false;

    for (size_t i = 0; i < count; i++) {
        has |= made[i].body.info.has;
        shows |= (made[i].body.info.actions & (ACT_PROJECT | ACT_ARITY)) != 0;
    }
    if (count > 1 && (has || shows))
        has |= 1u << PACK_CLAUSE;
    for (int i = 0; i < PACK_ITEMS; i++)
        if (has >> i & 1)
            s->pack[s->npack++] = (enum pack_item)i;
}

static term_t pack_items(struct arena *a, const struct spec *s, const struct made *made, size_t index)
{
    term_t items[PACK_ITEMS];

    for (size_t i = 0; i < s->npack; i++) {
        term_t t = s->pack[i] == PACK_CLAUSE ? term_int(a, (int64_t)index) : made->body.pack[s->pack[i]];
        items[i] = t ? t : term_list(a, 0, NULL, NULL);
    }
    return TUPLE(a, term_tuple(a, s->npack, items));
}

/* Returns the body: the actions that it runs, and the message, if any. */
static term_t body_of(struct arena *a, const struct made *made, term_t message)
{
    struct ptrs terms = {0};

    for (size_t i = 0; i < made->body.run.count; i++)
        ptrs_add(&terms, a, made->body.run.items[i]);
    if (message)
        ptrs_add(&terms, a, (void *)(uintptr_t)TUPLE(a, term_atom(a, "message"), message));
    return term_list(a, terms.count, (const term_t *)(void *)terms.items, NULL);
}

static term_t guards_of(struct arena *a, const struct made *made, term_t first, term_t own)
{
    struct ptrs all = {0};

    if (!made->m.guards.count && !first)
        return own;
    if (first)
        ptrs_add(&all, a, (void *)(uintptr_t)first);
    for (size_t i = 0; i < made->m.guards.count; i++)
        ptrs_add(&all, a, made->m.guards.items[i]);
    for (size_t i = 0; i < own->count; i++)
        ptrs_add(&all, a, (void *)(uintptr_t)own->items[i]);
    return term_list(a, all.count, (const term_t *)(void *)all.items, NULL);
}

static void add_clause(struct ptrs *to, struct arena *a, const struct made *made, term_t first, term_t own, term_t body)
{
    ptrs_add(to, a, (void *)(uintptr_t)TUPLE(a, made->m.head, guards_of(a, made, first, own), body));
}

static term_t exact_equality(struct arena *a, term_t x, term_t y)
{
    return TUPLE(a, term_atom(a, "=:="), x, y);
}

/*
 * Adds clauses whose message is a single term instead of {{Node, Sender}}. For a tuple the VM allocates and frees
 * memory at each event, which costs more than the rest of the tracing. If the sender is on the traced node, its pid is
 * enough. If the sender is unknown (messages from timers, ports and other nodes), the node is enough. One of these two
 * cases holds for nearly all messages.
 */
static void add_short_clauses(struct ptrs *to, struct arena *a, const struct made *made, term_t own)
{
    const struct mclause *m = &made->m;

    add_clause(to, a, made, exact_equality(a, m->node, TUPLE(a, term_atom(a, "node"))), own,
               body_of(a, made, m->sender));
    add_clause(to, a, made, exact_equality(a, m->sender, term_atom(a, "undefined")), own, body_of(a, made, m->node));
}

static term_t make_match_spec(struct arena *a, const struct spec *s, const struct made *made, size_t count, bool packs)
{
    struct ptrs clauses = {0};

    for (size_t i = 0; i < count; i++) {
        bool says = packs && s->npack && !(made[i].body.info.actions & ACT_DROP);
        term_t body = body_of(a, &made[i], says ? pack_items(a, s, &made[i], i) : NULL);
        for (size_t j = 0; j < made[i].guards.count; j++) {
            if (says && spec_packs_sender_only(s))
                add_short_clauses(&clauses, a, &made[i], made[i].guards.items[j]);
            add_clause(&clauses, a, &made[i], NULL, made[i].guards.items[j], body);
        }
    }
    return term_list(a, clauses.count, (const term_t *)(void *)clauses.items, NULL);
}

static bool says_true(term_t list)
{
    for (size_t i = 0; i < list->count; i++)
        if (!term_is_atom(list->items[i], "true"))
            return false;
    return true;
}

/*
 * Returns true if the specification shows every call, send or receive and does nothing more. `true` then replaces it,
 * which costs the VM less.
 */
static bool says_no_more_than_true(term_t ms, int lo, int hi)
{
    for (size_t i = 0; i < ms->count; i++) {
        term_t clause = ms->items[i], head = clause->items[0];
        bool fits =
            head->type != TERM_LIST || (head->tail ? head->count <= (size_t)lo : lo == hi && head->count == (size_t)lo);
        if (!says_true(clause->items[2]))
            return false;
        if (fits && spec_head_takes_all(head) && says_true(clause->items[1]))
            return true;
    }
    return !ms->count;
}

static term_t simplify_match_spec(struct arena *a, const struct ast_probe *p, term_t ms)
{
    static const int widths[] = {SPEC_ARITY_MAX, 2, 3};
    int lo = widths[p->shape], hi = p->nselectors ? 0 : lo;

    for (size_t i = 0; i < p->nselectors; i++) {
        lo = MIN(lo, p->selectors[i].arity_lo);
        hi = MAX(hi, p->selectors[i].arity_hi);
    }
    return ms->type == TERM_LIST && says_no_more_than_true(ms, lo, hi) ? term_bool(a, true) : ms;
}

static void set_specification(struct arena *a, const struct ast_probe *p, struct spec *s, term_t ms)
{
    s->match_spec = simplify_match_spec(a, p, ms);
    s->prefix = s->prefix && s->match_spec->type == TERM_LIST;
}

/* Makes the clauses collect the results and callers that `needs` asks for. */
static void add_needs(struct check *k, unsigned needs, struct made *made, size_t count)
{
    struct arena *a = k->c->arena;

    for (size_t i = 0; i < count; i++) {
        struct mbody *b = &made[i].body;
        if (b->info.actions & ACT_DROP)
            continue;
        if (needs & PROPERTY_NEEDS_RETURN && !(b->info.actions & (ACT_RETURN | ACT_RETURN_TRACE))) {
            ptrs_add(&b->run, a, (void *)(uintptr_t)TUPLE(a, term_atom(a, "exception_trace")));
            b->info.actions |= ACT_RETURN;
        }
        if (needs & PROPERTY_NEEDS_CALLER && !b->pack[PACK_CALLER] && !k->probe->fun) {
            b->pack[PACK_CALLER] = TUPLE(a, term_atom(a, "caller_line"));
            b->info.has |= 1u << PACK_CALLER;
        }
    }
}

static bool make_clauses(struct unit *u)
{
    struct ast_probe *p = u->probe;
    struct arena *a = u->c->arena;
    struct spec *s = u->spec;
    struct made *made = arena_alloc(a, p->nclauses * sizeof(*made));
    struct spec_clause *info = arena_alloc(a, p->nclauses * sizeof(*info));

    for (size_t i = 0; i < p->nclauses; i++) {
        if (!make_clause(u, &p->clauses[i], &made[i]))
            return false;
        s->counters |= made[i].body.counters;
    }
    add_needs(&u->k, u->needs | (p->shape == SHAPE_CALL ? u->c->opt->needs : 0), made, p->nclauses);
    lay_out(s, made, p->nclauses);
    set_specification(a, p, s, make_match_spec(a, s, made, p->nclauses, true));
    if (spec_packs_sender_only(s))
        s->anonymous = simplify_match_spec(a, p, make_match_spec(a, s, made, p->nclauses, false));
    for (size_t i = 0; i < p->nclauses; i++)
        info[i] = made[i].body.info;
    s->clauses = info;
    s->nclauses = p->nclauses;
    return true;
}

/* Sets the actions that a term of a literal specification contains, and that other code must know. */
static void note_raw(struct spec_clause *info, term_t t)
{
    if (t->type == TERM_TUPLE && t->count && t->items[0]->type == TERM_ATOM) {
        if (term_is_atom(t->items[0], "exception_trace"))
            info->actions |= ACT_RETURN;
        if (term_is_atom(t->items[0], "return_trace"))
            info->actions |= ACT_RETURN_TRACE;
        if (term_is_atom(t->items[0], "silent"))
            info->actions |= ACT_SILENT;
        if (term_is_atom(t->items[0], "enable_trace") || term_is_atom(t->items[0], "disable_trace") ||
            term_is_atom(t->items[0], "trace"))
            info->actions |= ACT_FLAGS;
    }
    for (size_t i = 0; i < t->count && t->type != TERM_EXPORT; i++)
        note_raw(info, t->items[i]);
}

static bool make_raw_clauses(struct unit *u)
{
    const struct ast_probe *p = u->probe;
    const term_t raw = u->raw;
    struct spec *s = u->spec;
    unsigned needs = u->needs;
    const size_t count = raw->type == TERM_LIST ? raw->count : 1;
    struct spec_clause *info = arena_alloc(u->c->arena, (count + 1) * sizeof(*info));

    if (raw->type == TERM_LIST && raw->count)
        note_raw(&info[0], raw);
    if (info[0].actions & (ACT_RETURN | ACT_RETURN_TRACE))
        needs &= ~(unsigned)PROPERTY_NEEDS_RETURN;
    info[0] = (struct spec_clause){0};
    if (needs && (p->nkeys || p->where)) {
        diag(u->c, p->nkeys ? p->by_from : p->where->from, p->nkeys ? p->by_len : p->where->len,
             "%s needs data that the match specification does not report", p->nkeys ? "this" : "this filter");
        return diag_note(u->c, "it needs the %s: write the probe without ms",
                         needs & PROPERTY_NEEDS_RETURN ? "result" : "caller");
    }
    s->raw = true;
    s->head_arity = -1;
    for (size_t i = 0; i < count; i++) {
        info[i].from = ast_place(p, p->raw->from);
        info[i].len = p->raw->len;
        if (raw->type != TERM_LIST)
            continue;
        note_raw(&info[i], raw->items[i]->items[2]);
        term_t head = raw->items[i]->items[0];
        s->prefix |= head->type == TERM_LIST && head->tail;
    }
    set_specification(u->c->arena, p, s, raw);
    s->clauses = info;
    s->nclauses = MAX(count, 1);
    return true;
}

static void make_event_clause(struct unit *u)
{
    struct spec_clause *info = arena_alloc(u->c->arena, sizeof(*info));

    info->len = u->probe->len;
    u->spec->clauses = info;
    u->spec->nclauses = 1;
}

/* ---- warnings about code that may still be intended ---- */

static void warn_counters(struct comp *c, const struct ast_probe *p, const struct spec *s)
{
    if (!s->counters)
        return;
    for (size_t i = 0; i < p->nclauses; i++) {
        const struct ast_clause *cl = &p->clauses[i];
        if (cl->nguards || !compile_takes_everything(cl))
            warn(c, cl->nguards ? cl->guards[0].from : cl->head_from, cl->nguards ? cl->guards[0].len : cl->head_len,
                 false, "the VM's counters count every call, whatever its arguments");
    }
}

static void finish_spec(struct comp *c, const struct ast_probe *p, struct spec *s, const struct ptrs *where,
                        const struct check *k)
{
    static const unsigned flags[] = {SPEC_F_CALL, SPEC_F_SEND, SPEC_F_RECEIVE, 0};
    bool arity = s->kind == SPEC_CALL && !s->raw, return_to = false;

    for (size_t i = 0; i < s->nclauses; i++) {
        arity &= (s->clauses[i].actions & ACT_ARITY) != 0;
        return_to |= (s->clauses[i].actions & ACT_RETURN_TO) != 0;
    }
    if (s->kind != SPEC_EVENT)
        s->flags = s->scope == SPEC_META ? 0
                                         : flags[s->kind] | (arity ? (unsigned)SPEC_F_ARITY : 0) |
                                               (return_to ? (unsigned)SPEC_F_RETURN_TO : 0);
    if (s->root) {
        s->keeps = (const struct where *const *)(void *)where->items;
        s->nkeeps = where->count;
    } else {
        s->where = (const struct where *const *)(void *)where->items;
        s->nwhere = where->count;
    }
    s->needs_otp = MAX(s->needs_otp, k->needs_otp);
    compile_atoms(c->arena, s);
    warn_counters(c, p, s);
    warn_calls(c, s);
    struct spec_warning *w = arena_alloc(c->arena, c->warnings.count * sizeof(*w) + 1);
    for (size_t i = 0; i < c->warnings.count; i++) {
        w[i] = *(struct spec_warning *)c->warnings.items[i];
        w[i].from = ast_place(p, MAX(w[i].from, p->from));
    }
    s->warnings = w;
    s->nwarnings = c->warnings.count;
}

/* Sets the text of the spec. The text of an alternative leaves the other alternatives out. */
static void set_text(struct comp *c, const struct ast_probe *p, struct spec *s)
{
    const size_t end = p->from + p->len;
    const char *all = c->text.at;

    if (!p->alternatives) {
        s->text = (struct str){arena_strndup(c->arena, all + p->from, p->len), p->len};
        return;
    }
    s->text.at =
        arena_printf(c->arena, STR_FMT STR_FMT STR_FMT, (int)(p->alternatives->own_from - p->from), all + p->from,
                     (int)(p->own_to - p->own_from), all + p->own_from, (int)(end - p->rest_from), all + p->rest_from);
    s->text.len = ast_place(p, end);
}

void unit_begin(struct unit *u, struct comp *c, struct ast_probe *p)
{
    static const enum spec_kind kinds[] = {SPEC_CALL, SPEC_SEND, SPEC_RECV, SPEC_EVENT};
    struct spec *s = arena_alloc(c->arena, sizeof(*s));
    struct sel_name *modules = arena_alloc(c->arena, p->nselectors * sizeof(*modules) + 1);

    if (c->root)
        p->scope = SPEC_META;
    *s = (struct spec){.kind = kinds[p->shape],
                       .scope = p->scope,
                       .surface = p->surface,
                       .root = c->root,
                       .head_arity = -1};
    set_text(c, p, s);
    s->own = s->text;
    s->label = c->opt->label;
    s->alternative = p->alternatives && p->alternatives != p;
    s->line = 1;
    for (size_t i = 0; i < p->from; i++)
        s->line += c->text.at[i] == '\n';
    for (size_t i = 0; i < p->nselectors; i++)
        modules[i] = p->selectors[i].module;
    c->surface = p->surface;
    u->c = c;
    u->probe = p;
    u->spec = s;
    u->needs = 0;
    u->where = (struct ptrs){0};
    u->k = (struct check){.c = c, .probe = p, .guard = guards[p->shape], .body = bodies[p->shape]};
    u->k.modules = modules;
    u->k.nmodules = p->nselectors;
}

bool unit_where(struct unit *u)
{
    struct ast_probe *p = u->probe;

    if (p->shape == SHAPE_EVENT && !compile_event_head(u))
        return false;
    return !p->where || where_compile(&u->k, p->where, p, &u->where, &u->needs);
}

bool unit_spec(struct unit *u)
{
    struct ast_probe *p = u->probe;
    struct spec *s = u->spec;

    if (p->shape == SHAPE_EVENT)
        make_event_clause(u);
    else if (p->raw ? !make_raw_clauses(u) : !make_clauses(u))
        return false;
    for (size_t i = 0; i < p->nselectors; i++)
        p->selectors[i].from = ast_place(p, p->selectors[i].from);
    s->selectors = p->selectors;
    s->nselectors = p->nselectors;
    finish_spec(u->c, p, s, &u->where, &u->k);
    return true;
}
