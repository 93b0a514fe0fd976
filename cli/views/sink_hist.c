/* SPDX-License-Identifier: Apache-2.0 */
/* The hist view: a histogram of each function's durations, one row for each power of two. */
#include "../erlang/term_print.h"
#include "missing.h"
#include "paint.h"
#include "stats.h"

#define BAR 40

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

/* The lower bound of a row, right-aligned: 512ns 1.02us 2.05us ... */
static void put_floor(struct buf *to, unsigned power)
{
    struct buf b = {0};

    print_duration(&b, INT64_C(1) << power);
    for (size_t i = b.len; i < 10; i++)
        buf_char(to, ' ');
    buf_str(to, buf_view(&b));
    buf_release(&b);
}

static uint64_t row_of(const struct stat *t, unsigned power)
{
    uint64_t n = 0, from = UINT64_C(1) << power;

    for (size_t b = 0; b < ETW_BUCKETS; b++) {
        uint64_t floor = stat_bucket_floor(b);
        if (floor >= from && floor < from * 2)
            n += t->buckets[b];
        if (power == 0 && floor == 0)
            n += t->buckets[b];
    }
    return n;
}

static void put_rows(struct hist *h, const struct stat *t)
{
    struct buf *to = h->sink.out;
    uint64_t rows[46], most = 0;
    unsigned first = 46, last = 0;

    for (unsigned p = 0; p < 46; p++) {
        rows[p] = row_of(t, p);
        most = MAX(most, rows[p]);
        if (rows[p]) {
            first = MIN(first, p);
            last = p;
        }
    }
    for (unsigned p = first; p <= last && first < 46; p++) {
        put_floor(to, p);
        buf_puts(to, " |");
        paint_begin(&h->paint, to, PAINT_DURATION);
        uint64_t bar = (uint64_t)((double)rows[p] * BAR / (double)most + 0.5);
        for (uint64_t i = 0; i < BAR; i++)
            buf_char(to, i < MAX(bar, (uint64_t)(rows[p] > 0)) ? '#' : ' ');
        paint_end(&h->paint, to);
        buf_puts(to, "| ");
        print_u64(to, rows[p]);
        buf_char(to, '\n');
    }
}

static void end_hist(struct sink *sink, const struct totals *totals)
{
    struct hist *h = (struct hist *)sink;
    struct buf *to = sink->out;

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
        buf_puts(to, ", p50 ");
        print_duration(to, (int64_t)stat_percentile(t, 50));
        buf_puts(to, ", p99 ");
        print_duration(to, (int64_t)stat_percentile(t, 99));
        buf_puts(to, ", max ");
        print_duration(to, (int64_t)t->max_ns);
        buf_char(to, '\n');
        put_rows(h, t);
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
    .size = sizeof(struct hist),
    .flags = SINK_FIGURES | SINK_AGAIN | SINK_TIMES,
    .open = open_hist,
    .event = event_hist,
    .end = end_hist,
    .release = release_hist,
};
