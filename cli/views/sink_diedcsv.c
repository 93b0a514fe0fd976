/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The diedcsv and diedtsv views: a row for each exit, in columns for spreadsheets. The exits that an exit has caused
 * follow it, with its pid in the column `by`.
 */
#include "../ground/number.h"
#include "death_view.h"
#include "grid.h"

enum column {
    TS,
    NODE,
    PID,
    NAME,
    INITIAL,
    REASON,
    NORMAL,
    CAUSE,
    BY,
    BY_NAME,
    IN,
    AFTER,
    REACHED,
    AGAIN,
    AGAIN_BY,
    COLUMNS
};

static const struct grid_column columns[COLUMNS] = {
    [TS] = {.key = "ts"},
    [NODE] = {.key = "node"},
    [PID] = {.key = "pid"},
    [NAME] = {.key = "name"},
    [INITIAL] = {.key = "initial"},
    [REASON] = {.key = "reason"},
    [NORMAL] = {.key = "normal"},
    [CAUSE] = {.key = "cause"},
    [BY] = {.key = "by"},
    [BY_NAME] = {.key = "by_name"},
    [IN] = {.key = "in"},
    [AFTER] = {.key = "after_us", .number = true},
    [REACHED] = {.key = "reached", .number = true},
    [AGAIN] = {.key = "restarted"},
    [AGAIN_BY] = {.key = "restarted_by"},
};

/* The source of the cells of a row: the view, for its printers, and the exit. */
struct row {
    struct death_view *v;
    const struct death *x;
};

static void diedcsv_pid(struct grid_cell *cell, const struct tracee *who)
{
    buf_add(&cell->text, who->text, who->text_len);
}

static void diedcsv_name(struct grid_cell *cell, const struct tracee *who)
{
    buf_add(&cell->text, who->name, who->name_len);
}

static void diedcsv_put(const void *data, size_t number UNUSED, size_t column, struct grid_cell *cell)
{
    const struct row *row = data;
    const struct death *x = row->x;
    const struct event at = death_moment(x);

    switch ((enum column)column) {
    case TS:
        clock_put_iso(&row->v->clock, &cell->text, &at);
        break;
    case NODE:
        buf_safe(&cell->text, x->node->name);
        break;
    case PID:
        diedcsv_pid(cell, &x->who);
        break;
    case NAME:
        diedcsv_name(cell, &x->who);
        break;
    case INITIAL:
        death_put_initial(row->v, &cell->text, x);
        break;
    case REASON:
        death_put_reason(row->v, &cell->text, x->node, x->reason);
        break;
    case NORMAL:
        buf_puts(&cell->text, x->normal ? "true" : "false");
        break;
    case CAUSE:
        buf_puts(&cell->text, death_causes[x->cause]);
        break;
    case BY:
        diedcsv_pid(cell, &x->by);
        break;
    case BY_NAME:
        diedcsv_name(cell, &x->by);
        break;
    case IN:
        death_put_place(row->v, &cell->text, x);
        break;
    case AFTER:
        if (x->parent)
            print_us(&cell->text, death_after(x->parent, death_time(x->parent, x->node, x->mono_ns, x->wall_ns)));
        break;
    case REACHED:
        print_u64(&cell->text, x->nheirs + x->more_heirs);
        break;
    case AGAIN:
        if (x->again.known)
            diedcsv_pid(cell, &x->again.as);
        break;
    case AGAIN_BY:
        if (x->again.known && x->again.by_known)
            diedcsv_pid(cell, &x->again.by);
        break;
    case COLUMNS:
        break;
    }
}

static enum grid_as format_of(const struct death_view *v)
{
    return strcmp(v->sink.type->name, "diedtsv") ? GRID_CSV : GRID_TSV;
}

static void put_rows(struct death_view *v, const struct death *x)
{
    const struct row row = {v, x};

    grid_data(&(struct grid){.columns = columns,
                             .ncolumns = COLUMNS,
                             .put = diedcsv_put,
                             .data = &row,
                             .nrows = 1,
                             .continued = true},
              format_of(v), NULL, v->sink.out);
    for (const struct death *child = x->first; child; child = child->next)
        put_rows(v, child);
}

static void diedcsv_show(struct death_view *v, const struct death *root, const struct death_group *g, bool fresh)
{
    (void)g;
    (void)fresh;
    put_rows(v, root);
}

static bool open_diedcsv(struct sink *sink, struct err *e)
{
    struct death_view *v = (struct death_view *)sink;

    (void)e;
    death_view_init(v);
    clock_init_iso(&v->clock);
    v->show = diedcsv_show;
    if (!sink->look.append)
        grid_data(&(struct grid){.columns = columns, .ncolumns = COLUMNS}, format_of(v), NULL, sink->out);
    return true;
}

static void end_diedcsv(struct sink *sink, const struct totals *totals)
{
    (void)totals;
    deaths_end(&((struct death_view *)sink)->deaths);
}

const struct sink_type sink_diedcsv = {
    .name = "diedcsv",
    .extensions = ".csv",
    .about = "a row for each exit, with columns for spreadsheets",
    .item = "exit",
    .brief = "csv",
    .size = sizeof(struct death_view),
    .flags = SINK_LINES | SINK_ANONYMOUS | SINK_PAIRS,
    .open = open_diedcsv,
    .event = death_view_event,
    .passed = death_view_passed,
    .end = end_diedcsv,
    .release = death_view_release,
};

const struct sink_type sink_diedtsv = {
    .name = "diedtsv",
    .extensions = ".tsv",
    .about = "the same, separated by tabs",
    .item = "exit",
    .brief = "tsv",
    .size = sizeof(struct death_view),
    .flags = SINK_LINES | SINK_ANONYMOUS | SINK_PAIRS,
    .open = open_diedcsv,
    .event = death_view_event,
    .passed = death_view_passed,
    .end = end_diedcsv,
    .release = death_view_release,
};
