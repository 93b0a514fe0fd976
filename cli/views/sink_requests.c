/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The views of requests: a table by the shape of the request, and, while the trace runs, a line or a JSON object for
 * each request. request_pairs.h says which events they read. An unknown time is shown as `-`.
 */
#include <stdlib.h>
#include <string.h>

#include "../erlang/term_print.h"
#include "../ground/json.h"
#include "../ground/mem.h"
#include "../ground/utf8.h"
#include "bars.h"
#include "clock.h"
#include "line.h"
#include "missing.h"
#include "paint.h"
#include "request_text.h"

#define NARROW 16   /* columns that a text keeps before columns are left out */
#define NARROWEST 8 /* columns that a text always keeps */
#define TEXT_MAX 200 /* bytes of a request */

struct requests {
    struct sink sink;
    struct request_pairs pairs;
    struct request_rows rows;
    struct paint paint;
    struct clock clock;
    struct buf cell;
};

static void on_begun(void *ctx, struct request *r)
{
    request_rows_begun(&((struct requests *)ctx)->rows, r);
}

static void on_settled(void *ctx, struct request *r)
{
    request_rows_settled(&((struct requests *)ctx)->rows, r);
}

static void on_got(void *ctx, struct request *r)
{
    request_rows_got(&((struct requests *)ctx)->rows, r);
}

static void on_gave_up(void *ctx, struct request *r)
{
    request_rows_gave_up(&((struct requests *)ctx)->rows, r);
}

static void on_done_table(void *ctx, struct request *r)
{
    (void)ctx;
    (void)r;
}

static void requests_init(struct requests *q)
{
    request_pairs_init(&q->pairs);
    q->pairs.ctx = q;
    q->pairs.begun = on_begun;
    q->pairs.settled = on_settled;
    q->pairs.got = on_got;
    q->pairs.gave_up = on_gave_up;
    q->pairs.done = on_done_table;
    q->rows.pairs = &q->pairs;
    q->rows.servers = q->sink.look.servers;
    if (q->rows.servers)
        q->rows.servers->used = true;
    q->paint.on = q->sink.look.colour;
}

static bool open_requests(struct sink *sink, struct err *e)
{
    (void)e;
    requests_init((struct requests *)sink);
    return true;
}

static void event_requests(struct sink *sink, const struct event *e)
{
    struct requests *q = (struct requests *)sink;

    q->rows.by_node = sink->look.nodes;
    request_pairs_event(&q->pairs, e);
}

static void release_requests(struct sink *sink)
{
    struct requests *q = (struct requests *)sink;

    request_rows_release(&q->rows);
    request_pairs_release(&q->pairs);
    buf_release(&q->cell);
}

/* ---- names ---- */

static bool in_elixir(const struct requests *q, bool elixir)
{
    return q->sink.look.terms == TERMS_ELIXIR || (q->sink.look.terms != TERMS_ERLANG && elixir);
}

static void put_key(const struct requests *q, struct buf *to, uint32_t key, bool elixir)
{
    request_put_key(to, &q->pairs.keys, key, in_elixir(q, elixir));
}

static void put_busy(const struct requests *q, struct buf *to, const struct request_busy *b, bool elixir)
{
    request_put_busy(to, &q->pairs.keys, b, in_elixir(q, elixir));
}

static void put_process(struct buf *to, const struct tracee *t)
{
    buf_add(to, t->text, t->text_len);
    if (t->name_len) {
        buf_char(to, '(');
        buf_add(to, t->name, t->name_len);
        buf_char(to, ')');
    }
}

static void put_ns(struct buf *to, int64_t ns)
{
    if (ns < 0)
        buf_char(to, '-');
    else
        print_duration(to, ns);
}

/* ---- the table ---- */

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

static void put_cell(const struct requests *q, struct buf *to, const struct request_row *r, enum column c)
{
    switch (c) {
    case COL_NODE:
        if (r->node)
            buf_safe(to, r->node->name);
        break;
    case COL_SERVER:
        if (r->label)
            put_key(q, to, r->label, r->elixir);
        break;
    case COL_REQUEST:
        if (r->shape || !r->label)
            put_key(q, to, r->shape, r->elixir);
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
        put_ns(to, r->reply.timed ? (int64_t)stat_percentile(&r->reply, 99) : -1);
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
static bool has_column(const struct requests *q, enum column c)
{
    const struct request_rows *rows = &q->rows;

    for (size_t i = 0; i < rows->n; i++) {
        const struct request_row *r = &rows->items[i];
        if ((c == COL_SERVER && r->label != rows->items[0].label) || (c == COL_OPEN && r->open) ||
            (c == COL_DOWN && r->down))
            return true;
    }
    return c == COL_NODE ? rows->by_node : c != COL_SERVER && c != COL_OPEN && c != COL_DOWN;
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
static void fit(struct requests *q, size_t widths[COLUMNS])
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
static void put_column(struct requests *q, struct buf *to, enum column c, size_t width, bool last)
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
static void put_sum(const struct requests *q, struct buf *to, enum column c)
{
    uint64_t n = 0;

    for (size_t i = 0; i < q->rows.n; i++)
        n += count_of(&q->rows.items[i], c);
    if (n)
        buf_printf(to, "%s: %llu\n", titles[c], (unsigned long long)n);
}

static void put_rows(struct requests *q, struct buf *to)
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

/* Callbacks that explain less than half of a wait explain nothing. */
static bool explains(const struct request_busy *b, int64_t explained, int64_t waited)
{
    return b->work && waited > 0 && explained >= waited / 2;
}

static void put_reason(struct requests *q, struct buf *to, const struct request_wait *w, bool elixir)
{
    if (explains(&w->behind, w->behind_all_ns, w->ns)) {
        buf_puts(to, " behind ");
        put_busy(q, to, &w->behind, elixir);
    } else if (!w->unclear) {
        buf_puts(to, w->postponed           ? ", postponed"
                     : w->blind             ? " while events were lost"
                     : w->behind_all_ns > 0 ? " mostly while no callback ran"
                     : w->unseen            ? " while no callback began"
                                            : " while no callback ran");
    }
}

static void put_longest(struct requests *q, struct buf *to)
{
    const struct request_row *longest = NULL;
    const struct request_wait *wait = NULL;
    bool servers = has_column(q, COL_SERVER);

    for (size_t i = 0; i < q->rows.n; i++) {
        const struct request_wait *w = request_row_longest(&q->rows.items[i]);
        if (w->ns > (wait ? wait->ns : 0)) {
            wait = w;
            longest = &q->rows.items[i];
        }
    }
    if (!wait)
        return;
    buf_puts(to, "longest wait: ");
    print_duration(to, wait->ns);
    if (wait == &longest->waits_still)
        buf_puts(to, " so far");
    put_reason(q, to, wait, longest->elixir);
    if (servers) {
        buf_puts(to, ", at ");
        put_key(q, to, longest->label, longest->elixir);
    }
    buf_char(to, '\n');
}

/* Says what happens to a request without a reply. */
static void put_stage(struct requests *q, struct buf *to, const struct request *r)
{
    const struct request_server *s = &q->pairs.servers[r->server];
    const struct request_time now = request_now(&q->pairs, r->node);
    struct request_busy busy = s->now.what;
    struct request_wait wait;

    switch (request_stage(&q->pairs, r)) {
    case REQUEST_RUNS:
        buf_puts(to, " has run for ");
        put_ns(to, request_between(&r->begun, &now));
        break;
    case REQUEST_LEFT:
        buf_puts(to, " has no reply although its callback has ended");
        break;
    case REQUEST_WAITS:
        if (!request_server_runs(&q->pairs, s)) {
            wait = request_wait_until_now(&q->pairs, r);
            buf_puts(to, " has waited");
            put_reason(q, to, &wait, r->elixir);
            break;
        }
        busy.times = 1;
        buf_puts(to, " waits behind ");
        put_busy(q, to, &busy, s->elixir);
        buf_puts(to, ", which has run for ");
        print_duration(to, MAX((int64_t)((uint64_t)now.mono_ns - (uint64_t)s->now.from), 0));
        break;
    }
}

/* Appends a part of a line, which begins with a space. Breaks the line before it if it has no room on the terminal. */
static void put_part_of_line(const struct requests *q, struct buf *to, size_t *line, struct str part)
{
    const size_t room = q->sink.look.width;

    if (room && utf8_width(to->data + *line, to->len - *line) + utf8_width(part.at, part.len) > room) {
        buf_puts(to, "\n ");
        *line = to->len - 1;
    }
    buf_str(to, part);
}

static void put_oldest(struct requests *q, struct buf *to, size_t line, const struct request *r)
{
    buf_puts(to, ", the oldest for ");
    put_ns(to, request_age(&q->pairs, r));
    if (r->gave_up.known && request_stage(&q->pairs, r) == REQUEST_LEFT)
        buf_puts(to, " until its caller gave up");
    buf_char(to, ':');
    buf_clear(&q->cell);
    buf_char(&q->cell, ' ');
    if (r->shape)
        put_key(q, &q->cell, request_key_now(&q->pairs.keys, r->shape), r->elixir);
    else
        buf_puts(&q->cell, "a request");
    buf_puts(&q->cell, " at ");
    put_process(&q->cell, &q->pairs.servers[r->server].who);
    if (q->sink.look.nodes)
        buf_puts(&q->cell, " on "), buf_safe(&q->cell, r->node->name);
    put_part_of_line(q, to, &line, buf_view(&q->cell));
    buf_clear(&q->cell);
    put_stage(q, &q->cell, r);
    put_part_of_line(q, to, &line, buf_view(&q->cell));
}

/* Tells the requests without a reply. */
static void put_unanswered(struct requests *q, struct buf *to)
{
    const size_t line = to->len;
    uint64_t open = 0, uncertain = 0;

    for (size_t i = 0; i < q->rows.n; i++) {
        open += q->rows.items[i].open;
        uncertain += q->rows.items[i].uncertain;
    }
    if (open) {
        buf_printf(to, "unanswered: %llu request%s", (unsigned long long)open, PLURAL(open));
        if (q->rows.oldest)
            put_oldest(q, to, line, q->rows.oldest);
        buf_char(to, '\n');
    }
    if (uncertain)
        buf_printf(to, "may have ended: %llu request%s, because events were lost\n", (unsigned long long)uncertain,
                   PLURAL(uncertain));
}

static uint64_t sum_late(const struct requests *q)
{
    uint64_t n = 0;

    for (size_t i = 0; i < q->rows.n; i++)
        n += q->rows.items[i].late;
    return n;
}

/* Says which part of the requests the node has admitted. */
static void put_share(const struct requests *q, struct buf *to, const struct totals *totals)
{
    uint64_t lost = totals->lost[ETW_LOST_REQUEST];

    if (lost)
        buf_printf(to, "*** about %.1f%% of the requests are shown: --rate or full buffers leave out the others ***\n",
                   request_share(&q->pairs, lost));
}

static void put_elsewhere(const struct requests *q, struct buf *to)
{
    uint64_t n = q->rows.elsewhere + q->rows.elsewhere_open;

    if (n && !q->rows.servers)
        buf_printf(to, "not shown: %llu request%s that no traced process received\n", (unsigned long long)n, PLURAL(n));
}

static void put_notes(struct requests *q, struct buf *to, const struct totals *totals)
{
    uint64_t late = sum_late(q);

    put_longest(q, to);
    put_unanswered(q, to);
    if (late)
        buf_printf(to, "late: %llu repl%s after the caller had given up\n", (unsigned long long)late,
                   late == 1 ? "y" : "ies");
    put_elsewhere(q, to);
    if (q->pairs.overflown)
        buf_printf(to, "*** %llu request%s given up: too many were open at once ***\n",
                   (unsigned long long)q->pairs.overflown, PLURAL(q->pairs.overflown));
    put_share(q, to, totals);
    missing_report(to, totals, "");
}

static void end_requests(struct sink *sink, const struct totals *totals)
{
    struct requests *q = (struct requests *)sink;

    request_rows_open(&q->rows);
    put_rows(q, sink->out);
    put_notes(q, sink->out, totals);
}

const struct sink_type sink_requests = {
    .name = "requests",
    .about = "where the time of requests to servers goes, by their shape",
    .size = sizeof(struct requests),
    .flags = SINK_AGAIN | SINK_ANONYMOUS | SINK_PAIRS,
    .open = open_requests,
    .event = event_requests,
    .end = end_requests,
    .release = release_requests,
};

/* ---- histograms ---- */

static void put_histogram(struct requests *q, const struct request_row *r, const char *part, const struct stat *t)
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
    struct requests *q = (struct requests *)sink;

    request_rows_open(&q->rows);
    for (size_t i = 0; i < q->rows.n; i++) {
        const struct request_row *r = &q->rows.items[i];
        put_histogram(q, r, "waited", &r->waited);
        put_histogram(q, r, "worked", &r->worked);
        put_histogram(q, r, "reply", &r->reply);
    }
    for (enum column c = COL_TIMED_OUT; c <= COL_DOWN; c++)
        put_sum(q, sink->out, c);
    put_notes(q, sink->out, totals);
}

const struct sink_type sink_requesthist = {
    .name = "requesthist",
    .about = "histograms of the times of requests to servers, by their shape",
    .size = sizeof(struct requests),
    .flags = SINK_AGAIN | SINK_ANONYMOUS | SINK_PAIRS,
    .open = open_requests,
    .event = event_requests,
    .end = end_requesthist,
    .release = release_requests,
};

/* ---- the text of a request ---- */

struct request_text {
    bool elixir;
    size_t len;
    char at[];
};

/* Keeps the request as text. It is in the language of the server, which a later event may tell. */
static void on_captured(void *ctx, struct request *r, const struct term_env *env, const uint8_t *request)
{
    struct requests *q = ctx;
    const bool elixir = in_elixir(q, r->elixir);
    struct buf *text = &q->cell;
    struct request_text *kept = r->kept;

    if (kept && kept->elixir == elixir)
        return;
    buf_clear(text);
    (elixir ? &printer_elixir : &printer_erlang)->term(text, env, request);
    if (text->len > TEXT_MAX) {
        text->len = TEXT_MAX;
        while (text->len && ((unsigned char)text->data[text->len] & 0xc0) == 0x80)
            text->len--;
        buf_puts(text, "…");
    }
    free(kept);
    r->kept = kept = mem_alloc(sizeof(*kept) + text->len);
    kept->elixir = elixir;
    kept->len = text->len;
    memcpy(kept->at, text->data, text->len);
}

/* Empty: the request was not captured. */
static struct str text_of(const struct request *r)
{
    const struct request_text *kept = r->kept;

    return kept ? (struct str){kept->at, kept->len} : (struct str){NULL, 0};
}

/* ---- lines ---- */

static const struct request_time *first_seen(const struct request *r)
{
    const struct request_time *start = request_start(r);

    return start->known ? start : r->begun.known ? &r->begun : r->sent.known ? &r->sent : &r->got;
}

/* The clocks print the time of an event. */
static struct event moment_of(const struct request *r)
{
    const struct request_time *at = first_seen(r);

    return (struct event){.mono_ns = at->mono_ns, .wall_ns = at->wall_ns, .node = r->node};
}

static void put_part(struct requests *q, struct buf *to, const char *name, int64_t ns)
{
    buf_printf(to, " %s ", name);
    paint_begin(&q->paint, to, PAINT_DURATION);
    put_ns(to, ns);
    paint_end(&q->paint, to);
}

/* Finds the callbacks that a request waited behind, or still waits behind at the end. False: they are not known. */
static bool behind_of(struct requests *q, const struct request *r, struct request_busy *ret)
{
    const bool waits = !r->settled && request_stage(&q->pairs, r) == REQUEST_WAITS;
    struct request_wait w = {.ns = r->waited_ns, .behind = r->behind, .behind_all_ns = r->behind_all_ns};

    if (waits && request_may_have_ended(&q->pairs, r))
        return false;
    if (waits)
        w = request_wait_until_now(&q->pairs, r);
    *ret = w.behind;
    return explains(&w.behind, w.behind_all_ns, w.ns);
}

static void put_open(const struct requests *q, struct buf *to, const struct request *r)
{
    static const char *const stages[] =
        {[REQUEST_WAITS] = "still waiting", [REQUEST_RUNS] = "still running", [REQUEST_LEFT] = "unanswered"};

    if (request_may_have_ended(&q->pairs, r)) {
        buf_puts(to, ", may have ended: events were lost");
        return;
    }
    buf_printf(to, ", %s after ", stages[request_stage(&q->pairs, r)]);
    put_ns(to, request_age(&q->pairs, r));
}

static void put_fate(struct requests *q, struct buf *to, const struct request *r)
{
    struct request_busy behind;

    if (behind_of(q, r, &behind)) {
        buf_puts(to, ", behind ");
        put_busy(q, to, &behind, r->elixir);
    }
    if (r->postponed)
        buf_puts(to, ", postponed");
    if (r->replier) {
        buf_puts(to, ", replied by ");
        put_process(to, r->replier);
    }
    if (r->gave_up.known && !r->got.known)
        buf_puts(to, r->late ? ", timed out, late reply" : ", timed out");
    if (r->down)
        buf_puts(to, ", server ended");
    else if (!r->settled)
        put_open(q, to, r);
    if (r->given_up)
        buf_puts(to, ", given up");
}

/* Whether the caller is on another node than the one that the line names. */
static bool is_far(const struct request *r)
{
    return r->caller_on && r->caller_on != r->node;
}

static void on_done_line(void *ctx, struct request *r)
{
    struct requests *q = ctx;
    struct buf *to = q->sink.out;
    struct event at = moment_of(r);

    if (!request_is_shown(&q->rows, r))
        return;
    paint_begin(&q->paint, to, PAINT_TIME);
    clock_put(&q->clock, to, &at);
    paint_end(&q->paint, to);
    buf_char(to, ' ');
    if (q->sink.look.nodes) {
        paint_str(&q->paint, to, PAINT_NODE, safe_view(r->node->name));
        buf_char(to, ' ');
    }
    paint_begin(&q->paint, to, PAINT_PID);
    if (r->caller.text_len)
        put_process(to, &r->caller);
    else
        buf_char(to, '-');
    if (is_far(r))
        buf_puts(to, " on "), buf_safe(to, r->caller_on->name);
    buf_puts(to, " -> ");
    if (r->server == REQUEST_NONE)
        buf_char(to, '-');
    else
        put_process(to, &q->pairs.servers[r->server].who);
    paint_end(&q->paint, to);
    buf_char(to, ' ');
    paint_begin(&q->paint, to, PAINT_FUN);
    if (r->kept)
        buf_str(to, text_of(r));
    else
        buf_char(to, '-');
    paint_end(&q->paint, to);
    put_part(q, to, "waited", r->waited_ns);
    put_part(q, to, "worked", r->worked_ns);
    put_part(q, to, "reply", request_between(&r->sent, &r->got));
    put_fate(q, to, r);
    buf_char(to, '\n');
}

static bool open_requestlog(struct sink *sink, struct err *e)
{
    struct requests *q = (struct requests *)sink;

    (void)e;
    requests_init(q);
    clock_init(&q->clock, sink->look.time);
    q->pairs.captured = on_captured;
    q->pairs.done = on_done_line;
    return true;
}

static void event_requestlog(struct sink *sink, const struct event *e)
{
    event_requests(sink, e);
    for (enum etw_loss l = 0; e->kind == ETW_LOST && l < ETW_LOSSES; l++)
        if (e->lost[l])
            line_loss(sink->out, e, l, e->lost[l]), buf_char(sink->out, '\n');
}

static void end_requestlog(struct sink *sink, const struct totals *totals)
{
    struct requests *q = (struct requests *)sink;

    request_rows_open(&q->rows);
    request_pairs_end(&q->pairs);
    put_elsewhere(q, sink->out);
    put_share(q, sink->out, totals);
}

const struct sink_type sink_requestlog = {
    .name = "requestlog",
    .about = "one line for each request to a server, with its times",
    .size = sizeof(struct requests),
    .flags = SINK_LINES | SINK_ANONYMOUS | SINK_PAIRS,
    .open = open_requestlog,
    .event = event_requestlog,
    .end = end_requestlog,
    .release = release_requests,
};

/* ---- JSON ---- */

/* Writes nanoseconds as microseconds with a fraction. Nothing if they are unknown. */
static void member_us(struct buf *to, const char *key, int64_t ns)
{
    if (ns < 0)
        return;
    json_key(to, key);
    buf_printf(to, "%lld", (long long)(ns / 1000));
    if (ns % 1000)
        buf_printf(to, ".%03lld", (long long)(ns % 1000));
}

static void member_flag(struct buf *to, const char *key, bool value)
{
    if (value)
        json_key(to, key), json_bool(to, true);
}

static void member_safe(struct buf *to, const char *key, const char *text, size_t len)
{
    if (len)
        json_key(to, key), json_string(to, raw_of((struct str){text, len}));
}

static void member_key(struct requests *q, struct buf *to, const char *name, uint32_t key, bool elixir)
{
    buf_clear(&q->cell);
    if (key)
        put_key(q, &q->cell, key, elixir);
    member_safe(to, name, q->cell.data, q->cell.len);
}

static void member_behind(struct requests *q, struct buf *to, const struct request_busy *b, bool elixir)
{
    buf_clear(&q->cell);
    put_busy(q, &q->cell, b, elixir);
    member_safe(to, "behind", q->cell.data, q->cell.len);
}

static void on_done_json(void *ctx, struct request *r)
{
    struct requests *q = ctx;
    struct buf *to = q->sink.out;
    struct event at = moment_of(r);
    struct request_busy behind;

    if (!request_is_shown(&q->rows, r))
        return;
    json_begin_record(to, "request");
    json_key(to, "ts"), json_open_string(to);
    clock_put_iso(&q->clock, to, &at);
    json_close_string(to);
    json_key(to, "node"), json_quote_safe(to, r->node->name);
    if (r->server != REQUEST_NONE) {
        const struct tracee *who = &q->pairs.servers[r->server].who;
        member_safe(to, "pid", who->text, who->text_len);
        member_safe(to, "name", who->name, who->name_len);
    }
    member_key(q, to, "server", request_label(&q->pairs, r), r->elixir);
    member_safe(to, "caller", r->caller.text, r->caller.text_len);
    member_safe(to, "caller_name", r->caller.name, r->caller.name_len);
    if (is_far(r))
        json_key(to, "caller_node"), json_quote_safe(to, r->caller_on->name);
    member_key(q, to, "shape", r->shape ? request_key_now(&q->pairs.keys, r->shape) : 0, r->elixir);
    member_safe(to, "request", text_of(r).at, text_of(r).len);
    member_us(to, "waited_us", r->waited_ns);
    member_us(to, "worked_us", r->worked_ns);
    member_us(to, "reply_us", request_between(&r->sent, &r->got));
    if (behind_of(q, r, &behind))
        member_behind(q, to, &behind, r->elixir);
    buf_clear(&q->cell);
    if (r->replier)
        put_process(&q->cell, r->replier);
    member_safe(to, "replier", q->cell.data, q->cell.len);
    json_key(to, "answered"), json_bool(to, r->direct || r->sent.known || r->got.known);
    if (!r->settled && !request_may_have_ended(&q->pairs, r))
        member_us(to, "unanswered_us", request_age(&q->pairs, r));
    member_flag(to, "may_have_ended", !r->settled && request_may_have_ended(&q->pairs, r));
    if (request_caller_seen(r))
        json_key(to, "timed_out"), json_bool(to, r->gave_up.known && !r->got.known);
    member_flag(to, "late", r->late && !r->got.known);
    member_flag(to, "postponed", r->postponed);
    member_flag(to, "server_ended", r->down);
    member_flag(to, "given_up", r->given_up);
    json_end_record(to);
}

static bool open_requestjson(struct sink *sink, struct err *e)
{
    struct requests *q = (struct requests *)sink;

    (void)e;
    requests_init(q);
    clock_init_iso(&q->clock);
    q->pairs.captured = on_captured;
    q->pairs.done = on_done_json;
    return true;
}

static void member_stat(struct buf *to, const char *key, const struct stat *t)
{
    if (!t->timed)
        return;
    json_key(to, key), json_open_object(to);
    json_key(to, "calls"), json_uint(to, t->timed);
    member_us(to, "p50_us", (int64_t)stat_percentile(t, 50));
    member_us(to, "p99_us", (int64_t)stat_percentile(t, 99));
    member_us(to, "max_us", (int64_t)t->max_ns);
    member_us(to, "total_us", (int64_t)t->total_ns);
    json_end_object(to);
}

static void put_json_row(struct requests *q, struct buf *to, const struct request_row *r)
{
    const struct request_wait *longest = request_row_longest(r);

    json_begin_record(to, "requests");
    if (r->node)
        json_key(to, "node"), json_quote_safe(to, r->node->name);
    member_key(q, to, "server", r->label, r->elixir);
    member_key(q, to, "shape", r->shape, r->elixir);
    json_key(to, "calls"), json_uint(to, r->calls);
    member_stat(to, "waited", &r->waited);
    member_stat(to, "worked", &r->worked);
    member_stat(to, "reply", &r->reply);
    if (r->callers || r->timed_out)
        json_key(to, "timed_out"), json_uint(to, r->timed_out);
    json_key(to, "late"), json_uint(to, r->late);
    json_key(to, "unanswered"), json_uint(to, r->open);
    member_us(to, "oldest_us", r->oldest_ns);
    if (r->uncertain)
        json_key(to, "may_have_ended"), json_uint(to, r->uncertain);
    json_key(to, "server_ended"), json_uint(to, r->down);
    if (explains(&longest->behind, longest->behind_all_ns, longest->ns))
        member_behind(q, to, &longest->behind, r->elixir);
    json_end_record(to);
}

static void put_json_missing(struct requests *q, struct buf *to, const struct totals *t)
{
    json_begin_record(to, "requests_missing");
    json_key(to, "elsewhere"), json_uint(to, q->rows.elsewhere + q->rows.elsewhere_open);
    json_key(to, "given_up"), json_uint(to, q->pairs.overflown);
    if (t->lost[ETW_LOST_REQUEST]) {
        json_key(to, "shown_percent");
        buf_printf(to, "%.3f", request_share(&q->pairs, t->lost[ETW_LOST_REQUEST]));
    }
    json_key(to, "lost"), json_open_object(to);
    for (size_t l = 0; l < ETW_LOSSES; l++)
        if (t->lost[l])
            json_key(to, event_losses[l]), json_uint(to, t->lost[l]);
    json_end_object(to);
    json_key(to, "missing"), json_uint(to, t->missing);
    missing_json(to, t);
    json_end_record(to);
}

static void end_requestjson(struct sink *sink, const struct totals *totals)
{
    struct requests *q = (struct requests *)sink;

    request_rows_open(&q->rows);
    request_pairs_end(&q->pairs);
    for (size_t i = 0; i < q->rows.n; i++)
        put_json_row(q, sink->out, &q->rows.items[i]);
    put_json_missing(q, sink->out, totals);
}

const struct sink_type sink_requestjson = {
    .name = "requestjson",
    .extensions = ".json .ndjson",
    .about = "one JSON object for each request, and one for each shape",
    .size = sizeof(struct requests),
    .flags = SINK_LINES | SINK_ANONYMOUS | SINK_PAIRS,
    .open = open_requestjson,
    .event = event_requests,
    .end = end_requestjson,
    .release = release_requests,
};
