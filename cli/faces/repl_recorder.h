/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the settings of the flight recorder effective in the interactive mode, and takes snapshots. A session gets
 * these settings when it is created, so a change detaches from the nodes, which then send what they have recorded, and
 * attaches to them again. The events of a snapshot go into the scrollback, where the views read them like all other
 * events.
 */
#ifndef ETRACE_REPL_RECORDER_H
#define ETRACE_REPL_RECORDER_H

#include "repl_probes.h"

struct repl_recorder;

struct repl_recorder *repl_recorder_new(struct repl_base *base, struct repl_nodes *nodes, struct repl_probes *probes);
void repl_recorder_free(struct repl_recorder *r); /* accepts NULL */

/*
 * Make the first settings of the session effective: repl_recorder_open() before nodes are attached,
 * repl_recorder_begin() after that.
 */
bool repl_recorder_open(struct repl_recorder *r, struct err *e);
bool repl_recorder_begin(struct repl_recorder *r, struct err *e);

/*
 * Makes a changed setting of the recorder effective, and waits for the nodes. Returns false, with an error, if the
 * setting is not possible; then nothing has changed.
 */
bool repl_recorder_set(struct repl_recorder *r, struct err *e);
/* Returns false, with an error, if another setting that has changed is not possible while the nodes record. */
bool repl_recorder_allows(const struct repl_recorder *r, struct err *e);
/* Returns true, with an error, if `name` is an option of snapshots that only etrace trace has. */
bool repl_recorder_refuses(const char *name, struct err *e);

/*
 * Takes a snapshot of all nodes and waits for the events of the snapshot. Returns false, with an error, if there is no
 * snapshot. Sets *ret_interrupted if Ctrl-C ended the wait; the rest of the events then arrives later.
 */
bool repl_recorder_snapshot(struct repl_recorder *r, bool *ret_interrupted, struct err *e);

/* Handles a reply. Returns false if the reply answers a request of another file. */
bool repl_recorder_on_answer(struct repl_recorder *r, const struct peer *p, const struct session_reply *reply);
/* Asks all other nodes for a snapshot when one node takes a snapshot. The timer calls this function. */
void repl_recorder_tick(struct repl_recorder *r);

#endif
