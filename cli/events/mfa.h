/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the terms that name a function: {M,F,A}, {M,F,Args}, and the same with a place in a file. */
#ifndef ETRACE_MFA_H
#define ETRACE_MFA_H

#include "event.h"

/* The parts of a tuple that names a function. mfa_read() returns false for other terms. */
struct mfa {
    struct raw module, function;
    int64_t arity;       /* -1: see args */
    const uint8_t *args; /* a list; NULL: see arity */
    struct raw file;     /* points into the event or into a buffer; empty: unknown */
    int64_t line;
};

/* `file` has the name of the file if that is not ASCII; NULL: the place in the file is not read. */
bool mfa_read(const struct event *e, const uint8_t *at, struct mfa *ret, struct buf *file);
/* The number of arguments that were captured, if the list was cut. */
int64_t mfa_arity(const struct mfa *m, bool *ret_cut);
struct raw mfa_base_name(struct raw path);

#endif
