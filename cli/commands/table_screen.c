/* SPDX-License-Identifier: Apache-2.0 */
#include "table_screen.h"

#include <unistd.h>

#include "../erlang/term_print.h"
#include "../ground/tty.h"
#include "../views/grid.h"

#define INTERVAL_MS 1000
#define INTERVAL_LEAST 200

static const char *const help_text[] = {
    "  s  → ←     sort by the next column",
    "  o          the other direction",
    "  ↑ ↓        scroll; also Page Up and Down, Home, End",
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

/* Takes the next line that matches the filter from the text. Returns false after the last one. */
static bool table_screen_line(const struct table_screen *s, struct str *text, struct str *ret)
{
    while (str_line(text, ret))
        if (grid_matches(s->refresh.filter, *ret))
            return true;
    return false;
}

/* Prints the rows that match the filter. Always prints the first line, which has the titles of the columns. */
static void table_screen_rows(void *data, unsigned columns, struct buf *to)
{
    struct table_screen *s = data;
    struct grid_window *w = &s->refresh.window;
    struct str rows = buf_view(&s->table.text), titles, line;
    size_t n = 0;

    (void)columns;
    if (!str_line(&rows, &titles))
        return;
    struct str text = rows;
    while (table_screen_line(s, &text, &line))
        n++;
    grid_window_fit(w, n);
    buf_str(to, titles);
    buf_char(to, '\n');
    text = rows;
    for (size_t i = 0; i < w->first + w->room && table_screen_line(s, &text, &line); i++) {
        if (i < w->first)
            continue;
        buf_str(to, line);
        buf_char(to, '\n');
    }
}

static void table_screen_key(void *data, int key)
{
    (void)data;
    (void)key;
}

static void screen_begin(void *data)
{
    refresh_open(&((struct table_screen *)data)->refresh);
}

static bool screen_draw(void *data, bool fresh)
{
    struct table_screen *s = data;

    s->refresh.dirty |= fresh;
    s->table.paused = s->refresh.paused;
    s->table.again |= !s->refresh.next; /* a key has changed the order */
    s->refresh.next = -1;
    refresh_draw(&s->refresh);
    return !s->refresh.done;
}

static void screen_end(void *data)
{
    refresh_close(&((struct table_screen *)data)->refresh);
}

void table_screen_init(struct table_screen *s, struct ctx *ctx, const char *name, int64_t interval_ns, int color)
{
    *s = (struct table_screen){
        .refresh = {.ctx = ctx,
                    .name = name,
                    .keys = "q quit  s sort  o order  p pause  / filter  h help",
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
    refresh_release(&s->refresh);
}
