/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does --then stacks: asks the nodes for the stacks of all processes when a snapshot begins, and prints them grouped as
 * etrace stacks does, to a file beside the first file of the snapshot, or to standard error. The questions use the
 * sessions of the trace. The answers have ten seconds; a message says which stacks are missing.
 */
#ifndef ETRACE_SNAPSHOT_STACKS_H
#define ETRACE_SNAPSHOT_STACKS_H

#include "../trace/live.h"

struct snapshot_stacks;

struct snapshot_stacks *snapshot_stacks_new(struct ctx *ctx);
void snapshot_stacks_free(struct snapshot_stacks *s); /* accepts NULL */
/* Returns the callbacks for live_run(), which live as long as `s`. */
const struct live_moment *snapshot_stacks_moment(const struct snapshot_stacks *s);

#endif
