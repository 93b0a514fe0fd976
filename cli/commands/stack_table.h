/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the table of `etrace stacks` as text or JSON. A line is about one stack, or about all idle processes of one
 * behaviour. Idle processes wait for any message and have similar stacks, so their initial calls say more.
 */
#ifndef ETRACE_STACK_TABLE_H
#define ETRACE_STACK_TABLE_H

#include "../views/grid_order.h"
#include "../views/grid_window.h"
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
    unsigned columns;           /* width of the terminal; 0: unlimited */
    struct grid_window *window; /* the rows to print; NULL: all */
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

void stack_table_text(const struct stack_table *t, struct buf *to);
void stack_table_json(const struct stack_table *t, struct buf *to);

/* Calls `use` with the line that the window marks. Returns false if there is none. */
bool stack_table_chosen(const struct stack_table *t, void (*use)(void *data, const struct stack_line *line),
                        void *data);
/* Prints all that is known about that line: the functions of its stacks, one in each line, and its processes. */
bool stack_table_details(const struct stack_table *t, struct buf *to);

#endif
