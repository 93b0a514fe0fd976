/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates the operators and functions of guards on encoded terms. A function fails where Erlang's function fails. If
 * the part of a term that it needs was cut, or an integer has more than 64 bits, the result is unknown.
 */
#ifndef ETRACE_GUARD_H
#define ETRACE_GUARD_H

#include "functions.h"
#include "value.h"

/* Applies a function to terms. `node` is the name of the node of the event. */
struct value guard_apply(struct arena *a, enum fn fn, const struct value *args, size_t n, struct raw node);

#endif
