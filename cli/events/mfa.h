/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the terms that name a function: {M,F,A} and {M,F,Args}; a place in a file may follow as the fourth element. */
#ifndef ETRACE_MFA_H
#define ETRACE_MFA_H

#include "event.h"

/* The parts of a tuple that names a function. */
struct mfa {
    struct raw module, function;
    int64_t arity;       /* -1: the length of `args`, see mfa_arity() */
    const uint8_t *args; /* the list of arguments; NULL: the term has only an arity */
    struct raw file;     /* points into the event or into a buffer; empty: unknown */
    int64_t line;
};

/*
 * Reads a tuple that names a function. Returns false for other terms. Writes the file name to `file` if the name is not
 * ASCII. If `file` is NULL, ignores the place in the file.
 */
bool mfa_read(const struct event *e, const uint8_t *at, struct mfa *ret, struct buf *file);
/* Returns the arity. If the list of arguments was cut, sets *ret_cut and returns the number of captured arguments. */
int64_t mfa_arity(const struct mfa *m, bool *ret_cut);
struct raw mfa_base_name(struct raw path);

#endif
