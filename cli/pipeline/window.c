/* SPDX-License-Identifier: Apache-2.0 */
#include "window.h"

#include <time.h>

#define SECOND INT64_C(1000000000)
#define HALF_DAY (12 * 3600 * SECOND)
#define FAR (INT64_MAX / 2) /* limit for times, later than any clock; a malformed recording may have later times */

static int64_t on_day(const struct tm *day, int64_t of_day, bool utc)
{
    int64_t seconds = of_day / SECOND;
    struct tm tm = *day;

    tm.tm_hour = (int)(seconds / 3600);
    tm.tm_min = (int)(seconds / 60 % 60);
    tm.tm_sec = (int)(seconds % 60);
    tm.tm_isdst = -1;
    return (int64_t)(utc ? timegm(&tm) : mktime(&tm)) * SECOND + of_day % SECOND;
}

/*
 * Returns the time of day `of_day` on the day of `ns`. If this time is more than twelve hours before `ns`, returns the
 * time of day on the next day.
 */
static int64_t window_of_day(int64_t ns, int64_t of_day, bool utc)
{
    time_t t = (time_t)(ns / SECOND);
    struct tm day = {.tm_year = 70, .tm_mday = 1};

    if (utc)
        gmtime_r(&t, &day);
    else
        localtime_r(&t, &day);
    int64_t at = on_day(&day, of_day, utc);
    if (at >= ns - HALF_DAY)
        return at;
    day.tm_mday++;
    return on_day(&day, of_day, utc);
}

static int64_t window_edge(const struct window *w, const struct moment *m, int64_t first, int64_t none)
{
    int64_t ns;

    switch (m->kind) {
    case MOMENT_AT:
        return m->ns;
    case MOMENT_OF_DAY:
        return window_of_day(first, m->ns, w->utc);
    case MOMENT_AFTER:
        return __builtin_add_overflow(first, m->ns, &ns) ? INT64_MAX : ns;
    case MOMENT_NONE:
    case MOMENT_BEFORE_END:
        break;
    }
    return none;
}

void window_begin(struct window *w, int64_t first_ns)
{
    const int64_t first = MAX(-FAR, MIN(first_ns, FAR));

    w->begun = true;
    w->first_ns = window_edge(w, &w->from, first, INT64_MIN);
    w->last_ns = window_edge(w, &w->to, first, INT64_MAX);
}

bool window_takes(struct window *w, const struct event *e)
{
    const int64_t at = event_began(e);

    if (e->kind == ETW_HELLO)
        return true;
    if (!w->begun) {
        if (!event_is_traced(e) && !e->tally)
            return w->from.kind == MOMENT_NONE;
        window_begin(w, at);
    }
    w->held_back |= e->waited_ns > 0;
    w->over |= event_is_traced(e) && at > w->last_ns && !w->held_back;
    return at >= w->first_ns && at <= w->last_ns;
}
