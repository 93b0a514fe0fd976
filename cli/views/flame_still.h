/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws a flame graph as plain shapes of an SVG, for where no script runs: in an <img>, a ticket, a mail, on paper. The
 * script of the page replaces the shapes.
 */
#ifndef ETRACE_FLAME_STILL_H
#define ETRACE_FLAME_STILL_H

#include "page_parts.h"
#include "stack_text.h"

/* Draws the tree. `title` and `missing` are the text above it; they and the texts are safe to print. */
void flame_still(struct page_still *still, const struct stacks *s, const struct stack_texts *texts, struct str title,
                 struct str missing);

#endif
