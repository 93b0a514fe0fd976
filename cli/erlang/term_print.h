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
    void (*atom)(struct buf *to, struct str raw);
};

extern const struct printer printer_erlang; /* io_lib:format("~0tp") */
extern const struct printer printer_elixir; /* inspect(term, limit: :infinity, width: :infinity) */

const uint8_t *erlang_print(struct buf *to, const struct term_env *env, const uint8_t *at);
void erlang_print_atom(struct buf *to, struct str raw);
void erlang_print_string(struct buf *to, struct str text, char quote); /* text is UTF-8; bad bytes leave as \x{..} */
void erlang_print_float(struct buf *to, double value);

/* Text from a node that is shown without quotes: what may not be seen leaves as \x{..}. */
void print_safe(struct buf *to, struct str text);

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
