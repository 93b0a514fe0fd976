/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains which expressions of one command can match the same event, and which actions then apply. It reads only the
 * text of the expressions and asks no node, so it does not know which functions app() or behaviour() select.
 */
#ifndef ETRACE_OVERLAP_H
#define ETRACE_OVERLAP_H

#include "exprs.h"

/* Appends a paragraph that says which probes overlap; the first probe has the number 1. Appends nothing if none do. */
void overlap_explain(struct exprs *exprs, struct buf *b);

#endif
