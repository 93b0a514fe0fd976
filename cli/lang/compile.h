/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles a parsed probe to a spec: check, then mspec, then where. */
#ifndef ETRACE_COMPILE_H
#define ETRACE_COMPILE_H

#include "mspec.h"
#include "compile_where.h"

bool compile_probe(struct comp *c, struct ast_probe *p, struct spec *ret);
bool compile_event(struct check *k, struct ast_probe *p, struct spec *s, struct ptrs *where);
bool compile_takes_everything(const struct ast_clause *cl); /* whether the head has only `_` and different variables */
void compile_atoms(struct arena *a, struct spec *s);

#endif
