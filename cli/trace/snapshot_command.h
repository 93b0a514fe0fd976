/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The actions of --then that are programs: `exec COMMAND` after a snapshot, and `trace PROBE`, which runs another
 * etrace on the same nodes for a time. No shell reads the command: spaces separate its words, and %n in a word becomes
 * the number of the snapshot. A program that fails does not stop etrace, which only prints a message. At most one
 * program of each kind runs; if the one before still runs, a message says so.
 */
#ifndef ETRACE_SNAPSHOT_COMMAND_H
#define ETRACE_SNAPSHOT_COMMAND_H

#include "ctx.h"
#include "settings.h"

struct snapshot_command;

/* Appends the pattern, with the number in place of each %n. */
void snapshot_put_numbered(struct buf *to, struct str pattern, uint64_t number);

/* Reads the actions; the probes stay texts. Returns false, with an error, if an action is unknown. */
bool snapshot_actions(const struct texts *actions, struct then_opts *ret, struct err *e);

/* Make a program from the options, which they borrow. Return NULL if the options ask for no such program. */
struct snapshot_command *snapshot_command_exec(struct ctx *ctx, const struct then_opts *o);
struct snapshot_command *snapshot_command_trace(struct ctx *ctx, const struct then_opts *o,
                                                const struct node_opts *node, const struct limit_opts *limit);
/*
 * Accepts NULL. A command that still runs continues without etrace; the kernel ends a trace that still runs when etrace
 * exits.
 */
void snapshot_command_free(struct snapshot_command *c);

/*
 * Starts the program, unless `c` is NULL. `file`: the first file of the snapshot, or for a trace the file that it
 * writes; NULL: none. `node`: the name of a traced node; NULL: unknown.
 */
void snapshot_command_run(struct snapshot_command *c, uint64_t number, const char *file, const char *node);
/*
 * Waits up to ten seconds for the program, and for a trace also for the time of --then-for. A signal that asks etrace
 * to end also ends a trace, and the wait for a command. Accepts NULL. Never call it in a handler.
 */
void snapshot_command_wait(struct snapshot_command *c);

#endif
