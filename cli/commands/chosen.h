/* SPDX-License-Identifier: Apache-2.0 */
/* Traces what the user has chosen in a table, after the table has ended. */
#ifndef ETRACE_CHOSEN_H
#define ETRACE_CHOSEN_H

#include "../trace/ctx.h"
#include "../trace/settings.h"

/*
 * Trace the messages of processes of the node `node`. `given` are the options of the command. Return the exit status,
 * as chosen_calls() does.
 */
int chosen_messages(struct ctx *ctx, const struct node_opts *given, const char *node, const char *const *pids,
                    size_t count);
/* Traces calls and results of a function, in these processes, or in all if `count` is 0. */
int chosen_calls(struct ctx *ctx, const struct node_opts *given, const char *node, const char *const *pids,
                 size_t count, const char *function);

#endif
