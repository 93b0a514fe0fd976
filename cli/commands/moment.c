/* SPDX-License-Identifier: Apache-2.0 */
#include "moment.h"

#include <string.h>
#include <time.h>

#include "opts.h"

#define SECOND INT64_C(1000000000)

/* Reads exactly `count` digits. */
static bool moment_digits(const char **at, int count, int *ret)
{
    int value = 0;

    for (int i = 0; i < count; i++, (*at)++) {
        if (**at < '0' || **at > '9')
            return false;
        value = value * 10 + **at - '0';
    }
    *ret = value;
    return true;
}

static bool moment_take(const char **at, char c)
{
    if (**at != c)
        return false;
    (*at)++;
    return true;
}

/* Reads 18:26, 18:26:50 or 18:26:50.118402. */
static bool time_of_day(const char **at, struct tm *tm, int64_t *ret_ns)
{
    int64_t unit = SECOND / 10;

    *ret_ns = 0;
    tm->tm_sec = 0;
    if (!moment_digits(at, 2, &tm->tm_hour) || !moment_take(at, ':') || !moment_digits(at, 2, &tm->tm_min))
        return false;
    if (moment_take(at, ':')) {
        if (!moment_digits(at, 2, &tm->tm_sec))
            return false;
        if (moment_take(at, '.'))
            for (; **at >= '0' && **at <= '9'; (*at)++, unit /= 10)
                *ret_ns += unit * (**at - '0');
    }
    return tm->tm_hour < 24 && tm->tm_min < 60 && tm->tm_sec < 60;
}

/* Reads Z or +02:00. Sets *ret to the offset of the zone from UTC in seconds. */
static bool read_zone(const char **at, int64_t *ret)
{
    int hours = 0, minutes = 0;
    bool west = **at == '-';

    if (!moment_take(at, 'Z')) {
        if (!moment_take(at, '+') && !moment_take(at, '-'))
            return false;
        if (!moment_digits(at, 2, &hours) || (moment_take(at, ':'), !moment_digits(at, 2, &minutes)))
            return false;
    }
    *ret = (west ? -60 : 60) * (hours * 60 + minutes);
    return true;
}

static bool date_and_time(const char *at, bool utc, struct moment *ret)
{
    struct tm tm = {.tm_isdst = -1}, same;
    int64_t ns = 0, ahead = 0;

    if (!moment_digits(&at, 4, &tm.tm_year) || !moment_take(&at, '-') || !moment_digits(&at, 2, &tm.tm_mon) ||
        !moment_take(&at, '-') || !moment_digits(&at, 2, &tm.tm_mday))
        return false;
    if ((moment_take(&at, 'T') || moment_take(&at, ' ')) && !time_of_day(&at, &tm, &ns))
        return false;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    bool zoned = read_zone(&at, &ahead);
    same = tm;
    time_t t = utc || zoned ? timegm(&same) : mktime(&same);
    if (*at || same.tm_mday != tm.tm_mday || same.tm_mon != tm.tm_mon || tm.tm_year < 70 || tm.tm_year > 300)
        return false;
    *ret = (struct moment){MOMENT_AT, ((int64_t)t - ahead) * SECOND + ns};
    return true;
}

bool moment_read(const char *text, bool utc, struct moment *ret)
{
    const char *at = text;
    struct tm tm;
    int64_t ns;

    *ret = (struct moment){0};
    if (!text)
        return true;
    if (*text == '+' || *text == '-') {
        ret->kind = *text == '+' ? MOMENT_AFTER : MOMENT_BEFORE_END;
        return opt_duration(text + 1, &ret->ns);
    }
    if (date_and_time(text, utc, ret))
        return true;
    if (!time_of_day(&at, &tm, &ns) || *at)
        return false;
    *ret = (struct moment){MOMENT_OF_DAY, (tm.tm_hour * 3600 + tm.tm_min * 60 + tm.tm_sec) * SECOND + ns};
    return true;
}
