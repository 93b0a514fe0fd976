/* SPDX-License-Identifier: Apache-2.0 */
#include "request_grid.h"

#include <string.h>

#include "../ground/number.h"
#include "request_text.h"

#define FIGURE .number = true
#define TIMES(name)                                                                                                    \
    {.key = name "_p50_us", FIGURE}, {.key = name "_p99_us", FIGURE},                                                  \
    {                                                                                                                  \
        .key = name "_max_us", FIGURE                                                                                  \
    }

static const struct grid_column columns[REQUEST_COLUMNS] = {
    {.title = "node", .key = "node", .rank = 5},
    {.title = "server", .key = "server", .rank = 6},
    {.title = "request", .key = "shape", .paint = PAINT_FUN},
    {.title = "calls", .key = "calls", FIGURE, .rank = 8},
    {.title = "waited p50/p99", .also = "waited", FIGURE, .rank = 9},
    TIMES("waited"),
    {.title = "worked p50/p99", .also = "worked", FIGURE, .rank = 7},
    TIMES("worked"),
    {.key = "reply_p50_us", FIGURE},
    {.title = "reply p99", .key = "reply_p99_us", .also = "reply", FIGURE, .rank = 1},
    {.key = "reply_max_us", FIGURE},
    {.title = "timed out", .key = "timed_out", FIGURE, .rank = 4},
    {.key = "late", FIGURE},
    {.title = "unanswered", .key = "unanswered", FIGURE, .rank = 2},
    {.key = "oldest_us", FIGURE},
    {.title = "server ended", .key = "server_ended", FIGURE, .rank = 3},
};

const struct grid_table request_table = GRID_TABLE(columns);

enum figure { FIGURE_P50, FIGURE_P99, FIGURE_MAX };

static void request_put_time(struct grid_cell *cell, const struct stat *t, enum figure figure)
{
    const int64_t ns = (int64_t)(figure == FIGURE_MAX ? t->max_ns : stat_percentile(t, figure == FIGURE_P50 ? 50 : 99));

    if (t->timed && cell->as == GRID_TEXT)
        print_duration(&cell->text, ns);
    else if (t->timed)
        print_us(&cell->text, ns);
}

/* Prints p50 and p99; for programs and for sorting, only p99. */
static void put_pair(struct grid_cell *cell, const struct stat *t)
{
    if (t->timed && cell->as == GRID_TEXT) {
        request_put_time(cell, t, FIGURE_P50);
        buf_puts(&cell->text, " / ");
    }
    request_put_time(cell, t, FIGURE_P99);
}

static void request_grid_put(const void *data, size_t row, size_t column, struct grid_cell *cell)
{
    const struct request_view *q = data;
    const struct request_row *r = &q->rows.items[row];
    struct buf *to = &cell->text;

    switch (column) {
    case REQUEST_COL_NODE:
        if (r->node)
            buf_safe(to, r->node->name);
        break;
    case REQUEST_COL_SERVER:
        if (r->label)
            request_view_put_key(q, to, r->label, r->elixir);
        break;
    case REQUEST_COL_SHAPE:
        if (r->shape || (!r->label && cell->as == GRID_TEXT))
            request_view_put_key(q, to, r->shape, r->elixir);
        else if (cell->as == GRID_TEXT)
            buf_puts(to, "(not captured)");
        break;
    case REQUEST_COL_CALLS:
        print_u64(to, r->calls);
        break;
    case REQUEST_COL_WAITED:
        put_pair(cell, &r->waited);
        break;
    case REQUEST_COL_WORKED:
        put_pair(cell, &r->worked);
        break;
    case REQUEST_COL_TIMED_OUT:
        if (r->callers || r->timed_out)
            print_u64(to, r->timed_out);
        break;
    case REQUEST_COL_LATE:
        print_u64(to, r->late);
        break;
    case REQUEST_COL_OPEN:
        print_u64(to, r->open);
        break;
    case REQUEST_COL_OLDEST:
        print_us(to, r->oldest_ns);
        break;
    case REQUEST_COL_DOWN:
        print_u64(to, r->down);
        break;
    default:
        if (column < REQUEST_COL_WORKED)
            request_put_time(cell, &r->waited, (enum figure)(column - REQUEST_COL_TIMES));
        else if (column < REQUEST_COL_REPLY)
            request_put_time(cell, &r->worked, (enum figure)(column - REQUEST_COL_WORKED - 1));
        else
            request_put_time(cell, &r->reply, (enum figure)(column - REQUEST_COL_REPLY));
        break;
    }
}

/* Prints the node, the server and the request, which no other row has. */
static void request_grid_name(const void *data, size_t row, struct buf *to)
{
    struct grid_cell cell = {0};

    for (enum request_column c = REQUEST_COL_NODE; c <= REQUEST_COL_SHAPE; c++) {
        buf_clear(&cell.text);
        request_grid_put(data, row, c, &cell);
        buf_str(to, buf_view(&cell.text));
        buf_char(to, ' ');
    }
    buf_release(&cell.text);
}

void request_grid_init(struct request_grid *x, const struct request_view *q)
{
    memcpy(x->columns, columns, sizeof(columns));
    x->grid = (struct grid){x->columns, REQUEST_COLUMNS, request_grid_put, q, q->rows.n, .width = q->sink.look.width};
    x->grid.paint = q->paint;
    x->grid.name = request_grid_name;
    grid_order(&x->grid, &q->sink.look.sort);
}

const struct request_row *request_grid_row(const struct request_grid *x, size_t row)
{
    const struct request_view *q = x->grid.data;

    return &q->rows.items[grid_row(&x->grid, row)];
}
