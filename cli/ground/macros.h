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

/*
 * Text from outside has types of its own: what a node, a recording or an epmd calls something may hold anything, also
 * what steers a terminal.
 *
 *   struct raw   as it came. No function that prints takes it, and its bytes are no `char`, so that neither %s nor buf_puts()
 *                takes them. print_safe(), json_string() and the printers of terms escape it, each for its own output.
 *   struct safe  escaped, and kept to be printed as it is with buf_safe(). Only safe_keep() and SAFE() make one.
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

/* Bytes from outside, at the place where they enter. */
static inline struct raw raw_bytes(const void *at, size_t len)
{
    return (struct raw){(const struct raw_byte *)at, len};
}

/* Text of any kind may be treated as if it came from outside. */
static inline struct raw raw_of(struct str text)
{
    return raw_bytes(text.at, text.len);
}

static inline struct str safe_view(struct safe text)
{
    return (struct str){text.at, text.len};
}

/* For a function that parses or escapes the text. It must not be printed. */
static inline struct str raw_view(struct raw text)
{
    return (struct str){(const char *)text.at, text.len};
}

/* What follows a noun of which there are so many. */
#define PLURAL(n) ((n) == 1 ? "" : "s")
#define PLURAL_ES(n) ((n) == 1 ? "" : "es")

#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})

#endif
