/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks bodies: finds the action of each word, checks its arguments, and rejects actions that contradict each other.
 * The expressions of dbg's fun are checked as they stand. mspec_body.c makes terms of the result.
 */
#include <string.h>

#include "actions.h"
#include "check.h"
#include "meant.h"

#define STACK_FRAMES 32

struct body {
    struct check *k;
    struct ast_clause *cl;
    struct ptrs acts; /* struct ast_act */
    const struct ast *seen[ACTIONS];
    const struct ast *fns[FN_COUNT];
    size_t user; /* terms of msg() */
};

static bool report_unknown_action(struct check *k, const struct ast *n, struct str word)
{
    struct guess g;

    guess_init(&g, word);
    for (int i = 0; i < ACTIONS; i++)
        guess_offer(&g, str_of(action_row((enum action)i)->word));
    diag(k->c, n->from, n->type == A_CALL ? word.len : n->len, "unknown action '" STR_FMT "'", STR_ARG(word));
    return meant_note(k->c, MEANT_ACTION, word, &g);
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

static bool check_arg_count(struct check *k, const struct action_row *row, const struct ast *n)
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

static bool check_probe_kind(struct check *k, const struct action_row *row, const struct ast *n)
{
    if (row->places & k->body)
        return true;
    diag(k->c, n->from, n->len, "'%s' is not available for a %s", row->word,
         k->body == PLACE_BODY_SEND ? "send" : "receive");
    return diag_note(k->c, row->places & PLACE_BODY_SEND ? "it is only for calls and sends" : "it is only for calls");
}

/*
 * Rejects a repeated action. Only msg() and actions that have an effect and arguments, such as enable(), may be
 * repeated.
 */
static bool check_not_repeated(struct body *s, enum action action, const struct ast *n)
{
    const struct action_row *row = action_row(action);
    const struct ast *before = s->seen[action];
    bool repeats = row->how == HOW_PACK ? row->least > 0 : row->most > 0 && row->how != HOW_SHOW;

    if (row->fn != FN_NONE && !repeats && !before)
        before = s->fns[row->fn];
    if (before && !repeats) {
        struct str first = {s->k->c->text.at + before->from, before->len};
        diag(s->k->c, n->from, n->len, "'%s' is given twice", row->word);
        if (!str_is(first, row->word))
            diag_note(s->k->c, "'" STR_FMT "' means the same", STR_ARG(first));
        return false;
    }
    s->seen[action] = n;
    if (row->fn != FN_NONE)
        s->fns[row->fn] = n;
    return true;
}

/* Checks args(1,3): each number must be the position of an argument. */
static bool check_project(struct body *s, const struct ast *n)
{
    const struct ast_clause *cl = s->cl;
    struct check *k = s->k;

    for (size_t i = 0; i < n->count; i++) {
        const struct ast *arg = n->items[i];
        int64_t v = arg->type == A_LIT && arg->value->type == TERM_INT ? arg->value->integer : 0;
        if (v < 1 || v > SPEC_ARITY_MAX) {
            diag(k->c, arg->from, arg->len, "args takes positions of arguments");
            return diag_note(k->c, "the first argument is 1");
        }
        if (k->probe->nselectors && cl->nhead && (size_t)v > cl->nhead && !cl->prefix && !cl->tail)
            return diag(k->c, arg->from, arg->len, "there is no argument %lld", (long long)v);
    }
    return true;
}

static bool check_show(struct body *s, enum action action, const struct ast *n)
{
    if (action == ACTION_ARGS)
        return check_project(s, n);
    if (action == ACTION_RETURN_TO && s->k->probe->scope != SPEC_LOCAL) {
        diag(s->k->c, n->from, n->len, "'return_to' needs local tracing");
        return diag_note(s->k->c, "the VM only reports it for functions traced with 'local'");
    }
    if (action == ACTION_DROP)
        s->cl->hides = n;
    return true;
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
    diag(k->c, n->from, n->len, "unknown trace flag '" STR_FMT "'", STR_ARG(n->known->text));
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

static struct ast *make_action_call(struct check *k, const struct ast *n, const struct action_row *row)
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
static bool check_frames(struct check *k, const struct action_row *row, const struct ast *checked)
{
    const struct ast *n = row->fn == FN_CURRENT_STACKTRACE ? checked->items[0] : NULL;

    if (!n || (n->type == A_LIT && n->value->type == TERM_INT && n->value->integer >= 0))
        return true;
    diag(k->c, n->from, n->len, "%s takes a number of frames", row->word);
    return diag_note(k->c, "an integer literal, 0 or more");
}

static void add_act(struct body *s, enum action action, const struct ast *n)
{
    struct ast_act *act = arena_alloc(s->k->c->arena, sizeof(*act));

    *act = (struct ast_act){.action = action, .node = n};
    ptrs_add(&s->acts, s->k->c->arena, act);
}

/* Notes that msg(false) hides the event, and counts the terms of msg(). msg(true) has no effect and does not count. */
static void check_message(struct body *s, const struct ast *checked)
{
    const term_t known = checked->op == FN_MESSAGE ? checked->items[0]->known : NULL;

    if (known && term_is_atom(known, "false"))
        s->cl->hides = checked;
    else if (checked->op != FN_CALLER_LINE && checked->op != FN_CURRENT_STACKTRACE && checked->op != FN_PROCESS_DUMP)
        s->user += !known || !term_is_atom(known, "true");
}

static bool check_body_one(struct body *s, struct ast *n, enum action action)
{
    struct check *k = s->k;
    const struct action_row *row = action_row(action);

    if (!check_probe_kind(k, row, n) || !check_arg_count(k, row, n) || !check_not_repeated(s, action, n))
        return false;
    if (row->how == HOW_SHOW || row->how == HOW_COUNT) {
        add_act(s, action, n);
        return row->how == HOW_COUNT || check_show(s, action, n);
    }
    struct ast *checked = check_expr(k, make_action_call(k, n, row));
    if (!checked || !check_flags(k, checked) || !check_frames(k, row, checked))
        return false;
    add_act(s, action, checked);
    if (row->how == HOW_PACK)
        check_message(s, checked);
    return true;
}

/* Short names of dbg, and the actions that they stand for. */
static const struct {
    const char *word;
    enum action means[2];
} dbg_names[] = {
    {"x", {ACTION_RETURN, ACTION_NONE}},    {"exception", {ACTION_RETURN, ACTION_NONE}},
    {"c", {ACTION_CALLER, ACTION_NONE}},    {"caller_trace", {ACTION_CALLER, ACTION_NONE}},
    {"cx", {ACTION_RETURN, ACTION_CALLER}}, {"caller_exception_trace", {ACTION_RETURN, ACTION_CALLER}},
};

static bool check_body_named(struct body *s, struct ast *n)
{
    struct check *k = s->k;
    struct str word;

    if (!word_of(n, &word)) {
        diag(k->c, n->from, n->len, "expected an action");
        return diag_note(k->c, "such as return, caller or msg(T)");
    }
    enum action action = action_find(word);
    if (action != ACTION_NONE)
        return check_body_one(s, n, action);
    for (size_t i = 0; i < ARRAY_LEN(dbg_names); i++)
        if (str_is(word, dbg_names[i].word))
            return check_body_one(s, n, dbg_names[i].means[0]) &&
                   (dbg_names[i].means[1] == ACTION_NONE || check_body_one(s, n, dbg_names[i].means[1]));
    return report_unknown_action(k, n, word);
}

/* Returns true if the action makes something visible, which conflicts with drop and msg(false). */
static bool action_shows(const struct body *s, enum action action)
{
    const struct action_row *row = action_row(action);
    const struct ast *n = s->seen[action];

    if (!n || (n->from == s->cl->hides->from && !s->user))
        return false;
    return row->how != HOW_RUN || row->fn == FN_EXCEPTION_TRACE || row->fn == FN_RETURN_TRACE;
}

static bool report_conflict(struct body *s)
{
    struct check *k = s->k;
    const struct ast *args = s->seen[ACTION_ARGS], *arity = s->seen[ACTION_ARITY];

    for (int i = 0; s->cl->hides && i < ACTIONS; i++) {
        if (!action_shows(s, (enum action)i))
            continue;
        struct str word = {k->c->text.at + s->cl->hides->from, s->cl->hides->len};
        diag(k->c, s->cl->hides->from, s->cl->hides->len, "'" STR_FMT "' hides the event", STR_ARG(word));
        return !diag_note(k->c, "so '%s' has nothing to show; only actions such as silent or enable are allowed then",
                          action_row((enum action)i)->word);
    }
    if (args && arity) {
        const struct ast *later = args->from > arity->from ? args : arity;
        diag(k->c, later->from, later->len, "'args' and 'arity' cannot be combined");
        return true;
    }
    return false;
}

/* Checks the body of dbg's fun, which may have any expressions. */
static bool check_verbatim(struct body *s)
{
    for (size_t i = 0; i < s->cl->nbody; i++) {
        struct ast *checked = check_expr(s->k, s->cl->body[i]);
        if (!checked || !check_flags(s->k, checked))
            return false;
        add_act(s, ACTION_NONE, checked);
    }
    return true;
}

bool check_body(struct check *k, struct ast_clause *cl)
{
    struct body s = {.k = k, .cl = cl};

    k->place = k->body;
    if (k->probe->fun) {
        if (!check_verbatim(&s))
            return false;
    } else {
        for (size_t i = 0; i < cl->nbody; i++)
            if (!check_body_named(&s, cl->body[i]))
                return false;
        if (report_conflict(&s))
            return false;
    }
    cl->acts = (struct ast_act **)(void *)s.acts.items;
    cl->nacts = s.acts.count;
    return true;
}
