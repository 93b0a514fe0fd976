/* A table of functions: how often, how long. What -c prints. */
#include <stdlib.h>

#include "../erlang/term_print.h"
#include "../ground/mem.h"
#include "ends.h"
#include "paint.h"
#include "stats.h"

struct summary {
    struct sink sink;
    struct stats stats;
    struct paint paint;
};

static struct sink *open_summary(const struct look *look, struct buf *out, struct err *e)
{
    struct summary *s = mem_zalloc(sizeof(*s));

    (void)e;
    s->sink.out = out;
    s->sink.look = *look;
    s->paint.on = look->colour;
    return &s->sink;
}

static void event_summary(struct sink *sink, const struct event *e)
{
    struct summary *s = (struct summary *)sink;

    s->stats.by_node = sink->look.nodes;
    if (event_is_traced(e) || e->tally)
        stats_event(&s->stats, e);
}

/* Right-aligned. */
static void cell(struct buf *to, const struct buf *text, size_t width)
{
    for (size_t i = text->len; i < width; i++)
        buf_char(to, ' ');
    buf_str(to, buf_view(text));
    buf_puts(to, "  ");
}

static void number_cell(struct buf *to, uint64_t n)
{
    struct buf b = {0};

    print_u64(&b, n);
    cell(to, &b, 9);
    buf_release(&b);
}

static void time_cell(struct buf *to, const struct stat *t, uint64_t ns)
{
    struct buf b = {0};

    if (t->timed)
        print_duration(&b, (int64_t)ns);
    else
        buf_char(&b, '-');
    cell(to, &b, 8);
    buf_release(&b);
}

static void end_summary(struct sink *sink, const struct totals *totals)
{
    struct summary *s = (struct summary *)sink;
    struct buf *to = sink->out;

    stats_sort(&s->stats);
    paint_begin(&s->paint, to, PAINT_TIME);
    buf_puts(to, "    calls     errors     total      mean       p50       p99       max  ");
    buf_puts(to, sink->look.nodes ? "node function" : "function");
    paint_end(&s->paint, to);
    buf_char(to, '\n');
    for (size_t i = 0; i < s->stats.n; i++) {
        const struct stat *t = &s->stats.items[i];
        number_cell(to, t->events);
        number_cell(to, t->errors);
        time_cell(to, t, t->total_ns);
        time_cell(to, t, t->timed ? t->total_ns / t->timed : 0);
        time_cell(to, t, stat_percentile(t, 50));
        time_cell(to, t, stat_percentile(t, 99));
        time_cell(to, t, t->max_ns);
        paint_begin(&s->paint, to, PAINT_FUN);
        stat_name(t, to);
        paint_end(&s->paint, to);
        buf_char(to, '\n');
    }
    ends_missing(to, totals, "");
}

static void free_summary(struct sink *sink)
{
    stats_release(&((struct summary *)sink)->stats);
    free(sink);
}

const struct sink_type sink_summary = {
    .name = "summary",
    .about = "calls, errors, total, mean, p50, p99, max of each function",
    .flags = SINK_FIGURES | SINK_AGAIN,
    .open = open_summary,
    .event = event_summary,
    .end = end_summary,
    .free = free_summary,
};
