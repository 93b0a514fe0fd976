/* A trace of the node that a command starts: `etrace … -- COMMAND`. */
#ifndef ETRACE_COMMANDED_H
#define ETRACE_COMMANDED_H

#include "live.h"

/*
 * Starts the command, traces its first node from the first thing that it does, and ends with the command: with its status,
 * unless that is 0 and the trace has one. `what` is what the options point to: what is not loaded yet is no mistake here.
 */
int commanded_run(struct ctx *ctx, const struct live_options *o, struct what_opts *what, char **command);

/* Traces the node that is held, and lets it go. A verdict, or a failure, ends the command, too. */
int commanded_trace(struct ctx *ctx, const struct live_options *o, struct child *child);

#endif
