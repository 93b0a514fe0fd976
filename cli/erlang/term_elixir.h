/* What the two files of Elixir's printer share. Nothing else includes it. */
#ifndef ETRACE_TERM_ELIXIR_H
#define ETRACE_TERM_ELIXIR_H

#include "term_print.h"

const uint8_t *elixir_print(struct buf *to, const struct term_env *env, const uint8_t *at);
void elixir_print_key(struct buf *to, struct raw name); /* `key: ` */
void elixir_print_char(struct buf *to, uint32_t c, char quote);
void elixir_print_missing(struct buf *to, uint64_t missing, const char *unit);
/* A tuple {key, value} whose key may stand in front of a colon. */
bool elixir_is_pair(const struct term_env *env, const uint8_t *at, struct raw *ret_key, const uint8_t **ret_value);

/* A struct's fields: a map's pairs, all of them there. */
struct elixir_struct {
    const struct term_env *env;
    struct str name; /* without "Elixir." */
    const uint8_t *first;
    int64_t pairs;
};

/*
 * Prints it as its own Inspect implementation would, where that is Elixir's own or of a library that everybody has, and
 * the fields are as they should be. False: nothing was printed.
 */
bool elixir_print_struct(struct buf *to, const struct elixir_struct *s);
/* The fields of a struct whose order is known, each with a space behind, ? at one that hides when empty; NULL: it is not. */
const char *elixir_field_order(struct str name);
const uint8_t *elixir_field(const struct elixir_struct *s, const char *name); /* NULL: it has none */

#endif
