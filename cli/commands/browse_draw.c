/* SPDX-License-Identifier: Apache-2.0 */
#include "browse_draw.h"

#include <time.h>

#include "../ground/number.h"
#include "../ground/utf8.h"
#include "../views/grid.h"

#define TIME_LEAST 60 /* least columns of a screen that shows the times of lines */
#define RESULT_LEAST 50
#define INVERSE "\033[7m"
#define UPRIGHT "\033[27m"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"

void browse_draw_begin(struct buf *to, unsigned line)
{
    buf_printf(to, "\033[%u;1H\033[2K", line);
}

void browse_draw_text(const struct browse_draw *d, struct buf *to, struct str text, bool bold)
{
    buf_puts(to, bold ? BOLD : "");
    grid_cut(to, text, d->columns);
    buf_puts(to, bold ? PLAIN : "");
}

void browse_draw_number(struct buf *to, uint64_t number)
{
    char digits[24];
    const size_t n = (size_t)(print_natural(digits, number) - digits);

    for (size_t i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            buf_char(to, ',');
        buf_char(to, digits[i]);
    }
}

void browse_draw_time(const struct browse_draw *d, const struct event_row *row, struct buf *to)
{
    const time_t seconds = (time_t)(row->wall_ns / 1000000000);
    struct clock clock;
    struct tm tm = {.tm_year = 70, .tm_mday = 1};

    if (d->of_day == TIME_UTC)
        gmtime_r(&seconds, &tm);
    else
        localtime_r(&seconds, &tm);
    if (d->columns >= TIME_LEAST)
        buf_printf(to, "%04d-%02d-%02d ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
    clock_init(&clock, d->of_day);
    clock_put_at(&clock, to, row->wall_ns, row->steady_ns);
}

/* ---- a line of the list ---- */

/* Appends the time of a line; blanks if the time is unknown. */
static void browse_put_time(const struct browse_draw *d, struct browse_list *l, uint64_t index, struct buf *to)
{
    const struct event_row *row = &browse_window_line(l->window, index)->row;
    struct clock clock;
    int64_t base = d->begin;
    bool known = !row->own && (d->time != TIME_RELATIVE || d->begun);

    if (d->time == TIME_DELTA) {
        const struct event_row *before =
            index > browse_window_first(l->window) ? &browse_window_line(l->window, index - 1)->row : row;
        known &= !before->own;
        base = before->steady_ns;
    }
    if (!known) {
        buf_puts(to, d->time == TIME_RELATIVE || d->time == TIME_DELTA ? "          " : "               ");
        return;
    }
    clock_init(&clock, d->time);
    clock.begun = true;
    clock.base = base;
    clock_put_at(&clock, to, row->wall_ns, row->steady_ns);
}

/* Appends the result that is on the line of its call, or " -> …" if the result is on a later line. */
static void browse_put_result(const struct browse_draw *d, const struct browse_line *line, struct buf *to)
{
    const struct paint paint = {.on = d->color};

    if (line->more) {
        const bool fails = line->more_kind == ETW_EXCEPTION_FROM;
        paint_str(&paint, to, fails ? PAINT_FAILURE : PAINT_RESULT, fails ? STR(" -> exception") : STR(" -> "));
        buf_add(to, line->more, line->more_len);
    } else if (line->row.returns) {
        paint_str(&paint, to, PAINT_TIME, STR(" -> …"));
    }
}

static void browse_put_duration(const struct browse_draw *d, const struct browse_line *line, struct buf *to)
{
    const struct paint paint = {.on = d->color};

    if (line->row.dur_ns < 0 || (!line->more && !line->row.tail)) /* all other lines have the duration in their text */
        return;
    buf_puts(to, "  ");
    /* also shows the failure on a narrow screen that cuts off the result */
    const bool fails = line->more && line->more_kind == ETW_EXCEPTION_FROM;
    paint_begin(&paint, to, fails ? PAINT_FAILURE : PAINT_DURATION);
    print_duration(to, line->row.dur_ns);
    paint_end(&paint, to);
}

/*
 * Appends an event and its result, cut so that both fit into the width. If both are long, the result gets a third of
 * the width; on a narrow screen it gets the columns that the event does not need.
 */
static void browse_put_both(struct str head, struct str tail, size_t width, struct buf *to)
{
    const size_t least = MIN(grid_width(head), width < RESULT_LEAST ? width : width - width / 3);
    const size_t tail_width = MIN(grid_width(tail), width - least);

    grid_cut(to, head, width - tail_width);
    grid_cut(to, tail, tail_width);
}

/* Appends a line without its time. Cuts the event and its result, but not the duration. */
static void browse_put_parts(const struct browse_draw *d, const struct browse_line *line, size_t width, struct buf *to)
{
    struct buf result = {0}, duration = {0};

    browse_put_result(d, line, &result);
    browse_put_duration(d, line, &duration);
    const size_t end = grid_width(buf_view(&duration));
    const bool has_room = width >= 2 * end;
    browse_put_both((struct str){line->text, line->row.len}, buf_view(&result), has_room ? width - end : width, to);
    if (has_room)
        buf_str(to, buf_view(&duration));
    buf_release(&result);
    buf_release(&duration);
}

/* Appends a line. Returns the number of bytes before its event: of the time, with its colours. 0: it has no time. */
static size_t browse_put_line(const struct browse_draw *d, struct browse_list *l, uint64_t index, struct buf *to)
{
    const struct paint paint = {.on = d->color};
    const size_t from = to->len;

    if (d->columns >= TIME_LEAST) {
        paint_begin(&paint, to, PAINT_TIME);
        browse_put_time(d, l, index, to);
        paint_end(&paint, to);
        buf_char(to, ' ');
    }
    const size_t before = to->len - from, used = grid_width((struct str){to->data + from, before});
    browse_put_parts(d, browse_window_line(l->window, index), d->columns - used, to);
    return before;
}

/*
 * Appends the first `left` bytes of a text, without counting colour codes, and the codes that follow them. Appends
 * `mark` after each code. Returns the end of what it has appended.
 */
static const char *put_until(const char *at, const char *end, size_t left, const char *mark, struct buf *to)
{
    while (at < end && (left || *at == '\033')) {
        const char *next = at + 1;
        if (*at == '\033') {
            next = memchr(at, 'm', (size_t)(end - at));
            next = next ? next + 1 : end;
        } else {
            left--;
        }
        buf_add(to, at, (size_t)(next - at));
        buf_puts(to, *at == '\033' ? mark : "");
        at = next;
    }
    return at;
}

/* Appends the text of an event, with the code `on` before each match of the search and `off` after it. */
static void put_marked(const struct browse_draw *d, struct str text, const char *on, const char *off, struct buf *to)
{
    const char *at = text.at, *end = text.at + text.len;
    struct buf plain = {0};
    size_t done = 0, begin, after;

    grid_plain(&plain, text);
    for (size_t from = 0; d->sought && regex_span(d->sought, buf_view(&plain), from, &begin, &after);) {
        if (begin < after) {
            at = put_until(at, end, begin - done, "", to);
            buf_puts(to, on);
            at = put_until(at, end, after - begin, on, to);
            buf_puts(to, off);
            done = after;
        }
        from = MAX(after, from + 1);
    }
    buf_add(to, at, (size_t)(end - at));
    buf_release(&plain);
}

/* Draws the chosen line inverted, as wide as the screen, without colors. `before`: number of bytes before the event. */
static void draw_chosen(const struct browse_draw *d, struct str text, size_t before, struct buf *to)
{
    struct buf plain = {0};

    grid_plain(&plain, (struct str){text.at, before});
    const size_t event = plain.len;
    grid_plain(&plain, (struct str){text.at + before, text.len - before});
    buf_puts(to, INVERSE);
    buf_add(to, plain.data, event);
    put_marked(d, (struct str){plain.data + event, plain.len - event}, UPRIGHT, INVERSE, to);
    for (size_t i = utf8_width(plain.data, plain.len); i < d->columns; i++)
        buf_char(to, ' ');
    buf_puts(to, PLAIN);
    buf_release(&plain);
}

void browse_draw_list(const struct browse_draw *d, struct browse_list *l, unsigned line, struct buf *to)
{
    struct buf text = {0};

    for (unsigned i = 0; i < l->height; i++) {
        const uint64_t index = l->top + i;
        browse_draw_begin(to, line + i);
        if (index < browse_window_first(l->window) || index >= browse_window_end(l->window))
            continue;
        buf_clear(&text);
        const size_t before = browse_put_line(d, l, index, &text);
        if (index == l->cursor) {
            draw_chosen(d, buf_view(&text), before, to);
        } else {
            buf_add(to, text.data, before);
            put_marked(d, (struct str){text.data + before, text.len - before}, INVERSE, UPRIGHT, to);
        }
    }
    buf_release(&text);
}

void browse_draw_plain(const struct browse_draw *d, struct browse_list *l, struct buf *to)
{
    const uint64_t first = browse_window_first(l->window), end = browse_window_end(l->window);
    struct buf text = {0};

    for (uint64_t i = MAX(l->top, first); i < MIN(end, l->top + l->height); i++) {
        buf_clear(&text);
        browse_put_line(d, l, i, &text);
        grid_cut(to, buf_view(&text), d->columns);
        buf_char(to, '\n');
    }
    buf_release(&text);
}
