/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the printers of the passes (the table in lang.c). Each prints what its pass left in the unit. */
#ifndef ETRACE_DUMP_H
#define ETRACE_DUMP_H

#include "compile.h"

void dump_tokens(const struct unit *u, struct buf *b);
void dump_ast(const struct unit *u, struct buf *b);
void dump_checked(const struct unit *u, struct buf *b);
void dump_folded(const struct unit *u, struct buf *b);
void dump_inside(const struct unit *u, struct buf *b);
void dump_where(const struct unit *u, struct buf *b);
void dump_by(const struct unit *u, struct buf *b);
void dump_spec(const struct unit *u, struct buf *b);
void dump_fitted(const struct unit *u, struct buf *b);
void dump_program(const struct unit *u, struct buf *b);

#endif
