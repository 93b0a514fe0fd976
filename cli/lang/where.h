/*
 * `where`: the filter behind the VM, checked and typed. Evaluating it is the business of the floors above.
 */
#ifndef ETRACE_WHERE_H
#define ETRACE_WHERE_H

#include "check.h"

enum where_needs {
    WHERE_NEEDS_RETURN = 1, /* dur, ret, class, reason of a call: the result has to be traced */
    WHERE_NEEDS_CALLER = 2,
};

/* The conditions that must all hold, added to ret (struct where *); `probe` is NULL for a filter that stands alone. */
bool where_compile(struct check *k, struct ast *n, const struct ast_probe *probe, struct ptrs *ret, unsigned *ret_needs);

const char *where_word(enum where_name name);

#endif
