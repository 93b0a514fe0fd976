/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates the operators and functions of guards on encoded terms, for constant expressions (fold.c) and for filters
 * (pipeline/where.c). A function fails where Erlang's function fails. The result is unknown if the function needs a
 * part of a term that was cut, or an integer of more than 64 bits.
 */
#ifndef ETRACE_GUARD_H
#define ETRACE_GUARD_H

#include "functions.h"
#include "value.h"

/*
 * Returns true if guard_apply() can evaluate the function: it has arguments, and its result depends only on them and on
 * the name of the node.
 */
bool guard_has(enum fn fn);

/* Applies a function for which guard_has() is true. `node` is the name of the event's node; it is empty if unknown. */
struct value guard_apply(struct arena *a, enum fn fn, const struct value *args, size_t n, struct raw node);

/*
 * Joins the operands of `and` and `or` one by one. `and` fails with its first operand that fails. `or` ignores operands
 * that fail, and fails if all do. If an operand of `and` fails after an undecided operand, the result is undecided
 * (false or failed) but never true.
 */
struct guard_logic {
    bool conjunction, all_fail;
    bool never, can_hold; /* never: some undecided operand cannot become true; can_hold: some undecided operand can */
    struct value open;    /* the result of the operands so far */
};

struct guard_logic guard_logic_begin(enum fn fn);
/* Adds the value of the next operand. Returns true if further operands cannot change the result. */
bool guard_logic_add(struct guard_logic *l, struct value v);
struct value guard_logic_end(const struct guard_logic *l);

#endif
