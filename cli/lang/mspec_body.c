/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes bodies from the actions that check_body.c has checked. An action runs inside the VM, collects a value into the
 * pack, changes what is shown, or requests a counter. The expressions of dbg's fun are compiled literally.
 */
#include <string.h>

#include "actions.h"
#include "mspec.h"

struct acts {
    struct mclause *m;
    struct mbody *out;
    struct ptrs user; /* terms of msg() */
};

static void add_run(struct acts *s, term_t t)
{
    ptrs_add(&s->out->run, s->m->a, (void *)(uintptr_t)t);
}

static void mspec_body_show(struct acts *s, enum action action, const struct ast *n)
{
    if (action == ACTION_ARITY)
        s->out->info.actions |= ACT_ARITY;
    else if (action == ACTION_RETURN_TO)
        s->out->info.actions |= ACT_RETURN_TO;
    if (action != ACTION_ARGS)
        return;
    s->out->info.actions |= ACT_PROJECT;
    for (size_t i = 0; i < n->count; i++) {
        const int64_t v = n->items[i]->value->integer;
        s->out->info.args[(v - 1) / 64] |= UINT64_C(1) << ((v - 1) % 64);
    }
}

static void mspec_body_collect(struct acts *s, enum pack_item item, term_t t)
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

static void pack_value(struct acts *s, const struct ast *checked)
{
    struct mclause *m = s->m;
    const enum fn fn = (enum fn)checked->op;

    for (size_t i = 0; i < ARRAY_LEN(packs); i++) {
        if (packs[i].fn == fn) {
            mspec_body_collect(s, packs[i].item, mspec_expr(m, checked));
            return;
        }
    }
    const struct ast *value = fn == FN_MESSAGE ? checked->items[0] : checked;
    const bool shown = fn == FN_MESSAGE && value->known && term_types(value->known) == TY_BOOL;
    if (!shown)
        ptrs_add(&s->user, m->a, (void *)(uintptr_t)mspec_expr(m, value));
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

/* Ends the body with {message,false}: the VM runs the actions before it and makes no event. */
static void hide_event(struct acts *s)
{
    struct arena *a = s->m->a;

    s->out->info.actions |= ACT_DROP;
    ptrs_add(&s->out->run, a, (void *)(uintptr_t)TUPLE(a, term_atom(a, "message"), term_bool(a, false)));
}

/* Adds an expression of the body of dbg's fun. Only message/1 collects values there. */
static void add_verbatim(struct acts *s, const struct ast *checked)
{
    const bool message = checked->type == A_OP && checked->op == FN_MESSAGE;

    note_effects(s->out, checked);
    if (s->m->sender && message) {
        pack_value(s, checked);
        return;
    }
    if (message && checked->items[0]->known && term_is_atom(checked->items[0]->known, "false"))
        s->out->info.actions |= ACT_DROP;
    add_run(s, mspec_expr(s->m, checked));
}

static void mspec_body_one(struct acts *s, enum action action, const struct ast *n)
{
    switch (action_row(action)->how) {
    case HOW_SHOW:
        mspec_body_show(s, action, n);
        return;
    case HOW_COUNT:
        s->out->counters |= action == ACTION_COUNT ? SPEC_COUNT : action == ACTION_TIME ? SPEC_TIME : SPEC_MEMORY;
        return;
    case HOW_PACK:
        note_effects(s->out, n);
        pack_value(s, n);
        return;
    case HOW_RUN:
    case HOW_UNSAFE:
        note_effects(s->out, n);
        add_run(s, mspec_expr(s->m, n));
        return;
    }
}

void mspec_body(struct mclause *m, const struct ast_clause *cl, struct mbody *ret)
{
    struct acts s = {.m = m, .out = ret};

    *ret = (struct mbody){0};
    for (size_t i = 0; i < cl->nacts; i++) {
        if (m->k->probe->fun)
            add_verbatim(&s, cl->acts[i]->node);
        else
            mspec_body_one(&s, (enum action)cl->acts[i]->action, cl->acts[i]->node);
    }
    if (cl->hides && !m->k->probe->fun)
        hide_event(&s);
    if (m->sender && !(ret->info.actions & ACT_DROP)) {
        mspec_body_collect(&s, PACK_NODE, m->node);
        mspec_body_collect(&s, PACK_SENDER, m->sender);
    }
    if (s.user.count)
        mspec_body_collect(&s, PACK_USER,
                           s.user.count == 1
                               ? s.user.items[0]
                               : term_list(m->a, s.user.count, (const term_t *)(void *)s.user.items, NULL));
}
