/* Small helpers of the compiler that every floor uses. Nothing here knows Erlang. */
#ifndef ETRACE_MACROS_H
#define ETRACE_MACROS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define UNUSED __attribute__((unused))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* A piece of text that somebody else owns; never NUL-terminated by contract. */
struct str {
    const char *at;
    size_t len;
};

/* What follows a noun of which there are so many. */
#define PLURAL(n) ((n) == 1 ? "" : "s")
#define PLURAL_ES(n) ((n) == 1 ? "" : "es")

#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})

#endif
