/* SPDX-License-Identifier: Apache-2.0 */
/* The tablejson view: a JSON object for each key of the tables, and one for each table with what is missing. */
#include "../erlang/term_json.h"
#include "group_grid.h"
#include "missing.h"

#define REST "_us" /* suffix for the names of values that are microseconds */

struct table_json {
    struct sink sink;
    struct buf text;
};

static void release_tablejson(struct sink *sink)
{
    buf_release(&((struct table_json *)sink)->text);
}

/*
 * Writes a part of a key. A term becomes a string in the syntax of its language, or a JSON structure with --terms json.
 */
static void put_key(struct table_json *t, const struct groups *g, const struct group *row, size_t part)
{
    struct buf *to = t->sink.out;
    const uint8_t *at;
    const enum group_part is = group_part_of(row, part, &at);

    json_value(to);
    if (is == GROUP_ABSENT) {
        json_null(to);
        return;
    }
    if (is == GROUP_UNKNOWN) {
        json_open_object(to);
        json_put_bool(to, "unknown", true);
        json_end_object(to);
        return;
    }
    if (t->sink.look.terms == TERMS_JSON) {
        const struct term_env env = group_env(row);
        json_term(to, &env, at);
        return;
    }
    buf_clear(&t->text);
    group_put_part(&t->text, g, row, part, group_printer(g, t->sink.look.terms));
    json_quote(to, raw_of(buf_view(&t->text)));
}

static void tablejson_number(struct buf *to, struct group_number n, bool duration)
{
    if (n.real) {
        json_real(to, duration ? n.d / 1000 : n.d);
    } else {
        json_value(to);
        group_put_value(to, n, duration);
    }
}

static void tablejson_buckets(struct buf *to, const struct group_sums *s, bool duration)
{
    struct group_rows rows = group_rows(s);
    struct group_number n;
    struct group_row row;

    json_begin_array(to);
    while (group_next_row(&rows, &row)) {
        json_begin_object(to);
        if (group_row_from(&rows, row.number, &n))
            json_key(to, "from"), tablejson_number(to, n, duration);
        if (group_row_from(&rows, row.number + 1, &n))
            json_key(to, "below"), tablejson_number(to, n, duration);
        json_put_uint(to, "count", row.count);
        json_end_object(to);
    }
    json_end_array(to);
}

static void put_quantiles(struct buf *to, const struct group_sums *s, bool duration)
{
    static const struct {
        unsigned percent;
        const char *name;
    } all[] = {{50, "p50"}, {90, "p90"}, {99, "p99"}};
    struct group_number n;

    json_begin_object(to);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        if (group_quantile(s, all[i].percent, &n))
            json_key(to, all[i].name), tablejson_number(to, n, duration);
    json_end_object(to);
}

static void tablejson_value(struct table_json *t, const struct groups *g, const struct group *row, size_t which)
{
    const struct by_aggregate *a = &g->by->aggregates[which];
    const bool duration = groups_is_duration(g, which);
    struct buf *to = t->sink.out;
    struct group_number n;

    buf_clear(&t->text);
    buf_str(&t->text, a->text);
    if (duration)
        buf_puts(&t->text, REST);
    json_key_raw(to, raw_of(buf_view(&t->text)));
    if (a->kind == BY_HIST)
        tablejson_buckets(to, &row->sums[which], duration);
    else if (a->kind == BY_QUANTILES)
        put_quantiles(to, &row->sums[which], duration);
    else if (group_aggregate(g, row, which, &n))
        tablejson_number(to, n, duration);
    else
        json_null(to);
}

static void tablejson_row(struct table_json *t, const struct groups *g, const struct group *row)
{
    struct buf *to = t->sink.out;
    const bool other = row == &g->other;

    json_begin_record(to, "row");
    json_put_string(to, "table", raw_of(g->by->text));
    if (row->key.node)
        json_put_safe(to, "node", row->key.node->name);
    if (other) {
        json_put_bool(to, "other", true);
    } else {
        json_put_array(to, "key");
        for (size_t i = 0; i < g->by->nkeys; i++)
            put_key(t, g, row, i);
        json_end_array(to);
    }
    if (row->key.cut)
        json_put_bool(to, "cut", true);
    json_put_uint(to, "count", row->count);
    json_put_object(to, "values");
    for (size_t i = 0; i < g->by->naggregates; i++)
        if (g->by->aggregates[i].kind != BY_COUNT)
            tablejson_value(t, g, row, i);
    json_end_object(to);
    json_end_record(to);
}

static void put_end(struct buf *to, const struct groups *g, const struct totals *totals)
{
    json_begin_record(to, "table");
    json_put_string(to, "table", raw_of(g->by->text));
    json_put_uint(to, "rows", g->n);
    json_put_uint(to, "other", g->other.count);
    json_put_uint(to, "cut", groups_cut(g));
    json_put_object(to, "skipped");
    for (size_t i = 0; i < g->by->naggregates; i++)
        if (groups_skipped(g, i))
            json_key_raw(to, raw_of(g->by->aggregates[i].text)), json_uint(to, groups_skipped(g, i));
    json_end_object(to);
    json_put_uint(to, "without_result", g->open > 0 ? (uint64_t)g->open : 0);
    json_put_uint(to, "without_call", g->unpaired);
    json_put_object(to, "lost");
    for (size_t l = 0; l < ETW_LOSSES; l++)
        if (totals->lost[l])
            json_put_uint(to, event_losses[l], totals->lost[l]);
    json_end_object(to);
    json_put_uint(to, "missing", totals->missing);
    missing_json(to, totals);
    missing_open_json(to, &totals->open);
    json_end_record(to);
}

static void end_tablejson(struct sink *sink, const struct totals *totals)
{
    struct table_json *t = (struct table_json *)sink;

    for (size_t i = 0; i < totals->ngroups; i++) {
        struct groups *g = totals->groups[i];
        struct group_grid x;
        group_grid_init(&x, g, &sink->look, true);
        for (size_t k = 0; k < x.grid.nrows; k++)
            tablejson_row(t, g, group_grid_row(&x, k));
        group_grid_release(&x);
        put_end(sink->out, g, totals);
    }
}

const struct sink_type sink_tablejson = {
    .name = "tablejson",
    .extensions = ".json .ndjson",
    .about = "one JSON object for each key that 'by' counts",
    .size = sizeof(struct table_json),
    .flags = SINK_ALONE | SINK_ANONYMOUS | SINK_ROWS | SINK_FOLDS | SINK_SORTS,
    .end = end_tablejson,
    .release = release_tablejson,
};
