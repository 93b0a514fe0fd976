/* SPDX-License-Identifier: Apache-2.0 */
/* Traces the node that a command starts: `etrace … -- COMMAND`. */
#ifndef ETRACE_COMMAND_NODE_H
#define ETRACE_COMMAND_NODE_H

#include "live.h"

/*
 * Starts the command, traces its first node from the beginning, and ends with the command. Returns the status of the
 * trace, or of the command if that of the trace is 0. o->what points to `what`. It is no error if an expression matches
 * nothing yet, because the node has not loaded its code.
 */
int command_node_run(struct ctx *ctx, const struct live_options *o, struct what_opts *what, char **command);

/* Traces the held node and lets it go on. If the status of the trace is not 0, also terminates the command. */
int command_node_trace(struct ctx *ctx, const struct live_options *o, struct child *child);

#endif
