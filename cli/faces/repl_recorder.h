/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Applies the settings of the flight recorder in the interactive mode, and takes snapshots. A session gets these
 * settings when it begins. A change therefore detaches from the nodes, which then send what they have recorded, and
 * attaches to them again. Events of a snapshot go into the scrollback, from which the views read them like any other
 * events.
 */
#ifndef ETRACE_REPL_RECORDER_H
#define ETRACE_REPL_RECORDER_H

#include "repl_probes.h"

struct repl_recorder;

struct repl_recorder *repl_recorder_new(struct repl_base *base, struct repl_nodes *nodes, struct repl_probes *probes);
void repl_recorder_free(struct repl_recorder *r); /* accepts NULL */

/*
 * Apply the settings with which the interactive mode begins: repl_recorder_open() must be called before nodes are
 * attached, and repl_recorder_begin() after it.
 */
bool repl_recorder_open(struct repl_recorder *r, struct err *e);
bool repl_recorder_begin(struct repl_recorder *r, struct err *e);

/*
 * Applies a changed setting of the recorder, and waits for the nodes. Returns false, with an error, if the setting is
 * not possible; nothing has changed then.
 */
bool repl_recorder_set(struct repl_recorder *r, struct err *e);
/* Returns false, with an error, if a changed setting of another kind is not possible while nodes record. */
bool repl_recorder_allows(const struct repl_recorder *r, struct err *e);
/* Returns true, with an error, if `name` is an option about snapshots that only etrace trace has. */
bool repl_recorder_refuses(const char *name, struct err *e);

/*
 * Takes a snapshot of all nodes, and waits for its events. Returns false, with an error, if no snapshot is possible. If
 * Ctrl-C ends the wait, sets *ret_interrupted and returns true; the remaining events then arrive later.
 */
bool repl_recorder_snapshot(struct repl_recorder *r, bool *ret_interrupted, struct err *e);

/* Handles a reply of a node. Returns false if it answers a request of another part. */
bool repl_recorder_on_answer(struct repl_recorder *r, const struct peer *p, const struct session_reply *reply);
/* When a node has begun a snapshot, asks all other nodes for one, too. The timer calls this function. */
void repl_recorder_tick(struct repl_recorder *r);

#endif
