#include "asserted.h"

#include "../views/probes.h"

struct texts asserted_texts(const struct texts *filters, const struct assert_opts *o)
{
    const struct texts *const lists[] = {filters, &o->expects, &o->fails};
    struct texts all = {0};

    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (size_t k = 0; k < lists[i]->count; k++)
            texts_add(&all, lists[i]->items[k]);
    return all;
}

bool asserted_init(struct asserted *a, const struct assert_opts *o, const struct asked *asked, size_t nfilters, struct err *e)
{
    const struct where *const *expects = asked->wheres + nfilters;

    *a = (struct asserted){.opts = o};
    if (!o->expects.count && !o->fails.count)
        return true;
    a->asserts = asserts_new(expects, o->expects.count, expects + o->expects.count, o->fails.count, e);
    return a->asserts != NULL;
}

/*
 * Without these warnings a script takes a check that never ran for success, and a person takes an empty page for an
 * idle node.
 */
void asserted_warn(const struct asserted *a, const struct asked *asked, const struct texts *filters, const struct show *show, struct ctx *ctx)
{
    const struct texts *const lists[] = {filters, &a->opts->expects, &a->opts->fails};
    static const char *const names[] = {"where", "expect", "fail-on"};
    const struct where *const *w = asked->wheres;
    bool stacks = false;

    for (size_t i = 0; i < asked->count; i++) {
        const struct spec *s = asked->specs[i];
        if (s->kind == SPEC_EVENT || probes_reports(s))
            return;
        for (size_t k = 0; k < s->nclauses; k++)
            stacks |= (s->clauses[k].has & 1u << PACK_STACK) != 0;
    }
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (size_t k = 0; k < lists[i]->count; k++)
            if (where_reads(*w++, 1u << WN_DUR | 1u << WN_RET | 1u << WN_CLASS))
                ctx_warn(ctx, "warning: --%s '%s' looks at results, for which no expression asks (-> return)", names[i], lists[i]->items[k]);
    for (size_t i = 0; i < show->count && !stacks; i++)
        if (show->views[i].type->flags & SINK_TIMES)
            ctx_warn(ctx, "warning: the view %s shows durations, for which no expression asks (-> return)", show->views[i].type->name);
}

void asserted_release(struct asserted *a)
{
    asserts_free(a->asserts);
    *a = (struct asserted){0};
}

int asserted_status(const struct asserted *a, struct ctx *ctx, int status)
{
    struct str line;
    struct err e;
    size_t which;

    if (!a->asserts || status)
        return status;
    if (asserts_failed(a->asserts, &which, &line)) {
        err_set(&e, ERR_FAIL_ON, "--fail-on '%s' holds: %.*s", a->opts->fails.items[which], (int)MIN(line.len, 400), line.at);
        return ctx_fail(ctx, &e);
    }
    for (size_t i = 0; i < a->opts->expects.count; i++)
        if (!asserts_met(a->asserts, i)) {
            err_set(&e, ERR_EXPECT, "--expect '%s' held for no event", a->opts->expects.items[i]);
            status = ctx_fail(ctx, &e);
        }
    return status;
}
