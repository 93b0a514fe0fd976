/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Defines the value of an expression: an encoded term (nif/etrace_wire.h), a failure, or a value that is unknown or not
 * known yet. guard.h combines values. The encoded terms that the functions below make live in the arena.
 */
#ifndef ETRACE_VALUE_H
#define ETRACE_VALUE_H

#include "../erlang/term_wire.h"
#include "../ground/mem.h"

struct value {
    enum { VALUE_TERM, VALUE_FAILED, VALUE_LATER, VALUE_UNKNOWN } state;
    bool never; /* the value is not known, but it certainly is not true */
    const uint8_t *at;
    const struct term_env *env;
};

#define VALUE_FAIL ((struct value){.state = VALUE_FAILED})
#define VALUE_DONT_KNOW ((struct value){.state = VALUE_UNKNOWN})

struct value value_int(struct arena *a, int64_t v);
struct value value_float(struct arena *a, double v);
struct value value_bool(bool v);
struct value value_atom(struct arena *a, struct raw name);
struct value value_bin(struct arena *a, struct str bytes);
struct value value_take(struct arena *a, struct buf *encoded); /* releases the buffer */
struct value value_pid(struct arena *a, uint64_t tracee);      /* makes a pid or a port */

bool value_is_bool(struct value v, bool *ret);

static inline bool value_is_undecided(struct value v)
{
    return v.state == VALUE_LATER || v.state == VALUE_UNKNOWN;
}

#endif
