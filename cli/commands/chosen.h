/* SPDX-License-Identifier: Apache-2.0 */
/* Traces what the user has chosen in a table, after the table is closed. */
#ifndef ETRACE_CHOSEN_H
#define ETRACE_CHOSEN_H

#include "../trace/ctx.h"
#include "../trace/settings.h"

/*
 * Traces the messages of these processes on node `node`. `given` are the node options of the command. Returns the exit
 * status.
 */
int chosen_messages(struct ctx *ctx, const struct node_opts *given, const char *node, const char *const *pids,
                    size_t count);
/*
 * Traces calls and results of a function in these processes, or in all processes if `count` is 0. Returns the exit
 * status.
 */
int chosen_calls(struct ctx *ctx, const struct node_opts *given, const char *node, const char *const *pids,
                 size_t count, const char *function);

#endif
