/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actions of --then that are programs: `exec COMMAND` after a snapshot, and `trace PROBE`, which runs another
 * etrace on the same nodes for a time. No shell reads the command: spaces separate its words, and %n in a word becomes
 * the number of the snapshot. A program does not stop etrace: if it fails or still runs, a message says so. One of each
 * kind runs at a time.
 */
#ifndef ETRACE_SNAPSHOT_COMMAND_H
#define ETRACE_SNAPSHOT_COMMAND_H

#include "ctx.h"
#include "settings.h"

struct snapshot_command;

/* Puts a name or a word with the number instead of each %n. */
void snapshot_put_numbered(struct buf *to, struct str pattern, uint64_t number);

/* Reads the actions. False: one is unknown. Does not read the probes. */
bool snapshot_actions(const struct texts *actions, struct then_opts *ret, struct err *e);

/* NULL: the options ask for no such program. They are borrowed. */
struct snapshot_command *snapshot_command_exec(struct ctx *ctx, const struct then_opts *o);
struct snapshot_command *snapshot_command_trace(struct ctx *ctx, const struct then_opts *o,
                                                const struct node_opts *node);
/* Accepts NULL. A program that still runs goes on without etrace. */
void snapshot_command_free(struct snapshot_command *c);

/*
 * Starts the program. `file`: the first file of the snapshot, or the file that a trace writes; NULL: none. `node`: the
 * name of a traced node; NULL: unknown. Accepts NULL for c.
 */
void snapshot_command_run(struct snapshot_command *c, uint64_t number, const char *file, const char *node);
/*
 * Waits for the program for ten seconds at most, for a trace also for its time. A signal that asks to end also ends a
 * trace, and the wait for a command. Accepts NULL. Never call it in a handler.
 */
void snapshot_command_wait(struct snapshot_command *c);

#endif
