/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles `where`, the filter that the client evaluates, and checks its types. pipeline/where.c evaluates it. */
#ifndef ETRACE_COMPILE_WHERE_H
#define ETRACE_COMPILE_WHERE_H

#include "check.h"

/* Adds conditions (struct where *) to *ret; all of them must hold. `probe` is NULL for a filter that stands alone. */
bool where_compile(struct check *k, struct ast *n, const struct ast_probe *probe, struct ptrs *ret,
                   unsigned *ret_needs);

/* Compiles an expression after `by`. Returns NULL after an error. */
const struct where *where_value(struct check *k, struct ast *n, const struct ast_probe *probe, unsigned *ret_needs);

bool where_unit(struct str word); /* returns true if the word is a unit, like ms in 5ms */

#endif
