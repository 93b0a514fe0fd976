/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides what `etrace check --for` reports of its trace (check_trace.h): events that begin and end between two looks.
 */
#include <string.h>

#include "../ground/number.h"
#include "check_rules.h"

/* Thresholds that a busy but healthy node does not reach. */
#define LASTS_MS 1000    /* a single collection or time slice this long is a finding */
#define LASTS_PART 10    /* percent of the traced time: shorter ones that take this much together are a finding */
#define LASTS_TIMES 3    /* with LASTS_PART: least number of them */
#define HARMFUL_MS 5000  /* one this long makes the finding critical: by default, calls time out after this time */
#define NAMED_PART 10    /* percent: a finding names a sender that sends at least this share of a queue's messages */
#define NAMED_MOST 3     /* limit for the senders that a finding names */
#define SLOW_MESSAGES 10 /* messages per second: below this rate, a finding has numbers instead of rates */

static void unseen_put_ms(struct buf *to, int64_t ms)
{
    print_duration(to, ms * 1000000);
}

static void unseen_put_time(struct buf *to, int64_t ms)
{
    buf_puts(to, " in ");
    unseen_put_ms(to, ms / 100 * 100);
}

static struct check_finding *unseen_find(const struct check_rules *r, enum check_kind kind, const char *pid)
{
    for (size_t i = 0; i < r->to->n; i++)
        if (r->to->items[i].kind == kind && !strcmp(r->to->items[i].process.pid, pid))
            return &r->to->items[i];
    return NULL;
}

/*
 * Returns an existing finding of this kind about the process of the row, or a new one. Raises the severity of an
 * existing one if the row is worse. The caller appends the evidence to the text.
 */
static struct check_finding *unseen_about(const struct check_rules *r, enum check_severity severity,
                                          enum check_kind kind, const struct check_event_row *x)
{
    struct check_finding *f = unseen_find(r, kind, x->process.pid);

    if (f) {
        f->severity = MIN(f->severity, severity);
        buf_puts(&f->text, "; it ");
        return f;
    }
    f = check_about(r, severity, kind, &x->process);
    if (x->several)
        buf_puts(&f->text, "and others of this name ");
    return f;
}

static void unseen_put_times(struct buf *to, const struct check_trace *t, const struct check_event_row *x)
{
    buf_puts(to, t->lossy ? "at least " : "");
    if (x->count == 1)
        buf_puts(to, "once");
    else
        buf_printf(to, "%llu times", (unsigned long long)x->count);
}

/* Appends `for up to 310ms, 14 times, 2.1s in all in 10s`. */
static void unseen_put_evidence(struct buf *to, const struct check_trace *t, const struct check_event_row *x)
{
    buf_puts(to, x->count == 1 ? " for " : " for up to ");
    unseen_put_ms(to, x->most);
    buf_puts(to, ", ");
    unseen_put_times(to, t, x);
    if (x->count > 1) {
        buf_puts(to, ", ");
        unseen_put_ms(to, x->sum);
        buf_puts(to, " in all");
    }
    unseen_put_time(to, check_traced_ms(t));
}

/* ---- collections and time slices ---- */

static bool unseen_lasts(const struct check_trace *t, const struct check_event_row *x)
{
    return x->most >= LASTS_MS || (x->count >= LASTS_TIMES && x->sum * 100 >= check_traced_ms(t) * LASTS_PART);
}

static enum check_severity unseen_severity(const struct check_event_row *x)
{
    return x->most >= HARMFUL_MS ? CHECK_CRITICAL : CHECK_WARNING;
}

static void unseen_collection(const struct check_rules *r, const struct check_event_row *x)
{
    if (!unseen_lasts(r->seen->trace, x))
        return;
    struct check_finding *f = unseen_about(r, unseen_severity(x), CHECK_COLLECTS, x);
    buf_puts(&f->text, "collected garbage");
    unseen_put_evidence(&f->text, r->seen->trace, x);
    command_line_clear(&f->command);
    if (x->several) {
        check_command(r, f, NULL);
        command_line_add(&f->command, " --for 10s '@long_gc(50)'");
    } else {
        check_command_of(r, f, NULL, x->process.pid);
        command_line_add(&f->command, " --for 10s '@gc where dur > 10ms'");
    }
}

/* Returns true if long collections of the same process explain at least half of the time of the row's time slices. */
static bool unseen_only_collects(const struct check_trace *t, const struct check_event_row *x)
{
    for (size_t i = 0; i < t->nrows; i++)
        if (t->rows[i].event == CHECK_LONG_GC && !strcmp(t->rows[i].process.name, x->process.name) &&
            (x->process.name[0] || !strcmp(t->rows[i].process.pid, x->process.pid)))
            return t->rows[i].sum * 2 >= x->sum;
    return false;
}

static void unseen_schedule(const struct check_rules *r, const struct check_event_row *x)
{
    if (!unseen_lasts(r->seen->trace, x) || unseen_only_collects(r->seen->trace, x))
        return;
    struct check_finding *f = unseen_about(r, unseen_severity(x), CHECK_SCHEDULER, x);
    buf_puts(&f->text, "held its scheduler");
    unseen_put_evidence(&f->text, r->seen->trace, x);
    if (x->where[0])
        buf_printf(&f->text, "; at the end it was in %s", x->where);
    check_command(r, f, NULL);
    command_line_add(&f->command, " --for 10s '@long_schedule(50)'");
}

/* ---- memory ---- */

/* Reports a heap that was a large part of the node's memory. A collection takes the memory of the heap twice. */
static void unseen_heap(const struct check_rules *r, const struct check_event_row *x)
{
    if (!check_is_large(r, 2 * x->most))
        return;
    struct check_finding *f = unseen_about(r, CHECK_WARNING, CHECK_MEMORY, x);
    buf_puts(&f->text, "had a heap of up to ");
    ps_put_bytes(&f->text, x->most, false);
    buf_puts(&f->text, " at its collections");
    command_line_clear(&f->command);
    check_command_of(r, f, "ps", x->process.pid);
    command_line_add(&f->command, " --for 10s");
}

/* ---- busy ports and connections ---- */

static const struct check_port *unseen_port(const struct check_rules *r, const char *port)
{
    for (size_t i = r->seen->nfacts; i-- > 0;)
        for (size_t k = 0; k < r->seen->facts[i].nports; k++)
            if (!strcmp(r->seen->facts[i].ports[k].port, port))
                return &r->seen->facts[i].ports[k];
    return NULL;
}

static void unseen_put_busy(const struct check_rules *r, const struct check_event_row *x, struct buf *to)
{
    const struct check_port *port = unseen_port(r, x->where);

    if (x->event == CHECK_BUSY_PORT)
        buf_printf(to, "the busy port %s%s%s%s", x->where, port ? " (" : "", port ? port->name : "", port ? ")" : "");
    else if (port && port->node[0])
        buf_printf(to, "the busy connection to %s", port->node);
    else
        buf_printf(to, "the busy connection %s to another node", x->where);
    buf_puts(to, " suspended it ");
    unseen_put_times(to, r->seen->trace, x);
    unseen_put_time(to, check_traced_ms(r->seen->trace));
}

/*
 * Reports a process that was suspended at half of the looks. Short backpressure is normal.
 */
static void unseen_busy(const struct check_rules *r, const struct check_event_row *x)
{
    static const enum check_kind known[] = {CHECK_PORT, CHECK_SUSPENDED, CHECK_CONNECTION};
    const struct check_suspect *s = check_suspect_of(r->seen, x->process.pid);

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        struct check_finding *f = unseen_find(r, known[i], x->process.pid);
        if (!f)
            continue;
        buf_puts(&f->text, "; ");
        unseen_put_busy(r, x, &f->text);
        return;
    }
    if (!s || s->samples.looks < CHECK_SOME_LOOKS || s->samples.suspended * 2 < s->samples.looks)
        return;
    struct check_finding *f =
        check_about(r, CHECK_WARNING, x->event == CHECK_BUSY_PORT ? CHECK_PORT : CHECK_CONNECTION, &x->process);
    buf_printf(&f->text, "was suspended at %u of %u looks: ", s->samples.suspended, s->samples.looks);
    unseen_put_busy(r, x, &f->text);
    check_command_of(r, f, "why", x->process.pid);
}

/* ---- senders ---- */

/* Scales numbers of messages that the node sent to all messages that arrived. `rates`: per second. */
struct unseen_scale {
    const struct check_trace *trace;
    int64_t ms; /* how long the messages were traced */
    bool rates;
};

static double unseen_messages(const struct unseen_scale *s, uint64_t n)
{
    const struct check_trace *t = s->trace;
    double all = (double)n * (double)(t->received + t->unseen) / (double)t->received;

    return s->rates ? all * 1000 / (double)s->ms : all;
}

static void unseen_put_sender(struct buf *to, const struct sender_count *s)
{
    if (s->process.pid[0])
        look_process_print(to, &s->process);
    else
        buf_puts(to, s->process.name);
}

/* Appends `; 1900 of 2100 messages/s come from <0.96.0>(feeder)`. */
static void unseen_put_senders(struct buf *to, const struct check_trace *t, const struct check_inbox *b)
{
    struct unseen_scale scale = {t, MAX((b->to ? b->to : t->to) - b->from, 1), true};
    size_t n = 0;

    while (n < b->by.n && n < NAMED_MOST && b->by.items[n].count * 100 >= b->received * NAMED_PART)
        n++;
    scale.rates = unseen_messages(&scale, b->received) >= SLOW_MESSAGES;
    buf_puts(to, t->unseen || b->by.lossy ? "; about " : "; ");
    for (size_t i = 0; i < n; i++) {
        buf_puts(to, i ? ", " : "");
        ps_put_count(to, (int64_t)(unseen_messages(&scale, b->by.items[i].count) + 0.5), false);
        if (!i) {
            buf_puts(to, " of ");
            ps_put_count(to, (int64_t)(unseen_messages(&scale, b->received) + 0.5), false);
            buf_puts(to, scale.rates ? " messages/s come" : " messages came");
            if (!scale.rates)
                unseen_put_time(to, scale.ms);
        }
        buf_puts(to, " from ");
        unseen_put_sender(to, &b->by.items[i]);
    }
    if (n)
        return;
    ps_put_count(to, (int64_t)(unseen_messages(&scale, b->received) + 0.5), false);
    buf_puts(to, scale.rates ? " messages/s come" : " messages came");
    buf_printf(to, " from at least %zu senders, and none of them sends a tenth", b->by.n);
}

static void unseen_senders(const struct check_rules *r)
{
    static const enum check_kind kinds[] = {CHECK_QUEUE, CHECK_UNMATCHED};
    const struct check_trace *t = r->seen->trace;

    for (size_t i = 0; i < t->ninboxes; i++)
        for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
            struct check_finding *f = unseen_find(r, kinds[k], t->inboxes[i].pid);
            if (f && t->inboxes[i].received)
                unseen_put_senders(&f->text, t, &t->inboxes[i]);
        }
}

/* ---- all rules ---- */

void check_unseen(const struct check_rules *r)
{
    static void (*const rules[CHECK_EVENTS])(const struct check_rules *r, const struct check_event_row *x) = {
        [CHECK_LONG_GC] = unseen_collection, [CHECK_LONG_SCHEDULE] = unseen_schedule, [CHECK_LARGE_HEAP] = unseen_heap,
        [CHECK_BUSY_PORT] = unseen_busy,     [CHECK_BUSY_DIST_PORT] = unseen_busy,
    };
    const struct check_trace *t = r->seen->trace;

    if (!t)
        return;
    for (size_t i = 0; i < t->nrows; i++)
        rules[t->rows[i].event](r, &t->rows[i]);
    unseen_senders(r);
    if (t->crowded)
        buf_printf(&check_add(r, CHECK_NOTE, CHECK_UNKNOWN)->text,
                   "more than %d processes had long collections, long time slices, large heaps or busy ports: those "
                   "with "
                   "the fewest are unknown",
                   CHECK_EVENT_ROWS);
    if (t->why[0])
        buf_printf(&check_add(r, CHECK_NOTE, CHECK_UNKNOWN)->text,
                   "long collections, long time slices and busy ports between the looks are unknown: %s", t->why);
}
