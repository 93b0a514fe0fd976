/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles bodies. An action runs inside the VM, or its value is collected into the pack, or it changes what is shown,
 * or it requests a counter. The expressions of dbg's fun are compiled literally.
 */
#include <string.h>

#include "actions.h"
#include "mspec.h"

#define STACK_FRAMES 32

struct acts {
    struct mclause *m;
    struct mbody *out;
    const struct ast *seen[ACTIONS];
    const struct ast *fns[FN_COUNT];
    struct ptrs user;        /* terms of msg() */
    const struct ast *hides; /* drop or msg(false) */
};

static bool unknown_action(struct check *k, const struct ast *n, struct str word)
{
    struct guess g;

    guess_init(&g, word);
    for (int i = 0; i < ACTIONS; i++)
        guess_offer(&g, str_of(action_row((enum action)i)->word));
    diag(k->c, n->from, n->type == A_CALL ? word.len : n->len, "unknown action '" STR_FMT "'", STR_ARG(word));
    return diag_guess(k->c, &g);
}

/* Reads the name of an action; `return` and `return()` are the same. */
static bool word_of(const struct ast *n, struct str *ret)
{
    if (n->type == A_LIT && n->value->type == TERM_ATOM)
        *ret = n->value->text;
    else if (n->type == A_VAR || (n->type == A_CALL && !n->module.len))
        *ret = n->text;
    else
        return false;
    return true;
}

static bool count_fits(struct check *k, const struct action_row *row, const struct ast *n)
{
    const size_t count = n->type == A_CALL ? n->count : 0;

    if (count >= (size_t)row->least && count <= (size_t)row->most)
        return true;
    diag(k->c, n->from, n->len, "%s takes %s%d argument%s, not %zu", row->word,
         row->most > row->least && !row->least ? "at most "
         : row->most > row->least              ? "at least "
                                               : "",
         row->least ? row->least : row->most, PLURAL(row->least ? row->least : row->most), count);
    return false;
}

static bool kind_fits(struct check *k, const struct action_row *row, const struct ast *n)
{
    if (row->places & k->body)
        return true;
    diag(k->c, n->from, n->len, "'%s' is not for a %s", row->word, k->body == PLACE_BODY_SEND ? "send" : "receive");
    return diag_note(k->c, row->places & PLACE_BODY_SEND ? "calls and sends have it" : "only calls have it");
}

/* Rejects a repeated action, unless its arguments may differ. */
static bool is_new(struct acts *s, enum action action, const struct ast *n)
{
    const struct action_row *row = action_row(action);
    const struct ast *before = s->seen[action];
    bool repeats = row->how == HOW_PACK ? row->least > 0 : row->most > 0 && row->how != HOW_SHOW;

    if (row->fn != FN_NONE && !repeats && !before)
        before = s->fns[row->fn];
    if (before && !repeats) {
        struct str first = {s->m->k->c->text.at + before->from, before->len};
        diag(s->m->k->c, n->from, n->len, "'%s' is there twice", row->word);
        if (!str_is(first, row->word))
            diag_note(s->m->k->c, "'" STR_FMT "' says the same", STR_ARG(first));
        return false;
    }
    s->seen[action] = n;
    if (row->fn != FN_NONE)
        s->fns[row->fn] = n;
    return true;
}

/* args(1,3) */
static bool project(struct acts *s, const struct ast *n)
{
    struct check *k = s->m->k;

    for (size_t i = 0; i < n->count; i++) {
        const struct ast *arg = n->items[i];
        int64_t v = arg->type == A_LIT && arg->value->type == TERM_INT ? arg->value->integer : 0;
        if (v < 1 || v > SPEC_ARITY_MAX) {
            diag(k->c, arg->from, arg->len, "args takes numbers of arguments");
            return diag_note(k->c, "counted from 1");
        }
        if (s->m->nargs && k->probe->nselectors && (size_t)v > s->m->nargs && s->m->head->type == TERM_LIST &&
            !s->m->head->tail) {
            return diag(k->c, arg->from, arg->len, "there is no argument %lld", (long long)v);
        }
        s->out->info.args[(v - 1) / 64] |= UINT64_C(1) << ((v - 1) % 64);
    }
    s->out->info.actions |= ACT_PROJECT;
    return true;
}

static bool show(struct acts *s, enum action action, const struct ast *n)
{
    if (action == ACTION_ARGS)
        return project(s, n);
    if (action == ACTION_RETURN_TO && s->m->k->probe->scope != SPEC_LOCAL) {
        diag(s->m->k->c, n->from, n->len, "'return_to' needs local tracing");
        return diag_note(s->m->k->c, "the VM tells it of functions that are traced with 'local'");
    }
    if (action == ACTION_DROP)
        s->hides = n;
    else
        s->out->info.actions |= action == ACTION_ARITY ? ACT_ARITY : ACT_RETURN_TO;
    return true;
}

static void collect(struct acts *s, enum pack_item item, term_t t)
{
    s->out->pack[item] = t;
    s->out->info.has |= 1u << item;
}

static const struct {
    enum fn fn;
    enum pack_item item;
} packs[] = {
    {FN_CALLER_LINE, PACK_CALLER},
    {FN_CURRENT_STACKTRACE, PACK_STACK},
    {FN_PROCESS_DUMP, PACK_DUMP},
};

static bool pack(struct acts *s, const struct ast *checked)
{
    struct mclause *m = s->m;
    enum fn fn = (enum fn)checked->op;

    for (size_t i = 0; i < ARRAY_LEN(packs); i++) {
        if (packs[i].fn == fn) {
            collect(s, packs[i].item, mspec_expr(m, checked));
            return true;
        }
    }
    if (fn != FN_MESSAGE) {
        ptrs_add(&s->user, m->a, (void *)(uintptr_t)mspec_expr(m, checked));
        return true;
    }
    const struct ast *value = checked->items[0];
    if (value->known && term_is_atom(value->known, "false"))
        s->hides = checked;
    else if (!value->known || !term_is_atom(value->known, "true"))
        ptrs_add(&s->user, m->a, (void *)(uintptr_t)mspec_expr(m, value));
    return true;
}

static void note_effects(struct mbody *out, const struct ast *n)
{
    static const struct {
        enum fn fn;
        unsigned bit;
    } bits[] = {
        {FN_EXCEPTION_TRACE, ACT_RETURN}, {FN_RETURN_TRACE, ACT_RETURN_TRACE},
        {FN_SILENT, ACT_SILENT},          {FN_ENABLE_TRACE, ACT_FLAGS},
        {FN_DISABLE_TRACE, ACT_FLAGS},    {FN_TRACE, ACT_FLAGS},
        {FN_SET_SEQ_TOKEN, ACT_TOKEN},    {FN_DISPLAY, ACT_UNSAFE},
        {FN_SET_TCW, ACT_UNSAFE},
    };

    if (n->type == A_OP)
        for (size_t i = 0; i < ARRAY_LEN(bits); i++)
            if ((int)bits[i].fn == n->op)
                out->info.actions |= bits[i].bit;
    for (size_t i = 0; i < n->count; i++)
        if (n->items[i])
            note_effects(out, n->items[i]);
}

static const char *const trace_flags[] = {
    "all",
    "send",
    "receive",
    "procs",
    "ports",
    "call",
    "arity",
    "return_to",
    "silent",
    "running",
    "running_procs",
    "running_ports",
    "exiting",
    "garbage_collection",
    "timestamp",
    "cpu_timestamp",
    "monotonic_timestamp",
    "strict_monotonic_timestamp",
    "set_on_spawn",
    "set_on_first_spawn",
    "set_on_link",
    "set_on_first_link",
};

static bool check_flag(struct check *k, const struct ast *n)
{
    struct guess g;

    if (!n->known || n->known->type != TERM_ATOM)
        return true;
    guess_init(&g, n->known->text);
    for (size_t i = 0; i < ARRAY_LEN(trace_flags); i++) {
        if (str_is(n->known->text, trace_flags[i]))
            return true;
        guess_offer(&g, str_of(trace_flags[i]));
    }
    diag(k->c, n->from, n->len, "there is no trace flag '" STR_FMT "'", STR_ARG(n->known->text));
    return diag_guess(k->c, &g);
}

/* Checks that the flags in enable(call) or trace([send], [call]) are known words. */
static bool check_flags(struct check *k, const struct ast *n)
{
    if (n->op != FN_ENABLE_TRACE && n->op != FN_DISABLE_TRACE && n->op != FN_TRACE)
        return true;
    if (n->op != FN_TRACE)
        return check_flag(k, n->items[n->count - 1]);
    for (size_t i = n->count - 2; i < n->count; i++) {
        const struct ast *list = n->items[i];
        if (!(list->types & TY_LIST)) {
            diag(k->c, list->from, list->len, "trace takes lists of flags");
            return false;
        }
        for (size_t j = 0; list->type == A_LIST && j < list->count; j++)
            if (!check_flag(k, list->items[j]))
                return false;
    }
    return true;
}

static struct ast *as_call(struct check *k, const struct ast *n, const struct action_row *row)
{
    struct ast *call = check_new(k, A_CALL, n);

    call->text = str_of(fn_row(row->fn)->name);
    if (n->type == A_CALL) {
        call->items = n->items;
        call->count = n->count;
    }
    if (row->fn == FN_CURRENT_STACKTRACE && !call->count) {
        call->items = arena_alloc(k->c->arena, sizeof(*call->items));
        call->items[0] = check_lit(k, term_int(k->c->arena, STACK_FRAMES), n);
        call->count = 1;
    }
    return call;
}

/* Checks that the number of frames is a literal: the VM needs it when the match specification is compiled. */
static bool frames_fit(struct check *k, const struct action_row *row, const struct ast *checked)
{
    const struct ast *n = row->fn == FN_CURRENT_STACKTRACE ? checked->items[0] : NULL;

    if (!n || (n->type == A_LIT && n->value->type == TERM_INT && n->value->integer >= 0))
        return true;
    diag(k->c, n->from, n->len, "%s takes a number of frames", row->word);
    return diag_note(k->c, "0 or more, written out");
}

static bool one(struct acts *s, struct ast *n, enum action action);

/* dbg's short names, and the actions that they stand for. */
static const struct {
    const char *word;
    enum action means[2];
} dbg_names[] = {
    {"x", {ACTION_RETURN, ACTION_NONE}},    {"exception", {ACTION_RETURN, ACTION_NONE}},
    {"c", {ACTION_CALLER, ACTION_NONE}},    {"caller_trace", {ACTION_CALLER, ACTION_NONE}},
    {"cx", {ACTION_RETURN, ACTION_CALLER}}, {"caller_exception_trace", {ACTION_RETURN, ACTION_CALLER}},
};

static bool named(struct acts *s, struct ast *n)
{
    struct check *k = s->m->k;
    struct str word;

    if (!word_of(n, &word)) {
        diag(k->c, n->from, n->len, "an action is wanted here");
        return diag_note(k->c, "such as return, caller or msg(T)");
    }
    enum action action = action_find(word);
    if (action != ACTION_NONE)
        return one(s, n, action);
    for (size_t i = 0; i < ARRAY_LEN(dbg_names); i++)
        if (str_is(word, dbg_names[i].word))
            return one(s, n, dbg_names[i].means[0]) &&
                   (dbg_names[i].means[1] == ACTION_NONE || one(s, n, dbg_names[i].means[1]));
    return unknown_action(k, n, word);
}

static bool one(struct acts *s, struct ast *n, enum action action)
{
    struct check *k = s->m->k;
    const struct action_row *row = action_row(action);
    if (!kind_fits(k, row, n) || !count_fits(k, row, n) || !is_new(s, action, n))
        return false;
    if (row->how == HOW_SHOW)
        return show(s, action, n);
    if (row->how == HOW_COUNT) {
        s->out->counters |= action == ACTION_COUNT ? SPEC_COUNT : action == ACTION_TIME ? SPEC_TIME : SPEC_MEMORY;
        return true;
    }
    struct ast *checked = check_expr(k, as_call(k, n, row));
    if (!checked || !check_flags(k, checked) || !frames_fit(k, row, checked))
        return false;
    note_effects(s->out, checked);
    if (row->how == HOW_PACK)
        return pack(s, checked);
    ptrs_add(&s->out->run, s->m->a, (void *)(uintptr_t)mspec_expr(s->m, checked));
    return true;
}

/* Whether the action makes something visible, which conflicts with drop and msg(false). */
static bool shows(const struct acts *s, enum action action)
{
    const struct action_row *row = action_row(action);
    const struct ast *n = s->seen[action];

    if (!n || (n->from == s->hides->from && !s->user.count))
        return false;
    return row->how != HOW_RUN || row->fn == FN_EXCEPTION_TRACE || row->fn == FN_RETURN_TRACE;
}

static bool conflicts(struct acts *s)
{
    struct check *k = s->m->k;
    const struct ast *args = s->seen[ACTION_ARGS], *arity = s->seen[ACTION_ARITY];

    for (int i = 0; s->hides && i < ACTIONS; i++) {
        if (!shows(s, (enum action)i))
            continue;
        struct str word = {k->c->text.at + s->hides->from, s->hides->len};
        diag(k->c, s->hides->from, s->hides->len, "'" STR_FMT "' hides the event", STR_ARG(word));
        return !diag_note(k->c, "'%s' has nothing to show then; silent, enable and the like may stand beside it",
                          action_row((enum action)i)->word);
    }
    if (args && arity) {
        const struct ast *later = args->from > arity->from ? args : arity;
        diag(k->c, later->from, later->len, "'args' and 'arity' exclude each other");
        return true;
    }
    return false;
}

/* Ends the body with {message,false}: the VM runs the actions before it and makes no event. */
static void hide(struct acts *s)
{
    struct arena *a = s->m->a;

    s->out->info.actions |= ACT_DROP;
    ptrs_add(&s->out->run, a, (void *)(uintptr_t)TUPLE(a, term_atom(a, "message"), term_bool(a, false)));
}

/* Compiles the body of dbg's fun: any expressions; values are collected only by message/1. */
static bool verbatim(struct acts *s, const struct ast_clause *cl)
{
    struct mclause *m = s->m;

    for (size_t i = 0; i < cl->nbody; i++) {
        struct ast *checked = check_expr(m->k, cl->body[i]);
        if (!checked || !check_flags(m->k, checked))
            return false;
        note_effects(s->out, checked);
        if (m->sender && checked->type == A_OP && checked->op == FN_MESSAGE) {
            if (!pack(s, checked))
                return false;
            continue;
        }
        if (checked->type == A_OP && checked->op == FN_MESSAGE && checked->items[0]->known &&
            term_is_atom(checked->items[0]->known, "false"))
            s->out->info.actions |= ACT_DROP;
        ptrs_add(&s->out->run, m->a, (void *)(uintptr_t)mspec_expr(m, checked));
    }
    return true;
}

bool mspec_body(struct mclause *m, const struct ast_clause *cl, struct mbody *ret)
{
    struct acts s = {.m = m, .out = ret};

    *ret = (struct mbody){0};
    m->k->place = m->k->body;
    if (m->k->probe->fun) {
        if (!verbatim(&s, cl))
            return false;
    } else {
        for (size_t i = 0; i < cl->nbody; i++)
            if (!named(&s, cl->body[i]))
                return false;
        if (conflicts(&s))
            return false;
        if (s.hides)
            hide(&s);
    }
    if (m->sender && !(ret->info.actions & ACT_DROP)) {
        collect(&s, PACK_NODE, m->node);
        collect(&s, PACK_SENDER, m->sender);
    }
    if (s.user.count)
        collect(&s, PACK_USER,
                s.user.count == 1 ? s.user.items[0]
                                  : term_list(m->a, s.user.count, (const term_t *)(void *)s.user.items, NULL));
    return true;
}
