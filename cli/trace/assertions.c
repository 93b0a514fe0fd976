/* SPDX-License-Identifier: Apache-2.0 */
#include "assertions.h"

#include <stdlib.h>

#include "../ground/mem.h"
#include "../pipeline/probes.h"
#include "../views/fields.h"

struct texts assertions_texts(const struct texts *filters, const struct assert_opts *o)
{
    const struct texts *const lists[] = {filters, &o->expects, &o->fails};
    struct texts all = {0};

    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (size_t k = 0; k < lists[i]->count; k++)
            texts_add(&all, lists[i]->items[k]);
    return all;
}

bool assertions_init(struct assertions *a, const struct assert_opts *o, const struct exprs *exprs, size_t nfilters,
                     struct err *e)
{
    const struct where *const *expects = exprs->wheres + nfilters;

    *a = (struct assertions){.opts = o};
    if (!o->expects.count && !o->fails.count)
        return true;
    a->asserts = asserts_new(expects, o->expects.count, expects + o->expects.count, o->fails.count, e);
    return a->asserts != NULL;
}

bool assertions_fit(const struct exprs *exprs, size_t nfilters, const struct spec *const *specs, size_t nspecs,
                    struct err *e)
{
    const struct spec_by **clauses = mem_alloc((nspecs + 1) * sizeof(*clauses));
    size_t n = 0;

    for (size_t i = 0; i < nspecs; i++)
        if (specs[i]->by)
            clauses[n++] = specs[i]->by;
    if (exprs->by)
        clauses[n++] = exprs->by;
    const bool fit = asserts_fit(exprs->wheres + nfilters, exprs->nwheres - nfilters, clauses, n, e);
    free(clauses);
    return fit;
}

/* Warns if the value `text` of the option `name` needs results. `uses`: the PROPERTY_ bits of the text. */
static void warn_of_option(struct ctx *ctx, const char *name, const char *text, unsigned uses)
{
    if (uses & PROPERTY_NEEDS_RETURN)
        ctx_warn(ctx, "warning: --%s '%s' needs results, but no expression asks for them (-> return)", name, text);
}

/*
 * Warns if conditions or views need results and no expression asks for results. Without the warning, an assertion that
 * was never tested would look like success, and an empty page like an idle node.
 */
void assertions_warn(const struct assertions *a, const struct exprs *exprs, const struct texts *filters,
                     const struct outputs *outputs, struct ctx *ctx)
{
    const struct texts *const lists[] = {filters, &a->opts->expects, &a->opts->fails};
    static const char *const names[] = {"where", "expect", "fail-on"};
    const struct where *const *w = exprs->wheres;
    const char *fields = NULL, *format = NULL; /* the texts of the options, which are the same for all views */
    bool stacks = false;

    for (size_t i = 0; i < exprs->count; i++) {
        const struct spec *s = exprs->specs[i];
        if (s->kind == SPEC_EVENT || probes_reports(s))
            return;
        for (size_t k = 0; k < s->nclauses; k++)
            stacks |= (s->clauses[k].has & 1u << PACK_STACK) != 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (size_t k = 0; k < lists[i]->count; k++)
            warn_of_option(ctx, names[i], lists[i]->items[k], where_uses(*w++));
    for (size_t i = 0; i < outputs->count; i++) {
        const struct sink_type *t = outputs->views[i].type;
        fields = t->flags & SINK_FIELDS ? outputs->views[i].look.fields : fields;
        format = t->flags & SINK_FORMAT ? outputs->views[i].look.format : format;
        /* A view of counts is useful even without results, so it gets a message instead of a warning. */
        const bool counts = t->flags & SINK_FIGURES && !(t->flags & SINK_TIMES);
        if (t->without_results && !(stacks && t->flags & SINK_TIMES))
            (counts ? ctx_say : ctx_warn)(ctx, "%sthe view %s %s, because no expression asks for results (-> return)",
                                          counts ? "" : "warning: ", t->name, t->without_results);
    }
    warn_of_option(ctx, "fields", fields, fields_uses(fields, NULL));
    warn_of_option(ctx, "format", format, fields_uses(NULL, format));
}

void assertions_release(struct assertions *a)
{
    asserts_free(a->asserts);
    *a = (struct assertions){0};
}

int assertions_status(const struct assertions *a, struct ctx *ctx, int status)
{
    struct str line;
    struct err e;
    size_t which;

    if (!a->asserts || status)
        return status;
    if (asserts_failed(a->asserts, &which, &line)) {
        err_set(&e, ERR_FAIL_ON, "--fail-on '%s' holds: %.*s", a->opts->fails.items[which], (int)MIN(line.len, 400),
                line.at);
        return ctx_fail(ctx, &e);
    }
    if (asserts_unjudged(a->asserts))
        ctx_warn(ctx, "warning: --expect and --fail-on were not evaluated for %llu event%s in (other)",
                 (unsigned long long)asserts_unjudged(a->asserts), PLURAL(asserts_unjudged(a->asserts)));
    for (size_t i = 0; i < a->opts->expects.count; i++)
        if (!asserts_met(a->asserts, i)) {
            err_set(&e, ERR_EXPECT, "--expect '%s' held for no %s", a->opts->expects.items[i],
                    asserts_of_rows(a->asserts, i) ? "key" : "event");
            status = ctx_fail(ctx, &e);
        }
    return status;
}
