/* SPDX-License-Identifier: Apache-2.0 */
#include "grid_window.h"

#include <string.h>
#include <strings.h>

#include "../ground/mem.h"
#include "../ground/utf8.h"

void grid_window_release(struct grid_window *w)
{
    buf_release(&w->held);
}

/* ---- moving ---- */

static size_t *window_place(struct grid_window *w)
{
    w->moved = true;
    w->last = false;
    buf_clear(&w->held);
    return w->chooses ? &w->chosen : &w->first;
}

void grid_window_down(struct grid_window *w, size_t rows)
{
    size_t *at = window_place(w);

    *at += MIN(rows, SIZE_MAX - *at);
}

void grid_window_up(struct grid_window *w, size_t rows)
{
    size_t *at = window_place(w);

    *at -= MIN(rows, *at);
}

void grid_window_last(struct grid_window *w)
{
    window_place(w);
    w->last = true;
}

size_t grid_window_needs(const struct grid_window *w)
{
    const size_t all = w->first + 2 * w->room;

    return w->last || (w->filter && *w->filter) ? SIZE_MAX : all;
}

/* ---- the filter ---- */

bool grid_matches(const char *filter, struct str text)
{
    size_t len = strlen(filter);

    for (size_t i = 0; i + len <= text.len; i++)
        if (!strncasecmp(text.at + i, filter, len))
            return true;
    return !len;
}

/* Returns true if the cells of the row contain the filter, also those that do not fit on the screen. */
static bool window_admits(const struct grid *g, const char *filter, size_t row, struct grid_cell *cell,
                          struct buf *text)
{
    buf_clear(text);
    for (size_t i = 0; i < g->ncolumns; i++) {
        if (g->columns[i].hidden || !g->columns[i].title)
            continue;
        grid_make(g, row, i, cell);
        buf_str(text, buf_view(&cell->text));
        buf_char(text, ' ');
    }
    return grid_matches(filter, buf_view(text));
}

/* Leaves only the rows that contain the filter. */
static void window_filter(struct grid *g, const char *filter)
{
    size_t *admitted = mem_alloc((g->nrows + 1) * sizeof(*admitted)), n = 0;
    struct grid_cell cell = {0};
    struct buf text = {0};

    for (size_t row = 0; row < g->nrows; row++)
        if (window_admits(g, filter, row, &cell, &text))
            admitted[n++] = grid_row(g, row);
    grid_release(g);
    g->order = admitted;
    g->nrows = n;
    buf_release(&text);
    buf_release(&cell.text);
}

/* ---- the window ---- */

/* Returns the row that has this name, or g->nrows. */
static size_t row_named(const struct grid *g, struct str sought)
{
    struct buf name = {0};
    size_t row = 0;

    for (; row < g->nrows; row++) {
        buf_clear(&name);
        g->name(g->data, grid_row(g, row), &name);
        if (str_same(buf_view(&name), sought))
            break;
    }
    buf_release(&name);
    return row;
}

/*
 * Sets w->chosen. Returns false if there is no row, or if the pinned row is gone. If the user has moved to a row, sets
 * w->held to its name, so that it stays chosen when the order changes. The first row is held only if it is pinned:
 * otherwise the mark stays at the top.
 */
static bool window_choose(const struct grid *g, struct grid_window *w)
{
    const size_t end = g->nrows - MIN(g->nrows, 1u);
    const size_t held = w->held.len ? row_named(g, buf_view(&w->held)) : g->nrows;
    const bool gone = w->held.len && held == g->nrows;

    w->chosen = w->last ? end : held < g->nrows ? held : MIN(w->chosen, end);
    if (w->moved || (w->pins && !w->held.len) || (gone && !w->pins)) {
        buf_clear(&w->held);
        if (g->nrows && (w->chosen || w->pins))
            g->name(g->data, grid_row(g, w->chosen), &w->held);
    }
    w->moved = false;
    return g->nrows && !(gone && w->pins);
}

void grid_window_fit(struct grid_window *w, size_t rows)
{
    const size_t end = rows - MIN(rows, w->room);

    w->rows = rows;
    if (w->chooses && w->chosen < w->first)
        w->first = w->chosen;
    if (w->chooses && w->chosen >= w->first + w->room)
        w->first = w->chosen - w->room + 1;
    w->first = w->last ? end : MIN(w->first, end);
}

void grid_show(struct grid *g, struct grid_window *w)
{
    if (!w)
        return;
    if (w->filter && *w->filter)
        window_filter(g, w->filter);
    w->rows = g->nrows;
    g->most = w->room;
    if (!w->scrolls)
        return;
    const bool found = w->chooses && window_choose(g, w);
    grid_window_fit(w, g->nrows);
    g->first = w->first;
    g->marked = found ? w->chosen + 1 : 0;
}

/* ---- the screen of a live trace ---- */

void grid_screen_name(struct grid_screen *s, const struct grid *g)
{
    if (!grid_screen_is_open(s))
        return;
    for (size_t row = 0; row < g->nrows; row++) {
        g->name(g->data, grid_row(g, row), &s->names);
        buf_char(&s->names, '\n');
    }
}

bool grid_screen_wants(const struct grid_screen *s, const struct grid *g, size_t *ret_row)
{
    if (!grid_screen_is_open(s) || !s->wanted.len)
        return false;
    *ret_row = row_named(g, buf_view(&s->wanted));
    return true;
}

void grid_screen_release(struct grid_screen *s)
{
    buf_release(&s->wanted);
    buf_release(&s->names);
}

/* ---- one row ---- */

void grid_row_text(const struct grid *g, size_t row, struct buf *to)
{
    struct grid_cell cell = {0};
    int width = 0;

    for (size_t i = 0; i < g->ncolumns; i++)
        if (!g->columns[i].hidden && g->columns[i].title)
            width = MAX(width, (int)utf8_width(g->columns[i].title, strlen(g->columns[i].title)));
    for (size_t i = 0; i < g->ncolumns; i++) {
        const struct grid_column *k = &g->columns[i];
        if (k->hidden || !k->title)
            continue;
        grid_make(g, row, i, &cell);
        if (!cell.text.len || (k->number && str_is(buf_view(&cell.text), "-")))
            continue;
        paint_begin(&g->paint, to, PAINT_KIND);
        buf_printf(to, "%s%*s", k->title, width + 2 - (int)utf8_width(k->title, strlen(k->title)), "");
        paint_end(&g->paint, to);
        buf_str(to, buf_view(&cell.text));
        buf_char(to, '\n');
    }
    buf_release(&cell.text);
}
