/* SPDX-License-Identifier: Apache-2.0 */
#include "missing.h"

#include "../fold/stats.h"
#include "../ground/json.h"
#include "key_text.h"

#define COUNTED_MOST 20 /* limit for the functions that get a line of their own */

static void put_loss_line(struct buf *to, const char *prefix, uint64_t n, const char *one, const char *many,
                          const char *why)
{
    if (!n)
        return;
    buf_printf(to, "%s*** %llu %s", prefix, (unsigned long long)n, n == 1 ? one : many);
    if (why)
        buf_printf(to, " (%s)", why);
    buf_puts(to, " ***\n");
}

void missing_events(struct buf *to, const struct totals *t, const char *prefix)
{
    for (size_t l = 0; l < ETW_LOSSES; l++)
        if (l != ETW_LOST_OVERWRITTEN)
            put_loss_line(to, prefix, t->lost[l], "event lost", "events lost", event_losses[l]);
    put_loss_line(to, prefix, t->lost[ETW_LOST_OVERWRITTEN], "event overwritten", "events overwritten", NULL);
    put_loss_line(to, prefix, t->missing, "event never came", "events never came", NULL);
    put_loss_line(to, prefix, t->incomplete, "call incomplete", "calls incomplete", NULL);
    put_loss_line(to, prefix, t->undecided, "event undecided by the filter", "events undecided by the filter",
                  "shown; terms were cut");
    put_loss_line(to, prefix, t->reloads, "reload of a module", "reloads of modules",
                  "calls until the next look were not seen");
    put_loss_line(to, prefix, t->endless, "function calls itself in a loop: its later calls have no duration",
                  "functions call themselves in loops: their later calls have no duration", NULL);
}

void missing_counted(struct buf *to, const struct totals *t, const char *prefix)
{
    const struct totals_untraced *u = &t->untraced;
    uint64_t others = 0;

    if (u->calls || u->unknown)
        buf_printf(to, "%s*** %s%llu call%s made no event (--overhead)%s ***\n", prefix, u->estimated ? "~" : "",
                   (unsigned long long)u->calls, PLURAL(u->calls),
                   u->unknown ? ", and an unknown number of others" : "");
    for (size_t i = 0; i < t->ncounted; i++) {
        const struct stat *c = &t->counted[i];
        if (i >= COUNTED_MOST) {
            others += c->only_counted;
            continue;
        }
        buf_printf(to, "%s*** %s%llu call%s of ", prefix, c->estimated ? "~" : "", (unsigned long long)c->only_counted,
                   PLURAL(c->only_counted));
        stat_name(c, to);
        buf_puts(to, c->only_counted == 1 ? " was only counted (--overhead) ***\n"
                                          : " were only counted (--overhead) ***\n");
    }
    if (others)
        buf_printf(to, "%s*** ~%llu calls of %zu other functions were only counted (--overhead) ***\n", prefix,
                   (unsigned long long)others, t->ncounted - COUNTED_MOST);
}

void missing_json(struct buf *to, const struct totals *t)
{
    missing_untraced_json(to, &t->untraced);
    if (t->reloads)
        json_put_uint(to, "reloads", t->reloads);
}

void missing_untraced_json(struct buf *to, const struct totals_untraced *u)
{
    if (!u->any)
        return;
    json_put_object(to, "not_traced");
    json_key(to, "calls");
    if (u->unknown)
        json_null(to);
    else
        json_uint(to, u->calls);
    json_put_bool(to, "estimated", u->estimated);
    json_end_object(to);
}

void missing_report(struct buf *to, const struct totals *t, const char *prefix)
{
    missing_events(to, t, prefix);
    missing_counted(to, t, prefix);
}

void missing_open_json(struct buf *to, const struct totals_open *open)
{
    if (!open->calls)
        return;
    json_put_object(to, "open");
    json_put_uint(to, "calls", open->calls);
    json_put_int(to, "oldest_ns", open->ns);
    json_ready(to, open->fun->json);
    json_put_int(to, "a", open->arity);
    if (open->who.text_len)
        json_put_safe(to, "pid", tracee_safe_text(&open->who));
    if (open->who.name_len)
        json_put_safe(to, "name", tracee_safe_name(&open->who));
    json_end_object(to);
}
