/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tablecsv and tabletsv views: the keys and figures of the tables in columns. A histogram is one cell of
 * from:count pairs. An empty line separates several tables.
 */
#include "group_text.h"

#define OTHER "(other)"

struct table_csv {
    struct sink sink;
    struct buf cell;
    char between;
};

static bool open_tablecsv(struct sink *sink, struct err *e)
{
    (void)e;
    ((struct table_csv *)sink)->between = ',';
    return true;
}

static bool open_tabletsv(struct sink *sink, struct err *e)
{
    (void)e;
    ((struct table_csv *)sink)->between = '\t';
    return true;
}

static void release_tablecsv(struct sink *sink)
{
    buf_release(&((struct table_csv *)sink)->cell);
}

/* Writes the cell, with quotes if it needs them (RFC 4180). */
static void end_cell(struct table_csv *t, bool first)
{
    struct buf *to = t->sink.out;
    bool quotes = false;

    if (!first)
        buf_char(to, t->between);
    for (size_t i = 0; i < t->cell.len; i++)
        quotes = quotes || t->cell.data[i] == t->between || memchr("\"\r\n,", t->cell.data[i], 4);
    if (quotes)
        buf_char(to, '"');
    for (size_t i = 0; i < t->cell.len; i++) {
        if (t->cell.data[i] == '"')
            buf_char(to, '"');
        buf_char(to, t->cell.data[i]);
    }
    if (quotes)
        buf_char(to, '"');
    buf_clear(&t->cell);
}

static void put_buckets(struct buf *to, const struct group_sums *s, bool duration)
{
    struct group_rows rows = group_rows(s);
    struct group_number n;
    struct group_row row;

    while (group_next_row(&rows, &row)) {
        const bool open = !group_row_from(&rows, row.number, &n);
        if (open)
            group_row_from(&rows, row.number + 1, &n);
        buf_puts(to, open ? "<" : "");
        group_put_value(to, n, duration);
        buf_printf(to, ":%llu ", (unsigned long long)row.count);
    }
    to->len -= to->len > 0;
}

static void put_titles(struct table_csv *t, const struct groups *g, bool nodes)
{
    struct group_column columns[GROUP_COLUMNS];
    const size_t n = group_columns(g, false, columns);

    if (nodes)
        buf_puts(t->sink.out, "node");
    for (size_t i = 0; i < g->by->nkeys; i++) {
        buf_str(&t->cell, g->by->keys[i].text);
        end_cell(t, !i && !nodes);
    }
    for (size_t i = 0; i < n; i++) {
        group_column_name(&t->cell, g, columns[i]);
        if (groups_is_duration(g, columns[i].aggregate))
            buf_puts(&t->cell, "_us");
        end_cell(t, false);
    }
    buf_char(t->sink.out, '\n');
}

static void put_key(struct table_csv *t, const struct groups *g, const struct group *row, bool nodes)
{
    const struct printer *printer =
        t->sink.look.terms == TERMS_JSON ? &printer_erlang : group_printer(g, t->sink.look.terms);

    if (nodes && row->key.node)
        buf_safe(t->sink.out, row->key.node->name);
    for (size_t i = 0; i < g->by->nkeys; i++) {
        const uint8_t *at;
        if (row == &g->other)
            buf_puts(&t->cell, i ? "" : OTHER);
        else if (group_part_of(row, i, &at) != GROUP_ABSENT)
            group_put_part(&t->cell, g, row, i, printer);
        end_cell(t, !i && !nodes);
    }
}

static void tablecsv_row(struct table_csv *t, const struct groups *g, const struct group *row, bool nodes)
{
    struct group_column columns[GROUP_COLUMNS];
    const size_t n = group_columns(g, false, columns);
    struct group_number value;

    put_key(t, g, row, nodes);
    for (size_t i = 0; i < n; i++) {
        const size_t which = columns[i].aggregate;
        const bool duration = groups_is_duration(g, which);
        if (g->by->aggregates[which].kind == BY_HIST)
            put_buckets(&t->cell, &row->sums[which], duration);
        else if (group_column_value(g, row, columns[i], &value))
            group_put_value(&t->cell, value, duration);
        end_cell(t, false);
    }
    buf_char(t->sink.out, '\n');
}

static void end_tablecsv(struct sink *sink, const struct totals *totals)
{
    struct table_csv *t = (struct table_csv *)sink;

    for (size_t i = 0; i < totals->ngroups; i++) {
        struct groups *g = totals->groups[i];
        groups_sort(g);
        if (i)
            buf_char(sink->out, '\n');
        put_titles(t, g, sink->look.nodes);
        for (size_t k = 0; k < g->n; k++)
            tablecsv_row(t, g, &g->items[k], sink->look.nodes);
        if (g->other.count)
            tablecsv_row(t, g, &g->other, sink->look.nodes);
    }
}

const struct sink_type sink_tablecsv = {
    .name = "tablecsv",
    .extensions = ".csv",
    .about = "the table of 'by' with columns for spreadsheets",
    .size = sizeof(struct table_csv),
    .flags = SINK_ALONE | SINK_ANONYMOUS | SINK_ROWS,
    .open = open_tablecsv,
    .end = end_tablecsv,
    .release = release_tablecsv,
};

const struct sink_type sink_tabletsv = {
    .name = "tabletsv",
    .extensions = ".tsv",
    .about = "the same, separated by tabs",
    .size = sizeof(struct table_csv),
    .flags = SINK_ALONE | SINK_ANONYMOUS | SINK_ROWS,
    .open = open_tabletsv,
    .end = end_tablecsv,
    .release = release_tablecsv,
};
