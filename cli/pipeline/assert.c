/* SPDX-License-Identifier: Apache-2.0 */
#include "assert.h"

#include <stdlib.h>

#include "../ground/mem.h"
#include "../views/group_text.h"
#include "../views/line.h"

struct asserts {
    const struct where *const *expects, *const *fails;
    size_t nexpects, nfails;
    size_t unmet;
    bool *met;
    size_t failed; /* index of the element of `fails` that has held first; nfails: none has held */
    struct buf line;
    struct wheres *wheres;
    uint64_t unjudged;
    const struct where *trigger; /* the condition of a trigger; NULL: this is a set of assertions */
    uint64_t held;               /* how often `trigger` has held since asserts_take_held() */
};

struct asserts *asserts_new(const struct where *const *expects, size_t nexpects, const struct where *const *fails,
                            size_t nfails, struct err *e)
{
    struct asserts *a = mem_zalloc(sizeof(*a));
    bool good = true;

    a->expects = expects;
    a->nexpects = a->unmet = nexpects;
    a->fails = fails;
    a->nfails = a->failed = nfails;
    a->met = mem_zalloc(nexpects + 1);
    a->wheres = wheres_new(TERMS_AUTO);
    for (size_t i = 0; i < nexpects && good; i++)
        good = wheres_prepare(a->wheres, expects[i], e);
    for (size_t i = 0; i < nfails && good; i++)
        good = wheres_prepare(a->wheres, fails[i], e);
    if (good)
        return a;
    asserts_free(a);
    return NULL;
}

struct asserts *asserts_new_trigger(const struct where *condition, struct err *e)
{
    struct asserts *a = asserts_new(NULL, 0, NULL, 0, e);

    a->trigger = condition;
    if (wheres_prepare(a->wheres, condition, e))
        return a;
    asserts_free(a);
    return NULL;
}

uint64_t asserts_take_held(struct asserts *a)
{
    const uint64_t held = a->held;

    a->held = 0;
    return held;
}

void asserts_free(struct asserts *a)
{
    if (!a)
        return;
    wheres_free(a->wheres);
    buf_release(&a->line);
    free(a->met);
    free(a);
}

void asserts_event(struct asserts *a, const struct event *e)
{
    static const struct paint plain = {false};

    if (a->trigger && !where_is_of_rows(a->trigger))
        a->held += where_holds(a->wheres, a->trigger, e) == FILTER_PASS;
    for (size_t i = 0; i < a->nexpects && a->unmet; i++)
        if (!a->met[i] && !where_is_of_rows(a->expects[i]) && where_holds(a->wheres, a->expects[i], e) == FILTER_PASS) {
            a->met[i] = true;
            a->unmet--;
        }
    for (size_t i = 0; i < a->nfails && a->failed == a->nfails; i++)
        if (!where_is_of_rows(a->fails[i]) && where_holds(a->wheres, a->fails[i], e) == FILTER_PASS) {
            a->failed = i;
            line_body(&a->line, e, TERMS_AUTO, &plain);
        }
}

/* ---- rows ---- */

/* Returns true if the value of `w` is constant, or is an aggregate that can only grow, or with `down` only shrink. */
static bool only_grows(const struct where *w, bool down)
{
    if (w->type != WHERE_AGGREGATE)
        return w->type == WHERE_CONST;
    if (down)
        return !strncmp(w->name.at, "min(", 4);
    return str_is(w->name, "count") || !strncmp(w->name.at, "max(", 4) || str_is(w->name, "sum(dur)") ||
           str_is(w->name, "sum(size)");
}

/* Returns true if the condition stays true to the end of the trace once it is true. */
static bool holds_for_good(const struct where *w)
{
    const bool more = w->fn == FN_GT || w->fn == FN_GE, less = w->fn == FN_LT || w->fn == FN_LE;
    bool all = true;

    if (w->type != WHERE_CALL)
        return false;
    if (more || less)
        return only_grows(w->items[0], less) && only_grows(w->items[1], more) &&
               (w->items[0]->type == WHERE_CONST || w->items[1]->type == WHERE_CONST);
    for (size_t i = 0; i < w->count; i++)
        all = all && holds_for_good(w->items[i]);
    return all && (w->fn == FN_AND || w->fn == FN_ANDALSO || w->fn == FN_OR || w->fn == FN_ORELSE);
}

/* Appends a row as a line: "shop:take/4: count 11, max(dur) 1.2ms". */
static void row_line(struct buf *to, const struct groups *table, const struct group *row)
{
    struct group_column columns[GROUP_COLUMNS];
    const size_t n = group_columns(table, true, columns);
    struct group_number value;

    for (size_t i = 0; i < table->by->nkeys; i++) {
        buf_puts(to, i ? ", " : "");
        group_put_part(to, table, row, i, group_printer(table, TERMS_AUTO));
    }
    buf_printf(to, ": count %llu", (unsigned long long)row->count);
    for (size_t i = 0; i < n; i++) {
        if (table->by->aggregates[columns[i].aggregate].kind == BY_COUNT ||
            !group_column_value(table, row, columns[i], &value))
            continue;
        buf_puts(to, ", ");
        group_column_name(to, table, columns[i]);
        buf_char(to, ' ');
        group_put_short(to, value, groups_is_duration(table, columns[i].aggregate));
    }
}

static void judge_row(struct asserts *a, const struct groups *table, const struct group *row, bool at_end)
{
    for (size_t i = 0; i < a->nexpects && a->unmet; i++)
        if (!a->met[i] && where_is_of_rows(a->expects[i]) && (at_end || holds_for_good(a->expects[i])) &&
            where_holds_for(a->wheres, a->expects[i], table, row)) {
            a->met[i] = true;
            a->unmet--;
        }
    for (size_t i = 0; i < a->nfails && a->failed == a->nfails; i++)
        if (where_is_of_rows(a->fails[i]) && (at_end || holds_for_good(a->fails[i])) &&
            where_holds_for(a->wheres, a->fails[i], table, row)) {
            a->failed = i;
            row_line(&a->line, table, row);
        }
}

void asserts_row(struct asserts *a, const struct groups *table, const struct group *row)
{
    if (row == &table->other)
        return;
    if (a->trigger && !a->held && where_is_of_rows(a->trigger))
        a->held = where_holds_for(a->wheres, a->trigger, table, row);
    judge_row(a, table, row, false);
}

void asserts_end(struct asserts *a, struct groups *const *tables, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < tables[i]->n; k++)
            judge_row(a, tables[i], &tables[i]->items[k], true);
        a->unjudged += tables[i]->other.count;
    }
}

uint64_t asserts_unjudged(const struct asserts *a)
{
    bool rows = false;

    for (size_t i = 0; i < a->nexpects; i++)
        rows = rows || (!a->met[i] && where_is_of_rows(a->expects[i]));
    for (size_t i = 0; i < a->nfails; i++)
        rows = rows || where_is_of_rows(a->fails[i]);
    return rows ? a->unjudged : 0;
}

static bool asserts_offered(const struct where *w, const struct spec_by *const *clauses, size_t n, struct err *e)
{
    bool offered = w->type != WHERE_AGGREGATE;
    unsigned percent;
    size_t which;

    for (size_t i = 0; i < n && !offered; i++)
        offered = groups_offer(clauses[i], w->name, &which, &percent);
    if (!offered && !n)
        err_set(e, ERR_USAGE, "%.*s is a figure of keys, and no expression counts with 'by'",
                (int)MIN(w->name.len, 200), w->name.at);
    else if (!offered)
        err_set(e, ERR_USAGE, "no expression counts %.*s", (int)MIN(w->name.len, 200), w->name.at);
    if (!offered)
        err_hint(e, "add it after 'by', as in 'shop:_ by caller: count, max(dur)'");
    for (size_t i = 0; i < w->count && offered; i++)
        offered = asserts_offered(w->items[i], clauses, n, e);
    return offered && (!w->tail || asserts_offered(w->tail, clauses, n, e));
}

bool asserts_fit(const struct where *const *conditions, size_t n, const struct spec_by *const *clauses, size_t nclauses,
                 struct err *e)
{
    for (size_t i = 0; i < n; i++)
        if (!asserts_offered(conditions[i], clauses, nclauses, e))
            return false;
    return true;
}

bool asserts_of_rows(const struct asserts *a, size_t expect)
{
    return where_is_of_rows(a->expects[expect]);
}

bool asserts_decided(const struct asserts *a)
{
    return a->failed < a->nfails || (a->nexpects && !a->unmet && !a->nfails);
}

bool asserts_failed(const struct asserts *a, size_t *ret_index, struct str *ret_line)
{
    if (a->failed == a->nfails)
        return false;
    *ret_index = a->failed;
    *ret_line = buf_view(&a->line);
    return true;
}

bool asserts_met(const struct asserts *a, size_t expect)
{
    return a->met[expect];
}
