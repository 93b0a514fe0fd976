/* SPDX-License-Identifier: Apache-2.0 */
/* Says what `etrace check` has not looked at. No other rule knows whether anything is wrong with that. */
#include "check_rules.h"

static struct buf *unlooked_note(const struct check_rules *r)
{
    return &check_add(r, CHECK_NOTE, CHECK_UNKNOWN)->text;
}

/* ---- parts of the node's answer ---- */

static void unlooked_parts(const struct check_rules *r)
{
    for (size_t i = 0; i < r->last->nunknown; i++)
        buf_printf(unlooked_note(r), "the node did not answer in time about its %s", r->last->unknown[i]);
    for (size_t i = 0; i < r->last->nlarge; i++)
        buf_printf(unlooked_note(r), "the node's %s are unknown, because their copy might be large", r->last->large[i]);
}

static void unlooked_rows(const struct check_rules *r)
{
    static const struct {
        int most;
        const char *what;
    } lists[CHECK_LISTS] = {
        [CHECK_LIST_WAITS] = {CHECK_ROWS, "processes keep others waiting: only those for which most wait"},
        [CHECK_LIST_PORTS] = {CHECK_ROWS, "ports have a long queue of output: only the longest ones"},
        [CHECK_LIST_POOLS] = {CHECK_ROWS, "pools have no free connection: only those for which most wait"},
        [CHECK_LIST_LOCKS] = {CHECK_LOCKS, "locks are held: only some of them"},
        [CHECK_LIST_LOG] = {CHECK_ROWS, "processes handle the log: only some of them"},
        [CHECK_LIST_ALARMS] = {CHECK_ROWS, "alarms are set: only some of them"},
        [CHECK_LIST_STARTING] = {CHECK_ROWS, "applications have not started yet: only some of them"},
    };

    for (size_t i = 0; i < CHECK_LISTS; i++)
        if (r->last->more[i])
            buf_printf(unlooked_note(r), "more than %d %s were looked at", lists[i].most, lists[i].what);
}

/* ---- processes ---- */

/* Says how many processes the scan has not made suspects, although they have the reason. */
static void unlooked_reasons(const struct check_rules *r)
{
    static const struct {
        const char *have, *first, *sort;
    } reasons[CHECK_REASONS] = {
        [CHECK_LONG_QUEUE] = {"have at least 100 messages", "most messages", "queue"},
        [CHECK_MUCH_MEMORY] = {"have at least 32 MB", "most memory", "memory"},
        [CHECK_RUNS] = {"ran, or waited for a scheduler", "most reductions", "reductions"},
        [CHECK_IS_COLLECTING] = {"collected garbage", "most memory", "memory"},
        [CHECK_IS_SUSPENDED] = {"are suspended", "most messages", "queue"},
        [CHECK_IS_PAUSED] = {"are suspended by sys", "most messages", "queue"},
        [CHECK_IS_EXITING] = {"were exiting", "most messages", "queue"},
    };
    const struct check_chosen *c = &r->seen->chosen;

    for (size_t i = 0; i < CHECK_REASONS; i++) {
        if (c->all[i] <= c->chosen[i])
            continue;
        struct check_finding *f = check_add(r, CHECK_NOTE, CHECK_UNKNOWN);
        buf_printf(&f->text, "%lld processes %s: the %lld with the %s were looked at", (long long)c->all[i],
                   reasons[i].have, (long long)c->chosen[i], reasons[i].first);
        check_command(r, f, "ps");
        command_line_add(&f->command, " --sort");
        command_line_word(&f->command, reasons[i].sort);
    }
}

/* Says how many suspects no rule has judged, because the time for the looks was over. */
static void unlooked_suspects(const struct check_rules *r)
{
    const size_t all = r->seen->nsuspects + r->seen->left_out;
    size_t n = r->seen->left_out;

    for (size_t i = 0; i < r->seen->nsuspects; i++)
        n += !check_suspect_is_known(r->seen->suspects[i]);
    if (n)
        buf_printf(unlooked_note(r), "%zu of %zu suspects were not looked at in time", n, all);
}

void check_unlooked(const struct check_rules *r)
{
    unlooked_parts(r);
    unlooked_rows(r);
    unlooked_reasons(r);
    unlooked_suspects(r);
}
