/* SPDX-License-Identifier: Apache-2.0 */
/* The helpers of a unit test: ok(), is_text(), is_number(), and `return tap_end();` from main. They print TAP. */
#ifndef ETRACE_TAP_H
#define ETRACE_TAP_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int tap_count, tap_failed;

__attribute__((unused, format(printf, 2, 3))) static bool ok(bool good, const char *fmt, ...)
{
    __builtin_va_list args;

    printf("%sok %d - ", good ? "" : "not ", ++tap_count);
    __builtin_va_start(args, fmt);
    vprintf(fmt, args);
    __builtin_va_end(args);
    putchar('\n');
    fflush(stdout);
    tap_failed += !good;
    return good;
}

__attribute__((unused)) static void tap_text(const char *what, const char *at, size_t len)
{
    printf("# %s: ", what);
    for (size_t i = 0; i < len; i++) {
        putchar(at[i]);
        if (at[i] == '\n' && i + 1 < len)
            printf("#      ");
    }
    if (!len || at[len - 1] != '\n')
        putchar('\n');
}

__attribute__((unused)) static bool is_bytes(const char *got, size_t len, const char *want, const char *name)
{
    bool good = len == strlen(want) && !memcmp(got, want, len);

    ok(good, "%s", name);
    if (!good) {
        tap_text("got ", got, len);
        tap_text("want", want, strlen(want));
    }
    return good;
}

__attribute__((unused)) static bool is_text(const char *got, const char *want, const char *name)
{
    return is_bytes(got, strlen(got), want, name);
}

__attribute__((unused)) static bool is_number(int64_t got, int64_t want, const char *name)
{
    bool good = ok(got == want, "%s", name);

    if (!good)
        printf("# got %" PRId64 ", want %" PRId64 "\n", got, want);
    return good;
}

__attribute__((unused)) static int tap_end(void)
{
    printf("1..%d\n", tap_count);
    return tap_failed ? 1 : 0;
}

#endif
