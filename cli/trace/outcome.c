/* SPDX-License-Identifier: Apache-2.0 */
#include "outcome.h"

#include "../erlang/term_print.h"

static const char *const advice[ETW_LOSSES] = {
    [ETW_LOST_RING] = "etrace or its output was too slow; trace less, write to a file (-o), or count (-c)",
    [ETW_LOST_RATE] = "more events than --rate allows; raise it, trace less, or count (-c)",
    [ETW_LOST_GUARD] = "tracing reached a limit of the node; trace fewer functions or processes, or count (-c)",
    [ETW_LOST_NORING] = "the node has more threads than etrace has buffers",
    [ETW_LOST_REQUEST] =
        "--rate or full buffers left out whole requests, or the node had no room for more roots; select processes (-P)",
    [ETW_LOST_QUEUE] = "the tracer without the NIF is slow; trace less, or see etrace doctor",
};

/*
 * Returns the number of events that were lost for this reason. ETW_LOST_HALF and ETW_LOST_RATE have the same name, so
 * ETW_LOST_RATE stands for both, and the result for ETW_LOST_HALF is 0. Overwritten events do not count as lost here.
 */
static uint64_t lost_for(const uint64_t *lost, size_t reason)
{
    if (reason == ETW_LOST_HALF || reason == ETW_LOST_OVERWRITTEN)
        return 0;
    return lost[reason] + (reason == ETW_LOST_RATE ? lost[ETW_LOST_HALF] : 0);
}

/* Appends " · 12 lost (rate)", with a figure for each reason if there are several. */
static void put_lost(struct buf *b, const uint64_t *lost)
{
    uint64_t all = 0;
    size_t reasons = 0;

    for (size_t i = 0; i < ETW_LOSSES; i++) {
        all += lost_for(lost, i);
        reasons += lost_for(lost, i) != 0;
    }
    if (!all)
        return;
    buf_printf(b, " · %llu lost", (unsigned long long)all);
    const char *before = " (";
    for (size_t i = 0; i < ETW_LOSSES; i++) {
        if (!lost_for(lost, i))
            continue;
        buf_printf(b, "%s%s", before, event_losses[i]);
        if (reasons > 1)
            buf_printf(b, " %llu", (unsigned long long)lost_for(lost, i));
        before = ", ";
    }
    buf_char(b, ')');
}

static void put_count(struct buf *b, uint64_t n, const char *one, const char *many)
{
    if (n)
        buf_printf(b, " · %llu %s", (unsigned long long)n, n == 1 ? one : many);
}

static void put_untraced(struct buf *b, const struct totals_untraced *u)
{
    if (u->unknown)
        buf_puts(b, " · calls not traced (--overhead), their number is unknown");
    else if (u->calls)
        buf_printf(b, " · %s%llu not traced (--overhead)", u->estimated ? "~" : "", (unsigned long long)u->calls);
}

static void put_time(struct buf *b, int64_t ms)
{
    long long s = ms / 1000;

    if (ms < 1000)
        buf_printf(b, " in %lld ms", (long long)ms);
    else if (s < 60)
        buf_printf(b, " in %lld.%lld s", s, (long long)ms % 1000 / 100);
    else if (s < 3600)
        buf_printf(b, " in %lld min %lld s", s / 60, s % 60);
    else
        buf_printf(b, " in %lld h %lld min", s / 3600, s % 3600 / 60);
}

void outcome_node(struct ctx *ctx, const struct totals_node *n)
{
    struct buf b = {0};

    if (!n->node || !n->node->name.len)
        return; /* --reattach waited for a node that never came */
    put_lost(&b, n->lost);
    put_count(&b, n->lost[ETW_LOST_OVERWRITTEN], "overwritten", "overwritten");
    put_count(&b, n->missing, "never arrived", "never arrived");
    ctx_say(ctx, "%.*s: %llu event%s%s%s", (int)n->node->name.len, n->node->name.at, (unsigned long long)n->shown,
            PLURAL(n->shown), buf_cstr(&b), n->complete ? "" : " · incomplete");
    buf_release(&b);
}

static void say_open(struct ctx *ctx, const struct totals_open *open)
{
    struct buf b = {0};

    if (!open->calls)
        return;
    if (open->calls > 1)
        buf_printf(&b, "%llu calls have not returned, the oldest for ", (unsigned long long)open->calls);
    else
        buf_puts(&b, "1 call has not returned for ");
    print_duration(&b, open->ns);
    buf_puts(&b, ": ");
    buf_str(&b, fun_text(open->fun));
    buf_printf(&b, "/%d", open->arity);
    if (open->who.text_len)
        buf_printf(&b, " by %.*s", (int)open->who.text_len, open->who.text);
    if (open->who.text_len && open->who.name_len)
        buf_printf(&b, "(%.*s)", (int)open->who.name_len, open->who.name);
    ctx_say(ctx, "%s", buf_cstr(&b));
    buf_release(&b);
}

void outcome_trace(struct ctx *ctx, const struct totals *t, int64_t took_ms, const char *end)
{
    struct buf b = {0};

    if (took_ms >= 0)
        put_time(&b, took_ms);
    put_count(&b, t->filtered, "filtered", "filtered");
    put_lost(&b, t->lost);
    put_count(&b, t->lost[ETW_LOST_OVERWRITTEN], "overwritten", "overwritten");
    put_count(&b, t->missing, "never arrived", "never arrived");
    put_untraced(&b, &t->untraced);
    put_count(&b, t->reloads, "reload (calls may be missing)", "reloads (calls may be missing)");
    put_count(&b, t->truncated, "cut (--size, --depth, --items)", "cut (--size, --depth, --items)");
    put_count(&b, t->incomplete, "call incomplete", "calls incomplete");
    if (end)
        buf_printf(&b, " · session %s", end);
    ctx_say(ctx, "%llu event%s%s", (unsigned long long)t->shown, PLURAL(t->shown), buf_cstr(&b));
    buf_release(&b);
    say_open(ctx, &t->open);
    for (size_t i = 0; i < ETW_LOSSES; i++)
        if (advice[i] && lost_for(t->lost, i))
            ctx_say(ctx, "lost (%s): %s", event_losses[i], advice[i]);
}

void outcome_rejections(struct ctx *ctx, const struct pipeline *p)
{
    struct buf b = {0};

    for (size_t i = 0; pipeline_rejection(p, i, &b); i++) {
        ctx_say(ctx, "%s", buf_cstr(&b));
        buf_clear(&b);
    }
    buf_release(&b);
}
