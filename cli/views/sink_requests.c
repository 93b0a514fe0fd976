/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of requests by their shape: a table, and histograms of their times. */
#include "../ground/number.h"
#include "../ground/utf8.h"
#include "bars.h"
#include "request_notes.h"
#include "request_text.h"

#define NARROW 16   /* columns that a text keeps before columns are left out */
#define NARROWEST 8 /* columns that a text always keeps */

enum column {
    COL_NODE,
    COL_SERVER,
    COL_REQUEST,
    COL_CALLS,
    COL_WAITED,
    COL_WORKED,
    COL_REPLY,
    COL_TIMED_OUT,
    COL_OPEN,
    COL_DOWN,
    COLUMNS
};

static const char *const titles[COLUMNS] = {"node",           "server",    "request",   "calls",      "waited p50/p99",
                                            "worked p50/p99", "reply p99", "timed out", "unanswered", "server ended"};

static void put_pair(struct buf *to, const struct stat *t)
{
    if (!t->timed) {
        buf_char(to, '-');
        return;
    }
    print_duration(to, (int64_t)stat_percentile(t, 50));
    buf_puts(to, " / ");
    print_duration(to, (int64_t)stat_percentile(t, 99));
}

static void put_cell(const struct request_view *q, struct buf *to, const struct request_row *r, enum column c)
{
    switch (c) {
    case COL_NODE:
        if (r->node)
            buf_safe(to, r->node->name);
        break;
    case COL_SERVER:
        if (r->label)
            request_view_put_key(q, to, r->label, r->elixir);
        break;
    case COL_REQUEST:
        if (r->shape || !r->label)
            request_view_put_key(q, to, r->shape, r->elixir);
        else
            buf_puts(to, "(not captured)");
        break;
    case COL_CALLS:
        print_u64(to, r->calls);
        break;
    case COL_WAITED:
        put_pair(to, &r->waited);
        break;
    case COL_WORKED:
        put_pair(to, &r->worked);
        break;
    case COL_REPLY:
        request_put_ns(to, r->reply.timed ? (int64_t)stat_percentile(&r->reply, 99) : -1);
        break;
    case COL_TIMED_OUT:
        if (r->callers || r->timed_out)
            print_u64(to, r->timed_out);
        else
            buf_char(to, '-');
        break;
    case COL_OPEN:
        print_u64(to, r->open);
        break;
    case COL_DOWN:
        print_u64(to, r->down);
        break;
    case COLUMNS:
        break;
    }
}

/* Whether the column says something: there are several nodes or servers, or requests of that kind. */
static bool has_column(const struct request_view *q, enum column c)
{
    const struct request_rows *rows = &q->rows;

    for (size_t i = 0; i < rows->n; i++) {
        const struct request_row *r = &rows->items[i];
        if ((c == COL_OPEN && r->open) || (c == COL_DOWN && r->down))
            return true;
    }
    return c == COL_NODE     ? rows->by_node
           : c == COL_SERVER ? request_rows_of_several(rows)
                             : c != COL_OPEN && c != COL_DOWN;
}

/* The columns of text give way on a narrow terminal. */
static bool is_text(enum column c)
{
    return c <= COL_REQUEST;
}

/* The room that the columns need if each text has at most `most` of it. */
static size_t room_of(const size_t widths[COLUMNS], size_t most)
{
    size_t all = 0;

    for (enum column c = 0; c < COLUMNS; c++)
        all += widths[c] ? (is_text(c) ? MIN(widths[c], most) : widths[c]) + 2 : 0;
    return all - MIN(all, 2);
}

/* Computes the widths of the columns. 0: the column is left out. */
static void fit(struct request_view *q, size_t widths[COLUMNS])
{
    static const enum column spare[] = {COL_REPLY,  COL_OPEN,   COL_DOWN,  COL_TIMED_OUT, COL_NODE,
                                        COL_SERVER, COL_WORKED, COL_CALLS, COL_WAITED};
    const size_t room = q->sink.look.width;

    for (enum column c = 0; c < COLUMNS; c++) {
        widths[c] = has_column(q, c) ? strlen(titles[c]) : 0;
        for (size_t i = 0; i < q->rows.n && widths[c]; i++) {
            buf_clear(&q->cell);
            put_cell(q, &q->cell, &q->rows.items[i], c);
            widths[c] = MAX(widths[c], utf8_width(q->cell.data, q->cell.len));
        }
    }
    for (size_t i = 0; room && room_of(widths, NARROW) > room && i < ARRAY_LEN(spare); i++)
        widths[spare[i]] = 0;
    while (room && room_of(widths, SIZE_MAX) > room) {
        enum column widest = COL_REQUEST;
        for (enum column c = 0; is_text(c); c++)
            widest = widths[c] > widths[widest] ? c : widest;
        if (widths[widest] <= NARROWEST)
            break;
        widths[widest]--;
    }
}

/* Puts the cell into the column; a text that is too wide ends in an ellipsis. */
static void put_column(struct request_view *q, struct buf *to, enum column c, size_t width, bool last)
{
    size_t used = utf8_width(q->cell.data, q->cell.len);

    while (used > width) {
        while (q->cell.len && ((unsigned char)q->cell.data[--q->cell.len] & 0xc0) == 0x80)
            continue;
        used = utf8_width(q->cell.data, q->cell.len) + 1;
        if (used <= width)
            buf_puts(&q->cell, "…");
    }
    for (size_t i = used; !is_text(c) && i < width; i++)
        buf_char(to, ' ');
    if (c == COL_REQUEST)
        paint_begin(&q->paint, to, PAINT_FUN);
    buf_str(to, buf_view(&q->cell));
    if (c == COL_REQUEST)
        paint_end(&q->paint, to);
    for (size_t i = used; is_text(c) && !last && i < width; i++)
        buf_char(to, ' ');
    buf_puts(to, last ? "\n" : "  ");
}

static uint64_t count_of(const struct request_row *r, enum column c)
{
    return c == COL_TIMED_OUT ? r->timed_out : c == COL_DOWN ? r->down : 0; /* put_unanswered() tells the open ones */
}

/* Puts how many requests a column without room would have shown, if there are any. */
static void put_sum(const struct request_view *q, struct buf *to, enum column c)
{
    uint64_t n = 0;

    for (size_t i = 0; i < q->rows.n; i++)
        n += count_of(&q->rows.items[i], c);
    if (n)
        buf_printf(to, "%s: %llu\n", titles[c], (unsigned long long)n);
}

static void put_rows(struct request_view *q, struct buf *to)
{
    size_t widths[COLUMNS];
    enum column last = COL_REQUEST;

    fit(q, widths);
    for (enum column c = 0; c < COLUMNS; c++)
        last = widths[c] ? c : last;
    paint_begin(&q->paint, to, PAINT_TIME);
    for (enum column c = 0; c < COLUMNS; c++) {
        buf_clear(&q->cell);
        buf_puts(&q->cell, titles[c]);
        if (widths[c])
            put_column(q, to, c, widths[c], c == last);
    }
    paint_end(&q->paint, to);
    for (size_t i = 0; i < q->rows.n; i++)
        for (enum column c = 0; c < COLUMNS; c++) {
            buf_clear(&q->cell);
            put_cell(q, &q->cell, &q->rows.items[i], c);
            if (widths[c])
                put_column(q, to, c, widths[c], c == last);
        }
    for (enum column c = COL_TIMED_OUT; c <= COL_DOWN; c++)
        if (!widths[c])
            put_sum(q, to, c);
}

static void end_requests(struct sink *sink, const struct totals *totals)
{
    struct request_view *q = (struct request_view *)sink;

    request_rows_open(&q->rows);
    put_rows(q, sink->out);
    request_put_notes(q, sink->out, totals);
}

const struct sink_type sink_requests = {
    .name = "requests",
    .about = "where the time of requests to servers goes, by their shape",
    .item = "request",
    .size = sizeof(struct request_view),
    .flags = SINK_AGAIN | SINK_ANONYMOUS | SINK_PAIRS,
    .open = request_view_open,
    .event = request_view_event,
    .end = end_requests,
    .release = request_view_release,
};

/* ---- histograms ---- */

static void put_histogram(struct request_view *q, const struct request_row *r, const char *part, const struct stat *t)
{
    struct buf *to = q->sink.out;
    const struct bars bars = {&q->paint, q->sink.look.width};

    paint_begin(&q->paint, to, PAINT_FUN);
    for (enum column c = COL_NODE; is_text(c); c++)
        if (has_column(q, c)) {
            put_cell(q, to, r, c);
            buf_char(to, ' ');
        }
    paint_end(&q->paint, to);
    buf_printf(to, "%s  ", part);
    print_u64(to, t->timed);
    if (t->timed)
        bars_durations(&bars, to, t);
    else
        buf_puts(to, ", no time known\n");
    buf_char(to, '\n');
}

static void end_requesthist(struct sink *sink, const struct totals *totals)
{
    struct request_view *q = (struct request_view *)sink;

    request_rows_open(&q->rows);
    for (size_t i = 0; i < q->rows.n; i++) {
        const struct request_row *r = &q->rows.items[i];
        put_histogram(q, r, "waited", &r->waited);
        put_histogram(q, r, "worked", &r->worked);
        put_histogram(q, r, "reply", &r->reply);
    }
    for (enum column c = COL_TIMED_OUT; c <= COL_DOWN; c++)
        put_sum(q, sink->out, c);
    request_put_notes(q, sink->out, totals);
}

const struct sink_type sink_requesthist = {
    .name = "requesthist",
    .about = "histograms of the times of requests to servers, by their shape",
    .item = "request",
    .size = sizeof(struct request_view),
    .flags = SINK_AGAIN | SINK_ANONYMOUS | SINK_PAIRS,
    .open = request_view_open,
    .event = request_view_event,
    .end = end_requesthist,
    .release = request_view_release,
};
