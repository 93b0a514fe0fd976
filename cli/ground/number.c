/* SPDX-License-Identifier: Apache-2.0 */
#include "number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const char digit_pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748"
    "4950515253545556575859606162636465666768697071727374757677787980818283848586878889909192939495969798"
    "99";

void print_micros(char *to, uint32_t micros)
{
    memcpy(to, digit_pairs + micros / 10000 % 100 * 2, 2);
    memcpy(to + 2, digit_pairs + micros / 100 % 100 * 2, 2);
    memcpy(to + 4, digit_pairs + micros % 100 * 2, 2);
}

/* Writes the digits of `v` so that they end before `end`. Returns the first digit. */
static char *digits_before(char *end, uint64_t v)
{
    while (v >= 10000) {
        uint32_t four = (uint32_t)(v % 10000);
        v /= 10000;
        end -= 4;
        memcpy(end, digit_pairs + four / 100 * 2, 2);
        memcpy(end + 2, digit_pairs + four % 100 * 2, 2);
    }
    if (v >= 100) {
        end -= 2;
        memcpy(end, digit_pairs + v % 100 * 2, 2);
        v /= 100;
    }
    if (v >= 10) {
        end -= 2;
        memcpy(end, digit_pairs + v * 2, 2);
    } else {
        *--end = (char)('0' + v);
    }
    return end;
}

static unsigned digits_of(uint64_t v)
{
    static const uint64_t powers[] = {
        0,
        10,
        100,
        1000,
        10000,
        100000,
        1000000,
        10000000,
        100000000,
        1000000000,
        10000000000,
        100000000000,
        1000000000000,
        10000000000000,
        100000000000000,
        1000000000000000,
        10000000000000000,
        100000000000000000,
        1000000000000000000,
        10000000000000000000u,
    };
    unsigned bits = 64 - (unsigned)__builtin_clzll(v | 1), about = bits * 1233 >> 12;

    return about + (v >= powers[about]);
}

static size_t put_u64(char *to, uint64_t v)
{
    unsigned n = digits_of(v);

    digits_before(to + n, v);
    return n;
}

char *print_natural(char *to, uint64_t v)
{
    return to + put_u64(to, v);
}

char *print_digits(char *to, int64_t v)
{
    *to = '-';
    to += v < 0;
    return to + put_u64(to, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

void print_u64(struct buf *to, uint64_t v)
{
    to->len += put_u64(buf_room(to, 20), v);
}

void print_i64(struct buf *to, int64_t value)
{
    char *p = buf_room(to, 21);

    to->len += (size_t)(print_digits(p, value) - p);
}

#define BIG_BYTES 1700 /* bytes of the largest integer that is printed, about 4096 digits: more would take too long */
#define CHUNK 1000000000u

void print_big(struct buf *to, const uint8_t *magnitude, size_t bytes, bool negative)
{
    uint32_t limbs[BIG_BYTES / 4 + 1] = {0}, chunks[BIG_BYTES / 3 + 2];
    size_t n, count = 0;

    if (bytes > BIG_BYTES) {
        buf_puts(to, "…+");
        print_u64(to, bytes);
        buf_puts(to, " B");
        return;
    }
    memcpy(limbs, magnitude, bytes);
    for (n = (bytes + 3) / 4; n && !limbs[n - 1];)
        n--;
    while (n) {
        uint64_t rest = 0;
        for (size_t i = n; i-- > 0;) {
            rest = rest << 32 | limbs[i];
            limbs[i] = (uint32_t)(rest / CHUNK);
            rest %= CHUNK;
        }
        chunks[count++] = (uint32_t)rest;
        while (n && !limbs[n - 1])
            n--;
    }
    if (negative && count)
        buf_char(to, '-');
    print_u64(to, count ? chunks[count - 1] : 0);
    for (size_t i = count ? count - 1 : 0; i-- > 0;) {
        char nine[9], *p = digits_before(nine + 9, chunks[i]);
        memset(nine, '0', (size_t)(p - nine));
        buf_add(to, nine, 9);
    }
}

static const int64_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

/*
 * Prints most floats of real programs quickly: 7.0, 0.25, 1234.5. Prints the same digits as find_shortest(), and never
 * an exponent. Returns NULL if the value needs find_shortest().
 */
static char *put_few_decimals(char *to, double v)
{
    if (!(v < 1e9 && v >= 0.1))
        return NULL;
    int64_t whole = (int64_t)v;
    if ((double)whole == v) {
        if (whole % 10 == 0) /* a trailing zero: the exponent form may be shorter */
            return NULL;
        to += put_u64(to, (uint64_t)whole);
        memcpy(to, ".0", 2);
        return to + 2;
    }
    for (int k = 1; k <= 4; k++) {
        int64_t m = (int64_t)(v * (double)tens[k] + 0.5);
        if ((double)m / (double)tens[k] != v)
            continue;
        to += put_u64(to, (uint64_t)(m / tens[k]));
        *to++ = '.';
        char *end = to + k, *at = digits_before(end, (uint64_t)(m % tens[k]));
        memset(to, '0', (size_t)(at - to));
        return end;
    }
    return NULL;
}

/*
 * Finds the shortest digits d1d2…dn for which 0.d1d2…dn * 10^place reads back to the same double. If several are
 * equally short, finds those nearest to the value. Returns n.
 */
static int find_shortest(double v, char digits[static 18], int *ret_place)
{
    char text[32];
    int n, exponent;

    /* Few decimals: the division m / 10^k rounds only once, and 15 digits always read back to the same double. */
    if (v < 1e15 && v >= 1e-5) {
        for (int k = 0; k <= 8 && v * (double)tens[k] < 1e15; k++) {
            uint64_t m = (uint64_t)(v * (double)tens[k] + 0.5);
            if ((double)m / (double)tens[k] != v)
                continue;
            n = (int)put_u64(digits, m);
            *ret_place = n - k;
            while (n > 1 && digits[n - 1] == '0')
                n--;
            return n;
        }
    }
    for (n = 1; n <= 17; n++) {
        if (n == 1) /* only a subnormal number can have fewer than 15 digits here */
            n = v < 1e-290 ? 1 : 15;
        snprintf(text, sizeof(text), "%.*e", n - 1, v);
        if (strtod(text, NULL) == v)
            break;
        /*
         * The gap below a power of two is half as wide as the gap above. The next larger decimal may therefore read
         * back to v where the nearest one does not.
         */
        if (n < 17) {
            char up[32];
            memcpy(up, text, sizeof(up));
            char *last = strchr(up, 'e') - 1;
            if (*last != '9') {
                ++*last;
                if (strtod(up, NULL) == v) {
                    memcpy(text, up, sizeof(text));
                    break;
                }
            }
        }
    }
    if (n > 17)
        n = 17;
    exponent = atoi(strchr(text, 'e') + 1);
    digits[0] = text[0];
    if (n > 1)
        memcpy(digits + 1, text + 2, (size_t)n - 1);
    while (n > 1 && digits[n - 1] == '0')
        n--;
    *ret_place = exponent + 1;
    return n;
}

/*
 * Prints a float as 0.001 or 1.0e-3, as OTP does: in the shorter form, and with an exponent for integers of 2^53 and
 * more.
 */
char *print_float(char *p, double value)
{
    char digits[32], *few;
    int place, n;

    if (signbit(value) && !isnan(value)) {
        *p++ = '-';
        value = -value;
    }
    if (likely((few = put_few_decimals(p, value))))
        return few;
    if (!isfinite(value) || value == 0) {
        memcpy(p, isnan(value) ? "nan" : value == 0 ? "0.0" : "inf", 3);
        return p + 3;
    }
    n = find_shortest(value, digits, &place);
    int exponent = abs(place - 1);
    int cost = (place < 1) + (exponent < 10 ? 1 : exponent < 100 ? 2 : 3) + 1 + (n == 1 ? 2 : 1);
    bool plain = place > 0 && place < n;

    if (place <= 0)
        plain = 2 - place <= cost;
    else if (place >= n)
        plain = place - n + 2 <= cost && value < 9007199254740992.0;
    if (!plain) {
        *p++ = digits[0];
        *p++ = '.';
        if (n == 1)
            *p++ = '0';
        for (int i = 1; i < n; i++)
            *p++ = digits[i];
        *p++ = 'e';
        p = print_digits(p, place - 1);
    } else if (place <= 0) {
        *p++ = '0';
        *p++ = '.';
        for (int i = place; i < 0; i++)
            *p++ = '0';
        memcpy(p, digits, (size_t)n);
        p += n;
    } else {
        for (int i = 0; i < MAX(place, n); i++) {
            if (i == place)
                *p++ = '.';
            *p++ = i < n ? digits[i] : '0';
        }
        if (place >= n) {
            *p++ = '.';
            *p++ = '0';
        }
    }
    return p;
}

void print_us(struct buf *to, int64_t ns)
{
    if (ns < 0)
        return;
    buf_printf(to, "%lld", (long long)(ns / 1000));
    if (ns % 1000)
        buf_printf(to, ".%03lld", (long long)(ns % 1000));
}

/* Prints three significant digits. */
void print_duration(struct buf *to, int64_t ns)
{
    static const struct {
        uint64_t ns;
        const char *unit;
    } units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};
    uint64_t v = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    size_t u = 0;

    if (ns < 0)
        buf_char(to, '-');
    while (u < 3 && v < units[u].ns)
        u++;
    for (;; u--) {
        uint64_t unit = units[u].ns, step = v < 10 * unit ? 1 : v < 100 * unit ? 10 : 100; /* hundredths of the unit */
        uint64_t rounded = v < UINT64_MAX / 200 ? (v * 100 / step + unit / 2) / unit * step : v / unit * 100;
        if (rounded >= 100000 && u > 0)
            continue; /* 999.9 rounds up to 1000, which is 1 of the next unit */
        print_u64(to, rounded / 100);
        unsigned fraction = (unsigned)(rounded % 100);
        if (fraction) {
            buf_char(to, '.');
            buf_char(to, (char)('0' + fraction / 10));
            if (fraction % 10)
                buf_char(to, (char)('0' + fraction % 10));
        }
        buf_puts(to, units[u].unit);
        return;
    }
}
