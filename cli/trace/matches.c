/* SPDX-License-Identifier: Apache-2.0 */
#include "matches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../events/process_name.h"
#include "../ground/mem.h"

#define SILENT_MOST 8 /* limit for the expressions without events that get a line */

void matches_release(struct matches *m)
{
    free(m->missing);
    buf_release(&m->loaded);
}

static void note_missing(struct matches *m, const struct arm_result_probe *probe)
{
    if (!m->missing)
        m->missing = mem_zalloc((m->exprs->count + 1) * sizeof *m->missing);
    if (probe->id >= 0 && (size_t)probe->id < m->exprs->count)
        m->missing[probe->id] = probe->functions ? (struct err){0} : probe->missing;
}

/* Remembers the modules that a node has loaded for the trace. */
static void note_loaded(struct matches *m, const struct arm_result_texts *modules)
{
    for (size_t i = 0; i < modules->n; i++) {
        buf_puts(&m->loaded, i ? ", " : "");
        buf_str(&m->loaded, process_name_plain((struct str){modules->items[i], strlen(modules->items[i])}));
    }
}

void matches_take(struct matches *m, const struct arm_result *result, bool started)
{
    for (size_t i = 0; i < result->nprobes; i++)
        note_missing(m, &result->probes[i]);
    if (!started && !m->loaded.len)
        note_loaded(m, &result->loaded);
}

void matches_put(const struct matches *m, const struct session_node *node, const struct arm_result *result,
                 struct buf *b)
{
    bool calls = false, inside = false;

    for (size_t i = 0; i < m->exprs->count; i++) {
        calls = calls || m->exprs->specs[i]->kind == SPEC_CALL;
        inside = inside || m->exprs->specs[i]->root;
    }
    buf_printf(b, "%s · OTP %s", node->name, node->otp_version);
    if (calls)
        buf_printf(b, " · %llu function%s", (unsigned long long)result->functions, PLURAL(result->functions));
    if (!inside || result->processes)
        buf_printf(b, " · %llu process%s", (unsigned long long)result->processes, PLURAL_ES(result->processes));
    else
        buf_puts(b, " · inside of roots");
    if (result->ports)
        buf_printf(b, " · %llu port%s", (unsigned long long)result->ports, PLURAL(result->ports));
}

void matches_warn(const struct matches *m, struct ctx *ctx, const struct pipeline *p, const char *hint)
{
    for (size_t i = 0; m->missing && i < m->exprs->count; i++) {
        const struct err *why = &m->missing[i];
        const struct spec *s = m->exprs->specs[i];
        const char *helps = why->hint[0] ? why->hint : hint;
        if (why->status && !pipeline_answered(p, i))
            ctx_warn(ctx, "warning: nothing matched '%.*s': %s%s%s", (int)s->text.len, s->text.at, why->text,
                     helps[0] ? "; " : "", helps);
    }
}

/*
 * Writes the selectors that name one function, one in each line. Wildcards are left out: without their guards they
 * could cost much.
 */
static void put_functions(const struct matches *m, struct buf *to)
{
    for (size_t i = 0; i < m->exprs->count; i++)
        for (size_t k = 0; k < m->exprs->specs[i]->nselectors; k++) {
            const struct selector *s = &m->exprs->specs[i]->selectors[k];
            if (s->module.how != SEL_ATOM || s->function.how != SEL_ATOM)
                continue;
            buf_puts(to, to->len ? "\n" : "");
            lang_print_selector(s, to);
        }
}

/* Returns true if the counts are complete, so that an event that is not there did not happen. */
static bool knows_all(const struct totals *t)
{
    uint64_t lost = 0;

    for (size_t i = 0; i < ETW_LOSSES; i++)
        lost += t->lost[i];
    return t->complete && !t->missing && !lost && !t->untraced.calls && !t->untraced.unknown && !t->reloads;
}

/* Returns true if all expressions trace calls, none has roots, and one of them selected a function. */
static bool traces_calls_only(const struct matches *m)
{
    bool any = false;

    for (size_t i = 0; i < m->exprs->count; i++) {
        if (m->exprs->specs[i]->kind != SPEC_CALL || m->exprs->specs[i]->root)
            return false;
        any = any || !m->missing || !m->missing[i].status;
    }
    return any;
}

static void say_calls(const struct matches *m, struct ctx *ctx, const struct totals *t, const char *who)
{
    if (!t->asked && m->loaded.len)
        ctx_say(ctx, "no traced function was called%s; not loaded before the trace: %.*s", who, (int)m->loaded.len,
                (const char *)m->loaded.data);
    else if (!t->asked)
        ctx_say(ctx, "no traced function was called%s", who);
    else
        ctx_say(ctx, "the traced functions were called %s%llu time%s%s, but no call matched",
                t->asked < ETW_ASKED_MOST ? "" : "at least ", (unsigned long long)MIN(t->asked, ETW_ASKED_MOST),
                PLURAL(t->asked), who);
}

/* Returns true if the client knows which calls the selectors select. Only the node knows applications, for example. */
static bool is_exact(const struct spec *s)
{
    for (size_t i = 0; i < s->nselectors; i++)
        if (s->selectors[i].module.how > SEL_GLOB || s->selectors[i].function.how > SEL_GLOB)
            return false;
    return true;
}

/*
 * Returns true if the spec is worth a line because no event matched it. If nothing was seen, that is true for every
 * spec, and the lines about roots are enough. Otherwise the client must know which spec each event matched.
 */
static bool is_silent(const struct matches *m, const struct pipeline *p, size_t i, bool seen)
{
    const struct spec *s = m->exprs->specs[i];

    if ((m->missing && m->missing[i].status) || s->inside.len)
        return false;
    return !seen || (!s->root && is_exact(s) && pipeline_is_silent(p, i));
}

/* `asked`: match specifications have tested calls. */
static void say_silent(const struct spec *s, struct ctx *ctx, bool asked, bool some_processes)
{
    static const char *const what[] =
        {[SPEC_CALL] = "call", [SPEC_SEND] = "message", [SPEC_RECV] = "message", [SPEC_EVENT] = "event"};

    if (s->root && !asked)
        ctx_say(ctx, "the root '%.*s' was not called%s", (int)s->text.len, s->text.at,
                some_processes ? " by the selected processes" : "");
    else
        ctx_say(ctx, "no %s%s matched %s'%.*s'", what[s->kind], some_processes ? " of the selected processes" : "",
                s->root ? "the root " : "", (int)s->text.len, s->text.at);
}

void matches_say_silent(const struct matches *m, struct ctx *ctx, const struct pipeline *p, const struct totals *t,
                        bool some_processes, struct buf *ret_unmatched)
{
    size_t silent = 0;

    if (!knows_all(t))
        return;
    if (!t->seen && traces_calls_only(m)) {
        say_calls(m, ctx, t, some_processes ? " by the selected processes" : "");
        if (t->asked && ret_unmatched)
            put_functions(m, ret_unmatched);
        return;
    }
    for (size_t i = 0; i < m->exprs->count; i++)
        if (is_silent(m, p, i, t->seen) && silent++ < SILENT_MOST)
            say_silent(m->exprs->specs[i], ctx, t->asked, some_processes);
    if (silent > SILENT_MOST)
        ctx_say(ctx, "no event matched %zu further expressions", silent - SILENT_MOST);
}
