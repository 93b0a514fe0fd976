/* SPDX-License-Identifier: Apache-2.0 */
/* The hist view: a histogram of each function's durations, one row for each power of two. */
#include "bars.h"
#include "key_text.h"
#include "missing.h"

struct hist {
    struct sink sink;
    struct stats stats;
    struct paint paint;
};

static bool open_hist(struct sink *sink, struct err *e)
{
    struct hist *h = (struct hist *)sink;

    (void)e;
    h->paint.on = sink->look.colour;
    return true;
}

static void event_hist(struct sink *sink, const struct event *e)
{
    struct hist *h = (struct hist *)sink;

    h->stats.by_node = sink->look.nodes;
    if (event_is_traced(e) || e->tally)
        stats_event(&h->stats, e);
}

static void end_hist(struct sink *sink, const struct totals *totals)
{
    struct hist *h = (struct hist *)sink;
    struct buf *to = sink->out;
    const struct bars bars = {&h->paint, sink->look.width};

    stats_sort(&h->stats);
    for (size_t i = 0; i < h->stats.n; i++) {
        const struct stat *t = &h->stats.items[i];
        if (i)
            buf_char(to, '\n');
        paint_begin(&h->paint, to, PAINT_FUN);
        stat_name(t, to);
        paint_end(&h->paint, to);
        buf_printf(to, "  %llu", (unsigned long long)stat_calls(t));
        if (!t->timed) {
            buf_puts(to, ", no duration known\n");
            continue;
        }
        if (t->timed != stat_calls(t))
            buf_printf(to, ", %llu timed", (unsigned long long)t->timed);
        bars_durations(&bars, to, t);
    }
    missing_events(to, totals, "");
}

static void release_hist(struct sink *sink)
{
    stats_release(&((struct hist *)sink)->stats);
}

const struct sink_type sink_hist = {
    .name = "hist",
    .about = "histograms of durations, one for each function",
    .without_results = "shows nothing",
    .size = sizeof(struct hist),
    .flags = SINK_FIGURES | SINK_AGAIN | SINK_TIMES | SINK_FOLDS,
    .open = open_hist,
    .event = event_hist,
    .end = end_hist,
    .release = release_hist,
};
