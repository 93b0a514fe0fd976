/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what the node can do with the events of expressions by itself: filter, hold, count and record them. */
#include "exprs.h"

#include <stdlib.h>
#include <string.h>

#include "../fold/pairing.h"
#include "../ground/mem.h"
#include "../lang/where_steps.h"
#include "../pipeline/probes.h"
#include "together.h"

uint64_t exprs_kinds(const struct exprs *p, uint64_t *ret_besides)
{
    uint64_t kinds = probes_kinds(p->specs, p->count), needs = kinds | pairing_begin(kinds);

    *ret_besides = needs & ~kinds;
    return needs;
}

typedef bool steps_fn(const struct where *const *wheres, size_t n, struct buf *ret_steps);

/* Compiles the conditions of the expression and the `extra` ones together, by steps(). */
static bool filter_of(const struct spec *s, const struct where *const *extra, size_t n, steps_fn *steps,
                      struct buf *ret)
{
    const struct where **all = mem_alloc((s->nwhere + n + 1) * sizeof(*all));

    for (size_t i = 0; i < s->nwhere; i++)
        all[i] = s->where[i];
    for (size_t i = 0; i < n; i++)
        all[s->nwhere + i] = extra[i];
    bool ok = s->nwhere + n == 0 || steps(all, s->nwhere + n, ret);
    free(all);
    return ok;
}

static bool same_steps(const struct buf *a, const struct buf *b)
{
    return a->len == b->len && (!a->len || !memcmp(a->data, b->data, a->len));
}

bool exprs_filter(const struct exprs *p, const struct where *const *extra, size_t n, struct buf *ret_filter)
{
    struct buf other = {0};
    bool ok = !exprs_deciding_root(p);

    for (size_t i = 0; ok && i < p->count; i++) {
        struct buf *to = i ? &other : ret_filter;
        buf_clear(to);
        ok = filter_of(p->specs[i], extra, n, where_steps, to) && same_steps(to, ret_filter);
    }
    buf_release(&other);
    /*
     * To measure the size of an event, the node encodes the event without sending it. The encoding defines names in the
     * interning table of the node, and a later frame could refer to a name that the client never got. So the
     * expressions must cause no frames of other kinds.
     */
    for (size_t i = 0; ok && i < p->count && where_steps_measure(buf_view(ret_filter)); i++)
        ok = !(p->specs[i]->flags & ~(unsigned)(SPEC_F_CALL | SPEC_F_ARITY)) && !probes_switches(p->specs[i]);
    return ok;
}

/* Returns true if each reported call is followed by its result or exception, as long as its process lives. */
static bool always_ends(const struct spec *s)
{
    for (size_t i = 0; i < s->nclauses; i++) {
        unsigned does = s->clauses[i].actions;
        if (!(does & ACT_DROP) && (!(does & ACT_RETURN) || does & (ACT_RETURN_TRACE | ACT_SILENT | ACT_FLAGS)))
            return false;
    }
    return s->nclauses && s->scope != SPEC_META;
}

bool exprs_hold(const struct exprs *p, const struct where *const *extra, size_t n, struct buf *ret_filter)
{
    struct buf other = {0};
    unsigned count = 0;
    bool ok = !exprs_deciding_root(p);

    for (size_t i = 0; ok && i < p->count; i++) {
        struct buf *to = count ? &other : ret_filter;
        if (p->specs[i]->kind != SPEC_CALL)
            continue;
        count++;
        buf_clear(to);
        ok = always_ends(p->specs[i]) && filter_of(p->specs[i], extra, n, where_steps_some, to) && to->len &&
             same_steps(to, ret_filter);
    }
    buf_release(&other);
    return ok && count;
}

/*
 * Returns true if one of the keys is the value that a match specification collects. Several probes cannot count by it,
 * because their values are in tuples with the number of the probe.
 */
static bool counts_collected(const struct by_node *b)
{
    for (size_t i = 0; i < b->nkeys; i++)
        if (b->keys[i].what == ETW_BY_RESULT)
            return true;
    return false;
}

bool exprs_by_node(const struct exprs *p, struct by_node *ret)
{
    struct by_node other;
    const char *why;

    if (p->by || !p->count || !p->specs[0]->by || !by_node_of(p->specs[0], ret, &why))
        return false;
    if (p->count > 1 && counts_collected(ret))
        return false;
    for (size_t i = 1; i < p->count; i++) {
        const struct spec *s = p->specs[i];
        if (!s->by || !str_same(s->by->text, p->specs[0]->by->text) || !by_node_of(s, &other, &why) ||
            memcmp(&other, ret, sizeof(other)))
            return false;
    }
    return true;
}

bool exprs_counts(const struct exprs *p)
{
    bool counts = p->by;

    for (size_t i = 0; i < p->count; i++)
        counts = counts || p->specs[i]->by;
    return counts;
}

/* Returns true if a key or an aggregate reads a property with one of these bits. */
static bool counts_with(const struct exprs *p, unsigned uses)
{
    bool with = p->by && p->by->uses & uses;

    for (size_t i = 0; i < p->count; i++)
        with = with || (p->specs[i]->by && p->specs[i]->by->uses & uses);
    return with;
}

bool exprs_counts_around(const struct exprs *p)
{
    return counts_with(p, PROPERTY_AROUND);
}

static bool reads_sender(const struct where *const *wheres, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (where_uses(wheres[i]) & PROPERTY_NEEDS_SENDER)
            return true;
    return false;
}

bool exprs_reads_sender(const struct exprs *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (reads_sender(p->specs[i]->where, p->specs[i]->nwhere))
            return true;
    return reads_sender(p->wheres, p->nwheres) || counts_with(p, PROPERTY_NEEDS_SENDER);
}

bool exprs_may_overwrite(const struct exprs *p, struct err *e)
{
    return TOGETHER(e, KNOWN(NODE_RECORDER, true), KNOWN(DECIDES, exprs_deciding_root(p)));
}

static bool where_reads_any_of(const struct where *w, uint64_t kinds)
{
    bool reads = w->type == WHERE_NAME && property_rows[w->property].events & kinds;

    for (size_t i = 0; i < w->count; i++)
        reads = reads || where_reads_any_of(w->items[i], kinds);
    return reads || (w->tail && where_reads_any_of(w->tail, kinds));
}

/* Returns the kinds of events of the probes except calls and their results. Returns 0 if no probe is about @events. */
static uint64_t kinds_besides_calls(const struct exprs *p)
{
    const uint64_t calls = UINT64_C(1) << ETW_CALL | UINT64_C(1) << ETW_RETURN_FROM | UINT64_C(1) << ETW_EXCEPTION_FROM;
    uint64_t kinds = calls | UINT64_C(1) << ETW_SYSTEM;
    bool any = false;

    for (size_t i = 0; i < p->count; i++) {
        any = any || p->specs[i]->kind == SPEC_EVENT || probes_switches(p->specs[i]);
        if (p->specs[i]->flags & SPEC_F_SYSTEM)
            kinds = calls;
    }
    return any ? probes_kinds(p->specs, p->count) & ~kinds : 0;
}

bool exprs_trigger(const struct exprs *p, const struct where *condition, const char *text, struct buf *ret_filter,
                   struct err *e)
{
    /* The node tests only how calls end. */
    if (!where_reads_any_of(condition, kinds_besides_calls(p)) && where_steps_of_ends(&condition, 1, ret_filter) &&
        ret_filter->len)
        return true;
    err_set(e, ERR_USAGE, "the node cannot decide the condition of --snapshot-when '%.200s'", text);
    err_hint(e, "it can test how a call ended: class == error, dur > 1s, ret == error; combine them with and, or, not");
    return false;
}

bool exprs_system_trigger(const char *probe, struct err *e)
{
    static const char *const names[] = {"long_gc",   "large_heap",    "long_schedule", "long_message_queue",
                                        "busy_port", "busy_dist_port"};
    size_t len = strcspn(probe + 1, "( ");

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strlen(names[i]) == len && !strncmp(names[i], probe + 1, len))
            return true;
    err_set(e, ERR_USAGE, "--snapshot-when does not take '%.200s'", probe);
    err_hint(e, "a condition such as class == error, or a system event: @long_gc, @large_heap, @long_schedule, "
                "@long_message_queue, @busy_port, @busy_dist_port");
    return false;
}
