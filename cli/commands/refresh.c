/* SPDX-License-Identifier: Apache-2.0 */
#include "refresh.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "../ground/screen.h"
#include "../views/grid.h"

#define BACKLOG_FULL (256u << 10)
#define EOL "\033[K\r\n"
#define FRAME 3 /* number of other lines: the title, the line below it (draw_place()), and the keys */
#define ROOM_LEAST 2
#define OPENED_MS 1000 /* longest time between two looks while details are open */
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

static bool window_moved(struct grid_window *w, int key)
{
    switch (key) {
    case KEY_UP:
        grid_window_up(w, 1);
        return true;
    case KEY_DOWN:
        grid_window_down(w, 1);
        return true;
    case KEY_PAGE_UP:
        grid_window_up(w, w->room);
        return true;
    case KEY_PAGE_DOWN:
        grid_window_down(w, w->room);
        return true;
    case KEY_FIRST:
        grid_window_up(w, GRID_WINDOW_HOME);
        return true;
    case KEY_LAST:
        grid_window_last(w);
        return true;
    default:
        return false;
    }
}

/* Opens or closes the details of the chosen row. Looks again for what the screen shows then. */
static void open_details(struct refresh *r, bool open)
{
    if (open && !r->window.rows)
        return;
    if (r->details_ask && open)
        r->was_paused = r->paused;
    if (r->details_ask)
        r->paused = !open && r->was_paused;
    r->opened = r->window.pins = open;
    r->page = (struct grid_window){.scrolls = true};
    r->next = 0;
}

/* Handles a key that moves in the screen, or opens or closes the details. */
static bool move_pressed(struct refresh *r, int key)
{
    const bool enters = key == '\r' || key == '\n';

    if (r->details && (enters || (r->opened && key == KEY_ESCAPE))) {
        open_details(r, !r->opened);
        return true;
    }
    return window_moved(r->opened ? &r->page : &r->window, key);
}

static void key_pressed(struct refresh *r, int key)
{
    if (move_pressed(r, key) || (!r->opened && sort_pressed(r, key)))
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
        r->typing = r->filters && !r->opened;
        if (r->typing)
            r->filter[0] = 0;
        return;
    case KEY_ESCAPE:
        if (!r->filter[0])
            break;
        r->filter[0] = 0;
        return;
    default:
        break;
    }
    r->key(r->data, key);
}

/* Looks again if the user has come to rows that the last look did not ask for. */
static void want_rows(struct refresh *r)
{
    if (r->asked && grid_window_needs(&r->window) > r->asked)
        r->next = 0;
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
    r->window.scrolls = true;
    r->window.filter = r->filter;
    r->live = r->dirty = true;
}

void refresh_close(struct refresh *r)
{
    struct buf b = {0};

    if (!r->live)
        return;
    r->live = r->window.scrolls = false;
    screen_ignore();
    screen_close(&b);
    out_take(r->ctx->out, &b);
    buf_release(&b);
    ctx_flush(r->ctx, 0); /* a message printed before the screen is closed would vanish with the screen */
    if (r->notes.len)
        ctx_warn(r->ctx, "%.*s", (int)r->notes.len - 1, r->notes.data);
}

void refresh_release(struct refresh *r)
{
    buf_release(&r->notes);
    grid_window_release(&r->window);
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
    if (r->failed)
        buf_printf(&b, " · %u error%s", r->failed, PLURAL(r->failed));
    buf_puts(&b, r->paused ? " · paused" : "");
    draw_line(r, to, buf_cstr(&b));
    buf_puts(to, "\r\n");
    buf_release(&b);
}

/* Draws at the right which of the rows the screen shows, if it cannot show all of them. */
static void draw_place(const struct refresh *r, struct buf *to)
{
    const struct grid_window *w = &r->window;
    struct paint paint = {.on = r->color};
    struct buf b = {0};

    if (!r->help_shown && !r->opened && w->rows > w->room)
        buf_printf(&b, "rows %zu-%zu", w->first + 1, w->first + w->room);
    if (b.len && b.len < r->columns) {
        buf_printf(to, "%*s", (int)(r->columns - 1 - b.len), "");
        paint_str(&paint, to, PAINT_TIME, buf_view(&b));
    }
    buf_puts(to, EOL);
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
    draw_line(r, to, r->typing ? buf_cstr(&b) : r->opened ? r->details_keys : r->keys);
    paint_end(&paint, to);
    buf_release(&b);
}

/* Draws up to `most` lines of the text, after the first `skipped` ones. */
static void draw_lines(const struct refresh *r, struct str text, size_t skipped, size_t most, struct buf *to)
{
    struct str line;

    for (size_t i = 0; i < skipped + most && str_line(&text, &line); i++) {
        if (i < skipped)
            continue;
        grid_cut(to, line, r->columns - 1);
        buf_puts(to, EOL);
    }
}

static size_t lines_of(struct str text)
{
    size_t lines = 0;

    for (size_t i = 0; i < text.len; i++)
        lines += text.at[i] == '\n';
    return lines;
}

/* Makes the rows. Lines besides the rows and their titles, if there are any, take room from the rows. */
static void make_rows(struct refresh *r, size_t room, struct buf *text)
{
    r->window.room = MAX(room, 3u) - 2;
    for (int i = 0; i < 2; i++) {
        buf_clear(text);
        r->rows(r->data, r->columns - 1, text);
        const size_t lines = lines_of(buf_view(text));
        if (lines <= room)
            break;
        r->window.room = MAX(r->window.room, lines - room + 1) - (lines - room);
    }
}

static void make_details(struct refresh *r, size_t room, struct buf *text)
{
    struct buf whole = {0};

    r->details(r->data, r->columns - 1, &whole);
    grid_break(text, buf_view(&whole), r->columns - 1);
    r->page.room = room;
    grid_window_fit(&r->page, lines_of(buf_view(text)));
    buf_release(&whole);
}

/* Makes the text between the title and the keys. */
static void make_body(struct refresh *r, size_t room, struct buf *text)
{
    if (r->help_shown)
        for (const char *const *l = r->help; *l; l++)
            buf_printf(text, "%s\n", *l);
    else if (r->opened)
        make_details(r, room, text);
    else
        make_rows(r, room, text);
}

void refresh_draw(struct refresh *r)
{
    unsigned columns, lines;
    struct buf b = {0}, body = {0};

    screen_size(&columns, &lines);
    if (!r->dirty && columns == r->columns && lines == r->lines)
        return;
    r->columns = columns;
    r->lines = lines;
    r->dirty = false;
    const size_t room = lines > ROOM_LEAST + FRAME ? lines - FRAME : ROOM_LEAST;
    make_body(r, room, &body);
    buf_puts(&b, "\033[H");
    draw_title(r, &b);
    draw_place(r, &b);
    draw_lines(r, buf_view(&body), r->opened && !r->help_shown ? r->page.first : 0, room, &b);
    draw_foot(r, &b);
    if (out_backlog(r->ctx->out, BACKLOG_FULL) < BACKLOG_FULL)
        out_take(r->ctx->out, &b);
    buf_release(&b);
    buf_release(&body);
    want_rows(r);
}

static bool refresh_goes_on(const struct refresh *r)
{
    struct err e;
    bool closed;

    return !r->done && !r->ctx->interrupts && !(r->until && loop_now() >= r->until) &&
           !out_failed(r->ctx->out, &closed, &e);
}

void refresh_loop(struct refresh *r, struct peers *peers, int64_t interval, void (*look)(void *data))
{
    while (refresh_goes_on(r)) {
        if (r->live)
            refresh_draw(r);
        if (loop_now() >= r->next) {
            if (!r->paused || r->steady)
                look(r->data);
            r->next = loop_now() + (r->opened ? MIN(interval, OPENED_MS) : interval);
        }
        if (!peers_step(peers, r->until ? MIN(r->next, r->until) : r->next))
            break;
    }
}

void refresh_run(struct refresh *r, struct peers *peers, int64_t interval, void (*look)(void *data))
{
    r->next = loop_now() + interval;
    refresh_open(r);
    refresh_loop(r, peers, interval, look);
    refresh_close(r);
}

/* ---- rows ---- */

size_t refresh_wants(struct refresh *r, size_t least)
{
    r->asked = MAX(grid_window_needs(&r->window), least);
    return r->asked;
}

void refresh_fail(struct refresh *r, int *status, const struct err *e)
{
    int failed = e->status ? (int)e->status : ERR_RUN;

    if (r->live) {
        buf_printf(&r->notes, "%s\n", e->text);
        r->failed++;
    } else {
        failed = ctx_fail(r->ctx, e);
    }
    if (!*status)
        *status = failed;
}

bool refresh_refused(struct refresh *r, int *status, struct peer *p, struct err *e)
{
    peer_prefix_error(p, e);
    peer_detach(p);
    if (!peers_may_lack(p->peers, e)) {
        refresh_fail(r, status, e);
        return false;
    }
    r->lack = *e;
    if (r->live)
        buf_printf(&r->notes, "left out: %s\n", e->text);
    else
        ctx_warn(r->ctx, "left out: %s", e->text);
    return true;
}

void refresh_empty(struct refresh *r, int *status)
{
    if (r->lack.status && !*status)
        refresh_fail(r, status, &r->lack);
}
