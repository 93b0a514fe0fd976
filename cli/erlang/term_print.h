/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints terms as text. A printer is a table of functions, one table for each language; the module of an event decides
 * which printer prints it. Printers take bytes that wire_check() accepted (term_wire.h) and never fail. They escape
 * every character that is not plainly visible, so no output can move the cursor, hide text or forge a line.
 *
 * A term that was cut ends in `…`, followed by the size of the missing part if it is known:
 *   [1,2,…]   {a,b,…+3}   #{a => 1,…+38}   "some te"…   <<"some te"…+1234 B>>
 */
#ifndef ETRACE_TERM_PRINT_H
#define ETRACE_TERM_PRINT_H

#include "../ground/number.h"
#include "term_wire.h"

struct printer {
    const char *name;
    /* Prints one term. Returns the byte after it. */
    const uint8_t *(*term)(struct buf *to, const struct term_env *env, const uint8_t *at);
    /*
     * Prints `count` consecutive terms, separated by ", ". If the pointer is NULL, the caller prints the terms one by
     * one.
     */
    void (*terms)(struct buf *to, const struct term_env *env, const uint8_t *at, unsigned count);
    void (*atom)(struct buf *to, struct raw name);
};

extern const struct printer printer_erlang; /* io_lib:format("~0tp") */
extern const struct printer printer_elixir; /* inspect(term, limit: :infinity, width: :infinity) */
/* Returns true for the atom of an alias, such as 'Elixir.Shop.Cart', but not for 'Elixir.foo'. */
bool elixir_is_module(struct raw atom);

const uint8_t *erlang_print(struct buf *to, const struct term_env *env, const uint8_t *at);
void erlang_print_atom(struct buf *to, struct raw name);
void erlang_print_string(struct buf *to, struct raw text, char quote); /* prints bytes that are not UTF-8 as \x{..} */
void erlang_print_float(struct buf *to, double value);

/* Prints untrusted text without quotes, as UTF-8. Each byte or character that utf8_shows() rejects becomes \x{..}. */
void print_safe(struct buf *to, struct raw text);

/* Writes escaped text like print_safe(), but replaces the content of `kept`. Returns the text, which `kept` owns. */
struct safe safe_keep(struct buf *kept, struct raw text);

/*
 * Return text that is escaped as by print_safe() and ends with a NUL. The caller frees the result of safe_strdup().
 * safe_copy() writes at most `size` bytes to `to`, with the NUL.
 */
char *safe_strdup(struct raw text);
void safe_copy(char *to, size_t size, struct raw text);

/* Writes <0.84.0> or #Port<0.5>, at most 40 bytes. Returns the number of bytes. */
size_t print_tracee(char *to, uint64_t tracee);

#endif
