/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the table of `etrace stacks` as text or JSON. A line is about one stack, or about all idle processes of one
 * behaviour. Idle processes wait for any message and have similar stacks, so their initial calls say more.
 */
#ifndef ETRACE_STACK_TABLE_H
#define ETRACE_STACK_TABLE_H

#include "../views/grid_order.h"
#include "stack_groups.h"

extern const struct grid_table stack_columns;

struct stack_table {
    const struct stack_groups *groups;
    const char *const *names; /* names of the nodes */
    size_t nnodes;
    struct grid_sort sort;
    bool samples; /* show the share of samples instead of the number of processes */
    bool all;     /* show a line for each stack, also of idle processes, with all processes that are known */
    struct paint paint;
    unsigned columns;   /* width of the terminal; 0: unlimited */
    size_t most;        /* limit for the rows; 0: no limit */
    const char *filter; /* show only lines that contain this text; "" or NULL: all */
    size_t chosen;      /* index of the marked row; SIZE_MAX: none. If there are fewer rows, the last one is marked */
};

struct stack_line {
    const char *behaviour; /* behaviour of the idle processes; NULL: the line is about one stack */
    const struct one_stack *stack;
    const struct stack_group *const *groups; /* the groups of the line, the most frequent first */
    size_t ngroups;
    uint64_t looks;
    int64_t waited_ms;
    int64_t growth; /* as in struct stack_group */
};

struct stack_lines {
    struct stack_line *items;
    size_t count, all; /* number of lines that match the filter, and of all lines */
    uint64_t looks;    /* number of looks at processes in all lines */
    const struct stack_group **groups;
};

/*
 * Returns the lines that match the filter: the most frequent first, those of idle processes last. The caller frees them
 * with stack_lines_release().
 */
struct stack_lines stack_lines(const struct stack_table *t);
void stack_lines_release(struct stack_lines *l);

/* Prints the table, and `end` after each line. Returns the number of rows. */
size_t stack_table_text(const struct stack_table *t, const char *end, struct buf *to);
void stack_table_json(const struct stack_table *t, struct buf *to);

#endif
