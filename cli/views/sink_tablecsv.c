/* SPDX-License-Identifier: Apache-2.0 */
/* The tablecsv and tabletsv views: the keys and figures of tables in columns. An empty line separates two tables. */
#include "group_grid.h"

static void put_tables(struct sink *sink, const struct totals *totals, enum grid_as as)
{
    for (size_t i = 0; i < totals->ngroups; i++) {
        struct group_grid x;
        group_grid_init(&x, totals->groups[i], &sink->look, sink->look.nodes);
        if (i)
            buf_char(sink->out, '\n');
        grid_data(&x.grid, as, NULL, sink->out);
        group_grid_release(&x);
    }
}

static void end_tablecsv(struct sink *sink, const struct totals *totals)
{
    put_tables(sink, totals, GRID_CSV);
}

static void end_tabletsv(struct sink *sink, const struct totals *totals)
{
    put_tables(sink, totals, GRID_TSV);
}

const struct sink_type sink_tablecsv = {
    .name = "tablecsv",
    .extensions = ".csv",
    .about = "the table of 'by' with columns for spreadsheets",
    .size = sizeof(struct sink),
    .flags = SINK_ALONE | SINK_ANONYMOUS | SINK_ROWS | SINK_FOLDS | SINK_SORTS,
    .end = end_tablecsv,
};

const struct sink_type sink_tabletsv = {
    .name = "tabletsv",
    .extensions = ".tsv",
    .about = "the same, separated by tabs",
    .size = sizeof(struct sink),
    .flags = SINK_ALONE | SINK_ANONYMOUS | SINK_ROWS | SINK_FOLDS | SINK_SORTS,
    .end = end_tabletsv,
};
