/* SPDX-License-Identifier: Apache-2.0 */
#include "refresh.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "../ground/screen.h"
#include "../views/grid.h"

#define BACKLOG_FULL (256u << 10)
#define EOL "\033[K\r\n"
#define KEY_ESCAPE 27
#define KEY_CTRL_D 4

/* ---- keys ---- */

static void type_filter(struct refresh *r, int key)
{
    size_t len = strlen(r->filter);

    if (key == '\r' || key == '\n') {
        r->typing = false;
    } else if (key == KEY_ESCAPE || key == KEY_CTRL_D) {
        r->typing = false;
        r->filter[0] = 0;
    } else if ((key == 127 || key == '\b') && len) {
        r->filter[len - 1] = 0;
    } else if (key >= ' ' && key < 127 && len < REFRESH_FILTER) {
        r->filter[len] = (char)key;
        r->filter[len + 1] = 0;
    }
}

/* Changes the order of the rows, and looks again, because a node may keep other rows for another order. */
static bool sort_pressed(struct refresh *r, int key)
{
    if (!r->sorts || (key != 's' && key != 'o' && key != KEY_RIGHT && key != KEY_LEFT))
        return false;
    r->turn.steps += key == KEY_LEFT ? -1 : key != 'o';
    r->turn.reversed = key == 'o' && !r->turn.reversed;
    r->next = 0;
    return true;
}

static void key_pressed(struct refresh *r, int key)
{
    if (sort_pressed(r, key))
        return;
    switch (key) {
    case 'q':
    case KEY_CTRL_D:
        r->done = true;
        return;
    case 'p':
    case ' ':
        r->paused = !r->paused;
        return;
    case 'h':
    case '?':
        r->help_shown = true;
        return;
    case '/':
        r->typing = r->filters;
        if (r->typing)
            r->filter[0] = 0;
        return;
    case KEY_ESCAPE:
        if (!r->filter[0])
            break;
        r->filter[0] = 0;
        return;
    case KEY_UP:
        r->chosen -= r->chooses && r->chosen > 0;
        return;
    case KEY_DOWN:
        r->chosen += r->chooses;
        return;
    default:
        break;
    }
    r->key(r->data, key);
}

static void refresh_on_key(void *data, int key)
{
    struct refresh *r = data;

    r->dirty = true;
    if (key == KEY_END)
        r->done = true;
    else if (r->typing)
        type_filter(r, key);
    else if (r->help_shown && key != 'q')
        r->help_shown = false;
    else
        key_pressed(r, key < 128 ? tolower(key) : key);
}

/* ---- the screen ---- */

void refresh_open(struct refresh *r)
{
    struct buf b = {0};

    screen_open(STDIN_FILENO, STDOUT_FILENO, &b);
    out_take(r->ctx->out, &b);
    buf_release(&b);
    screen_listen(&r->ctx->loop, refresh_on_key, r);
    screen_size(&r->columns, &r->lines);
    r->live = r->dirty = true;
}

void refresh_close(struct refresh *r)
{
    struct buf b = {0};

    if (!r->live)
        return;
    r->live = false;
    screen_ignore();
    screen_close(&b);
    out_take(r->ctx->out, &b);
    buf_release(&b);
    if (r->notes.len)
        ctx_warn(r->ctx, "%.*s", (int)r->notes.len - 1, r->notes.data);
}

void refresh_release(struct refresh *r)
{
    buf_release(&r->notes);
}

/*
 * Draws a line and erases the rest of the old line. Leaves the last column free, because erasing would otherwise remove
 * the character in it.
 */
static void draw_line(const struct refresh *r, struct buf *to, const char *text)
{
    grid_cut(to, (struct str){text, strlen(text)}, r->columns - 1);
    buf_puts(to, "\033[K");
}

static void draw_title(struct refresh *r, struct buf *to)
{
    struct buf b = {0};

    buf_printf(&b, "etrace %s · ", r->name);
    r->title(r->data, &b);
    if (r->filter[0] && !r->typing)
        buf_printf(&b, " · /%s", r->filter);
    buf_puts(&b, r->paused ? " · paused" : "");
    draw_line(r, to, buf_cstr(&b));
    buf_puts(to, "\r\n" EOL);
    buf_release(&b);
}

static void draw_foot(struct refresh *r, struct buf *to)
{
    struct paint paint = {.on = r->color};
    struct buf b = {0};

    buf_printf(to, "\033[J\033[%u;1H", r->lines);
    if (r->typing)
        buf_printf(&b, "/%s▏ Enter keeps the filter, Esc removes it", r->filter);
    paint_begin(&paint, to, PAINT_TIME);
    draw_line(r, to, r->typing ? buf_cstr(&b) : r->keys);
    paint_end(&paint, to);
    buf_release(&b);
}

void refresh_draw(struct refresh *r)
{
    unsigned columns, lines;
    struct buf b = {0};

    screen_size(&columns, &lines);
    if (!r->dirty && columns == r->columns && lines == r->lines)
        return;
    r->columns = columns;
    r->lines = lines;
    r->dirty = false;
    buf_puts(&b, "\033[H");
    draw_title(r, &b);
    for (const char *const *l = r->help; r->help_shown && *l; l++) {
        draw_line(r, &b, *l);
        buf_puts(&b, "\r\n");
    }
    if (!r->help_shown)
        r->rows(r->data, r->columns - 1, EOL, &b);
    draw_foot(r, &b);
    if (out_backlog(r->ctx->out, BACKLOG_FULL) < BACKLOG_FULL)
        out_take(r->ctx->out, &b);
    buf_release(&b);
}

static bool refresh_goes_on(const struct refresh *r, const int *status)
{
    struct err e;
    bool closed;

    return !r->done && !r->ctx->interrupts && !(status && *status) && !(r->until && loop_now() >= r->until) &&
           !out_failed(r->ctx->out, &closed, &e);
}

void refresh_loop(struct refresh *r, struct peers *peers, int64_t interval, const int *status, void (*look)(void *data))
{
    while (refresh_goes_on(r, status)) {
        if (r->live)
            refresh_draw(r);
        if (loop_now() >= r->next) {
            if (!r->paused || r->steady)
                look(r->data);
            r->next = loop_now() + interval;
        }
        if (!peers_step(peers, r->until ? MIN(r->next, r->until) : r->next))
            break;
    }
}

void refresh_run(struct refresh *r, struct peers *peers, int64_t interval, const int *status, void (*look)(void *data))
{
    r->next = loop_now() + interval;
    refresh_open(r);
    refresh_loop(r, peers, interval, status, look);
    refresh_close(r);
}

/* ---- rows ---- */

size_t refresh_room(const struct refresh *r, int64_t given)
{
    size_t room = r->lines > 5 ? r->lines - 5 : 1;

    return given ? MIN(room, (size_t)given) : room;
}

bool refresh_matches(const char *filter, struct str text)
{
    size_t len = strlen(filter);

    for (size_t i = 0; i + len <= text.len; i++)
        if (!strncasecmp(text.at + i, filter, len))
            return true;
    return !len;
}

void refresh_fail(struct refresh *r, int *status, const struct err *e)
{
    int failed = e->status ? (int)e->status : ERR_RUN;

    if (r->live)
        buf_printf(&r->notes, "%s\n", e->text);
    else
        failed = ctx_fail(r->ctx, e);
    if (!*status)
        *status = failed;
}
