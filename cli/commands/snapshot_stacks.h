/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --then stacks: asks the nodes for the stacks of all processes when a snapshot begins, and prints them grouped as
 * etrace stacks does. They go to a file beside the first file of the snapshot, or to standard error. The questions use
 * the sessions of the trace. Ten seconds bound them; a message says which stacks are missing.
 */
#ifndef ETRACE_SNAPSHOT_STACKS_H
#define ETRACE_SNAPSHOT_STACKS_H

#include "../trace/live.h"

struct snapshot_stacks;

struct snapshot_stacks *snapshot_stacks_new(struct ctx *ctx);
void snapshot_stacks_free(struct snapshot_stacks *s); /* accepts NULL */
/* Lives as long as the struct. */
const struct live_moment *snapshot_stacks_moment(const struct snapshot_stacks *s);

#endif
