/* SPDX-License-Identifier: Apache-2.0 */
/* Traces what the user chose in a table, after the table has ended. */
#ifndef ETRACE_CHOSEN_H
#define ETRACE_CHOSEN_H

#include "../trace/ctx.h"
#include "../trace/settings.h"

/* `node` is the node of the processes; `given` are the options of the command. Both return the exit status. */
int chosen_messages(struct ctx *ctx, const struct node_opts *given, const char *node, const char *const *pids,
                    size_t count);
/* Calls and results of a function, in these processes, or in all if `count` is 0. */
int chosen_calls(struct ctx *ctx, const struct node_opts *given, const char *node, const char *const *pids,
                 size_t count, const char *function);

#endif
