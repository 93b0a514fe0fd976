/* SPDX-License-Identifier: Apache-2.0 */
#include "missing.h"

static void line(struct buf *to, const char *prefix, uint64_t n, const char *one, const char *many, const char *why)
{
    if (!n)
        return;
    buf_printf(to, "%s*** %llu %s", prefix, (unsigned long long)n, n == 1 ? one : many);
    if (why)
        buf_printf(to, " (%s)", why);
    buf_puts(to, " ***\n");
}

void missing_report(struct buf *to, const struct totals *t, const char *prefix)
{
    for (size_t l = 0; l < ETW_LOSSES; l++)
        line(to, prefix, t->lost[l], "event lost", "events lost", event_losses[l]);
    line(to, prefix, t->missing, "event never came", "events never came", NULL);
    line(to, prefix, t->incomplete, "call incomplete", "calls incomplete", NULL);
    line(to, prefix, t->undecided, "event undecided by the filter", "events undecided by the filter",
         "shown; terms were cut");
    line(to, prefix, t->endless, "function does not return: its calls have no duration",
         "functions do not return: their calls have no duration", NULL);
}
