/* SPDX-License-Identifier: Apache-2.0 */
/* The summary view: a table of functions with counts and durations, as printed by -c. */
#include <string.h>

#include "../erlang/term_print.h"
#include "../fold/stats.h"
#include "../ground/macros.h"
#include "../ground/utf8.h"
#include "key_text.h"
#include "missing.h"
#include "paint.h"

struct summary {
    struct sink sink;
    struct stats stats;
    struct paint paint;
};

static bool open_summary(struct sink *sink, struct err *e)
{
    struct summary *s = (struct summary *)sink;

    (void)e;
    s->paint.on = sink->look.colour;
    return true;
}

static void event_summary(struct sink *sink, const struct event *e)
{
    struct summary *s = (struct summary *)sink;

    s->stats.by_node = sink->look.nodes;
    if (event_is_traced(e) || e->tally)
        stats_event(&s->stats, e);
}

enum column { COL_CALLS, COL_ERRORS, COL_UNTIMED, COL_TOTAL, COL_MEAN, COL_P50, COL_P99, COL_MAX, COLUMNS };

static const char *const titles[COLUMNS] = {"calls", "errors", "untimed", "total", "mean", "p50", "p99", "max"};
/* The columns to omit on a narrow terminal, first to last. */
static const enum column spare[] = {COL_P50, COL_MEAN, COL_MAX, COL_P99};

static void print_cell(struct buf *to, const struct stat *t, enum column c)
{
    if (c <= COL_UNTIMED) {
        if (t->estimated && c != COL_ERRORS)
            buf_char(to, '~');
        print_u64(to, c == COL_CALLS    ? stat_calls(t)
                      : c == COL_ERRORS ? t->errors
                                        : stat_calls(t) - MIN(t->timed, stat_calls(t)));
        return;
    }
    if (!t->timed) {
        buf_char(to, '-');
        return;
    }
    uint64_t ns = c == COL_TOTAL  ? t->total_ns
                  : c == COL_MEAN ? t->total_ns / t->timed
                  : c == COL_MAX  ? t->max_ns
                                  : stat_percentile(t, c == COL_P50 ? 50 : 99);
    print_duration(to, (int64_t)ns);
}

/* True if some durations cover only part of the counted calls. */
static bool partly_timed(const struct summary *s)
{
    for (size_t i = 0; i < s->stats.n; i++)
        if ((s->stats.items[i].timed || s->stats.items[i].counted) &&
            s->stats.items[i].timed < stat_calls(&s->stats.items[i]))
            return true;
    return false;
}

/* True if a budget has left some calls without an event, so that their results are unknown. */
static bool partly_traced(const struct summary *s)
{
    for (size_t i = 0; i < s->stats.n; i++)
        if (s->stats.items[i].counted > s->stats.items[i].events)
            return true;
    return false;
}

static const char *function_title(const struct summary *s)
{
    return s->sink.look.nodes ? "node function" : "function";
}

/* Computes the column widths. 0: the column is omitted. */
static void fit(const struct summary *s, size_t widths[COLUMNS])
{
    size_t all = 0, longest = strlen(function_title(s));
    struct buf b = {0};

    for (size_t c = 0; c < COLUMNS; c++) {
        widths[c] = strlen(titles[c]);
        for (size_t i = 0; i < s->stats.n; i++) {
            b.len = 0;
            print_cell(&b, &s->stats.items[i], (enum column)c);
            widths[c] = MAX(widths[c], b.len);
        }
        if (c == COL_UNTIMED && !partly_timed(s))
            widths[c] = 0;
        else
            all += widths[c] + 2;
    }
    for (size_t i = 0; i < s->stats.n; i++) {
        b.len = 0;
        stat_name(&s->stats.items[i], &b);
        longest = MAX(longest, utf8_width(b.data, b.len));
    }
    buf_release(&b);
    for (size_t i = 0; s->sink.look.width && all + longest > s->sink.look.width && i < ARRAY_LEN(spare); i++) {
        all -= widths[spare[i]] + 2;
        widths[spare[i]] = 0;
    }
}

static void cell(struct buf *to, struct str text, size_t width)
{
    if (!width)
        return;
    for (size_t i = text.len; i < width; i++)
        buf_char(to, ' ');
    buf_str(to, text);
    buf_puts(to, "  ");
}

static void end_summary(struct sink *sink, const struct totals *totals)
{
    struct summary *s = (struct summary *)sink;
    struct buf *to = sink->out, b = {0};
    size_t widths[COLUMNS];

    stats_sort(&s->stats);
    fit(s, widths);
    paint_begin(&s->paint, to, PAINT_TIME);
    for (size_t c = 0; c < COLUMNS; c++)
        cell(to, (struct str){titles[c], strlen(titles[c])}, widths[c]);
    buf_puts(to, function_title(s));
    paint_end(&s->paint, to);
    buf_char(to, '\n');
    for (size_t i = 0; i < s->stats.n; i++) {
        const struct stat *t = &s->stats.items[i];
        for (size_t c = 0; c < COLUMNS; c++) {
            b.len = 0;
            print_cell(&b, t, (enum column)c);
            cell(to, buf_view(&b), widths[c]);
        }
        paint_begin(&s->paint, to, PAINT_FUN);
        stat_name(t, to);
        paint_end(&s->paint, to);
        buf_char(to, '\n');
    }
    buf_release(&b);
    for (size_t i = 0; i < s->stats.n; i++)
        if (s->stats.items[i].estimated) {
            buf_puts(to, "~: estimated, because counting all calls would take more than --overhead allows\n");
            break;
        }
    if (partly_traced(s))
        buf_puts(to, "untimed: calls that were only counted, because of --overhead; their times and errors are unknown\n");
    missing_events(to, totals, "");
}

static void release_summary(struct sink *sink)
{
    stats_release(&((struct summary *)sink)->stats);
}

const struct sink_type sink_summary = {
    .name = "summary",
    .about = "calls, errors, total, mean, p50, p99, max of each function",
    .size = sizeof(struct summary),
    .flags = SINK_FIGURES | SINK_AGAIN,
    .open = open_summary,
    .event = event_summary,
    .end = end_summary,
    .release = release_summary,
};
