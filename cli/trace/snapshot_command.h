/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a local command after each snapshot: --then 'exec COMMAND'. No shell reads the text: spaces separate its words,
 * and %n in a word becomes the number of the snapshot. The command does not stop etrace: if it fails or still runs, a
 * message says so. One command runs at a time.
 */
#ifndef ETRACE_SNAPSHOT_COMMAND_H
#define ETRACE_SNAPSHOT_COMMAND_H

#include "ctx.h"

struct snapshot_command;

/* Puts a name or a word with the number instead of each %n. */
void snapshot_put_numbered(struct buf *to, struct str pattern, uint64_t number);

/* False: the text is no action of --then. */
bool snapshot_command_check(const char *action, struct err *e);

/* The action has passed the check. Borrows the text. */
struct snapshot_command *snapshot_command_new(struct ctx *ctx, const char *action);
/* Accepts NULL. A command that still runs goes on without etrace. */
void snapshot_command_free(struct snapshot_command *c);

/* Starts the command. `file`: the name of the snapshot's first file; NULL: none. */
void snapshot_command_run(struct snapshot_command *c, uint64_t number, const char *file);
/* Waits for the command for ten seconds at most, or until a signal asks to end. Accepts NULL. Never call it in a handler. */
void snapshot_command_wait(struct snapshot_command *c);

#endif
