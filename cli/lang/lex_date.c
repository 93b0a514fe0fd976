/* SPDX-License-Identifier: Apache-2.0 */
/* Reads Elixir's sigils for dates and times. The results are structs of Calendar.ISO. */
#include <string.h>

#include "lex.h"

struct when {
    int64_t year, month, day, hour, minute, second, micro, digits;
};

struct reader {
    const char *at, *end;
};

/* Reads exactly `count` digits. */
static bool take_digits(struct reader *r, int count, int64_t *ret)
{
    int64_t value = 0;

    for (int i = 0; i < count; i++, r->at++) {
        if (r->at == r->end || *r->at < '0' || *r->at > '9')
            return false;
        value = value * 10 + (*r->at - '0');
    }
    *ret = value;
    return true;
}

static bool date_take(struct reader *r, char ch)
{
    if (r->at == r->end || *r->at != ch)
        return false;
    r->at++;
    return true;
}

static bool take_date(struct reader *r, struct when *w)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool negative = date_take(r, '-');

    if (!take_digits(r, 4, &w->year) || !date_take(r, '-') || !take_digits(r, 2, &w->month) || !date_take(r, '-') ||
        !take_digits(r, 2, &w->day) || w->month < 1 || w->month > 12)
        return false;
    bool leap = w->year % 4 == 0 && (w->year % 100 || w->year % 400 == 0);
    if (negative)
        w->year = -w->year;
    return w->day >= 1 && w->day <= lengths[w->month - 1] + (w->month == 2 && leap);
}

/* Reads a time. It uses the first six digits of the fraction; the number of digits is part of the value. */
static bool time_of_day(struct reader *r, struct when *w)
{
    if (!take_digits(r, 2, &w->hour) || !date_take(r, ':') || !take_digits(r, 2, &w->minute) || !date_take(r, ':') ||
        !take_digits(r, 2, &w->second) || w->hour > 23 || w->minute > 59 || w->second > 59)
        return false;
    if (!date_take(r, '.') && !date_take(r, ','))
        return true;
    const char *from = r->at;
    for (int64_t digit; take_digits(r, 1, &digit);)
        if (w->digits < 6) {
            w->micro = w->micro * 10 + digit;
            w->digits++;
        }
    for (int64_t i = w->digits; i < 6; i++)
        w->micro *= 10;
    return r->at > from;
}

/* ---- structs ---- */

struct pairs {
    struct arena *a;
    term_t items[32];
    size_t count;
};

static void date_put(struct pairs *p, const char *key, term_t value)
{
    p->items[p->count++] = term_atom(p->a, key);
    p->items[p->count++] = value;
}

static void put_int(struct pairs *p, const char *key, int64_t value)
{
    date_put(p, key, term_int(p->a, value));
}

static void date_put_atom(struct pairs *p, const char *key, const char *name)
{
    date_put(p, key, term_atom(p->a, name));
}

static const struct {
    char sigil;
    bool date, time, utc;
    const char *name, *means, *example;
} sigils[] = {
    {'D', true, false, false, "Elixir.Date", "a date", "2024-12-31"},
    {'T', false, true, false, "Elixir.Time", "a time of day", "23:59:59"},
    {'N', true, true, false, "Elixir.NaiveDateTime", "a date and time", "2024-12-31 23:59:59"},
    {'U', true, true, true, "Elixir.DateTime", "a date and time in UTC", "2024-12-31 23:59:59Z"},
};

bool lex_date(struct comp *c, char sigil, struct str text, size_t from, size_t len, term_t *ret)
{
    struct reader r = {text.at, text.at + text.len};
    struct pairs p = {.a = c->arena};
    struct when w = {0};
    size_t i = 0;

    while (sigils[i].sigil != sigil)
        i++;
    bool ok = (!sigils[i].date || take_date(&r, &w)) &&
              (!sigils[i].date || !sigils[i].time || date_take(&r, ' ') || date_take(&r, 'T')) &&
              (!sigils[i].time || time_of_day(&r, &w)) && (!sigils[i].utc || date_take(&r, 'Z')) && r.at == r.end;
    if (!ok) {
        diag(c, from, len, "~%c needs %s", sigil, sigils[i].means);
        return diag_note(c, "such as ~%c[%s]", sigil, sigils[i].example);
    }
    date_put_atom(&p, "__struct__", sigils[i].name);
    date_put_atom(&p, "calendar", "Elixir.Calendar.ISO");
    if (sigils[i].date) {
        put_int(&p, "day", w.day);
        put_int(&p, "month", w.month);
        put_int(&p, "year", w.year);
    }
    if (sigils[i].time) {
        put_int(&p, "hour", w.hour);
        date_put(&p, "microsecond", TUPLE(c->arena, term_int(c->arena, w.micro), term_int(c->arena, w.digits)));
        put_int(&p, "minute", w.minute);
        put_int(&p, "second", w.second);
    }
    if (sigils[i].utc) {
        put_int(&p, "std_offset", 0);
        date_put(&p, "time_zone", term_bin(c->arena, "Etc/UTC", 7));
        put_int(&p, "utc_offset", 0);
        date_put(&p, "zone_abbr", term_bin(c->arena, "UTC", 3));
    }
    *ret = term_map(c->arena, p.count / 2, p.items);
    return true;
}
