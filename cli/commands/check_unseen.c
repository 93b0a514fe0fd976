/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides what `etrace check --for` reports of its trace (check_trace.h): what looks do not see, because it is over
 * between two of them.
 */
#include <string.h>

#include "../ground/number.h"
#include "check_rules.h"

/* Thresholds that a busy but healthy node does not reach. */
#define LASTS_MS 1000   /* a collection or a time slice that is a finding even if it comes once */
#define LASTS_PART 10   /* percent of the time that several of them take together */
#define LASTS_TIMES 3   /* least number of them then */
#define HARMFUL_MS 5000 /* a pause that makes them critical: by default, callers give up after this time */

static void unseen_put_ms(struct buf *to, int64_t ms)
{
    print_duration(to, ms * 1000000);
}

static void unseen_put_time(struct buf *to, const struct check_trace *t)
{
    buf_puts(to, " in ");
    unseen_put_ms(to, check_traced_ms(t) / 100 * 100);
}

static struct check_finding *unseen_find(const struct check_rules *r, enum check_kind kind, const char *pid)
{
    for (size_t i = 0; i < r->to->n; i++)
        if (r->to->items[i].kind == kind && !strcmp(r->to->items[i].process.pid, pid))
            return &r->to->items[i];
    return NULL;
}

/*
 * Returns the finding to which the evidence of a row is to be appended: one that the looks have made of the same kind
 * about the same process, or else a new one.
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
    if (x->count == 1)
        buf_puts(to, "once");
    else
        buf_printf(to, "%s%llu times", t->lossy ? "at least " : "", (unsigned long long)x->count);
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
    unseen_put_time(to, t);
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

/* A small heap is collected within the time slice. Ignores a slice that a collection explains. */
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

/* ---- all rules ---- */

void check_unseen(const struct check_rules *r)
{
    static void (*const rules[CHECK_EVENTS])(const struct check_rules *r, const struct check_event_row *x) = {
        [CHECK_LONG_GC] = unseen_collection,
        [CHECK_LONG_SCHEDULE] = unseen_schedule,
        [CHECK_LARGE_HEAP] = unseen_heap,
    };
    const struct check_trace *t = r->seen->trace;

    if (!t)
        return;
    for (size_t i = 0; i < t->nrows; i++)
        rules[t->rows[i].event](r, &t->rows[i]);
    if (t->why[0])
        buf_printf(&check_add(r, CHECK_NOTE, CHECK_UNKNOWN)->text,
                   "long collections and time slices between the looks are unknown: %s", t->why);
}
