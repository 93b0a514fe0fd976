/* SPDX-License-Identifier: Apache-2.0 */
#include "matches.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../events/process_name.h"
#include "../ground/mem.h"

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

void matches_say_nothing(const struct matches *m, struct ctx *ctx, const struct totals *t, bool some_processes,
                         struct buf *ret_unmatched)
{
    uint64_t lost = 0;
    bool calls = false;

    for (size_t i = 0; i < ETW_LOSSES; i++)
        lost += t->lost[i];
    for (size_t i = 0; i < m->exprs->count; i++) {
        if (m->exprs->specs[i]->kind != SPEC_CALL || m->exprs->specs[i]->root)
            return;
        calls = calls || !m->missing || !m->missing[i].status;
    }
    if (t->seen || t->missing || lost || t->untraced.calls || t->untraced.unknown || t->reloads || !t->complete ||
        !calls)
        return;
    const char *who = some_processes ? " by the selected processes" : "";
    if (!t->asked && m->loaded.len)
        ctx_say(ctx, "no traced function was called%s; not loaded before the trace: %.*s", who, (int)m->loaded.len,
                (const char *)m->loaded.data);
    else if (!t->asked)
        ctx_say(ctx, "no traced function was called%s", who);
    else
        ctx_say(ctx, "the traced functions were called %s%llu time%s%s, but no call matched",
                t->asked < ETW_ASKED_MOST ? "" : "at least ", (unsigned long long)MIN(t->asked, ETW_ASKED_MOST),
                PLURAL(t->asked), who);
    if (t->asked && ret_unmatched)
        put_functions(m, ret_unmatched);
}
