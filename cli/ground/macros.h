/* SPDX-License-Identifier: Apache-2.0 */
/* Common macros and string types. Every floor includes this file; it knows nothing about Erlang. */
#ifndef ETRACE_MACROS_H
#define ETRACE_MACROS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
#define TEXT_OF(macro) TEXT_OF_TOKENS(macro) /* the value of a macro as a string literal */
#define TEXT_OF_TOKENS(tokens) #tokens
#define UNUSED __attribute__((unused))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* These evaluate each argument once, so an argument may be a call. They are no constant expressions. */
#define MIN(a, b) PICK(a, <, b, JOIN(pick_a, __COUNTER__), JOIN(pick_b, __COUNTER__))
#define MAX(a, b) PICK(a, >, b, JOIN(pick_a, __COUNTER__), JOIN(pick_b, __COUNTER__))
#define PICK(a, op, b, x, y)                                                                                           \
    __extension__({                                                                                                    \
        __typeof__(0 ? (a) : (b)) x = (a), y = (b);                                                                    \
        x op y ? x : y;                                                                                                \
    })
#define JOIN(a, b) JOIN_TOKENS(a, b)
#define JOIN_TOKENS(a, b) a##b

/* A borrowed piece of text. It need not end in a NUL. */
struct str {
    const char *at;
    size_t len;
};

/*
 * Untrusted text has its own types. Text from a node, a recording or epmd may contain any bytes, including terminal
 * control sequences.
 *
 *   struct raw   unescaped. No printing function accepts it, and `at` is not a `char *`, so the compiler rejects it for
 *                %s and buf_puts(). print_safe(), json_string() and the printers of terms escape it, each for its own
 *                output.
 *   struct safe  escaped; buf_safe() prints it unchanged. Only safe_keep() and SAFE() create one.
 */
struct raw {
    const struct raw_byte *at;
    size_t len;
};

struct safe {
    const char *at;
    size_t len;
};

#define SAFE(literal) ((struct safe){"" literal, sizeof(literal) - 1})

/* Marks bytes as untrusted. Call it where they enter the program. */
static inline struct raw raw_bytes(const void *at, size_t len)
{
    return (struct raw){(const struct raw_byte *)at, len};
}

/* Converts trusted text to untrusted text. */
static inline struct raw raw_of(struct str text)
{
    return raw_bytes(text.at, text.len);
}

static inline struct str safe_view(struct safe text)
{
    return (struct str){text.at, text.len};
}

/* Returns the text for functions that parse or escape it. Never print the result. */
static inline struct str raw_view(struct raw text)
{
    return (struct str){(const char *)text.at, text.len};
}

/* The plural ending for a count. */
#define PLURAL(n) ((n) == 1 ? "" : "s")
#define PLURAL_ES(n) ((n) == 1 ? "" : "es")

#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})

#endif
