/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the names of function arguments of a module, from the debug information of Erlang or Elixir or from the
 * signatures in its documentation. The bytes come from a node and are validated; malformed parts yield no names.
 */
#ifndef ETRACE_ARG_NAMES_H
#define ETRACE_ARG_NAMES_H

#include "../ground/mem.h"

struct arg_names {
    struct arena arena;
    struct arg_name {
        struct str function, text; /* `text`: the names of all arguments, such as "Item, N"; safe to print */
        int arity;
    } * items;
    size_t count, cap;
};

void arg_names_init(struct arg_names *n);
void arg_names_release(struct arg_names *n);

/*
 * Reads the content of the chunk Dbgi or Docs of a BEAM file. `term` is the encoded term without its version byte 131.
 */
void arg_names_read(struct arg_names *n, struct str term);
/* Returns NULL if the names are not known. */
const struct arg_name *arg_names_find(const struct arg_names *n, struct str function, int arity);

#endif
