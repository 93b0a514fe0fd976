/*
 * Terms as text. A printer is a table of functions, one table for each language; which one is taken is decided for
 * each event by its module. Printers take checked bytes (term_wire.h), never fail, and write nothing that could move a
 * cursor, hide text or forge a line: what is not plainly visible leaves as an escape.
 *
 * Something that was cut ends in `…`, with what is missing where that is known:
 *   [1,2,…]   {a,b,…+3}   #{a => 1,…+38}   "some te"…   <<"some te"…+1234 B>>
 */
#ifndef ETRACE_TERM_PRINT_H
#define ETRACE_TERM_PRINT_H

#include "term_wire.h"

struct printer {
    const char *name;
    /* Prints one term; the byte behind it. */
    const uint8_t *(*term)(struct buf *to, const struct term_env *env, const uint8_t *at);
    /* Prints so many terms that follow each other, with ", " between; NULL: they are printed one by one. */
    void (*terms)(struct buf *to, const struct term_env *env, const uint8_t *at, unsigned count);
    void (*atom)(struct buf *to, struct raw name);
};

extern const struct printer printer_erlang; /* io_lib:format("~0tp") */
extern const struct printer printer_elixir; /* inspect(term, limit: :infinity, width: :infinity) */

const uint8_t *erlang_print(struct buf *to, const struct term_env *env, const uint8_t *at);
void erlang_print_atom(struct buf *to, struct raw name);
void erlang_print_string(struct buf *to, struct raw text, char quote); /* bytes that are not UTF-8 become \x{..} */
void erlang_print_float(struct buf *to, double value);

/* Text from outside without quotes: UTF-8 in which each byte or character that utf8_shows() refuses is \x{..}. */
void print_safe(struct buf *to, struct raw text);

/* The same, in place of what `kept` had, which keeps it. */
struct safe safe_keep(struct buf *kept, struct raw text);

/* The same with a NUL behind it: in memory of its own, which the caller frees; or as much as fits into `size` bytes. */
char *safe_strdup(struct raw text);
void safe_copy(char *to, size_t size, struct raw text);

/* <0.84.0> or #Port<0.5>, in at most 40 bytes; how many. */
size_t print_tracee(char *to, uint64_t tracee);

#define FLOAT_ROOM 48
char *print_float(char *to, double value); /* at most FLOAT_ROOM bytes; the place behind them */
char *print_digits(char *to, int64_t value); /* at most 20 bytes; the place behind them */
void print_u64(struct buf *to, uint64_t value);
void print_i64(struct buf *to, int64_t value);
void print_big(struct buf *to, const uint8_t *magnitude, size_t bytes, bool negative); /* the lowest byte first */
void print_micros(char *to, uint32_t micros); /* the six digits of a fraction of a second */
/* A duration as people read it: 812ns 575us 12.3ms 1.04s 75.0s */
void print_duration(struct buf *to, int64_t ns);

#endif
