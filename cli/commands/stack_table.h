/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renders the table of `etrace stacks` as text and as JSON. A line is one stack, or all idle processes of one
 * behaviour: they wait for any message, and their initial calls say more than their common stack.
 */
#ifndef ETRACE_STACK_TABLE_H
#define ETRACE_STACK_TABLE_H

#include "../views/paint.h"
#include "stack_groups.h"

struct stack_table {
    const struct stack_groups *groups;
    const char *const *names; /* of nodes */
    size_t nnodes;
    bool samples; /* show shares instead of counts */
    bool all;     /* one line for each stack, also of idle processes, with all known processes */
    struct paint paint;
    unsigned columns;   /* the width; 0: unlimited */
    size_t most;        /* rows; 0: all */
    const char *filter; /* show only rows with this text; "" or NULL: all */
    size_t chosen;      /* the marked row, or the last row if there are fewer; SIZE_MAX: none */
};

struct stack_line {
    const char *behaviour; /* behaviour of the idle processes; NULL: a line of one stack */
    const struct one_stack *stack;
    const struct stack_group *const *groups; /* sorted, the most frequent first */
    size_t ngroups;
    uint64_t looks;
    int64_t waited_ms;
};

struct stack_lines {
    struct stack_line *items;
    size_t count, all; /* all: including the lines that the filter leaves out */
    uint64_t looks;    /* in all lines */
    const struct stack_group **groups;
};

/*
 * Returns the lines that match the filter: the most frequent first, the idle ones last. stack_lines_release() frees
 * them.
 */
struct stack_lines stack_lines(const struct stack_table *t);
void stack_lines_release(struct stack_lines *l);

/* Prints the table. Each line ends with `end`. Returns the number of rows. */
size_t stack_table_text(const struct stack_table *t, const char *end, struct buf *to);
void stack_table_json(const struct stack_table *t, struct buf *to);

#endif
