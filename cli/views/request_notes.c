/* SPDX-License-Identifier: Apache-2.0 */
#include "request_notes.h"

#include "../ground/number.h"
#include "../ground/utf8.h"
#include "missing.h"
#include "request_text.h"

static void put_reason(struct request_view *q, struct buf *to, const struct request_wait *w, bool elixir)
{
    if (request_wait_explained(w)) {
        buf_puts(to, " behind ");
        request_view_put_busy(q, to, &w->behind, elixir);
    } else if (!w->unclear) {
        buf_puts(to, w->postponed           ? ", postponed"
                     : w->blind             ? " while events were lost"
                     : w->behind_all_ns > 0 ? " mostly while no callback ran"
                     : w->unseen            ? " while no callback began"
                                            : " while no callback ran");
    }
}

static void put_longest(struct request_view *q, struct buf *to)
{
    const struct request_row *longest = NULL;
    const struct request_wait *wait = NULL;
    const bool servers = request_rows_of_several(&q->rows);

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
        request_view_put_key(q, to, longest->label, longest->elixir);
    }
    buf_char(to, '\n');
}

/* Prints the state of a request without a reply: waiting, running, or its callback has ended. */
static void put_stage(struct request_view *q, struct buf *to, const struct request *r)
{
    const struct request_server *s = &q->pairs.servers[r->server];
    const struct request_time now = request_now(&q->pairs, r->node);
    struct request_busy busy = s->now.what;
    struct request_wait wait;

    switch (request_stage(&q->pairs, r)) {
    case REQUEST_RUNS:
        buf_puts(to, " has run for ");
        request_put_ns(to, request_between(&r->begun, &now));
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
        request_view_put_busy(q, to, &busy, s->elixir);
        buf_puts(to, ", which has run for ");
        print_duration(to, MAX((int64_t)((uint64_t)now.mono_ns - (uint64_t)s->now.from), 0));
        break;
    }
}

/*
 * Appends a part, which begins with a space, to a line. If the terminal has no room for the part, breaks the line
 * before it.
 */
static void put_part_of_line(const struct request_view *q, struct buf *to, size_t *line, struct str part)
{
    const size_t room = q->sink.look.width;

    if (room && utf8_width(to->data + *line, to->len - *line) + utf8_width(part.at, part.len) > room) {
        buf_puts(to, "\n ");
        *line = to->len - 1;
    }
    buf_str(to, part);
}

static void put_oldest(struct request_view *q, struct buf *to, size_t line, const struct request *r)
{
    buf_puts(to, ", the oldest for ");
    request_put_ns(to, request_age(&q->pairs, r));
    if (r->gave_up.known && request_stage(&q->pairs, r) == REQUEST_LEFT)
        buf_puts(to, " until its caller gave up");
    buf_char(to, ':');
    buf_clear(&q->cell);
    buf_char(&q->cell, ' ');
    if (r->shape)
        request_view_put_key(q, &q->cell, request_key_now(&q->pairs.keys, r->shape), r->elixir);
    else
        buf_puts(&q->cell, "a request");
    buf_puts(&q->cell, " at ");
    request_put_process(&q->cell, &q->pairs.servers[r->server].who);
    if (q->sink.look.nodes)
        buf_puts(&q->cell, " on "), buf_safe(&q->cell, r->node->name);
    put_part_of_line(q, to, &line, buf_view(&q->cell));
    buf_clear(&q->cell);
    put_stage(q, &q->cell, r);
    put_part_of_line(q, to, &line, buf_view(&q->cell));
}

/* Prints a note about the requests without a reply. */
static void put_unanswered(struct request_view *q, struct buf *to)
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
        buf_printf(to, "may have ended: %llu request%s, because %s were lost\n", (unsigned long long)uncertain,
                   PLURAL(uncertain), q->pairs.gone ? "events or nodes" : "events");
}

static uint64_t sum_late(const struct request_view *q)
{
    uint64_t n = 0;

    for (size_t i = 0; i < q->rows.n; i++)
        n += q->rows.items[i].late;
    return n;
}

void request_put_share(const struct request_view *q, struct buf *to, const struct totals *totals)
{
    uint64_t lost = totals->lost[ETW_LOST_REQUEST];

    if (lost)
        buf_printf(to, "*** about %.1f%% of the requests are shown: --rate or full buffers leave out the others ***\n",
                   request_share(&q->pairs, lost));
}

void request_put_elsewhere(const struct request_view *q, struct buf *to)
{
    uint64_t n = q->rows.elsewhere + q->rows.elsewhere_open;

    if (n && !q->rows.servers)
        buf_printf(to, "not shown: %llu request%s that no traced process received\n", (unsigned long long)n, PLURAL(n));
}

void request_put_unfollowed(const struct request_view *q, struct buf *to)
{
    const uint64_t n = q->pairs.unfollowed;

    if (n)
        buf_printf(to, "*** %llu request%s to servers that were not followed: too many were in use at once ***\n",
                   (unsigned long long)n, PLURAL(n));
}

void request_put_notes(struct request_view *q, struct buf *to, const struct totals *totals)
{
    uint64_t late = sum_late(q);

    put_longest(q, to);
    put_unanswered(q, to);
    if (late)
        buf_printf(to, "late: %llu repl%s after the caller had given up\n", (unsigned long long)late,
                   late == 1 ? "y" : "ies");
    request_put_elsewhere(q, to);
    if (q->pairs.overflown)
        buf_printf(to, "*** %llu request%s given up: too many were open at once ***\n",
                   (unsigned long long)q->pairs.overflown, PLURAL(q->pairs.overflown));
    request_put_unfollowed(q, to);
    request_put_share(q, to, totals);
    missing_report(to, totals, "");
}
