/* SPDX-License-Identifier: Apache-2.0 */
/* Traces what the user has chosen in a table, after the table is closed. */
#ifndef ETRACE_CHOSEN_H
#define ETRACE_CHOSEN_H

#include "../trace/ctx.h"
#include "../trace/peers.h"
#include "../trace/settings.h"

/* The node of the chosen row. It outlives the peers of the table. */
struct chosen_node {
    char text[600];
    const char *name; /* points to `text` */
    struct node_opts opts;
    bool named; /* the command that is shown names the node */
};

void chosen_node(struct chosen_node *ret, const struct peers *peers, unsigned index);

/* Traces the messages of these processes on the node. Returns the exit status. */
int chosen_messages(struct ctx *ctx, const struct chosen_node *node, const char *const *pids, size_t count);
/*
 * Traces calls and results of a function in these processes, or in all processes if `count` is 0. Returns the exit
 * status.
 */
int chosen_calls(struct ctx *ctx, const struct chosen_node *node, const char *const *pids, size_t count,
                 const char *function);

#endif
