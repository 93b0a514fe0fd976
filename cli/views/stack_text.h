/* SPDX-License-Identifier: Apache-2.0 */
/* Prints text for all views of stacks: the names of functions, nodes and files, and the lines about missing data. */
#ifndef ETRACE_STACK_TEXT_H
#define ETRACE_STACK_TEXT_H

#include "../fold/stacks.h"
#include "sink.h"

struct stack_texts {
    struct buf bytes; /* NUL-terminated texts */
    uint32_t *at;     /* for each key: offset of its text in `bytes` */
};

/* Prints all keys of a tree of stacks into `t`. The tree must be complete. */
void stack_texts_print(struct stack_texts *t, const struct stacks *s, enum terms_style style);
void stack_texts_release(struct stack_texts *t);

static inline const char *stack_text(const struct stack_texts *t, uint32_t key)
{
    return t->bytes.data + t->at[key];
}

/* Appends lines about missing events and calls, each after `prefix`. */
void stack_text_missing(const struct stacks *s, struct buf *to, const struct totals *t, const char *prefix);

#endif
