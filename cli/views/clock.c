/* SPDX-License-Identifier: Apache-2.0 */
#include "clock.h"

#include <stdio.h>
#include <time.h>

#include "../erlang/term_print.h"

/* Caches the second that contains `ns` as text. */
static void turn_second(struct clock *c, int64_t ns, bool iso)
{
    int64_t rest = ns % 1000000000;
    struct tm tm = {.tm_year = 70, .tm_mday = 1};

    rest += rest < 0 ? 1000000000 : 0;
    c->begin = (int64_t)((uint64_t)ns - (uint64_t)rest);
    time_t t = (time_t)(ns / 1000000000 - (ns % 1000000000 < 0));
    if (iso || c->style == TIME_UTC)
        gmtime_r(&t, &tm);
    else
        localtime_r(&t, &tm);
    int n = iso ? snprintf(c->text, sizeof(c->text), "%04d-%02d-%02dT%02d:%02d:%02d.", tm.tm_year + 1900, tm.tm_mon + 1,
                           tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec)
                : snprintf(c->text, sizeof(c->text), "%02d:%02d:%02d.", tm.tm_hour, tm.tm_min, tm.tm_sec);
    c->len = MIN((size_t)n, sizeof(c->text) - 1);
}

void clock_init(struct clock *c, enum time_style style)
{
    *c = (struct clock){.style = style};
    turn_second(c, 0, false);
}

void clock_init_iso(struct clock *c)
{
    *c = (struct clock){.style = TIME_UTC};
    turn_second(c, 0, true);
}

static inline void put_clock(struct clock *c, struct buf *to, int64_t ns, bool iso)
{
    uint64_t rest = (uint64_t)ns - (uint64_t)c->begin;

    if (unlikely(rest >= 1000000000)) {
        turn_second(c, ns, iso);
        rest = (uint64_t)ns - (uint64_t)c->begin;
    }
    char *p = buf_room(to, sizeof(c->text) + 7);
    memcpy(p, c->text, sizeof(c->text));
    print_micros(p + c->len, (uint32_t)rest / 1000);
    p[c->len + 6] = 'Z';
    to->len += c->len + 6 + iso;
}

static void put_seconds(struct buf *to, int64_t ns)
{
    uint64_t passed = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    size_t from = to->len, width;

    if (ns < 0)
        passed--, buf_char(to, '-');
    print_u64(to, passed / 1000000000);
    char *p = buf_room(to, 7);
    p[0] = '.';
    print_micros(p + 1, (uint32_t)(passed % 1000000000 / 1000));
    to->len += 7;
    width = to->len - from;
    if (width < 10) { /* aligns times up to 999 seconds to the right */
        buf_room(to, 10);
        memmove(to->data + from + 10 - width, to->data + from, width);
        memset(to->data + from, ' ', 10 - width);
        to->len = from + 10;
    }
}

int64_t clock_steady(const struct event *e)
{
    /* Monotonic clocks of different nodes cannot be compared. */
    return e->node->aligned ? e->wall_ns : event_steady(e);
}

void clock_put(struct clock *c, struct buf *to, const struct event *e)
{
    clock_put_at(c, to, e->wall_ns, clock_steady(e));
}

void clock_put_at(struct clock *c, struct buf *to, int64_t wall_ns, int64_t at)
{
    if (likely(c->style != TIME_RELATIVE && c->style != TIME_DELTA)) {
        put_clock(c, to, wall_ns, false);
        return;
    }
    if (!c->begun)
        c->base = at;
    c->begun = true;
    put_seconds(to, (int64_t)((uint64_t)at - (uint64_t)c->base));
    if (c->style == TIME_DELTA)
        c->base = at;
}

void clock_put_iso(struct clock *c, struct buf *to, const struct event *e)
{
    put_clock(c, to, e->wall_ns, true);
}
