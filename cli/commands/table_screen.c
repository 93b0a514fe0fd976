/* SPDX-License-Identifier: Apache-2.0 */
#include "table_screen.h"

#include <stdlib.h>
#include <unistd.h>

#include "../erlang/term_print.h"
#include "../ground/mem.h"
#include "../ground/tty.h"
#include "../views/grid.h"

#define INTERVAL_MS 1000
#define INTERVAL_LEAST 200

static const char *const help_text[] = {
    "  s  → ←     sort by the next column",
    "  o          the other direction",
    "  ↑ ↓        choose a row; also Page Up and Down, Home, End",
    "  Enter      all figures of the row, and a histogram; Esc goes back",
    "  p  space   pause",
    "  /          show only the rows with a text",
    "  q          quit, and print the whole table",
    "  h  ?       show this help",
    NULL,
};

static void table_screen_title(void *data, struct buf *to)
{
    const struct live_table *t = &((struct table_screen *)data)->table;
    uint64_t lost = 0;

    if (!t->totals)
        return;
    print_duration(to, t->ran_ms / 1000 * 1000000000);
    buf_printf(to, " · %llu events", (unsigned long long)t->totals->shown);
    for (size_t l = 0; l < ETW_LOSSES; l++)
        lost += t->totals->lost[l];
    if (lost)
        buf_printf(to, " · %llu lost", (unsigned long long)lost);
}

/* ---- lines ---- */

/* The lines of the text as a grid: after the titles, a row for each line that has a name, and the rest. */
struct table_lines {
    struct str titles, rest;
    struct str *rows, *names;
    struct grid_column column;
    struct grid grid;
    bool plain; /* put() leaves out colours, because a filter must not find their codes */
};

static void lines_put(const void *data, size_t row, size_t column, struct grid_cell *cell)
{
    const struct table_lines *x = data;

    (void)column;
    if (x->plain || (x->grid.marked && grid_row(&x->grid, x->grid.marked - 1) == row))
        grid_plain(&cell->text, x->rows[row]);
    else
        buf_str(&cell->text, x->rows[row]);
}

static void lines_name(const void *data, size_t row, struct buf *to)
{
    buf_str(to, ((const struct table_lines *)data)->names[row]);
}

/*
 * Makes the grid, and moves the window of the screen. Without names, each line after the titles is a row that cannot be
 * chosen.
 */
static void lines_init(struct table_lines *x, struct table_screen *s)
{
    struct str text = buf_view(&s->shown), names = buf_view(&s->names), name = {0}, line;
    const bool named = names.len;
    size_t cap = 0, n = 0;

    *x = (struct table_lines){.column = {.title = "", .keep = GRID_WHOLE}};
    str_line(&text, &x->titles);
    for (size_t names_cap = 0; named ? str_line(&names, &name) && str_line(&text, &line) : str_line(&text, &line);
         n++) {
        x->rows = mem_grow(x->rows, &cap, n + 1, sizeof(*x->rows));
        x->names = mem_grow(x->names, &names_cap, n + 1, sizeof(*x->names));
        x->rows[n] = line;
        x->names[n] = name;
    }
    x->rest = text;
    x->grid = (struct grid){.columns = &x->column,
                            .ncolumns = 1,
                            .put = lines_put,
                            .name = lines_name,
                            .data = x,
                            .nrows = n};
    s->refresh.window.chooses = named;
    x->plain = true;
    grid_show(&x->grid, &s->refresh.window);
    x->plain = false;
}

static void lines_release(struct table_lines *x)
{
    grid_release(&x->grid);
    free(x->rows);
    free(x->names);
}

/* Prints the rows of the window. Always prints the first line, which has the titles of the columns. */
static void table_screen_rows(void *data, unsigned columns, struct buf *to)
{
    struct table_screen *s = data;
    struct table_lines x;

    (void)columns;
    if (!s->shown.len)
        return;
    lines_init(&x, s);
    buf_str(to, x.titles);
    buf_char(to, '\n');
    grid_text(&x.grid, to);
    buf_str(to, x.rest);
    lines_release(&x);
}

/* Sets the row whose details the view prints next. Returns true if it has changed. */
static bool want_details(struct table_screen *s)
{
    struct table_lines x;

    if (s->refresh.opened == (s->screen.wanted.len > 0))
        return false;
    buf_clear(&s->details);
    buf_clear(&s->screen.wanted);
    if (!s->refresh.opened)
        return true;
    lines_init(&x, s);
    if (x.grid.marked)
        lines_name(&x, grid_row(&x.grid, x.grid.marked - 1), &s->screen.wanted);
    lines_release(&x);
    return s->screen.wanted.len;
}

static void table_screen_details(void *data, unsigned columns, struct buf *to)
{
    (void)columns;
    buf_str(to, buf_view(&((struct table_screen *)data)->details));
}

static void table_screen_key(void *data, int key)
{
    (void)data;
    (void)key;
}

static void screen_begin(void *data)
{
    struct table_screen *s = data;

    s->screen.open = true;
    refresh_open(&s->refresh);
}

/* Copies the new text to `details` if the screen wants a row, otherwise to `shown`. A pause shows the copies again. */
static void keep_text(struct table_screen *s)
{
    struct buf *to = s->screen.wanted.len ? &s->details : &s->shown;

    buf_clear(to);
    buf_str(to, buf_view(&s->table.text));
    if (to == &s->shown) {
        buf_clear(&s->names);
        buf_str(&s->names, buf_view(&s->screen.names));
    }
    buf_clear(&s->screen.names);
    s->refresh.details = s->names.len ? table_screen_details : NULL;
}

static bool screen_draw(void *data, bool fresh)
{
    struct table_screen *s = data;

    if (fresh)
        keep_text(s);
    s->refresh.dirty |= fresh;
    s->table.paused = s->refresh.paused;
    s->table.again |= want_details(s) || !s->refresh.next; /* next 0: a key has changed the order */
    s->refresh.next = -1;
    refresh_draw(&s->refresh);
    return !s->refresh.done;
}

static void screen_end(void *data)
{
    struct table_screen *s = data;

    s->screen.open = false;
    refresh_close(&s->refresh);
}

void table_screen_init(struct table_screen *s, struct ctx *ctx, const char *name, int64_t interval_ns, int color)
{
    *s = (struct table_screen){
        .refresh = {.ctx = ctx,
                    .name = name,
                    .keys = "q quit  Enter details  s sort  o order  p pause  / filter  h help",
                    .details_keys = "q quit  Esc back  ↑↓ scroll  p pause  h help",
                    .details_ask = true,
                    .help = help_text,
                    .data = s,
                    .title = table_screen_title,
                    .rows = table_screen_rows,
                    .key = table_screen_key,
                    .filters = true,
                    .sorts = true,
                    .next = -1,
                    .color = tty_colors(STDOUT_FILENO, (enum tty_color)color)},
        .table = {.data = s,
                  .interval_ms = interval_ns ? MAX(interval_ns / 1000000, INTERVAL_LEAST) : INTERVAL_MS,
                  .open = screen_begin,
                  .draw = screen_draw,
                  .close = screen_end},
    };
}

void table_screen_release(struct table_screen *s)
{
    grid_screen_release(&s->screen);
    buf_release(&s->shown);
    buf_release(&s->names);
    buf_release(&s->details);
    refresh_release(&s->refresh);
}
