/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates the operators and functions of guards on encoded terms: those of constant expressions (fold.c) and those of
 * filters (pipeline/where.c). A function fails where Erlang's function fails. If the part of a term that it needs was
 * cut, or an integer has more than 64 bits, the result is unknown.
 */
#ifndef ETRACE_GUARD_H
#define ETRACE_GUARD_H

#include "functions.h"
#include "value.h"

/* Whether the function can be evaluated: it has arguments, and its result depends on nothing else. */
bool guard_has(enum fn fn);

/* Applies a function that guard_has(). `node` is the name of the node of the event; empty: it is not known. */
struct value guard_apply(struct arena *a, enum fn fn, const struct value *args, size_t n, struct raw node);

/*
 * Joins the operands of `and` and `or` one by one. `and` fails with its first operand that fails; `or` ignores those
 * that fail, and fails if all do. If an operand fails behind an undecided one, `and` is false or fails: that is not
 * known, but it is not true.
 */
struct guard_logic {
    bool conjunction, all_fail;
    bool never, can_hold; /* an undecided operand cannot be true, or can */
    struct value open;    /* the result so far */
};

struct guard_logic guard_logic_begin(enum fn fn);
bool guard_logic_add(struct guard_logic *l, struct value v); /* whether the further operands change nothing */
struct value guard_logic_end(const struct guard_logic *l);

#endif
