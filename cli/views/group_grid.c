/* SPDX-License-Identifier: Apache-2.0 */
#include "group_grid.h"

#include <string.h>

/* Prints a cell of the columns before the figures: the node, then the parts of the key. */
static void group_grid_key(const struct group_grid *x, const struct group *row, size_t column, struct grid_cell *cell)
{
    const bool other = row == &x->g->other;
    const uint8_t *at;

    if (!column && row->key.node)
        buf_safe(&cell->text, row->key.node->name);
    else if (column == 1 && other)
        buf_puts(&cell->text, "(other)");
    else if (column && !other && (cell->as == GRID_TEXT || group_part_of(row, column - 1, &at) != GROUP_ABSENT))
        group_put_part(&cell->text, x->g, row, column - 1, x->printer);
}

/* Prints a histogram as one cell of from:count pairs. */
static void group_grid_buckets(struct buf *to, const struct group_sums *s, bool duration)
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

static void group_grid_value(const struct group_grid *x, const struct group *row, struct group_column c,
                             struct grid_cell *cell)
{
    const bool duration = groups_is_duration(x->g, c.aggregate);
    struct group_number value;

    if (x->g->by->aggregates[c.aggregate].kind == BY_HIST)
        group_grid_buckets(&cell->text, &row->sums[c.aggregate], duration);
    else if (group_column_value(x->g, row, c, &value))
        (cell->as == GRID_TEXT ? group_put_short : group_put_value)(&cell->text, value, duration);
}

static void group_grid_put(const void *data, size_t row, size_t column, struct grid_cell *cell)
{
    const struct group_grid *x = data;
    const struct group *r = row < x->g->n ? &x->g->items[row] : &x->g->other;

    if (column <= x->g->by->nkeys)
        group_grid_key(x, r, column, cell);
    else
        group_grid_value(x, r, x->figures[column - 1 - x->g->by->nkeys], cell);
}

/*
 * Adds the columns of the figures. On a narrow terminal, the first figure is never left out, and the last one is left
 * out first. Histograms have no column in text, where they are drawn below the table.
 */
static void group_grid_figures(struct group_grid *x, size_t n)
{
    struct buf name = {0};
    bool first = true;

    for (size_t i = 0; i < n; i++) {
        const struct group_column c = x->figures[i];
        struct grid_column *k = &x->columns[x->grid.ncolumns++];
        buf_clear(&name);
        group_column_name(&name, x->g, c);
        *k = (struct grid_column){.number = true, .paint = PAINT_DURATION};
        if (x->g->by->aggregates[c.aggregate].kind != BY_HIST) {
            k->title = arena_strndup(&x->names, name.data, name.len);
            k->rank = first ? 0 : (unsigned)(n - i);
            first = false;
        }
        buf_puts(&name, groups_is_duration(x->g, c.aggregate) ? "_us" : "");
        k->key = arena_strndup(&x->names, name.data, name.len);
    }
    buf_release(&name);
}

/* Makes the columns, which depend only on the clause. */
static void group_grid_columns(struct group_grid *x, bool nodes)
{
    const struct spec_by *by = x->g->by;

    arena_init(&x->names);
    x->grid.columns = x->columns;
    x->columns[x->grid.ncolumns++] =
        (struct grid_column){.title = "node", .key = "node", .paint = PAINT_FUN, .hidden = !nodes};
    for (size_t i = 0; i < by->nkeys; i++) {
        const char *name = arena_strndup(&x->names, by->keys[i].text.at, by->keys[i].text.len);
        x->columns[x->grid.ncolumns++] = (struct grid_column){.title = name, .key = name, .paint = PAINT_FUN};
    }
    group_grid_figures(x, group_columns(x->g, false, x->figures));
}

static void group_grid_name(const void *data, size_t row, struct buf *to)
{
    const struct group_grid *x = data;

    group_grid_put_name(x, row < x->g->n ? &x->g->items[row] : &x->g->other, to);
}

void group_grid_init(struct group_grid *x, struct groups *g, const struct look *look, bool nodes)
{
    *x = (struct group_grid){.g = g, .printer = group_printer(g, look->terms)};
    x->grid = (struct grid){.put = group_grid_put,
                            .name = group_grid_name,
                            .data = x,
                            .nrows = g->n + (g->other.count > 0),
                            .width = look->width,
                            .paint.on = look->colour,
                            .rest = g->other.count > 0};
    groups_sort(g);
    group_grid_columns(x, nodes);
    grid_order(&x->grid, &look->sort);
}

bool group_grid_check(struct groups *const *tables, size_t n, const char *sort, struct err *e)
{
    bool ok = !n;

    for (size_t i = 0; i < n && !ok; i++) {
        struct group_grid x = {.g = tables[i]};
        group_grid_columns(&x, true);
        ok = grid_order_check(&(struct grid_table){x.columns, x.grid.ncolumns}, sort, e);
        group_grid_release(&x);
    }
    return ok;
}

const struct group *group_grid_row(const struct group_grid *x, size_t row)
{
    const size_t at = grid_row(&x->grid, row);

    return at < x->g->n ? &x->g->items[at] : &x->g->other;
}

void group_grid_release(struct group_grid *x)
{
    arena_release(&x->names);
    grid_release(&x->grid);
}

void group_grid_put_name(const struct group_grid *x, const struct group *row, struct buf *to)
{
    struct grid_cell cell = {0};

    for (size_t i = 0; i <= x->g->by->nkeys; i++) {
        const size_t from = cell.text.len;
        if (x->columns[i].hidden)
            continue;
        group_grid_key(x, row, i, &cell);
        if (from && cell.text.len > from)
            buf_puts(to, "  ");
        buf_add(to, cell.text.data + from, cell.text.len - from);
    }
    buf_release(&cell.text);
}
