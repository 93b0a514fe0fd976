/*
 * `where`: the filter behind the VM, checked and typed. Evaluating it is the business of the floors above.
 */
#ifndef ETRACE_WHERE_H
#define ETRACE_WHERE_H

#include "check.h"

/* The conditions that must all hold, added to ret (struct where *); `probe` is NULL for a filter that stands alone. */
bool where_compile(struct check *k, struct ast *n, const struct ast_probe *probe, struct ptrs *ret, unsigned *ret_needs);

const char *where_word(enum where_name name);
bool where_unit(struct str word); /* whether it is a unit, as the ms of 5ms */

#endif
