#include "clock.h"

#include <stdio.h>
#include <time.h>

#include "../erlang/term_print.h"

void clock_init(struct clock *c, enum time_style style)
{
    *c = (struct clock){.style = style, .second = INT64_MIN};
}

static void split(int64_t ns, int64_t *ret_second, uint32_t *ret_micro)
{
    int64_t s = ns / 1000000000, rest = ns % 1000000000;

    if (rest < 0) {
        rest += 1000000000;
        s--;
    }
    *ret_second = s;
    *ret_micro = (uint32_t)(rest / 1000);
}

static void put_micro(struct buf *to, uint32_t micro)
{
    char *p = buf_room(to, 7);

    p[0] = '.';
    print_micros(p + 1, micro);
    to->len += 7;
}

static void put_seconds(struct buf *to, int64_t ns)
{
    size_t from = to->len, width;
    int64_t s;
    uint32_t micro;

    split(ns < 0 ? -(ns + 1) : ns, &s, &micro);
    if (ns < 0)
        buf_char(to, '-');
    print_i64(to, s);
    put_micro(to, micro);
    width = to->len - from;
    if (width < 10) { /* right-aligned up to 999 seconds */
        buf_room(to, 10);
        memmove(to->data + from + 10 - width, to->data + from, width);
        memset(to->data + from, ' ', 10 - width);
        to->len = from + 10;
    }
}

void clock_put(struct clock *c, struct buf *to, const struct event *e)
{
    int64_t s;
    uint32_t micro;

    if (c->style == TIME_RELATIVE || c->style == TIME_DELTA) {
        int64_t at = e->node->aligned ? e->wall_ns : e->mono_ns; /* a monotonic clock says nothing to another node's */
        if (!c->begun)
            c->base = at;
        c->begun = true;
        put_seconds(to, (int64_t)((uint64_t)at - (uint64_t)c->base));
        if (c->style == TIME_DELTA)
            c->base = at;
        return;
    }
    split(e->wall_ns, &s, &micro);
    if (unlikely(s != c->second)) {
        struct tm tm = {0};
        time_t t = (time_t)s;
        if (c->style == TIME_UTC)
            gmtime_r(&t, &tm);
        else
            localtime_r(&t, &tm);
        c->len = (size_t)snprintf(c->text, sizeof(c->text), "%02d:%02d:%02d", tm.tm_hour, tm.tm_min, tm.tm_sec);
        c->second = s;
    }
    memcpy(buf_room(to, 16), c->text, 8);
    to->len += 8;
    put_micro(to, micro);
}

void clock_put_iso(struct clock *c, struct buf *to, const struct event *e)
{
    int64_t s;
    uint32_t micro;

    split(e->wall_ns, &s, &micro);
    if (unlikely(s != c->second)) {
        struct tm tm = {.tm_year = 70, .tm_mday = 1};
        time_t t = (time_t)s;
        gmtime_r(&t, &tm);
        int n = snprintf(c->text, sizeof(c->text), "%04d-%02d-%02dT%02d:%02d:%02d", tm.tm_year + 1900, tm.tm_mon + 1,
                         tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec);
        c->len = MIN((size_t)n, sizeof(c->text) - 1);
        c->second = s;
    }
    memcpy(buf_room(to, sizeof(c->text)), c->text, sizeof(c->text));
    to->len += c->len;
    put_micro(to, micro);
    buf_char(to, 'Z');
}
