/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the functions that term_elixir.c and term_struct.c share. No other file includes this header. */
#ifndef ETRACE_TERM_ELIXIR_H
#define ETRACE_TERM_ELIXIR_H

#include "term_print.h"

const uint8_t *elixir_print(struct buf *to, const struct term_env *env, const uint8_t *at);
void elixir_print_key(struct buf *to, struct raw name); /* prints `key: ` */
void elixir_print_char(struct buf *to, uint32_t c, char quote);
void elixir_print_missing(struct buf *to, uint64_t missing, const char *unit);
/* Matches a tuple {key, value} whose key can be printed as `key:`. */
bool elixir_is_pair(const struct term_env *env, const uint8_t *at, struct raw *ret_key, const uint8_t **ret_value);

/* A struct whose map was captured completely. */
struct elixir_struct {
    const struct term_env *env;
    struct str name; /* the module name without the prefix "Elixir." */
    const uint8_t *first;
    int64_t pairs;
};

/*
 * Prints a struct of Elixir, or of a few common libraries, as its Inspect implementation does. Returns false and prints
 * nothing if the struct is unknown or has unexpected fields.
 */
bool elixir_print_struct(struct buf *to, const struct elixir_struct *s);
/*
 * Returns the field names of a known struct in order, each followed by a space; `?` marks a field that is hidden when
 * it is empty. Returns NULL for an unknown struct.
 */
const char *elixir_field_order(struct str name);
/* Returns the value of a field, or NULL if there is no such field. */
const uint8_t *elixir_field(const struct elixir_struct *s, const char *name);

#endif
