/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the terms that name a function: {M,F,A}, {M,F,Args}, and the same with a place in a file. */
#ifndef ETRACE_MFA_H
#define ETRACE_MFA_H

#include "event.h"

/* The parts of a tuple that names a function. */
struct mfa {
    struct raw module, function;
    int64_t arity;       /* -1: see args */
    const uint8_t *args; /* a list; NULL: see arity */
    struct raw file;     /* points into the event or into a buffer; empty: unknown */
    int64_t line;
};

/*
 * Reads such a tuple; returns false for other terms. *file gets the file name if that is not ASCII. If `file` is NULL,
 * does not read the place in the file.
 */
bool mfa_read(const struct event *e, const uint8_t *at, struct mfa *ret, struct buf *file);
/* Returns the arity. If the list of arguments was cut, sets *ret_cut and returns the number of captured arguments. */
int64_t mfa_arity(const struct mfa *m, bool *ret_cut);
struct raw mfa_base_name(struct raw path);

#endif
