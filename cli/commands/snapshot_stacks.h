/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Implements --then stacks: when a snapshot begins, asks the nodes for the stacks of all processes. Groups and prints
 * them as etrace stacks does, to a file beside the first file of the snapshot, or to standard error. The requests use
 * the sessions of the trace. The answers must arrive within ten seconds; a message names the nodes whose stacks are
 * incomplete.
 */
#ifndef ETRACE_SNAPSHOT_STACKS_H
#define ETRACE_SNAPSHOT_STACKS_H

#include "../trace/live.h"

struct snapshot_stacks;

struct snapshot_stacks *snapshot_stacks_new(struct ctx *ctx);
void snapshot_stacks_free(struct snapshot_stacks *s); /* accepts NULL */
/* Returns the callbacks for live_run(). They are valid until snapshot_stacks_free(). */
const struct live_moment *snapshot_stacks_moment(const struct snapshot_stacks *s);

#endif
