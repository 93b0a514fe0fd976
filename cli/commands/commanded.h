/* Traces the node that a command starts: `etrace … -- COMMAND`. */
#ifndef ETRACE_COMMANDED_H
#define ETRACE_COMMANDED_H

#include "live.h"

/*
 * Starts the command, traces its first node from the beginning, and ends with the command. Returns the status of the
 * trace, or of the command if that is 0. o->what points to `what`; an expression that matches nothing yet is no error,
 * because the node has not loaded its code.
 */
int commanded_run(struct ctx *ctx, const struct live_options *o, struct what_opts *what, char **command);

/* Traces the held node and lets it go on. If the trace ends with a status other than 0, also terminates the command. */
int commanded_trace(struct ctx *ctx, const struct live_options *o, struct child *child);

#endif
